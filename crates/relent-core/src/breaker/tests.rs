//! A breaker's life, step by step, in plain fields.

use core::time::Duration;

use super::*;
use crate::{
    decision::Gate,
    time::Timestamp,
    verdict::{Cause, Neutral, Sent, Verdict},
    window::Counts,
};

const FAILURE: Verdict = Verdict::Failure { cause: Cause::Error, sent: Sent::Maybe, server_wait: None };
const QUICK: Duration = Duration::from_millis(1);

const fn at(secs: u64) -> Timestamp {
    Timestamp::from_secs(secs)
}

/// Opens at half of at least four calls, for five seconds; two probes of three seconds each.
fn breaker() -> BreakerState {
    let policy = BreakerPolicy {
        failure_rate_milli: Some(500),
        window: Window::Count(10),
        min_calls: 4,
        break_time: Backoff::Linear { base: Duration::from_secs(5), max: Duration::from_secs(60) },
        break_jitter_milli: 0,
        probes: 2,
        probe_timeout: Duration::from_secs(3),
        ..BreakerPolicy::default()
    };
    BreakerState::new(&policy, 1)
}

fn record(breaker: &mut BreakerState, verdict: Verdict, now: Timestamp) -> Recorded {
    let ticket = breaker.admit(now).expect("it lets calls through");
    breaker.record(ticket, verdict, QUICK, now)
}

/// One that opened at that moment.
fn opened(now: Timestamp) -> BreakerState {
    let mut breaker = breaker();
    for verdict in [Verdict::Success, Verdict::Success, FAILURE] {
        assert_eq!(record(&mut breaker, verdict, now), Recorded::Counted);
    }
    let counts = Counts { calls: 4, failures: 2, slow: 0 };
    let until = Some(now.after(Duration::from_secs(5)));
    let trip = Some(Trip::FailureRate(counts));
    let told = Transition { from: Mode::Closed, to: Mode::Open, trip, until };
    assert_eq!(record(&mut breaker, FAILURE, now), Recorded::Changed(told));
    assert_eq!(breaker.status(), Status { mode: Mode::Open, opens: 1, until });
    assert_eq!(breaker.counts(now), Counts::default(), "what opened it is behind it");
    breaker
}

#[test]
fn it_opens_half_opens_and_closes() {
    let mut breaker = opened(at(0));
    let refused = breaker.admit(at(4)).expect_err("it is open");
    assert_eq!(
        (refused.by, refused.until, refused.advised),
        (Gate::Breaker, Some(at(5)), Duration::from_secs(1))
    );
    let first = breaker.admit(at(5)).expect("the break is over");
    let half_open = Transition { from: Mode::Open, to: Mode::HalfOpen, trip: None, until: None };
    assert_eq!((first.transition(), breaker.status().until), (Some(half_open), None));
    let second = breaker.admit(at(6)).expect("there are two places");
    assert_eq!(second.transition(), None);
    assert_eq!(breaker.admit(at(6)).expect_err("and no third").until, Some(at(8)), "the first is lost then");
    assert_eq!(breaker.record(first, Verdict::Success, QUICK, at(6)), Recorded::Counted);
    let closed = Transition { from: Mode::HalfOpen, to: Mode::Closed, trip: None, until: None };
    assert_eq!(breaker.record(second, Verdict::Permanent, QUICK, at(6)), Recorded::Changed(closed));
    assert_eq!(breaker.status(), Status { mode: Mode::Closed, opens: 0, until: None });
    assert_eq!(breaker.counts(at(6)), Counts::default());
}

#[test]
fn a_failed_probe_opens_it_again_for_longer_and_its_sister_is_stale() {
    let mut breaker = opened(at(0));
    let first = breaker.admit(at(5)).expect("the break is over");
    let second = breaker.admit(at(5)).expect("there are two places");
    let Recorded::Changed(told) = breaker.record(first, FAILURE, QUICK, at(7)) else { panic!("it opens") };
    assert_eq!((told.from, told.to, told.until), (Mode::HalfOpen, Mode::Open, Some(at(17))));
    assert_eq!(told.trip.map(|trip| trip.name()), Some("probes"));
    assert_eq!(breaker.record(second, Verdict::Success, QUICK, at(7)), Recorded::Stale);
    assert_eq!(breaker.status(), Status { mode: Mode::Open, opens: 2, until: Some(at(17)) });
}

