//! What went wrong in others' breakers, case by case.

#![cfg(not(loom))]

use std::{sync::Barrier, thread, time::Duration};

use relent::{
    Backoff, BreakerPolicy, Cause, Gate, Neutral, Sent, Timestamp, Verdict, Window,
    breaker::{Mode, Recorded},
    control::Breaker,
};

const FAILURE: Verdict = Verdict::Failure { cause: Cause::Error, sent: Sent::Maybe, server_wait: None };
const QUICK: Duration = Duration::from_millis(1);

const fn secs(secs: u64) -> Timestamp {
    Timestamp::from_secs(secs)
}

/// Opens at the first failure for 30 s.
fn touchy() -> BreakerPolicy {
    BreakerPolicy {
        failure_rate_milli: Some(500),
        window: Window::Time(Duration::from_secs(30)),
        min_calls: 1,
        break_time: Backoff::Constant(Duration::from_secs(30)),
        break_jitter_milli: 0,
        probes: 1,
        probe_timeout: Duration::from_secs(30),
        ..BreakerPolicy::default()
    }
}

fn breaker(policy: &BreakerPolicy) -> Breaker {
    Breaker::new(policy).expect("the policy is possible")
}

/// A breaker that opened at that moment.
fn opened(policy: &BreakerPolicy, at: Timestamp) -> Breaker {
    let breaker = breaker(policy);
    let told = breaker.admit(at).expect("it is closed").record(FAILURE, QUICK, at);
    assert_eq!(told.transition().map(|change| change.to), Some(Mode::Open));
    breaker
}

#[test]
fn one_probe_goes_through_while_fourteen_are_refused() {
    // CB-01
    for _ in 0..1000 {
        let breaker = opened(&touchy(), secs(0));
        let together = Barrier::new(15);
        let admitted = thread::scope(|scope| {
            let call = || {
                let clone = breaker.clone();
                together.wait();
                clone.admit_owned(secs(30)).ok()
            };
            let calls: Vec<_> = (0..15).map(|_| scope.spawn(call)).collect();
            calls.into_iter().filter_map(|call| call.join().expect("it does not panic")).collect::<Vec<_>>()
        });
        assert_eq!(admitted.len(), 1);
        for probe in admitted {
            let told = probe.record(Verdict::Success, Duration::from_secs(2), secs(32));
            assert_eq!(told.transition().map(|change| change.to), Some(Mode::Closed));
        }
        assert_eq!(breaker.status().mode, Mode::Closed);
    }
}

#[test]
fn a_neutral_outcome_gives_its_trial_back() {
    // CB-03
    let breaker = opened(&BreakerPolicy { probes: 5, ..touchy() }, secs(0));
    let neutral = Verdict::Neutral(Neutral::OwnFault);
    for verdict in [Verdict::Success, Verdict::Success, Verdict::Success, Verdict::Success, neutral] {
        let probe = breaker.admit(secs(31)).expect("a place is free");
        assert_eq!(probe.record(verdict, QUICK, secs(31)).transition(), None);
    }
    let sixth = breaker.admit(secs(31)).expect("the fifth place is free again");
    let told = sixth.record(Verdict::Success, QUICK, secs(31));
    assert_eq!(told.transition().map(|change| change.to), Some(Mode::Closed));
}

#[test]
fn a_probe_that_never_ends_loses_its_place_and_is_not_heard_afterwards() {
    // CB-05: the clock of the case starts when the break is over.
    let breaker = opened(&touchy(), secs(70));
    let hung = breaker.admit(secs(100)).expect("the break is over");
    for second in 101..130 {
        let refusal = breaker.admit(secs(second)).expect_err("the place is taken");
        assert!(refusal.until.is_some_and(|until| until > secs(129) && until <= secs(130)), "{refusal:?}");
    }
    let second = breaker.admit(secs(130)).expect("the first is taken for lost");
    let before = breaker.status();
    assert_eq!(hung.record(Verdict::Success, Duration::from_secs(45), secs(145)), Recorded::Stale);
    assert_eq!(breaker.status(), before);
    assert!(breaker.admit(secs(146)).is_err(), "and its end frees no place that is another's");
    assert!(matches!(second.record(FAILURE, QUICK, secs(147)), Recorded::Changed(_)));
}

