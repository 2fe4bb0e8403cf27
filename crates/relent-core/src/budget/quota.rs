//! The retry quota of the AWS SDKs' standard mode.
//!
//! A retry is charged by cause; one that succeeds returns the last charge, and a first attempt that succeeds
//! returns one token. With three attempts it begins to drain when 21.5 % of attempts fail at a charge of 14, and
//! 32.1 % at 5: (1 − p) = c · (p² + p³).
//!
//! # Source
//!
//! AWS SDKs and Tools Reference Guide, "Retry behavior"; botocore `retries/standard.py` (`RetryQuotaChecker`).

use crate::verdict::Cause;

/// The quota's numbers, in thousandths of a token.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct QuotaPolicy {
    /// What the bucket holds; it begins full.
    pub capacity_milli: u32,
    /// The charge after an error.
    pub transient_milli: u32,
    /// The charge after a time-out of ours.
    pub timeout_milli: u32,
    /// The charge after an overload answer.
    pub throttled_milli: u32,
    /// What a first success returns.
    pub first_success_milli: u32,
}

impl QuotaPolicy {
    /// The numbers of 2026: 500; 14 for transient failures, 5 for throttling.
    pub const AWS_2026: Self = Self {
        capacity_milli: 500_000,
        transient_milli: 14_000,
        timeout_milli: 14_000,
        throttled_milli: 5_000,
        first_success_milli: 1_000,
    };

    /// The numbers before: 500; 5, or 10 after a time-out.
    pub const AWS_LEGACY: Self = Self { transient_milli: 5_000, timeout_milli: 10_000, ..Self::AWS_2026 };

    /// The tokens after a retry was let through, and its charge. `None`: too few are left.
    pub const fn charge(&self, tokens: u32, cause: Cause) -> Option<(u32, u32)> {
        let charge = match cause {
            Cause::Error | Cause::Lost => self.transient_milli,
            Cause::Timeout => self.timeout_milli,
            Cause::Throttled => self.throttled_milli,
        };
        match tokens.checked_sub(charge) {
            Some(left) => Some((left, charge)),
            None => None,
        }
    }

    /// The tokens after a call whose first attempt succeeded.
    pub fn after_first_success(&self, tokens: u32) -> u32 {
        tokens.saturating_add(self.first_success_milli).min(self.capacity_milli)
    }

    /// The tokens after a charge came back, because its retry succeeded or was not sent. Of a call that was
    /// retried several times only the last charge comes back.
    pub fn returned(&self, tokens: u32, charge: u32) -> u32 {
        tokens.saturating_add(charge).min(self.capacity_milli)
    }
}

impl Default for QuotaPolicy {
    fn default() -> Self {
        Self::AWS_2026
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_bucket_lasts_for_as_many_retries_as_the_sdks_say() {
        let outage = |policy: QuotaPolicy, cause| {
            let mut tokens = policy.capacity_milli;
            core::iter::from_fn(|| {
                let (left, charge) = policy.charge(tokens, cause)?;
                tokens = left;
                Some(charge)
            })
            .take(1000)
            .count()
        };
        assert_eq!(outage(QuotaPolicy::AWS_2026, Cause::Error), 35);
        assert_eq!(outage(QuotaPolicy::AWS_2026, Cause::Timeout), 35);
        assert_eq!(outage(QuotaPolicy::AWS_2026, Cause::Throttled), 100);
        assert_eq!(outage(QuotaPolicy::AWS_LEGACY, Cause::Error), 100);
        assert_eq!(outage(QuotaPolicy::AWS_LEGACY, Cause::Throttled), 100);
        assert_eq!(outage(QuotaPolicy::AWS_LEGACY, Cause::Timeout), 50);
    }

    #[test]
    fn only_the_last_charge_comes_back_and_the_bucket_does_not_overflow() {
        let policy = QuotaPolicy::AWS_2026;
        let (left, _) = policy.charge(500_000, Cause::Error).expect("full");
        let (left, charge) = policy.charge(left, Cause::Throttled).expect("nearly full");
        assert_eq!(policy.returned(left, charge), 486_000);
        assert_eq!(policy.returned(499_999, charge), 500_000);
        assert_eq!(policy.after_first_success(0), 1_000);
        assert_eq!(policy.after_first_success(499_001), 500_000);
    }
}
