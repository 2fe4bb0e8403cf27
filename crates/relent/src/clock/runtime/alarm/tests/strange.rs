//! Alarms in strange hands: those of other runtimes, of busy tasks, and of none.

use super::*;

/// Polls it until it is ready, and fails where that takes too many polls.
async fn before_long(mut sleep: Pin<Box<TokioSleep>>) {
    let mut polls = 0;
    poll_fn(|cx| {
        polls += 1;
        assert!(polls < 100, "it is polled over and over");
        sleep.as_mut().poll(cx)
    })
    .await;
}

#[test]
fn a_sleep_goes_on_in_a_runtime_whose_clock_is_behind() {
    let (ahead, behind) = (paused(), paused());
    let sleep = ahead.block_on(begun(SECOND));
    ahead.block_on(async { tokio::time::sleep(2 * SECOND).await });
    behind.block_on(async {
        let began = TokioClock.now();
        before_long(sleep).await;
        assert!(TokioClock.now().since(began) <= SECOND);
    });
}

#[test]
#[should_panic(expected = "no reactor")]
fn a_sleep_that_leaves_the_runtime_whose_clock_it_needs_panics() {
    let runtime = paused();
    let mut sleep = runtime.block_on(begun(30 * SECOND));
    runtime.block_on(async { tokio::time::sleep(60 * SECOND).await });
    let _never = sleep.as_mut().poll(&mut Context::from_waker(Waker::noop()));
}

#[tokio::test(start_paused = true)]
async fn a_sleep_that_has_ended_forgets_its_waker() {
    struct Asleep;
    impl Wake for Asleep {
        fn wake(self: Arc<Self>) {}
    }
    let waker = Arc::new(Asleep);
    let mut sleep = Box::pin(TokioClock.sleep(SECOND));
    let task = Waker::from(Arc::clone(&waker));
    assert!(sleep.as_mut().poll(&mut Context::from_waker(&task)).is_pending());
    tokio::time::sleep(2 * SECOND).await;
    assert!(sleep.as_mut().poll(&mut Context::from_waker(&task)).is_ready());
    drop((sleep, task));
    assert_eq!(Arc::strong_count(&waker), 1);
}

#[tokio::test(start_paused = true)]
async fn a_sleep_ends_though_its_task_has_used_up_its_budget() {
    let sleep = begun(SECOND).await;
    tokio::time::advance(2 * SECOND).await;
    let mut sleep = sleep;
    let ended = poll_fn(|cx| {
        while coop::has_budget_remaining() {
            let _used = pin!(coop::consume_budget()).poll(cx);
        }
        Poll::Ready(sleep.as_mut().poll(cx))
    });
    assert!(ended.await.is_ready());
}

#[test]
fn a_thread_keeps_alarms_where_time_passes_and_not_where_it_is_paused() {
    async fn kept_of_one() -> usize {
        TokioClock.sleep(Duration::ZERO).await;
        drop(tokio::time::timeout(Duration::ZERO, TokioClock.sleep(SECOND)).await);
        kept().len()
    }
    let passing = Builder::new_current_thread().enable_time().build().unwrap();
    let moved = paused();
    for _ in 0..2 {
        assert_eq!(passing.block_on(kept_of_one()), 1);
        assert_eq!(moved.block_on(kept_of_one()), 0);
        moved.block_on(tokio::time::advance(SECOND));
    }
}
