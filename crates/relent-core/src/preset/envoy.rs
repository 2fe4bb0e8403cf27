//! A retry policy of Envoy's router as it is when only `retry_on` is set.
//!
//! # Source
//!
//! Envoy, `router_filter.rst` (`x-envoy-max-retries`, `x-envoy-retry-on`), `route_components.proto`
//! (`RetryPolicy`, `RouteAction.timeout`), `circuit_breaker.proto` (`RetryBudget`).

use alloc::vec;
use core::time::Duration;

use super::foreign;
use crate::{
    backoff::Backoff,
    budget::{BudgetPolicy, SharePolicy},
    classify::{Answer, Classification, ErrorClass, Rules, Table},
    jitter::Jitter,
    policy::Policy,
    retry::{RetryPolicy, ServerWaitMode},
};

/// `retry_on: gateway-error,reset,connect-failure` with a retry budget. The route's 15 s bound all attempts, and
/// one may use them up. A handshake that fails is a failure to connect. Hints are ignored, as they are unless a
/// route configures `rate_limited_retry_back_off`.
pub(super) fn router() -> Policy {
    let base = foreign(ServerWaitMode::Ignore);
    let route = Duration::from_secs(15);
    let statuses = vec![(408, 408, Answer::No), (429, 429, Answer::No)];
    Policy {
        total_timeout: Some(route),
        retry: RetryPolicy {
            max_attempts: Some(2),
            // (2ⁿ − 1) × 25 ms, at most ten times the base. One retry needs the first alone.
            backoff: Backoff::Steps([25, 75, 175, 250].map(Duration::from_millis).into()),
            jitter: Jitter::Full,
            ..base.retry
        },
        budget: Some(BudgetPolicy::Share(SharePolicy { share_milli: 200, floor: 3 })),
        attempt_timeout: route,
        classify: Classification {
            rules: Rules { statuses, errors: vec![(ErrorClass::Tls, Answer::NotNow)] },
            ..Classification::new(Table::Documents)
        },
        ..base
    }
}
