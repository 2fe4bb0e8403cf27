//! The policies that relent is measured with, and the same rules for the pipeline by hand.

use std::time::Duration;

use relent::{
    BreakerPolicy, BudgetPolicy, ConcurrencyPolicy, Gates, Pipeline, Policy, RetryPolicy, ServerWait,
    ServerWaitMode, Window, breaker::SlowCalls, budget::LoanPolicy,
};

use crate::{
    packed::{Packed, Rules},
    work::kept,
};

/// Everything on: the defaults, with an admission limit and a breaker with a window of time and slow calls.
pub(crate) fn standard() -> Policy {
    Policy { admission: limited_to(100), breaker: Some(breaker()), ..Policy::live() }
}

/// The same for a dependency that fails twice in three: no wait, a budget that never runs out and a breaker that opens
/// when nothing succeeds any more, so that every call ends well.
pub(crate) fn failing() -> Policy {
    let endless = LoanPolicy {
        gain_milli: 1_000,
        floor_milli: u32::MAX,
        start_milli: u32::MAX / 2,
        ..LoanPolicy::default()
    };
    Policy {
        retry: at_once(),
        budget: Some(BudgetPolicy::Loan(endless)),
        breaker: Some(BreakerPolicy { failure_rate_milli: Some(1_000), ..breaker() }),
        ..standard()
    }
}

/// The same, with a budget in which there is nothing. There is no breaker, which would open.
pub(crate) fn broke() -> Policy {
    let empty = LoanPolicy { start_milli: 0, ..LoanPolicy::default() };
    Policy { budget: Some(BudgetPolicy::Loan(empty)), breaker: None, ..failing() }
}

/// Five attempts and no time-out but the attempt's, which no policy is without; nothing else.
pub(crate) fn only_retries() -> Policy {
    Policy { total_timeout: None, budget: None, retry: at_once(), ..Policy::live() }
}

/// One attempt and its time-out; nothing else.
pub(crate) fn only_timeout() -> Policy {
    let retry = RetryPolicy { max_attempts: Some(1), ..at_once() };
    Policy { retry, ..only_retries() }
}

pub(crate) fn limited_to(limit: u32) -> Gates {
    Gates { concurrency: Some(ConcurrencyPolicy { limit, queue: limit }), rate: None }
}

pub(crate) fn in_force(policy: Policy) -> &'static Pipeline {
    kept(Pipeline::new(policy).expect("the policy is possible").named("users"))
}

fn breaker() -> BreakerPolicy {
    BreakerPolicy {
        slow_calls: Some(SlowCalls { longer_than: Duration::from_secs(1), rate_milli: 900 }),
        window: Window::Time(Duration::from_secs(10)),
        ..BreakerPolicy::default()
    }
}

/// The dependency's word counts alone, and it says that there is no need to wait.
fn at_once() -> RetryPolicy {
    let live = Policy::live().retry;
    RetryPolicy { server_wait: ServerWait { mode: ServerWaitMode::Replace, ..live.server_wait }, ..live }
}

/// The rules of [`standard`].
pub(crate) fn rules() -> Rules {
    Rules {
        limit: 100,
        attempts: 5,
        total: 5_000_000_000,
        attempt: 2_000_000_000,
        slow: 1_000_000_000,
        window: 10_000_000_000,
        least_calls: 20,
        open_for: 5_000_000_000,
        wait: 0,
        most_tokens: 1_000,
    }
}

pub(crate) fn by_hand(rules: Rules) -> &'static Packed {
    kept(Packed::new(rules))
}

/// The attempt's time-out, for those who are given nothing else.
pub(crate) const ATTEMPT: Duration = Duration::from_secs(2);
/// The total one.
pub(crate) const TOTAL: Duration = Duration::from_secs(5);
