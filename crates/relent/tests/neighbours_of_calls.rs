//! Faults of the kinds that public reports name, where no report has named them yet. Each test says whose neighbour
//! it is.

#![cfg(not(loom))]

mod support;

use std::{
    future::{Future, poll_fn},
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use relent::{
    Attempt, Backoff, BreakerPolicy, BudgetPolicy, Clock, ConcurrencyPolicy, Decision, Event, Gates,
    ManualClock, Neutral, Observe, Pipeline, Policy, RatePolicy, Scene, StopReason, Timestamp, Verdict,
    Window, breaker::Mode, budget::SharePolicy,
};
use support::{Act, Dependency, SECOND, at_once, doubling, pipeline, plain, with_attempts};

const MS: fn(u64) -> Duration = Duration::from_millis;

fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls both in turn until both are ready.
async fn both<A: Future, B: Future>(a: A, b: B) -> (A::Output, B::Output) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    let (mut first, mut second) = (None, None);
    poll_fn(|cx| {
        if first.is_none()
            && let Poll::Ready(output) = a.as_mut().poll(cx)
        {
            first = Some(output);
        }
        if second.is_none()
            && let Poll::Ready(output) = b.as_mut().poll(cx)
        {
            second = Some(output);
        }
        if first.is_some() && second.is_some() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    (first.expect("it is ready"), second.expect("it is ready"))
}

#[test]
fn nobody_waits_after_the_last_attempt() {
    // RT-19: a wait that no attempt follows is as much one too many as an attempt.
    let policy = with_attempts(3, plain(Backoff::Constant(SECOND)));
    let clock = ManualClock::new();
    let dependency = Dependency::new(&clock, &[at_once(503)]);
    let report = clock.block_on(pipeline(&clock, policy.clone()).run_with_report(|a| dependency.call(a))).1;
    assert_eq!((clock.now(), report.waits), (Timestamp::from_secs(2), 2));

    let clock = ManualClock::new();
    let users = Pipeline::on(clock.clone(), policy).unwrap();
    let failed = users.run_blocking(|_| Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionRefused)));
    assert_eq!((clock.now(), failed.unwrap_err().report().waits), (Timestamp::from_secs(2), 2));
}

#[test]
fn calls_at_the_same_time_have_each_their_own_sequence() {
    // BO-15: nor does a call leave anything behind for one that runs beside it.
    let clock = ManualClock::new();
    let users = pipeline(&clock, with_attempts(5, plain(doubling(SECOND, 60 * SECOND))));
    let (one, other) = (Dependency::new(&clock, &[at_once(503)]), Dependency::new(&clock, &[at_once(503)]));
    let second = async {
        clock.sleep(MS(2_500)).await;
        users.run(|a| other.call(a)).await
    };
    let ended = clock.block_on(both(users.run(|a| one.call(a)), second));
    assert!(ended.0.is_ok() && ended.1.is_ok(), "each has its last answer");
    assert_eq!(one.began(), [0, 1_000, 3_000, 7_000, 15_000]);
    assert_eq!(other.began(), [2_500, 3_500, 5_500, 9_500, 17_500]);
}

#[test]
fn limits_without_end_are_no_limits() {
    // BO-07, TO-04: the longest duration there is, added to the time, is the end of time and not its beginning.
    let policy = Policy {
        attempt_timeout: Duration::MAX,
        total_timeout: Some(Duration::MAX),
        ..with_attempts(3, plain(Backoff::Constant(SECOND)))
    };
    let clock = ManualClock::starting_at(Timestamp::from_secs(1_800_000_000));
    let dependency = Dependency::new(&clock, &[Act::Answer(503, SECOND)]);
    let users = pipeline(&clock, policy);
    let report = clock.block_on(users.run_with_report(|a| dependency.call(a))).1;
    assert_eq!((report.attempts, report.stop), (3, StopReason::AttemptsExhausted));
    assert_eq!((report.took, clock.sleepers()), (5 * SECOND, 0));
    assert!(dependency.attempts().iter().all(|attempt| attempt.give_up_at == Timestamp::MAX));
}

#[test]
fn a_result_counts_however_late_the_driver_comes_to_look_for_it() {
    // RT-27: the thread was busy with something else when the result and the time-out came.
    let clock = ManualClock::new();
    let base = with_attempts(3, plain(Backoff::Constant(SECOND)));
    let users = pipeline(&clock, Policy { attempt_timeout: SECOND, ..base });
    let dependency = Dependency::new(&clock, &[Act::Answer(200, MS(900)), Act::Answer(200, MS(1_100))]);
    for _ in 0..2 {
        let mut call = pin!(users.run(|a| dependency.call(a)));
        assert!(poll_once(call.as_mut()).is_pending());
        clock.advance(5 * SECOND);
        assert!(matches!(poll_once(call.as_mut()), Poll::Ready(Ok(_))));
    }
    assert_eq!(dependency.began().len(), 2, "and nothing is sent again");
}

