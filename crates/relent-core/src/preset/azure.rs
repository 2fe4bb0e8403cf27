//! The retries that every client of the Azure SDK for .NET has.
//!
//! # Source
//!
//! azure-sdk-for-net, `Azure.Core`: `RetryOptions` for the numbers, `ExponentialDelayStrategy` and `DelayStrategy`
//! for the waits, `ResponseClassifier` for what is repeated.

use alloc::vec;
use core::time::Duration;

use super::{any_network_failure, foreign};
use crate::{
    backoff::Backoff,
    classify::Answer,
    jitter::Jitter,
    policy::Policy,
    retry::{RetryPolicy, ServerWaitMode},
};

/// The longer of the hint and the backoff counts. The storage clients do the same with six attempts.
///
/// Azure cuts at 60 s after the jitter, which would make late waits all alike; here 60 s are spread too. Of the
/// preset's own waits none comes near.
///
/// There is no time-out over all attempts, as there is none in the SDK: four attempts end a call.
pub(super) fn core() -> Policy {
    let base = foreign(ServerWaitMode::Longer);
    Policy {
        retry: RetryPolicy {
            max_attempts: Some(4),
            backoff: Backoff::Exponential {
                base: Duration::from_millis(800),
                factor_milli: 2000,
                max: Duration::from_secs(60),
            },
            jitter: Jitter::Proportional { below_milli: 200, above_milli: 200 },
            ..base.retry
        },
        attempt_timeout: Duration::from_secs(100),
        classify: any_network_failure(vec![(500, 500, Answer::NotNow)]),
        ..base
    }
}
