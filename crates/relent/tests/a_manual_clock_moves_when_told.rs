//! The clock for tests keeps its own promises, with tokio and without any executor.

use std::{
    future::{Future, pending, poll_fn},
    pin::pin,
    sync::{Arc, Mutex, mpsc},
    task::{Context, Poll, Wake, Waker},
    thread,
    time::Duration,
};

use relent::{Clock, ManualClock, Timestamp};

const SECOND: Duration = Duration::from_secs(1);

/// A waker that writes its name down.
struct Named(&'static str, Arc<Mutex<Vec<&'static str>>>);

impl Wake for Named {
    fn wake(self: Arc<Self>) {
        self.1.lock().unwrap().push(self.0);
    }
}

fn poll_once<F: Future>(future: std::pin::Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

#[test]
fn sleepers_wake_in_the_order_of_their_instants() {
    let clock = ManualClock::starting_at(Timestamp::from_secs(100));
    let woken = Arc::new(Mutex::new(Vec::new()));
    let named = |name| Waker::from(Arc::new(Named(name, Arc::clone(&woken))));
    let mut late = pin!(clock.sleep(3 * SECOND));
    let mut early = pin!(clock.sleep(SECOND));
    let mut middle = pin!(clock.sleep(2 * SECOND));
    assert!(poll_once(late.as_mut(), &named("late")).is_pending());
    assert!(poll_once(early.as_mut(), &named("early")).is_pending());
    assert!(poll_once(middle.as_mut(), &named("middle")).is_pending());

    assert_eq!(clock.next_wake(), Some(Timestamp::from_secs(101)));
    clock.advance(2 * SECOND);
    assert_eq!(*woken.lock().unwrap(), ["early", "middle"]);
    assert_eq!(clock.advance_to_next(), Some(Timestamp::from_secs(103)));
    assert_eq!(*woken.lock().unwrap(), ["early", "middle", "late"]);
    assert!(poll_once(late.as_mut(), Waker::noop()).is_ready());
    assert_eq!(clock.advance_to_next(), None, "nobody sleeps, so the time stands still");
    assert_eq!(clock.now(), Timestamp::from_secs(103));
}

#[test]
fn a_dropped_sleep_leaves_no_place_behind() {
    let clock = ManualClock::new();
    for _ in 0..100 {
        let mut sleep = Box::pin(clock.sleep(SECOND));
        assert!(poll_once(sleep.as_mut(), Waker::noop()).is_pending());
        assert!(poll_once(sleep.as_mut(), Waker::noop()).is_pending(), "polled again, still one place");
        assert_eq!(clock.sleepers(), 1);
    }
    assert_eq!(clock.sleepers(), 0);
}

#[test]
fn a_sleep_goes_by_the_waker_it_was_last_polled_with() {
    let clock = ManualClock::new();
    let woken = Arc::new(Mutex::new(Vec::new()));
    let named = |name| Waker::from(Arc::new(Named(name, Arc::clone(&woken))));
    let mut sleep = pin!(clock.sleep(SECOND));
    assert!(poll_once(sleep.as_mut(), &named("first")).is_pending());
    assert!(poll_once(sleep.as_mut(), &named("second")).is_pending());
    clock.advance(SECOND);
    assert_eq!(*woken.lock().unwrap(), ["second"]);
}

#[test]
fn a_zero_wait_yields_once() {
    let clock = ManualClock::new();
    let mut sleep = pin!(clock.sleep(Duration::ZERO));
    assert!(poll_once(sleep.as_mut(), Waker::noop()).is_pending());
    assert_eq!(clock.sleepers(), 0, "it yields without a timer");
    assert!(poll_once(sleep.as_mut(), Waker::noop()).is_ready());
}

#[test]
fn without_an_executor_it_stops_at_every_sleeper() {
    let clock = ManualClock::new();
    let seen = Mutex::new(Vec::new());
    let nap = |length: u32| {
        let (clock, seen) = (&clock, &seen);
        async move {
            for _ in 0..2 {
                clock.sleep(length * SECOND).await;
                seen.lock().unwrap().push((length, clock.now().as_secs()));
            }
        }
    };
    clock.block_on(async {
        let (mut two, mut three) = (pin!(nap(2)), pin!(nap(3)));
        let (mut two_done, mut three_done) = (false, false);
        poll_fn(|cx| {
            two_done = two_done || two.as_mut().poll(cx).is_ready();
            three_done = three_done || three.as_mut().poll(cx).is_ready();
            if two_done && three_done { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    });
    assert_eq!(*seen.lock().unwrap(), [(2, 2), (3, 3), (2, 4), (3, 6)]);
}

#[test]
fn block_on_waits_for_what_is_not_time() {
    let clock = ManualClock::new();
    let (sender, receiver) = mpsc::channel::<Waker>();
    let helper = thread::spawn(move || receiver.recv().expect("the future sends its waker").wake());
    let mut asked = false;
    clock.block_on(poll_fn(|cx| {
        if std::mem::replace(&mut asked, true) {
            return Poll::Ready(());
        }
        sender.send(cx.waker().clone()).expect("the thread waits");
        Poll::Pending
    }));
    helper.join().unwrap();
    assert_eq!(clock.now(), Timestamp::ZERO);
}

#[tokio::test]
async fn a_driven_task_elsewhere_is_moved_along() {
    let clock = ManualClock::new();
    let sleeper = clock.clone();
    let task = tokio::spawn(async move {
        for _ in 0..3 {
            sleeper.sleep(SECOND).await;
        }
        sleeper.now()
    });
    assert_eq!(clock.drive(task).await.unwrap(), Timestamp::from_secs(3));
}

#[tokio::test]
async fn a_test_can_wait_until_everybody_sleeps() {
    let clock = ManualClock::new();
    let tasks: Vec<_> = (1..=3)
        .map(|n| {
            let clock = clock.clone();
            tokio::spawn(async move { clock.sleep(n * SECOND).await })
        })
        .collect();
    clock.until_asleep(3).await;
    clock.advance(2 * SECOND);
    for task in tasks.into_iter().take(2) {
        task.await.unwrap();
    }
    assert_eq!(clock.sleepers(), 1);
}

#[tokio::test]
async fn a_drive_can_be_given_up() {
    let clock = ManualClock::new();
    {
        let mut drive = pin!(clock.drive(pending::<()>()));
        assert!(poll_once(drive.as_mut(), Waker::noop()).is_pending());
    }
    clock.drive(clock.sleep(SECOND)).await;
    assert_eq!(clock.now(), Timestamp::from_secs(1));
}
