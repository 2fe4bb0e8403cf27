//! A call that nobody listens to and that nothing holds up keeps less in mind than others. It must come to the same:
//! what it leaves in the controls, and what it gives back.

mod support;

use std::{
    cell::RefCell,
    future::{Future, pending},
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use relent::{
    Ambient, Attempt, BreakerPolicy, BudgetPolicy, Cause, Clock, ConcurrencyPolicy, Event, Gates,
    Idempotency, ManualClock, Observe, Pipeline, Policy, Scene, SlowCalls, StopReason, breaker::Mode,
    budget::SharePolicy, window::Counts,
};
use support::{SECOND, standard};

/// Hears everything and does nothing: its pipeline's calls take the long way.
struct Listener;

impl Observe for Listener {
    fn observe(&self, _: Scene<'_>, _: &Event<'_>) {}
}

/// What an operation does at each attempt.
#[derive(Clone, Copy, Debug)]
enum Act {
    Succeed,
    SucceedLater,
    SucceedSlowly,
    Refuse,
    RefuseLater,
    Fail,
    FailLater,
    Hang,
    Panic,
    PanicLater,
}

const ALL: [Act; 10] = [
    Act::Succeed,
    Act::SucceedLater,
    Act::SucceedSlowly,
    Act::Refuse,
    Act::RefuseLater,
    Act::Fail,
    Act::FailLater,
    Act::Hang,
    Act::Panic,
    Act::PanicLater,
];

async fn play(clock: ManualClock, act: Act) -> io::Result<u32> {
    match act {
        Act::SucceedLater | Act::RefuseLater | Act::FailLater | Act::PanicLater => {
            clock.sleep(SECOND / 20).await;
            clock.sleep(SECOND / 20).await;
        }
        Act::SucceedSlowly => clock.advance(2 * SECOND),
        Act::Hang => pending().await,
        Act::Succeed | Act::Refuse | Act::Fail | Act::Panic => {}
    }
    match act {
        Act::Succeed | Act::SucceedLater | Act::SucceedSlowly | Act::Hang => Ok(7),
        Act::Refuse | Act::RefuseLater => Err(io::ErrorKind::PermissionDenied.into()),
        Act::Fail | Act::FailLater => Err(io::ErrorKind::ConnectionRefused.into()),
        Act::Panic | Act::PanicLater => panic!("as planned"),
    }
}

/// What a call came to, and how it left the pipeline.
#[derive(Debug, PartialEq)]
struct Left {
    came_to: String,
    at: relent::Timestamp,
    in_flight: Option<u32>,
    tokens: Option<u32>,
    counts: Option<Counts>,
    mode: Option<Mode>,
    overruns: relent::Overruns,
}

fn policy() -> Policy {
    let slow_calls = Some(SlowCalls { longer_than: SECOND, rate_milli: 900 });
    let known = standard().breaker.unwrap_or_default();
    // Both of a pair of pipelines draw the same breaks if there is nothing to draw.
    let breaker = BreakerPolicy { slow_calls, min_calls: 4, break_jitter_milli: 0, ..known };
    Policy { breaker: Some(breaker), repeat: Idempotency::Safe, ..standard() }
}

/// What the caller says of how long it waits, from the call's beginning.
#[derive(Clone, Copy, Debug)]
enum Deadline {
    None,
    Said(Duration),
    Around(Duration),
    /// And the caller tries again by itself.
    AroundAnAttempt(Duration),
}

/// Plays the acts one call after the other, each call the same act at every attempt, and says how each left things.
fn played(acts: &[Act], listened: bool, with_work: bool, deadline: Deadline) -> Vec<Left> {
    let clock = ManualClock::new();
    let quiet = Pipeline::on(clock.clone(), policy()).unwrap();
    let pipeline = if listened { quiet.observed_by(Arc::new(Listener)) } else { quiet };
    let call = |seed, act| {
        let (mut calls, mut around) = (pipeline.calls().with_seed(seed), Ambient::on(clock.clone()));
        match deadline {
            Deadline::None => {}
            Deadline::Said(left) => calls = calls.with_deadline_in(left),
            Deadline::Around(left) => around = around.until(clock.now().after(left)),
            Deadline::AroundAnAttempt(left) => around = around.until(clock.now().after(left)).in_attempt(2),
        }
        let run = async {
            let operation = |_: Attempt| play(clock.clone(), act);
            if !with_work {
                return calls.run(operation).await;
            }
            let outliving = |attempt, work| {
                let playing = operation(attempt);
                async move {
                    let _until_the_end = work;
                    playing.await
                }
            };
            calls.run_with_work(outliving).await
        };
        catch_unwind(AssertUnwindSafe(|| match deadline {
            Deadline::None | Deadline::Said(_) => clock.block_on(run),
            Deadline::Around(_) | Deadline::AroundAnAttempt(_) => clock.block_on(around.scope(run)),
        }))
    };
    (0..)
        .zip(acts)
        .map(|(seed, act)| {
            let came_to = format!("{:?}", call(seed, *act).map_err(|_| "it panicked"));
            let now = clock.now();
            Left {
                came_to,
                at: now,
                in_flight: pipeline.call_limit().map(|limit| limit.in_flight()),
                tokens: pipeline.budget().and_then(|budget| budget.tokens_milli(now)),
                counts: pipeline.breaker().map(|breaker| breaker.counts(now)),
                mode: pipeline.breaker().map(|breaker| breaker.status().mode),
                overruns: pipeline.overruns(),
            }
        })
        .collect()
}

#[test]
fn a_call_comes_to_the_same_whether_anybody_listens_or_not() {
    let (short, long) = (SECOND / 20, 3 * SECOND / 2);
    let deadlines = [
        Deadline::None,
        Deadline::Said(long),
        Deadline::Said(short),
        Deadline::Around(long),
        Deadline::Around(short),
        Deadline::AroundAnAttempt(long),
    ];
    for first in ALL {
        for second in ALL {
            let acts = [first, second, Act::Succeed, first, second, Act::SucceedSlowly, first, Act::Succeed];
            for (deadline, with_work) in deadlines.into_iter().flat_map(|each| [(each, false), (each, true)])
            {
                let quiet = played(&acts, false, with_work, deadline);
                assert_eq!(quiet, played(&acts, true, with_work, deadline), "{acts:?} {deadline:?}");
                assert!(quiet.iter().all(|left| left.in_flight == Some(0)), "{acts:?} {deadline:?}");
            }
        }
    }
}

#[test]
fn a_slow_success_opens_a_breaker_that_nobody_listens_to() {
    let left = played(&[Act::SucceedSlowly; 7], false, false, Deadline::None);
    assert_eq!(left[2].mode, Some(Mode::Closed));
    assert_eq!(left[3].mode, Some(Mode::Open));
    assert!(left[4].came_to.contains("Breaker"), "{}", left[4].came_to);
}

#[test]
fn a_call_that_is_dropped_in_its_first_attempt_gives_its_place_back() {
    let pipeline = Pipeline::on(ManualClock::new(), policy()).unwrap();
    let mut call = Box::pin(pipeline.run(|_| pending::<io::Result<()>>()));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(call.as_mut().poll(&mut cx).is_pending());
    assert_eq!(pipeline.call_limit().unwrap().in_flight(), 1);
    drop(call);
    assert_eq!(pipeline.call_limit().unwrap().in_flight(), 0);
}

#[test]
fn a_call_whose_first_attempt_waits_is_part_of_the_attempt_in_which_it_is_polled_again() {
    let clock = ManualClock::new();
    let [outer, inner] =
        ["orders", "stock"].map(|name| Pipeline::on(clock.clone(), policy()).unwrap().named(name));
    let seen = RefCell::new(Vec::new());
    // It begins alone, and goes on within an attempt of another pipeline; what begins within it then is nested in both.
    let mut call = pin!(inner.run(|_| async {
        clock.sleep(SECOND / 10).await;
        for around in [&inner, &outer] {
            let nested =
                around.run(|_| async { Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionRefused)) });
            let stop = nested.await.unwrap_err().stop();
            seen.borrow_mut().push(stop);
        }
        io::Result::Ok(7)
    }));
    assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    clock.advance(SECOND / 10);
    let mut call = Some(call);
    let came_to = clock.block_on(outer.run(|_| {
        let call = call.take();
        async move { call.expect("the first attempt succeeds").await.map_err(io::Error::other) }
    }));
    assert_eq!(came_to.unwrap(), 7);
    assert_eq!(*seen.borrow(), [StopReason::Nested; 2]);
}

