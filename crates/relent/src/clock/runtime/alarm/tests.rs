//! What becomes of alarms that sleeps let go.

mod model;
mod strange;

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Wake, Waker},
    thread,
};

use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::{
    Clock, TokioClock,
    clock::{TokioSleep, UnixClock},
};

const SECOND: Duration = Duration::from_secs(1);

fn kept() -> Vec<Timestamp> {
    HERE.with_borrow(|here| here.alarms.iter().map(|alarm| alarm.ends).collect())
}

fn paused() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// A sleep that has begun, in a thread that keeps alarms although time is paused.
async fn begun(length: Duration) -> Pin<Box<TokioSleep>> {
    let mut sleep = Box::pin(TokioClock.sleep(length));
    poll_fn(|cx| {
        assert!(sleep.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
    HERE.with_borrow_mut(|here| here.at_most = KEPT);
    sleep
}

#[tokio::test(start_paused = true)]
async fn a_sleep_that_is_let_go_leaves_its_alarm_to_the_next() {
    drop(begun(SECOND).await);
    let left = kept();
    assert_eq!(left.len(), 1);
    tokio::time::advance(SECOND / 4).await;
    let sleep = begun(SECOND).await;
    assert_eq!(kept(), [], "it was taken over");
    drop(sleep);
    assert_eq!(kept(), left, "as it was");
    tokio::time::advance(SECOND / 2).await;
    drop(begun(SECOND).await);
    assert_eq!(kept(), [TokioClock.now().after(SECOND)], "it would have ended too soon, and was set anew");
}

#[tokio::test(start_paused = true)]
async fn a_sleep_ends_at_its_own_instant_whatever_the_alarm_that_it_took_over() {
    for other in [1, 300, 600, 999, 1_000, 1_001, 2_000, 59_000] {
        for passed in [0, 1, 250, 700, 1_500, 90_000] {
            drop(begun(Duration::from_millis(other)).await);
            tokio::time::advance(Duration::from_millis(passed)).await;
            let began = TokioClock.now();
            TokioClock.sleep(SECOND).await;
            let slept = TokioClock.now().since(began);
            assert!(
                slept >= SECOND && slept <= SECOND + Duration::from_millis(2),
                "{other} {passed} {slept:?}"
            );
            let read = UnixClock::new();
            let at = read.now().after(SECOND);
            read.sleep_until(at).await;
            assert!(read.now() >= at && read.now().since(at) <= Duration::from_millis(2));
        }
    }
}

#[test]
fn an_alarm_of_a_runtime_that_is_over_is_not_taken_over() {
    for _ in 0..3 {
        paused().block_on(async {
            drop(begun(SECOND).await);
            assert_eq!(kept().len(), 1, "what the runtime before has left is gone");
            let began = TokioClock.now();
            TokioClock.sleep(2 * SECOND).await;
            assert!(TokioClock.now().since(began) >= 2 * SECOND);
            drop(begun(SECOND).await);
        });
    }
}

#[test]
fn a_sleep_of_another_runtime_leaves_nothing_here() {
    let (here, elsewhere) = (paused(), paused());
    let foreign = elsewhere.block_on(begun(SECOND));
    here.block_on(async {
        drop(begun(SECOND).await);
        drop(foreign);
        assert_eq!(kept().len(), 1);
    });
    let moved = here.block_on(begun(SECOND));
    let left = thread::spawn(move || {
        drop(moved);
        kept().len()
    });
    assert_eq!(left.join().unwrap(), 0, "that thread has never slept");
}

#[test]
fn a_sleep_may_outlive_its_runtime_and_its_thread() {
    thread::spawn(|| {
        thread_local!(static LAST: RefCell<Option<Pin<Box<TokioSleep>>>> = const { RefCell::new(None) });
        LAST.set(None); // so that it ends after the list of alarms
        let runtime = paused();
        LAST.set(Some(runtime.block_on(begun(SECOND))));
        let second = runtime.block_on(begun(SECOND));
        drop(runtime);
        drop(second);
    })
    .join()
    .unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_is_bounded_in_number_and_in_time() {
    let mut sleeping = Vec::new();
    for _ in 0..KEPT + 10 {
        sleeping.push(begun(SECOND).await);
    }
    sleeping.clear();
    assert_eq!(kept().len(), KEPT);
    for _ in 0..KEPT {
        sleeping.push(begun(KEPT_FOR).await);
    }
    drop(begun(KEPT_FOR + SECOND).await);
    assert_eq!(kept(), [], "a longer one would hold its waker for longer");
}

#[tokio::test(start_paused = true)]
async fn whoever_let_go_is_woken_no_more_than_once_and_then_forgotten() {
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    let count = Arc::new(Count(AtomicUsize::new(0)));
    drop(begun(SECOND).await);
    let mut sleep = Box::pin(TokioClock.sleep(SECOND));
    let waker = Waker::from(Arc::clone(&count));
    assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop((sleep, waker));
    tokio::time::sleep(2 * SECOND).await;
    assert!(count.0.load(Relaxed) <= 1);
    assert_eq!(Arc::strong_count(&count), 1);
}

#[test]
fn a_waker_that_holds_a_sleep_is_dropped_where_nobody_borrows_the_list() {
    struct Holds(#[expect(dead_code, reason = "it is dropped with this")] Pin<Box<TokioSleep>>);
    impl Wake for Holds {
        fn wake(self: Arc<Self>) {}
    }
    async fn held() -> Pin<Box<TokioSleep>> {
        let waker = Waker::from(Arc::new(Holds(begun(SECOND).await)));
        let mut sleep = Box::pin(TokioClock.sleep(SECOND));
        assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        sleep
    }
    paused().block_on(async {
        let mut sleeping = Vec::new();
        for _ in 0..KEPT {
            sleeping.push(held().await);
        }
        drop(held().await);
        drop(sleeping);
        assert_eq!(kept().len(), KEPT, "one was too many, and so was the sleep that its waker held");
    });
    paused().block_on(async {
        drop(begun(SECOND).await);
        assert_eq!(kept().len(), 1, "what the others' wakers held was of their runtime");
    });
}
