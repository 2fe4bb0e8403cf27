//! What comes of loops of one's own that forget a step, do one too often, or hide their calls: nothing is sent without
//! measure, and nothing is lost.

#![cfg(not(loom))]

mod support;

use std::{io, time::Duration};

use relent::{
    Backoff, BreakerPolicy, BudgetPolicy, Calls, Decision, Gate, Idempotency, ManualClock, Pipeline, Policy,
    StopReason, Verdict, budget::SharePolicy,
};
use support::{SECOND, plain, with_attempts};

fn pipeline(clock: &ManualClock, policy: Policy) -> Pipeline<ManualClock> {
    Pipeline::on(clock.clone(), policy).unwrap()
}

fn busy() -> io::Error {
    io::ErrorKind::ConnectionRefused.into()
}

/// How many attempts a loop begins that concludes none.
fn begun_without_a_conclusion(users: &Pipeline<ManualClock>, idempotency: Idempotency) -> (u32, StopReason) {
    let mut call = Calls::through(users).with_idempotency(idempotency).call();
    let stopped = (0..50).find_map(|_| call.admit().err()).expect("it ends");
    (stopped.report().attempts, stopped.stop())
}

#[test]
fn a_loop_that_concludes_nothing_ends_like_one_that_loses_every_attempt() {
    let clock = ManualClock::new();
    let users = pipeline(&clock, with_attempts(5, plain(Backoff::Constant(SECOND))));
    assert_eq!(begun_without_a_conclusion(&users, Idempotency::Safe), (5, StopReason::AttemptsExhausted));
    assert_eq!(begun_without_a_conclusion(&users, Idempotency::Unsafe), (1, StopReason::Ambiguous));
}

#[test]
fn a_budget_lends_each_retry_of_a_loop_that_concludes_nothing() {
    let share = SharePolicy { floor: 2, ..SharePolicy::default() };
    let policy = Policy {
        budget: Some(BudgetPolicy::Share(share)),
        ..with_attempts(9, plain(Backoff::Constant(SECOND)))
    };
    let clock = ManualClock::new();
    let users = pipeline(&clock, policy);
    for _ in 0..10 {
        assert_eq!(begun_without_a_conclusion(&users, Idempotency::Safe).1, StopReason::AttemptsExhausted);
    }
    let mut honest = users.safe().call();
    honest.admit().unwrap();
    assert!(
        matches!(honest.conclude(&Err::<(), _>(busy())), Decision::Retry(_)),
        "nothing is held by the others"
    );
}

#[test]
fn a_call_that_has_stopped_takes_in_nothing_more() {
    let policy = Policy {
        breaker: Some(BreakerPolicy::default()),
        budget: Some(BudgetPolicy::Share(SharePolicy { floor: 2, ..SharePolicy::default() })),
        ..with_attempts(5, plain(Backoff::Constant(SECOND)))
    };
    let clock = ManualClock::new();
    let users = pipeline(&clock, policy);
    users.breaker().unwrap().isolate();
    let refused = StopReason::Refused(Gate::Breaker);
    for _ in 0..5 {
        let mut call = users.safe().call();
        assert_eq!(call.admit().unwrap_err().stop(), refused);
        assert_eq!(call.conclude(&Err::<(), _>(busy())), Decision::Stop(refused));
        assert_eq!(call.conclude_verdict(Verdict::Success), Decision::Stop(refused));
        let report = call.report().unwrap();
        assert_eq!((report.stop, report.attempts), (refused, 0));
    }
    users.breaker().unwrap().close();
    let mut honest = users.safe().call();
    honest.admit().unwrap();
    assert!(
        matches!(honest.conclude(&Err::<(), _>(busy())), Decision::Retry(_)),
        "nothing was lent to the others"
    );
}

#[test]
fn a_loop_that_says_what_its_attempt_does_is_seen_by_the_calls_within() {
    let clock = ManualClock::new();
    let policy = || Policy {
        total_timeout: None,
        ..with_attempts(3, plain(Backoff::Constant(Duration::from_millis(1))))
    };
    let (outer, inner) =
        (pipeline(&clock, policy()).named("users"), pipeline(&clock, policy()).named("users"));
    let mut sent = 0;
    let mut fetch = || {
        inner.safe().run_blocking(|_| {
            sent += 1;
            Err::<(), _>(busy())
        })
    };
    let mut call = outer.safe().call();
    while call.admit().is_ok() {
        let failed = call.around(&mut fetch).map_err(|_| busy());
        let _decision = call.conclude(&failed);
    }
    assert_eq!(sent, 3, "one attempt each, though three are allowed");

    let mut call = outer.safe().call();
    call.admit().unwrap();
    let (_, report) =
        clock.block_on(call.scope(inner.safe().run_with_report(|_| async { Err::<(), _>(busy()) })));
    assert_eq!((report.stop, report.attempts), (StopReason::Nested, 1));
}