#[test]
#[should_panic(expected = "polled after it has given its output")]
fn a_call_that_went_straight_through_is_over() {
    let pipeline = Pipeline::on(ManualClock::new(), policy()).unwrap();
    let mut call = pin!(pipeline.run(|_| async { io::Result::Ok(7) }));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(matches!(call.as_mut().poll(&mut cx), Poll::Ready(Ok(7))));
    let _never = call.poll(&mut cx);
}

#[test]
fn a_full_limit_says_the_same_whether_anybody_listens_or_not() {
    let refusals = [false, true].map(|listened| {
        let clock = ManualClock::new();
        let full = Some(ConcurrencyPolicy { limit: 1, queue: 1 });
        let admission = Gates { concurrency: full, ..policy().admission };
        let quiet = Pipeline::on(clock.clone(), Policy { admission, ..policy() }).unwrap().named("stock");
        let pipeline = if listened { quiet.observed_by(Arc::new(Listener)) } else { quiet };
        let limit = pipeline.call_limit().unwrap();
        let _in_flight = limit.try_acquire().unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        let call = || Box::pin(pipeline.run(|_| async { io::Result::Ok(7) }));
        let mut first = call();
        assert!(first.as_mut().poll(&mut cx).is_pending(), "the queue has a place");
        let refused = call().as_mut().poll(&mut cx).map(Result::unwrap_err);
        let Poll::Ready(refused) = refused else { panic!("the queue is full") };
        let _told = pipeline.breaker().unwrap().isolate();
        let Poll::Ready(isolated) = call().as_mut().poll(&mut cx).map(Result::unwrap_err) else {
            panic!("nobody queues for a breaker that is open")
        };
        let left = (limit.in_flight(), limit.waiting(), pipeline.budget().unwrap().tokens_milli(clock.now()));
        (format!("{refused:?} {refused} {isolated:?}"), left)
    });
    let [quiet, listened] = refusals;
    assert!(quiet.0.contains("Concurrency") && quiet.0.contains("Admission"), "{}", quiet.0);
    assert_eq!(quiet, listened);
}

