//! Cheap enough to leave on: the driver takes no memory from the heap, retried or not, failed or not.

mod counting;
mod support;

use std::{
    convert::Infallible,
    future::{Future, Pending, pending},
    io,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use counting::counted;
use relent::{
    Clock, ConcurrencyPolicy, Error, Event, Gates, Observe, Pipeline, Policy, Scene, StopReason, Timestamp,
};
use support::{standard, whole};

/// A clock whose sleepers find their instant come at once; it keeps no list of them.
#[derive(Clone, Debug, Default)]
struct Leaping(Arc<AtomicU64>);

/// Moves its clock on.
struct Leap {
    clock: Leaping,
    at: Timestamp,
}

impl Future for Leap {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        self.clock.0.fetch_max(self.at.as_nanos(), Ordering::Relaxed);
        Poll::Ready(())
    }
}

impl Clock for Leaping {
    type Sleep = Leap;

    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.load(Ordering::Relaxed))
    }

    fn sleep_until(&self, at: Timestamp) -> Leap {
        Leap { clock: self.clone(), at }
    }
}

/// A clock that never moves: its sleepers sleep.
#[derive(Clone, Debug)]
struct Standing;

impl Clock for Standing {
    type Sleep = Pending<()>;

    fn now(&self) -> Timestamp {
        Timestamp::from_secs(1)
    }

    fn sleep_until(&self, _: Timestamp) -> Pending<()> {
        pending()
    }
}

/// Polls to the end a future that never waits for anybody, and counts what it allocates.
fn polled<F: Future>(future: F) -> (F::Output, u32) {
    let mut future = pin!(future);
    let (poll, allocations) = counted(|| future.as_mut().poll(&mut Context::from_waker(Waker::noop())));
    let Poll::Ready(output) = poll else { panic!("it waits for somebody") };
    (output, allocations)
}

fn users() -> Pipeline<Leaping> {
    Pipeline::on(Leaping::default(), whole()).unwrap().named("users")
}

/// An observer that listens to everything and keeps nothing.
struct Deaf;

impl Observe for Deaf {
    fn observe(&self, _: Scene<'_>, event: &Event<'_>) {
        std::hint::black_box(event);
    }
}

#[test]
fn a_success_at_once_allocates_nothing() {
    let straight = Pipeline::on(Leaping::default(), standard()).unwrap();
    for users in [users(), straight] {
        let (result, allocations) = polled(users.safe().run(|_| async { Ok::<_, Infallible>(42) }));
        assert_eq!((result.unwrap(), allocations), (42, 0));
    }
}

/// Ready the second time it is polled, as an operation is that waits for a socket.
fn pending_once() -> impl Future<Output = Result<u32, Infallible>> {
    let mut polled = false;
    std::future::poll_fn(move |cx| {
        if std::mem::replace(&mut polled, true) {
            return Poll::Ready(Ok(42));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}

#[test]
fn a_call_that_pends_under_two_deadlines_allocates_nothing_where_execution_policy_allocates_twice() {
    for policy in [whole(), standard()] {
        let users = Pipeline::on(Standing, policy).unwrap();
        let mut call = pin!(users.safe().run(|_| pending_once()));
        let mut cx = Context::from_waker(Waker::noop());
        let (pending, first) = counted(|| call.as_mut().poll(&mut cx).is_pending());
        let (ended, second) = counted(|| call.as_mut().poll(&mut cx));
        assert!(pending, "it waits, and its timer is set");
        assert!(matches!(ended, Poll::Ready(Ok(42))));
        assert_eq!((first, second), (0, 0));
    }
}

#[test]
fn a_success_after_retries_and_a_timeout_allocates_nothing() {
    let users = users();
    let operation = |attempt: relent::Attempt| async move {
        match attempt.number {
            1 => Err(io::Error::from(io::ErrorKind::ConnectionReset)),
            2 => pending().await,
            _ => Ok(42),
        }
    };
    let ((result, report), allocations) = polled(users.safe().run_with_report(operation));
    assert_eq!((result.unwrap(), report.attempts, allocations), (42, 3, 0));
    assert!(report.took >= Duration::from_secs(2));
}

#[test]
fn a_failure_with_its_report_allocates_nothing() {
    let users = users();
    let operation = |_| async { Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionReset)) };
    let (result, allocations) = polled(users.safe().run(operation));
    let error: Error<io::Error> = result.unwrap_err();
    assert_eq!((error.stop(), allocations), (StopReason::AttemptsExhausted, 0));
}

#[test]
fn an_observer_costs_no_memory_either() {
    let users = users().observed_by(Arc::new(Deaf));
    let (result, allocations) = polled(users.safe().run(|_| async { Ok::<_, Infallible>(42) }));
    assert_eq!((result.unwrap(), allocations), (42, 0));
}

#[test]
fn an_open_breaker_and_a_full_limit_refuse_without_memory() {
    let users = users();
    assert!(users.breaker().unwrap().isolate().is_some(), "it was closed");
    let ready = |_| async { Ok::<_, Infallible>(42) };
    let (refused, allocations) = polled(users.run(ready));
    assert_eq!((refused.unwrap_err().stop().name(), allocations), ("refused_breaker", 0));

    let policy = Policy {
        admission: Gates { concurrency: Some(ConcurrencyPolicy { limit: 1, queue: 0 }), ..Gates::default() },
        ..whole()
    };
    let users = Pipeline::on(Leaping::default(), policy).unwrap();
    let _held = users.call_limit().unwrap().try_acquire().unwrap();
    let (refused, allocations) = polled(users.run(ready));
    assert_eq!((refused.unwrap_err().stop().name(), allocations), ("refused_concurrency", 0));
}

#[cfg(feature = "tokio")]
#[test]
fn a_blocking_call_allocates_nothing() {
    let users = Pipeline::new(whole()).unwrap();
    let (result, allocations) = counted(|| users.safe().run_blocking(|_| Ok::<_, Infallible>(42)));
    assert_eq!((result.unwrap(), allocations), (42, 0));
}