#[test]
fn faults_of_our_own_use_up_no_attempt_and_end_with_the_total() {
    // TO-16: what bounds the attempts does not count these, so the total must hold by itself; a policy that has none
    // is warned of.
    let clock = ManualClock::new();
    let base = with_attempts(2, plain(Backoff::Constant(SECOND)));
    let warned =
        |policy: &Policy| policy.validate().unwrap().iter().any(|told| told.field == "total_timeout");
    assert!(warned(&base));
    let policy = Policy { total_timeout: Some(5 * SECOND), ..base };
    assert!(!warned(&policy));
    let users = pipeline(&clock, policy);
    let mut call = users.call();
    let mut waits = 0;
    let ended = loop {
        call.admit().unwrap();
        match call.conclude_verdict(Verdict::Neutral(Neutral::OwnFault)) {
            Decision::Retry(wait) => clock.advance(wait.length),
            Decision::Stop(reason) => break reason,
        }
        waits += 1;
    };
    assert_eq!((ended, waits, call.history().attempts), (StopReason::TotalTimeout, 4, 0));
}

/// All that a pipeline may hold.
fn whole(budget: BudgetPolicy) -> Policy {
    let one = ConcurrencyPolicy { limit: 1, queue: 0 };
    Policy {
        admission: Gates { concurrency: Some(one), ..Gates::default() },
        attempt: Gates { concurrency: Some(one), ..Gates::default() },
        budget: Some(budget),
        breaker: Some(BreakerPolicy {
            window: Window::Count(10),
            min_calls: 10,
            probes: 1,
            ..BreakerPolicy::default()
        }),
        ..with_attempts(3, plain(Backoff::Constant(SECOND)))
    }
}

fn panicking(attempt: Attempt) -> Result<(), io::Error> {
    if attempt.number == 2 {
        panic!("as planned")
    }
    Err(io::ErrorKind::ConnectionRefused.into())
}

#[test]
fn an_operation_that_panics_leaves_no_place_and_no_probe_behind() {
    // LI-01, CB-05: nobody is left who could give them back.
    for is_blocking in [false, true] {
        let clock = ManualClock::new();
        let share = SharePolicy { share_milli: 1, floor: 1 };
        let users = Pipeline::on(clock.clone(), whole(BudgetPolicy::Share(share))).unwrap();
        for _ in 0..3 {
            let ended = catch_unwind(AssertUnwindSafe(|| match is_blocking {
                true => users.run_blocking(panicking).is_ok(),
                false => clock.block_on(users.run(|attempt| async move { panicking(attempt) })).is_ok(),
            }));
            assert!(ended.is_err(), "it comes to its second attempt each time");
        }
        let (calls, attempts) = (users.call_limit().unwrap(), users.attempt_limit().unwrap());
        assert_eq!((calls.in_flight(), attempts.in_flight(), users.overruns().running), (0, 0, 0));
        let counts = users.breaker().unwrap().counts(clock.now());
        assert_eq!((counts.calls, clock.sleepers()), (3, 0), "a panic says nothing about the dependency");
    }
}

#[test]
fn a_probe_that_panics_gives_its_place_to_the_next() {
    // CB-05
    let clock = ManualClock::new();
    let users = Pipeline::on(clock.clone(), whole(BudgetPolicy::default())).unwrap();
    let breaker = users.breaker().unwrap();
    assert!(breaker.force_open(clock.now()).is_some());
    for _ in 0..3 {
        let ended = catch_unwind(AssertUnwindSafe(|| {
            clock.block_on(
                users.run(|_| async { if true { panic!("as planned") } else { Err::<(), _>(busy()) } }),
            )
        }));
        assert!(ended.is_err());
        assert_eq!((breaker.status().mode, breaker.counts(clock.now()).calls), (Mode::HalfOpen, 0));
    }
    clock.block_on(users.run(|_| async { Ok::<_, io::Error>(()) })).unwrap();
    assert_eq!(breaker.status().mode, Mode::Closed);
}

/// Panics at the event of that number, and at every one after it.
struct Broken(AtomicU32);

impl Observe for Broken {
    fn observe(&self, _: Scene<'_>, event: &Event<'_>) {
        let left = self.0.load(Ordering::Relaxed);
        self.0.store(left.saturating_sub(1), Ordering::Relaxed);
        assert!(left > 0, "as planned, at {}", event.name());
    }
}

#[test]
fn an_observer_that_panics_takes_its_call_with_it_and_nothing_else() {
    // TS-04: what listens is not what is listened to. The call that its panic drops tells of its end, where a second
    // panic would end the process.
    let mut ended = Vec::new();
    for first in 0.. {
        let clock = ManualClock::new();
        let users = Pipeline::on(clock.clone(), whole(BudgetPolicy::default())).unwrap();
        let watched = users.clone().observed_by(Arc::new(Broken(AtomicU32::new(first))));
        let called = catch_unwind(AssertUnwindSafe(|| {
            clock.block_on(
                watched.run(|attempt| async move { if attempt.number == 1 { Err(busy()) } else { Ok(()) } }),
            )
        }));
        let (calls, attempts) = (users.call_limit().unwrap(), users.attempt_limit().unwrap());
        assert_eq!((calls.in_flight(), attempts.in_flight(), clock.sleepers()), (0, 0, 0), "event {first}");
        ended.push(called.is_ok());
        if called.is_ok() {
            break;
        }
        clock
            .block_on(users.run(|_| async { Ok::<_, io::Error>(()) }))
            .expect("the next call is as good as any");
    }
    assert_eq!(
        ended,
        [false, false, false, false, false, false, false, true],
        "seven events, and none left to fail at"
    );
}

