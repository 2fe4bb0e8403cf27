//! The retries that every AWS SDK has by default since November 2026.
//!
//! # Source
//!
//! botocore, `retries/standard.py` and `retries/quota.py`; AWS SDKs and Tools Reference Guide, "Retry behavior".
//! What is transient: 500, 502, 503, 504 and botocore's `ConnectionError` and `HTTPClientError`. A time-out of an
//! attempt is botocore's read time-out.

use alloc::vec;
use core::time::Duration;

use super::{any_network_failure, foreign};
use crate::{
    backoff::Backoff,
    budget::{BudgetPolicy, QuotaPolicy},
    classify::Answer,
    jitter::Jitter,
    policy::Policy,
    retry::{RetryPolicy, ServerWaitMode},
};

/// The SDKs know throttling by the error's code in the body, not by the status, and do not repeat a bare 429: a
/// classifier that reads the body says `Throttled`, and the longer curve and the lower charge follow.
///
/// There is no time-out over all attempts, as there is none in the SDKs: three attempts end a call.
pub(super) fn standard_2026() -> Policy {
    let base = foreign(ServerWaitMode::Within(Duration::from_secs(5)));
    let curve = |base| Backoff::Exponential { base, factor_milli: 2000, max: Duration::from_secs(20) };
    Policy {
        retry: RetryPolicy {
            max_attempts: Some(3),
            backoff: curve(Duration::from_millis(50)),
            throttled_backoff: Some(curve(Duration::from_secs(1))),
            jitter: Jitter::Full,
            ..base.retry
        },
        budget: Some(BudgetPolicy::Quota(QuotaPolicy::AWS_2026)),
        attempt_timeout: Duration::from_secs(60),
        classify: any_network_failure(vec![
            (408, 408, Answer::No),
            (429, 429, Answer::No),
            (500, 500, Answer::NotNow),
        ]),
        ..base
    }
}
