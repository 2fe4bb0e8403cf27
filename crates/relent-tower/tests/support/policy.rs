//! The policy of the tests that count attempts.

use std::time::Duration;

use relent::{Backoff, Jitter, Policy};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// Four attempts, a second apart, within a minute.
pub(crate) fn policy() -> Policy {
    let mut policy = Policy { budget: None, total_timeout: Some(60 * SECOND), ..Policy::live() };
    policy.retry.backoff = Backoff::Constant(SECOND);
    policy.retry.jitter = Jitter::None;
    policy.retry.max_attempts = Some(4);
    policy
}
