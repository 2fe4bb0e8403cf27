//! Breakers: closed while calls succeed, and open.

use std::{hint::black_box, time::Duration};

use failsafe::{CircuitBreaker, backoff, failure_policy};
use recloser::Recloser;
use relent::{Backoff, BreakerPolicy, SlowCalls, Timestamp, Verdict, Window, control::Breaker};

use super::{HOUR, LONG, clock};
use crate::{
    operation::Busy,
    work::{Work, steps},
};

pub(crate) fn last_calls() -> Work {
    full(Window::Count(100), 100)
}

/// Reads the clock where the breaker needs it, as a caller would who has no time of his own.
pub(crate) fn last_seconds() -> Work {
    let breaker = filled(policy(Window::Time(Duration::from_secs(10))), 0);
    let clock = clock();
    steps(move || {
        if let Ok(permit) = breaker.admit_with(clock) {
            let _told = black_box(permit.record_with(Verdict::Success, Duration::ZERO, clock));
        }
    })
}

/// As a whole call uses it: the clock is read at its beginning and at its end.
pub(crate) fn slow_calls() -> Work {
    let slow = SlowCalls { longer_than: Duration::from_secs(1), rate_milli: 500 };
    let seconds = policy(Window::Time(Duration::from_secs(10)));
    let breaker = filled(BreakerPolicy { slow_calls: Some(slow), ..seconds }, 0);
    let clock = clock();
    steps(move || {
        let began = clock();
        if let Ok(permit) = breaker.admit(began) {
            let ended = clock();
            let _told = black_box(permit.record(Verdict::Success, ended.since(began), ended));
        }
    })
}

/// An open one, told the time.
pub(crate) fn open() -> Work {
    let breaker = filled(policy(Window::Time(Duration::from_secs(10))), 0);
    let _told = breaker.force_open(Timestamp::MAX);
    steps(move || assert!(black_box(breaker.admit(HOUR)).is_err()))
}

pub(crate) fn last_seconds_told() -> Work {
    full(Window::Time(Duration::from_secs(10)), 100)
}

pub(crate) fn in_a_row() -> Work {
    let only_rows = BreakerPolicy {
        failure_rate_milli: None,
        consecutive_failures: Some(5),
        ..policy(Window::Count(100))
    };
    let breaker = filled(only_rows, 0);
    steps(move || succeed(&breaker, HOUR))
}

/// A breaker whose window holds so many calls already, told the time.
pub(crate) fn full(window: Window, calls: u32) -> Work {
    let breaker = filled(policy(window), calls);
    steps(move || succeed(&breaker, HOUR))
}

pub(crate) fn recloser() -> Work {
    let recloser = Recloser::custom().error_rate(0.5).closed_len(100).build();
    for _ in 0..=100 {
        let _counted = recloser.call(|| Ok::<_, Busy>(7));
    }
    steps(move || assert!(black_box(recloser.call(|| Ok::<_, Busy>(7))).is_ok()))
}

pub(crate) fn failsafe() -> Work {
    let breaker = failsafe::Config::new().build();
    steps(move || assert!(black_box(breaker.call(|| Ok::<_, Busy>(7))).is_ok()))
}

pub(crate) fn failsafe_in_a_row() -> Work {
    let policy = failure_policy::consecutive_failures(5, backoff::constant(LONG));
    let breaker = failsafe::Config::new().failure_policy(policy).build();
    steps(move || assert!(black_box(breaker.call(|| Ok::<_, Busy>(7))).is_ok()))
}

fn policy(window: Window) -> BreakerPolicy {
    BreakerPolicy {
        failure_rate_milli: Some(500),
        window,
        min_calls: 10,
        break_time: Backoff::Constant(Duration::from_secs(30)),
        ..BreakerPolicy::default()
    }
}

fn filled(policy: BreakerPolicy, calls: u32) -> Breaker {
    let breaker = Breaker::new(&policy).expect("the policy is possible");
    for _ in 0..=calls {
        succeed(&breaker, HOUR);
    }
    breaker
}

fn succeed(breaker: &Breaker, now: Timestamp) {
    if let Ok(permit) = breaker.admit(black_box(now)) {
        let _told = black_box(permit.record(Verdict::Success, Duration::ZERO, black_box(now)));
    }
}