/// One place at each stage and a queue before it, and hardly more than one call a second.
fn crowded() -> Policy {
    let gates = Gates {
        concurrency: Some(ConcurrencyPolicy { limit: 1, queue: 5 }),
        rate: Some(RatePolicy { permits: 1, per: SECOND, burst: 1 }),
    };
    let share = BudgetPolicy::Share(SharePolicy { floor: 1, ..SharePolicy::default() });
    Policy { admission: gates, attempt: gates, ..whole(share) }
}

/// Polls a call so many times, with a neighbour that has the places first, and drops it; meanwhile the observer panics
/// at the event of that number, if it comes.
fn dropped_under_a_broken_observer(first: u32, polls: usize) -> bool {
    let clock = ManualClock::new();
    let users = Pipeline::on(clock.clone(), crowded()).unwrap();
    let observer = Arc::new(Broken(AtomicU32::new(first)));
    let watched = users.clone().observed_by(observer.clone());
    let mut neighbour = Some(Box::pin(users.run(|_| {
        let slept = clock.sleep(MS(300));
        async move {
            slept.await;
            Ok::<_, io::Error>(())
        }
    })));
    assert!(neighbour.as_mut().is_some_and(|neighbour| poll_once(neighbour.as_mut()).is_pending()));
    let dropped = catch_unwind(AssertUnwindSafe(|| {
        let busy = |_| {
            let slept = clock.sleep(MS(100));
            async move {
                slept.await;
                Err::<(), _>(busy())
            }
        };
        let mut call = Box::pin(watched.safe().run(busy));
        for _ in 0..polls {
            if poll_once(call.as_mut()).is_ready() {
                break;
            }
            clock.advance(MS(250));
            neighbour.take_if(|neighbour| poll_once(neighbour.as_mut()).is_ready());
        }
    }));
    drop(neighbour);
    clock.advance(SECOND * 60);
    let (calls, attempts) = (users.call_limit().unwrap(), users.attempt_limit().unwrap());
    assert_eq!((calls.in_flight(), attempts.in_flight()), (0, 0), "event {first}, {polls} polls");
    // The budget still lends one retry beside what is in flight, and no more.
    let mut lent = [0, 1].map(|_| users.safe().call());
    let lent = lent.each_mut().map(|call| {
        call.admit().is_ok() && matches!(call.conclude(&Err::<(), _>(busy())), Decision::Retry(_))
    });
    assert_eq!(lent, [true, false], "event {first}, {polls} polls");
    dropped.is_ok()
}

#[test]
fn an_observer_that_panics_loses_no_place_wherever_its_call_was_and_is_dropped() {
    let mut survived = 0;
    for polls in 0..24 {
        for first in 0..16 {
            survived += u32::from(dropped_under_a_broken_observer(first, polls));
        }
    }
    assert!((1..16 * 24 / 2).contains(&survived), "most were hit, and not all: {survived}");
}

/// Looks at every control and moves some, at every event.
#[derive(Default)]
struct Meddling(OnceLock<Pipeline<ManualClock>>, AtomicU32);

impl Observe for Meddling {
    fn observe(&self, scene: Scene<'_>, _: &Event<'_>) {
        let users = self.0.get().expect("it was given the pipeline");
        let (calls, attempts) = (users.call_limit().unwrap(), users.attempt_limit().unwrap());
        assert!(calls.in_flight() <= 1 && attempts.in_flight() <= 1 && calls.waiting() == 0);
        attempts.set_limit(1 + self.1.fetch_add(1, Ordering::Relaxed) % 2).unwrap();
        let breaker = users.breaker().unwrap();
        assert!(breaker.counts(scene.at).calls <= 10 && breaker.status().mode == Mode::Closed);
        assert!(breaker.close().is_none() && users.budget().unwrap().tokens_milli(scene.at).is_some());
        assert_eq!((users.clock().now(), users.overruns().running), (scene.at, 0));
    }
}

#[test]
fn an_observer_may_look_at_every_control_and_move_it_at_every_event() {
    // CB-07's kind: whoever tells of a change with a lock held waits for itself when the listener asks back.
    let clock = ManualClock::new();
    let meddling = Arc::new(Meddling::default());
    let users = Pipeline::on(clock.clone(), whole(BudgetPolicy::default())).unwrap();
    meddling.0.set(users.clone()).expect("it is the first");
    let watched = users.observed_by(meddling.clone());
    for _ in 0..3 {
        let flaky = |attempt: Attempt| async move { if attempt.number == 1 { Err(busy()) } else { Ok(()) } };
        clock.block_on(watched.run(flaky)).unwrap();
    }
    assert_eq!(meddling.1.load(Ordering::Relaxed), 3 * 7);
}

fn busy() -> io::Error {
    io::ErrorKind::ConnectionRefused.into()
}