#[test]
fn a_result_of_an_earlier_state_changes_nothing() {
    // CB-07
    let breaker = breaker(&touchy());
    let slow = breaker.admit(secs(0)).expect("it is closed");
    let trips = breaker.admit(secs(5)).expect("it is closed");
    assert_eq!(trips.record(FAILURE, QUICK, secs(5)).transition().map(|change| change.to), Some(Mode::Open));
    let trial = breaker.admit(secs(36)).expect("the break is over");
    assert_eq!(slow.record(Verdict::Success, Duration::from_secs(40), secs(40)), Recorded::Stale);
    assert_eq!(breaker.status().mode, Mode::HalfOpen);
    let told = trial.record(FAILURE, Duration::from_secs(5), secs(41));
    assert_eq!(told.transition().map(|change| (change.from, change.to)), Some((Mode::HalfOpen, Mode::Open)));
}

#[test]
fn callers_who_give_up_are_not_failures() {
    // CB-09: that they are counted as cancelled is for whoever cancels to observe.
    let breaker = breaker(&BreakerPolicy { min_calls: 10, ..touchy() });
    for call in 0..100 {
        let permit = breaker.admit(Timestamp::from_millis(call)).expect("it is closed");
        if call % 2 == 0 {
            drop(permit);
        } else {
            let cancelled = Verdict::Neutral(Neutral::Cancelled);
            let after = Timestamp::from_millis(call + 200);
            assert_eq!(permit.record(cancelled, Duration::from_millis(200), after), Recorded::Uncounted);
        }
    }
    assert_eq!(breaker.status().mode, Mode::Closed);
    assert_eq!(breaker.counts(secs(1)).calls, 0);
}

#[test]
fn an_isolated_breaker_refuses_at_once_and_asks_no_clock() {
    // CB-11, the breaker's part: what it answers depends on nothing behind it, not even on the time.
    let breaker = breaker(&touchy());
    let told = breaker.isolate().expect("it was closed");
    assert_eq!((told.from, told.to), (Mode::Closed, Mode::Isolated));
    for _ in 0..100 {
        let refusal = breaker.admit_with(|| unreachable!("no clock is needed")).expect_err("it is isolated");
        assert_eq!((refusal.by, refusal.until), (Gate::Breaker, None));
        assert!(refusal.advised > Duration::ZERO);
    }
    assert_eq!(breaker.isolate(), None, "it is already");
    assert!(breaker.close().is_some());
    assert!(breaker.admit(secs(0)).is_ok());
}

#[test]
fn a_minimum_that_does_not_fit_and_a_break_of_no_time_are_refused_when_built() {
    // CB-13 and CB-15
    let unfillable = BreakerPolicy { window: Window::Count(5), min_calls: 10, ..touchy() };
    let told = Breaker::new(&unfillable).expect_err("it could never open").to_string();
    assert!(told.contains("10 calls") && told.contains("window 5"), "{told}");
    let breathless = BreakerPolicy { break_time: Backoff::Constant(Duration::ZERO), ..touchy() };
    assert_eq!(Breaker::new(&breathless).expect_err("it protects nothing").field, "breaker.break_time.wait");
}

#[test]
fn a_break_ends_by_the_clock_it_is_told_and_by_no_other() {
    // CL-02, the breaker's part: it reads no clock, so a step of the wall clock cannot reach it; what the clock of
    // live calls does then is shown beside that clock.
    let breaker = opened(&touchy(), secs(0));
    assert_eq!(breaker.status().until, Some(secs(30)));
    assert!(breaker.admit(Timestamp::from_millis(29_900)).is_err());
    assert!(breaker.admit(Timestamp::from_nanos(secs(30).as_nanos() - 1)).is_err());
    let last = breaker.refusal(Timestamp::from_nanos(secs(30).as_nanos() - 1)).expect("it is open still");
    assert_eq!((last.until, last.advised), (Some(secs(30)), Duration::from_millis(1)));
    assert_eq!(breaker.refusal(secs(30)), None, "whoever merely asks hears the same");
    assert!(breaker.admit(secs(30)).is_ok());
}

#[test]
fn a_breaker_that_observes_only_says_when_it_would_have_opened_and_lets_all_through() {
    let breaker = breaker(&BreakerPolicy { window: Window::Count(10), min_calls: 4, ..touchy() });
    assert_eq!(breaker.observe_only().map(|told| told.to), Some(Mode::ObserveOnly));
    let mut told = 0;
    for _ in 0..12 {
        let permit = breaker.admit_with(|| unreachable!("no clock is needed")).expect("it merely observes");
        if let Some(change) = permit.record(FAILURE, QUICK, secs(1)).transition() {
            assert_eq!((change.from, change.to), (Mode::ObserveOnly, Mode::ObserveOnly));
            assert_eq!(change.trip.map(|trip| trip.name()), Some("failure_rate"));
            told += 1;
        }
    }
    assert_eq!(told, 3, "once for every four failures");
}

