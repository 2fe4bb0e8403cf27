//! The standard handler of .NET.
//!
//! # Source
//!
//! dotnet/extensions, `Microsoft.Extensions.Http.Resilience`: `StandardPipelineNames.cs` for the order,
//! `HttpClientResiliencePredicates.cs` for what is transient, `RetryAfterHelper.cs` for hints; the numbers are the
//! defaults of Polly 8's strategies, with exponential backoff and jitter turned on.

use alloc::vec;
use core::time::Duration;

use super::{DAY, any_network_failure, foreign};
use crate::{
    backoff::Backoff,
    breaker::BreakerPolicy,
    classify::Answer,
    concurrency::ConcurrencyPolicy,
    jitter::Jitter,
    policy::{Gates, Policy},
    retry::{RetryPolicy, ServerWaitMode},
    window::Window,
};

/// A hint is obeyed to the millisecond and takes the place of the backoff; there is no cap on either but the
/// total. The handler repeats every method unless told otherwise; relent asks the caller.
pub(super) fn standard() -> Policy {
    let base = foreign(ServerWaitMode::Replace);
    Policy {
        total_timeout: Some(Duration::from_secs(30)),
        admission: Gates { concurrency: Some(ConcurrencyPolicy { limit: 1000, queue: 0 }), rate: None },
        retry: RetryPolicy {
            max_attempts: Some(4),
            backoff: Backoff::Exponential { base: Duration::from_secs(2), factor_milli: 2000, max: DAY },
            jitter: Jitter::PollyV2,
            ..base.retry
        },
        breaker: Some(breaker()),
        attempt_timeout: ATTEMPT,
        classify: any_network_failure(vec![(429, 429, Answer::Throttled), (500, 999, Answer::NotNow)]),
        ..base
    }
}

/// One probe decides. Polly waits for it without end; here its place is free again when its attempt must have
/// ended.
fn breaker() -> BreakerPolicy {
    BreakerPolicy {
        failure_rate_milli: Some(100),
        slow_calls: None,
        consecutive_failures: None,
        window: Window::Time(Duration::from_secs(30)),
        min_calls: 100,
        break_time: Backoff::Constant(Duration::from_secs(5)),
        break_jitter_milli: 0,
        probes: 1,
        probe_timeout: ATTEMPT,
    }
}

const ATTEMPT: Duration = Duration::from_secs(10);
