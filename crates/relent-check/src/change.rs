//! A change of one setting that mends a fault: in relent's own words, and what it does to a subject.

use std::time::Duration;

use relent_core::{
    Answer, Backoff, BreakerPolicy, BudgetPolicy, ConcurrencyPolicy, ErrorClass, Idempotency, Jitter,
    OnExhausted, RatePolicy, ServerWaitMode, Window,
};

use crate::subject::Subject;

/// A change of one setting of a policy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    MaxAttempts(u32),
    AttemptTimeout(Duration),
    TotalTimeout(Duration),
    BusinessDeadline(Duration),
    MinAttempt(Duration),
    MaxLosses(u32),
    Backoff(Backoff),
    ThrottledBackoff(Backoff),
    Jitter(Jitter),
    HintMode(ServerWaitMode),
    HintLimit(Duration),
    Budget(BudgetPolicy),
    BudgetFloor(u32),
    Breaker(BreakerPolicy),
    BreakerRate(u32),
    BreakerRow(u32),
    BreakerMinCalls(u32),
    BreakerWindow(Duration),
    SlowAfter(Duration),
    ProbeTimeout(Duration),
    AttemptConcurrency(ConcurrencyPolicy),
    AttemptRate(RatePolicy),
    Repeat(Idempotency),
    Statuses(Vec<(u16, u16, Answer)>),
    Error(ErrorClass, Answer),
    OnExhausted(OnExhausted),
    Alert(String),
    /// A time is to be written in the form that its reader understands; the index is that of the mistake.
    Time(usize),
}

impl Change {
    /// The setting, as relent's policies name it.
    pub(crate) const fn field(&self) -> &'static str {
        match self {
            Self::MaxAttempts(_) => "retry.max_attempts",
            Self::AttemptTimeout(_) => "attempt_timeout",
            Self::TotalTimeout(_) => "total_timeout",
            Self::BusinessDeadline(_) => "business_deadline",
            Self::MinAttempt(_) => "retry.min_attempt",
            Self::MaxLosses(_) => "retry.max_losses",
            Self::Backoff(_) => "retry.backoff",
            Self::ThrottledBackoff(_) => "retry.throttled_backoff",
            Self::Jitter(_) => "retry.jitter",
            Self::HintMode(_) => "retry.server_wait.mode",
            Self::HintLimit(_) => "retry.server_wait.limit",
            Self::Budget(_) | Self::BudgetFloor(_) => "budget",
            Self::Breaker(_) => "breaker",
            Self::BreakerRate(_) => "breaker.failure_rate",
            Self::BreakerRow(_) => "breaker.consecutive_failures",
            Self::BreakerMinCalls(_) => "breaker.min_calls",
            Self::BreakerWindow(_) => "breaker.window",
            Self::SlowAfter(_) => "breaker.slow_calls.longer_than",
            Self::ProbeTimeout(_) => "breaker.probe_timeout",
            Self::AttemptConcurrency(_) => "attempt.concurrency",
            Self::AttemptRate(_) => "attempt.rate",
            Self::Repeat(_) => "repeat",
            Self::Statuses(_) => "classify.status",
            Self::Error(..) => "classify.error",
            Self::OnExhausted(_) => "on_exhausted",
            Self::Alert(_) => "alert",
            Self::Time(_) => "",
        }
    }

    /// Makes the change.
    pub(crate) fn apply(&self, subject: &mut Subject) {
        let policy = &mut subject.policy;
        let retry = &mut policy.retry;
        match self.clone() {
            Self::MaxAttempts(attempts) => retry.max_attempts = Some(attempts),
            Self::AttemptTimeout(length) => policy.attempt_timeout = length,
            Self::TotalTimeout(length) => policy.total_timeout = Some(length),
            Self::BusinessDeadline(length) => policy.business_deadline = Some(length),
            Self::MinAttempt(length) => retry.min_attempt = length,
            Self::MaxLosses(losses) => retry.max_losses = losses,
            Self::Backoff(curve) => {
                retry.backoff = curve;
                subject.habits.waits_nothing = false;
            }
            Self::ThrottledBackoff(curve) => retry.throttled_backoff = Some(curve),
            Self::Jitter(jitter) => retry.jitter = jitter,
            Self::HintMode(mode) => retry.server_wait.mode = mode,
            Self::HintLimit(limit) => retry.server_wait.limit = limit,
            Self::Budget(budget) => policy.budget = Some(budget),
            Self::BudgetFloor(floor) => {
                if let Some(BudgetPolicy::Share(share)) = &mut policy.budget {
                    share.floor = floor;
                }
            }
            Self::Repeat(repeat) => policy.repeat = repeat,
            Self::Statuses(statuses) => policy.classify.rules.statuses = statuses,
            Self::Error(class, answer) => {
                let errors = &mut policy.classify.rules.errors;
                errors.retain(|(known, _)| *known != class);
                errors.push((class, answer));
            }
            Self::OnExhausted(place) => policy.on_exhausted = place,
            Self::Alert(name) => policy.alert = Some(name),
            Self::AttemptConcurrency(limit) => policy.attempt.concurrency = Some(limit),
            Self::AttemptRate(rate) => policy.attempt.rate = Some(rate),
            Self::Breaker(breaker) => policy.breaker = Some(breaker),
            Self::Time(index) => drop(subject.days.remove(index)),
            of_the_breaker => of_the_breaker.apply_to_breaker(policy.breaker.get_or_insert_default()),
        }
    }

    fn apply_to_breaker(&self, breaker: &mut BreakerPolicy) {
        match *self {
            Self::BreakerRate(milli) => breaker.failure_rate_milli = Some(milli),
            Self::BreakerRow(row) => breaker.consecutive_failures = Some(row),
            Self::BreakerMinCalls(calls) => breaker.min_calls = calls,
            Self::BreakerWindow(length) => breaker.window = Window::Time(length),
            Self::SlowAfter(length) => {
                if let Some(slow) = &mut breaker.slow_calls {
                    slow.longer_than = length;
                }
            }
            Self::ProbeTimeout(length) => breaker.probe_timeout = length,
            _ => {}
        }
    }
}
