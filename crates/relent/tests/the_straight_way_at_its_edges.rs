//! Where a call on the straight way is likeliest to forget something: panics, and others that get in line first. Each is
//! asked of both ways, for they must come to the same.

#![cfg(not(loom))]

mod support;

use std::{
    future::Future,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Wake, Waker},
};

use relent::{
    Attempt, BudgetPolicy, Cause, ConcurrencyPolicy, Event, Gates, ManualClock, Observe, Overruns, Pipeline,
    Policy, Scene, Stage, Timestamp, Work, budget::SharePolicy,
};
use support::standard;

/// Hears everything and does nothing: its pipeline's calls take the long way.
struct Listener;

impl Observe for Listener {
    fn observe(&self, _: Scene<'_>, _: &Event<'_>) {}
}

fn on_either_way(policy: &Policy) -> [Pipeline<ManualClock>; 2] {
    let straight = Pipeline::on(ManualClock::new(), policy.clone()).unwrap();
    let long = Pipeline::on(ManualClock::new(), policy.clone()).unwrap().observed_by(Arc::new(Listener));
    [straight, long]
}

/// Who is in flight may be tried again in half as many retries.
fn sharing() -> Policy {
    let budget = BudgetPolicy::Share(SharePolicy { share_milli: 500, floor: 0 });
    Policy { budget: Some(budget), ..standard() }
}

fn is_idle(pipeline: &Pipeline<ManualClock>) -> bool {
    let retry = pipeline.budget().unwrap().try_retry(Cause::Error, Timestamp::ZERO);
    pipeline.call_limit().unwrap().in_flight() == 0 && retry.is_err()
}

fn poll<F: Future>(call: &mut Pin<Box<F>>) -> Poll<F::Output> {
    call.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// An attempt that is pending at its first polls, and panics when it is polled once more or dropped.
struct Fragile<'p> {
    pipeline: &'p Pipeline<ManualClock>,
    polls: u32,
    panics: Panics,
    seen: &'p Mutex<Vec<u32>>,
    _work: Option<Work>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Panics {
    AtPoll(u32),
    WhenDropped,
}

impl Future for Fragile<'_> {
    type Output = io::Result<u32>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        self.polls += 1;
        assert_ne!(self.panics, Panics::AtPoll(self.polls), "as planned");
        Poll::Pending
    }
}

impl Drop for Fragile<'_> {
    fn drop(&mut self) {
        self.seen.lock().unwrap().push(self.pipeline.call_limit().unwrap().in_flight());
        assert_ne!(self.panics, Panics::WhenDropped, "as planned");
    }
}

#[test]
fn an_attempt_that_panics_is_gone_before_its_place_and_its_work_ends_with_it() {
    for pipeline in on_either_way(&sharing()) {
        for polls in [1, 2] {
            let seen = Mutex::default();
            let fragile = |work| Fragile {
                pipeline: &pipeline,
                polls: 0,
                panics: Panics::AtPoll(polls),
                seen: &seen,
                _work: work,
            };
            let mut bare = Box::pin(pipeline.run(|_: Attempt| fragile(None)));
            let panicked = catch_unwind(AssertUnwindSafe(|| (0..polls).for_each(|_| drop(poll(&mut bare)))));
            assert!(panicked.is_err());
            drop(bare);
            let mut overseen = Box::pin(pipeline.calls().run_with_work(|_, work| fragile(Some(work))));
            let panicked =
                catch_unwind(AssertUnwindSafe(|| (0..polls).for_each(|_| drop(poll(&mut overseen)))));
            assert!(panicked.is_err());
            drop(overseen);
            assert_eq!(*seen.lock().unwrap(), [1, 1], "it was in flight");
            assert_eq!(pipeline.overruns(), Overruns::default());
            assert!(is_idle(&pipeline));
        }
    }
}

#[test]
fn a_call_gives_everything_back_whose_attempt_panics_when_it_is_dropped() {
    for pipeline in on_either_way(&sharing()) {
        let seen = Mutex::default();
        let mut call = Box::pin(pipeline.run(|_: Attempt| Fragile {
            pipeline: &pipeline,
            polls: 0,
            panics: Panics::WhenDropped,
            seen: &seen,
            _work: None,
        }));
        assert!(poll(&mut call).is_pending());
        assert!(!is_idle(&pipeline));
        assert!(catch_unwind(AssertUnwindSafe(|| drop(call))).is_err());
        assert!(is_idle(&pipeline));
    }
}

/// Makes a call as soon as it is woken, and keeps where that was refused.
struct CallsWhenWoken {
    pipeline: Pipeline<ManualClock>,
    refused: Mutex<Option<Stage>>,
}

impl Wake for CallsWhenWoken {
    fn wake(self: Arc<Self>) {
        let mut call = Box::pin(self.pipeline.run(|_| async { io::Result::Ok(7) }));
        if let Poll::Ready(Err(error)) = poll(&mut call) {
            *self.refused.lock().unwrap() = Some(error.report().stage);
        }
    }
}

#[test]
fn a_call_that_comes_while_others_are_being_let_in_is_refused_at_the_same_stage() {
    let full = Some(ConcurrencyPolicy { limit: 1, queue: 2 });
    let policy = Policy { admission: Gates { concurrency: full, rate: None }, ..standard() };
    let stages = on_either_way(&policy).map(|pipeline| {
        let limit = pipeline.call_limit().unwrap();
        let _in_flight = limit.try_acquire().unwrap();
        let caller = Arc::new(CallsWhenWoken { pipeline: pipeline.clone(), refused: Mutex::default() });
        let mut waiting = [limit.acquire(), limit.acquire()].map(Box::pin);
        let waker = Waker::from(Arc::clone(&caller));
        assert!(waiting[0].as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert!(poll(&mut waiting[1]).is_pending());
        let _told = pipeline.breaker().unwrap().isolate();
        limit.set_limit(3).unwrap(); // the first is woken while there is room that is the second's
        *caller.refused.lock().unwrap()
    });
    assert_eq!(stages, [Some(Stage::Admission); 2]);
}