#[test]
fn quick_successes_are_not_slow_ones() {
    let left = played(&[Act::Succeed; 7], false, false, Deadline::None);
    let counts = left[6].counts.unwrap();
    assert_eq!((counts.calls, counts.slow, left[6].mode), (7, 0, Some(Mode::Closed)));
}

#[test]
fn a_success_is_slow_that_lasts_longer_than_a_call_may_and_not_one_that_lasts_just_as_long() {
    for (took, slow) in [(SECOND, 0), (SECOND + Duration::from_nanos(1), 1)] {
        for listener in [None, Some(Arc::new(Listener))] {
            let clock = ManualClock::new();
            let quiet = Pipeline::on(clock.clone(), policy()).unwrap();
            let pipeline = listener.into_iter().fold(quiet, |quiet, listener| quiet.observed_by(listener));
            let lasting = |_: Attempt| {
                clock.advance(took);
                async { io::Result::Ok(7) }
            };
            clock.block_on(pipeline.run(lasting)).unwrap();
            let counts = pipeline.breaker().unwrap().counts(clock.now());
            assert_eq!((counts.calls, counts.slow), (1, slow), "{took:?}");
        }
    }
}

#[test]
fn calls_that_went_straight_through_are_no_longer_in_flight_for_a_budget_that_is_a_share_of_them() {
    let budget = BudgetPolicy::Share(SharePolicy { share_milli: 500, floor: 0 });
    let clock = ManualClock::new();
    let pipeline = Pipeline::on(clock.clone(), Policy { budget: Some(budget), ..policy() }).unwrap();
    for _ in 0..10 {
        assert_eq!(clock.block_on(pipeline.run(|_| async { io::Result::Ok(7) })).unwrap(), 7);
    }
    let retry = pipeline.budget().unwrap().try_retry(Cause::Error, relent::Timestamp::ZERO);
    assert!(retry.is_err(), "nothing is in flight, of which a retry could be the half");
}