#[test]
fn a_probe_that_says_nothing_gives_its_place_back_and_a_lost_one_loses_it() {
    let mut breaker = opened(at(0));
    let neutral = breaker.admit(at(5)).expect("the break is over");
    let hangs = breaker.admit(at(5)).expect("there are two places");
    let cancelled = Verdict::Neutral(Neutral::Cancelled);
    assert_eq!(breaker.record(neutral, cancelled, QUICK, at(5)), Recorded::Uncounted);
    let dropped = breaker.admit(at(5)).expect("its place is free");
    breaker.give_back(dropped);
    let kept = breaker.admit(at(6)).expect("its place is free too");
    assert!(breaker.admit(at(7)).is_err());
    let instead = breaker.admit(at(8)).expect("the one that hangs is lost");
    breaker.give_back(hangs);
    assert!(breaker.admit(at(8)).is_err(), "it frees no place that is another's");
    assert_eq!(breaker.record(hangs, FAILURE, QUICK, at(8)), Recorded::Stale);
    assert_eq!(breaker.record(kept, Verdict::Success, QUICK, at(8)), Recorded::Counted);
    assert!(matches!(breaker.record(instead, Verdict::Success, QUICK, at(8)), Recorded::Changed(_)));
}

#[test]
fn a_hand_moves_it_and_tells_what_it_moved() {
    let mut breaker = breaker();
    let before = breaker.admit(at(0)).expect("it is closed");
    let moved = |told: Option<Transition>| told.map(|told| (told.from, told.to, told.until));
    assert_eq!(moved(breaker.isolate()), Some((Mode::Closed, Mode::Isolated, None)));
    assert_eq!(breaker.isolate(), None, "it is already");
    let refused = breaker.admit(at(9)).expect_err("it is isolated");
    assert_eq!((refused.until, refused.advised), (None, Duration::from_secs(5)));
    assert_eq!(breaker.record(before, FAILURE, QUICK, at(9)), Recorded::Stale);

    assert_eq!(moved(breaker.force_closed()), Some((Mode::Isolated, Mode::ForcedClosed, None)));
    assert_eq!(record(&mut breaker, FAILURE, at(9)), Recorded::Uncounted);
    assert_eq!(moved(breaker.force_open(at(20))), Some((Mode::ForcedClosed, Mode::Open, Some(at(20)))));
    assert!(breaker.admit(at(19)).is_err());
    assert_eq!(breaker.status(), Status { mode: Mode::Open, opens: 1, until: Some(at(20)) });

    assert_eq!(moved(breaker.observe_only()), Some((Mode::Open, Mode::ObserveOnly, None)));
    for _ in 0..3 {
        assert_eq!(record(&mut breaker, FAILURE, at(9)), Recorded::Counted);
    }
    let Recorded::Changed(told) = record(&mut breaker, FAILURE, at(9)) else {
        panic!("it would have opened")
    };
    assert_eq!((told.from, told.to, told.until), (Mode::ObserveOnly, Mode::ObserveOnly, None));
    assert_eq!(breaker.counts(at(9)).calls, 0, "it begins afresh");
    assert_eq!(moved(breaker.close()), Some((Mode::ObserveOnly, Mode::Closed, None)));
}

#[test]
fn failures_in_a_row_are_broken_by_a_success_alone() {
    let policy =
        BreakerPolicy { failure_rate_milli: None, consecutive_failures: Some(3), ..BreakerPolicy::default() };
    let mut breaker = BreakerState::new(&policy, 1);
    for verdict in [FAILURE, FAILURE, Verdict::Success, FAILURE, Verdict::Permanent, FAILURE] {
        assert_eq!(record(&mut breaker, verdict, at(0)), Recorded::Counted);
    }
    assert_eq!(breaker.counts(at(0)), Counts::default(), "without a rate nothing is remembered");
    let told = record(&mut breaker, FAILURE, at(0)).transition().expect("the third in a row");
    assert_eq!(told.trip, Some(Trip::Consecutive(3)));
}