#[test]
fn forced_closed_it_counts_nothing_and_forced_open_it_waits_until_it_was_told() {
    let breaker = breaker(&touchy());
    assert_eq!(breaker.force_closed().map(|told| told.to), Some(Mode::ForcedClosed));
    let permit = breaker.admit(secs(0)).expect("it is forced closed");
    assert_eq!(permit.record(FAILURE, QUICK, secs(0)), Recorded::Uncounted);
    assert_eq!(breaker.counts(secs(0)).calls, 0);

    let told = breaker.force_open(secs(9)).expect("it was closed");
    assert_eq!((told.to, told.trip, told.until), (Mode::Open, None, Some(secs(9))));
    assert_eq!(breaker.admit(secs(8)).expect_err("it is open").until, Some(secs(9)));
    let probe = breaker.admit(secs(9)).expect("its time is over");
    assert_eq!(probe.transition().map(|change| change.to), Some(Mode::HalfOpen));
    assert!(probe.is_probe());
}

#[test]
fn a_permanent_no_is_a_call_that_did_not_fail_and_breaks_no_row_of_failures() {
    let policy = BreakerPolicy { consecutive_failures: Some(3), min_calls: 20, ..touchy() };
    let breaker = breaker(&policy);
    let record = |verdict| breaker.admit(secs(1)).expect("it is closed").record(verdict, QUICK, secs(1));
    for verdict in [FAILURE, FAILURE, Verdict::Success, FAILURE, FAILURE, Verdict::Permanent] {
        assert_eq!(record(verdict), Recorded::Counted);
    }
    let counts = breaker.counts(secs(1));
    assert_eq!((counts.calls, counts.failures), (6, 4));
    let trip = record(FAILURE).transition().and_then(|change| change.trip);
    assert_eq!(trip.map(|trip| trip.name()), Some("consecutive"));
}

#[test]
fn breaks_grow_while_probes_fail_and_start_over_once_it_has_closed() {
    let second = Duration::from_secs(1);
    let policy = BreakerPolicy {
        break_time: Backoff::Exponential { base: second, factor_milli: 2000, max: second * 4 },
        ..touchy()
    };
    let breaker = opened(&policy, secs(0));
    let mut now = secs(0);
    for length in [1, 2, 4, 4] {
        now = now.after(second * length);
        assert_eq!(breaker.status().until, Some(now));
        let probe = breaker.admit(now).expect("the break is over");
        assert!(matches!(probe.record(Verdict::TIMED_OUT, second, now), Recorded::Changed(_)));
    }
    now = now.after(second * 4);
    let probe = breaker.admit(now).expect("the break is over");
    assert!(matches!(probe.record(Verdict::Success, QUICK, now), Recorded::Changed(_)));
    let fails = breaker.admit(now).expect("it has closed");
    let until = fails.record(FAILURE, QUICK, now).transition().and_then(|change| change.until);
    assert_eq!(until, Some(now.after(second)));
}

#[test]
fn it_shows_its_policy_and_how_it_stands() {
    let shown = format!("{:?}", opened(&touchy(), secs(0)));
    assert!(shown.contains("min_calls: 1") && shown.contains("mode: Open"), "{shown}");
}

#[test]
fn a_permit_says_whether_its_call_is_a_probe_and_shows_where_the_breaker_stood() {
    let breaker = opened(&touchy(), secs(0));
    let probe = breaker.admit(secs(30)).expect("the break is over");
    assert!(probe.is_probe());
    let shown = format!("{probe:?}");
    assert!(
        shown.starts_with("Permit {") && shown.contains("phase: ") && shown.contains("place: 0"),
        "{shown}"
    );
    assert!(matches!(probe.record(Verdict::Success, QUICK, secs(30)), Recorded::Changed(_)));
    assert!(!breaker.admit(secs(30)).expect("it is closed").is_probe());
    let _told = breaker.observe_only();
    assert!(!breaker.admit(secs(30)).expect("it merely observes").is_probe());
}
