//! gRPC's retries. A service config states every number, and there are no defaults: these are the example's.
//!
//! # Source
//!
//! gRPC proposal A6, "gRPC Retry Design": `retryPolicy` of the section *Retry Policy Capabilities*,
//! `retryThrottling` of *Throttling Retry Attempts and Hedged RPCs*. Statuses of HTTP by
//! `http-grpc-status-mapping.md`: 429, 502, 503 and 504 are `UNAVAILABLE`.

use alloc::vec;
use core::time::Duration;

use super::{any_network_failure, foreign};
use crate::{
    backoff::Backoff,
    budget::{BudgetPolicy, GrpcPolicy},
    classify::{Answer, ErrorClass},
    jitter::Jitter,
    policy::Policy,
    retry::{RetryPolicy, ServerWaitMode},
};

/// Retries on `UNAVAILABLE` alone. `grpc-retry-pushback-ms` takes the place of the backoff; the waits after it
/// go on from where they were, where A6 would begin again at the first.
///
/// gRPC has one deadline for all attempts and leaves it to the caller. Where the caller gives none, relent's own
/// 5 s count, and an attempt may use them up.
pub(super) fn a6() -> Policy {
    let base = foreign(ServerWaitMode::Replace);
    let deadline = Duration::from_secs(5);
    let mut classify = any_network_failure(vec![
        (408, 408, Answer::No),
        (429, 429, Answer::NotNow),
        (502, 504, Answer::NotNow),
    ]);
    // `DEADLINE_EXCEEDED` and `INTERNAL`, which the example does not repeat.
    let not_repeated =
        [ErrorClass::HeaderTimeout, ErrorClass::BodyTimeout, ErrorClass::Timeout, ErrorClass::Protocol];
    classify.rules.errors.retain(|(class, _)| !not_repeated.contains(class));
    classify.rules.errors.extend(not_repeated.map(|class| (class, Answer::No)));
    Policy {
        total_timeout: Some(deadline),
        retry: RetryPolicy {
            max_attempts: Some(4),
            backoff: Backoff::Exponential {
                base: Duration::from_millis(100),
                factor_milli: 2000,
                max: Duration::from_secs(1),
            },
            jitter: Jitter::Proportional { below_milli: 200, above_milli: 200 },
            ..base.retry
        },
        budget: Some(BudgetPolicy::Grpc(GrpcPolicy { max_milli: 10_000, ratio_milli: 100 })),
        attempt_timeout: deadline,
        classify,
        ..base
    }
}
