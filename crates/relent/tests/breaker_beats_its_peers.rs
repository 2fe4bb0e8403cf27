//! What the Rust crates of today get wrong in their breakers, as bars that this one takes.

#![cfg(not(loom))]

use std::{sync::Barrier, thread, time::Duration};

use relent::{
    Backoff, BreakerPolicy, Cause, Sent, Timestamp, Verdict, Window,
    breaker::{Mode, Recorded},
    control::Breaker,
};

const FAILURE: Verdict = Verdict::Failure { cause: Cause::Error, sent: Sent::Maybe, server_wait: None };
const QUICK: Duration = Duration::from_millis(1);

fn breaker() -> Breaker {
    let policy = BreakerPolicy {
        failure_rate_milli: Some(500),
        window: Window::Count(100),
        min_calls: 100,
        break_time: Backoff::Constant(Duration::from_secs(1)),
        break_jitter_milli: 0,
        probes: 1,
        probe_timeout: Duration::from_secs(10),
        ..BreakerPolicy::default()
    };
    Breaker::new(&policy).expect("the policy is possible")
}

/// How many failures it takes to open it.
fn failures_to_open(breaker: &Breaker, now: Timestamp) -> u32 {
    let mut failures = 0;
    while let Ok(permit) = breaker.admit(now) {
        failures += 1;
        if permit.record(FAILURE, QUICK, now).transition().is_some() {
            return failures;
        }
        assert!(failures < 100_000, "it never opens");
    }
    panic!("it refuses before it has opened");
}

#[test]
fn fifty_failures_open_it_after_ten_thousand_successes_where_tower_resilience_needs_ten_thousand() {
    let breaker = breaker();
    for _ in 0..10_000 {
        let permit = breaker.admit(Timestamp::ZERO).expect("it is closed");
        assert_eq!(permit.record(Verdict::Success, QUICK, Timestamp::ZERO), Recorded::Counted);
    }
    assert_eq!(failures_to_open(&breaker, Timestamp::ZERO), 50);
}

#[test]
fn one_of_fifty_callers_is_let_through_as_a_probe_where_failsafe_and_recloser_let_fifty() {
    for _ in 0..20 {
        let breaker = breaker();
        let _told = breaker.force_open(Timestamp::from_secs(1));
        let together = Barrier::new(50);
        let probes = thread::scope(|scope| {
            let call = || {
                together.wait();
                breaker.admit_owned(Timestamp::from_secs(1)).ok()
            };
            let calls: Vec<_> = (0..50).map(|_| scope.spawn(call)).collect();
            let permits: Vec<_> = calls.into_iter().map(|call| call.join().expect("no panic")).collect();
            permits.iter().flatten().count()
        });
        assert_eq!(probes, 1);
    }
}

#[test]
fn the_next_probe_goes_at_once_after_a_cancelled_one_where_execution_policy_never_recovers() {
    let breaker = breaker();
    let now = Timestamp::from_secs(1);
    let _told = breaker.force_open(now);
    drop(breaker.admit(now).expect("the break is over"));
    let next = breaker.admit(now).expect("the place is free again");
    assert!(breaker.admit(now).is_err(), "and there is but one");
    let told = next.record(Verdict::Success, QUICK, now).transition();
    assert_eq!(told.map(|change| change.to), Some(Mode::Closed));
}

#[test]
fn a_stale_success_during_a_probe_changes_nothing_where_it_closes_tower_resilience() {
    let breaker = breaker();
    let now = Timestamp::from_secs(1);
    let stale = breaker.admit(now).expect("it is closed");
    let _told = breaker.force_open(now);
    let probe = breaker.admit(now).expect("the break is over");
    let before = breaker.status();
    assert_eq!(stale.record(Verdict::Success, QUICK, now), Recorded::Stale);
    assert_eq!(breaker.status(), before);
    assert_eq!(before.mode, Mode::HalfOpen);
    assert!(matches!(probe.record(FAILURE, QUICK, now), Recorded::Changed(_)));
}
