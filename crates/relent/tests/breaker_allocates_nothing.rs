//! Once it is built, a breaker takes no memory from the heap, whatever happens to it.

#![cfg(not(loom))]

mod counting;

use std::time::Duration;

use relent::{
    BreakerPolicy, Neutral, SlowCalls, Timestamp, Verdict, Window,
    breaker::{Mode, Recorded},
    control::Breaker,
};

use counting::counted;

#[test]
fn calls_probes_refusals_and_changes_by_hand_allocate_nothing() {
    for window in [Window::Count(50), Window::Time(Duration::from_secs(10))] {
        let slow = SlowCalls { longer_than: Duration::from_millis(50), rate_milli: 900 };
        let policy = BreakerPolicy {
            slow_calls: Some(slow),
            consecutive_failures: Some(30),
            window,
            ..BreakerPolicy::default()
        };
        let breaker = Breaker::new(&policy).expect("the policy is possible");
        let (changes, allocations) = counted(|| life(&breaker));
        assert_eq!(allocations, 0, "{window:?}");
        assert!(changes > 10, "it opened, half-opened and closed again and again: {changes}");
    }
}

/// Ten hours with outages of an hour; returns how often the mode changed.
fn life(breaker: &Breaker) -> u32 {
    let mut changes = 0;
    let verdicts = [Verdict::Success, Verdict::Permanent, Verdict::Neutral(Neutral::Cancelled)];
    for (second, verdict) in (0..36_000).zip(verdicts.iter().cycle()) {
        let now = Timestamp::from_millis(second * 1000);
        let verdict = if second / 3600 % 2 == 1 { Verdict::TIMED_OUT } else { *verdict };
        for _ in 0..5 {
            let Ok(permit) = breaker.clone().admit_owned(now) else { continue };
            let told = permit.record(verdict, Duration::from_millis(second % 100), now);
            changes += u32::from(matches!(told, Recorded::Changed(_)));
        }
    }
    for told in [breaker.isolate(), breaker.force_closed(), breaker.observe_only(), breaker.close()] {
        changes += u32::from(told.is_some());
    }
    assert_eq!(breaker.status().mode, Mode::Closed);
    changes
}
