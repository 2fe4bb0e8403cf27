//! Time is dear: a whole pipeline around an operation that is ready at once reads the clock when the call begins
//! and when its attempt ends, and sets no timer.

mod support;

use std::{
    convert::Infallible,
    future::{Future, Pending, pending, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
};

use relent::{BlockingClock, Clock, Pipeline, Policy, Timestamp};
use support::{standard, whole};

/// A clock that counts how often it is asked.
#[derive(Clone, Debug, Default)]
struct Counting {
    reads: Arc<AtomicU32>,
    timers: Arc<AtomicU32>,
}

impl Clock for Counting {
    type Sleep = Pending<()>;

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_000 + u64::from(self.reads.fetch_add(1, Relaxed)))
    }

    fn sleep_until(&self, _: Timestamp) -> Pending<()> {
        self.timers.fetch_add(1, Relaxed);
        pending()
    }
}

impl BlockingClock for Counting {
    fn block_until<F: Future>(&self, _: Timestamp, future: F) -> Option<F::Output> {
        self.timers.fetch_add(1, Relaxed);
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    fn pause_until(&self, _: Timestamp) {
        self.timers.fetch_add(1, Relaxed);
    }
}

/// Clocks, with pipelines that hold everything and those that a call goes straight through.
fn users() -> impl Iterator<Item = (Counting, Pipeline<Counting>)> {
    [whole, standard].into_iter().map(|policy: fn() -> Policy| {
        let clock = Counting::default();
        (clock.clone(), Pipeline::on(clock, policy()).unwrap())
    })
}

fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_ready_call_reads_the_clock_twice_and_sets_no_timer() {
    for (clock, users) in users() {
        assert!(matches!(poll_once(users.run(|_| async { Ok::<_, Infallible>(7) })), Poll::Ready(Ok(7))));
        assert_eq!((clock.reads.load(Relaxed), clock.timers.load(Relaxed)), (2, 0));
    }
}

#[test]
fn a_ready_blocking_call_does_so_too() {
    for (clock, users) in users() {
        assert_eq!(users.run_blocking(|_| Ok::<_, Infallible>(7)).unwrap(), 7);
        assert_eq!((clock.reads.load(Relaxed), clock.timers.load(Relaxed)), (2, 0));
    }
}

#[test]
fn one_that_waits_once_sets_one_timer_for_both_deadlines() {
    for (clock, users) in users() {
        let mut waited = false;
        let mut call = pin!(users.run(|_| {
            let mut first = !std::mem::replace(&mut waited, true);
            poll_fn(move |_| match std::mem::take(&mut first) {
                true => Poll::Pending,
                false => Poll::Ready(Ok::<_, Infallible>(7)),
            })
        }));
        let mut poll = || call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(poll().is_pending());
        assert!(matches!(poll(), Poll::Ready(Ok(7))));
        assert_eq!((clock.reads.load(Relaxed), clock.timers.load(Relaxed)), (2, 1));
    }
}
