//! The loan budget: a retry is a loan.
//!
//! A failed retry keeps its token. A successful one pays it back, with interest when the failure looked
//! independent of load and without when it looked like overload. First successes earn a little, and the bucket
//! is sized by the traffic of the last minute, not by a constant. First attempts are never blocked and failed
//! first attempts are never charged.
//!
//! For any pattern of failures:
//!
//! 1. charges of failed retries ≤ start + earn × first successes + gain × charges of rescued calls;
//! 2. in an outage, charges of failed retries ≤ the tokens at its start + loans already out: at steady traffic
//!    1.2 seconds' worth of calls, however long it lasts;
//! 3. 0 ≤ tokens ≤ what the bucket holds.
//!
//! What the bucket holds shrinks while traffic falls silent. Tokens are cut to it whenever they are read, so a
//! client that returns after a silence does not spend what a busier one had saved.
//!
//! It tips at 40 % failing attempts for errors, 24 % for time-outs and 12 % for overload answers (independent
//! failures, five attempts).
//!
//! # Source
//!
//! relent's own. The idea of charging a retry and returning the charge is the AWS SDKs' retry quota; sizing by
//! recent traffic and interest by cause are not.

use super::traffic::{self, Counted};
use crate::{time::Timestamp, verdict::Cause};

/// The loan budget's numbers, in thousandths of a token.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct LoanPolicy {
    /// Earned by a first attempt that succeeds.
    pub earn_milli: u32,
    /// The interest: of each token of a charge that comes back, what a retry earns on top that succeeds after
    /// an error.
    pub gain_milli: u32,
    /// The least that the bucket holds when full.
    pub floor_milli: u32,
    /// What each call of the last minute adds to the bucket's size.
    pub per_call_milli: u32,
    /// What is there before the first call: so that the very first failure may be retried.
    pub start_milli: u32,
    /// The charge after an error or a time-out of ours.
    pub charge_milli: u32,
    /// The charge after an overload answer; where the bucket is smaller, all that it holds.
    pub throttled_milli: u32,
}

impl Default for LoanPolicy {
    fn default() -> Self {
        Self {
            earn_milli: 100,
            gain_milli: 500,
            floor_milli: 3_000,
            per_call_milli: 20,
            start_milli: 1_000,
            charge_milli: 1_000,
            throttled_milli: 5_000,
        }
    }
}

impl LoanPolicy {
    /// What the bucket holds when full, given the calls of the last minute in thousandths.
    ///
    /// A large one holds whole tokens: so its size does not change with every call, and a full one need not be written at
    /// each.
    #[inline]
    pub fn cap(&self, calls_milli: u64) -> u32 {
        let sized = calls_milli.checked_mul(u64::from(self.per_call_milli)).map(|sized| sized / 1000);
        match sized.map(u32::try_from) {
            Some(Ok(sized)) if sized >= LARGE => (sized / 1000 * 1000).max(self.floor_milli),
            Some(Ok(sized)) => sized.max(self.floor_milli),
            _ => boundless(),
        }
    }

    /// The tokens after a first success.
    #[inline]
    pub fn after_first_success(&self, tokens: u32, cap: u32) -> u32 {
        tokens.saturating_add(self.earn_milli).min(cap)
    }

    /// The tokens after a retry was let through, and its charge. `None`: too few are left.
    #[inline]
    pub fn lend(&self, tokens: u32, cap: u32, cause: Cause) -> Option<(u32, u32)> {
        let charge = match cause {
            // Never cheaper than an error, even where the bucket is too small for that.
            Cause::Throttled => self.throttled_milli.min(cap.max(self.charge_milli)),
            Cause::Error | Cause::Timeout | Cause::Lost => self.charge_milli,
        };
        Some((tokens.min(cap).checked_sub(charge)?, charge))
    }

    /// The tokens after a retry succeeded that `charge` was taken for.
    #[inline]
    pub fn repaid(&self, tokens: u32, cap: u32, charge: u32, cause: Cause) -> u32 {
        let gain = match cause {
            Cause::Error => u64::from(charge) * u64::from(self.gain_milli) / 1000,
            Cause::Timeout | Cause::Throttled | Cause::Lost => 0,
        };
        let back = charge.saturating_add(u32::try_from(gain).unwrap_or(u32::MAX));
        tokens.saturating_add(back).min(cap)
    }

    /// The tokens after a charge came back whose retry was not sent. Not cut to the bucket's size, which takes
    /// the time to know: the next reader cuts.
    pub const fn given_back(&self, tokens: u32, charge: u32) -> u32 {
        tokens.saturating_add(charge)
    }
}

/// From here on a whole token is less than a hundredth of the bucket.
const LARGE: u32 = 128_000;

/// More calls than anybody makes, or a size that nothing fills.
#[cold]
#[inline(never)]
const fn boundless() -> u32 {
    u32::MAX
}

/// The loan budget in plain fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoanState {
    tokens: u32,
    words: [u64; 2],
}

impl LoanState {
    pub(super) const fn new(policy: &LoanPolicy) -> Self {
        Self { tokens: policy.start_milli, words: [0; 2] }
    }

    pub(super) fn on_call(&mut self, now: Timestamp) {
        let word = &mut self.words[traffic::place(now)];
        match traffic::count(*word, now) {
            Counted::SameSlot => *word += 1,
            Counted::NewSlot(new) => *word = new,
        }
    }

    pub(super) fn on_first_success(&mut self, policy: &LoanPolicy, now: Timestamp) {
        self.tokens = policy.after_first_success(self.tokens, self.cap(policy, now));
    }

    pub(super) fn try_retry(&mut self, policy: &LoanPolicy, cause: Cause, now: Timestamp) -> Option<u32> {
        let (left, charge) = policy.lend(self.tokens, self.cap(policy, now), cause)?;
        self.tokens = left;
        Some(charge)
    }

    pub(super) fn on_retry_success(
        &mut self,
        policy: &LoanPolicy,
        charge: u32,
        cause: Cause,
        now: Timestamp,
    ) {
        self.tokens = policy.repaid(self.tokens, self.cap(policy, now), charge, cause);
    }

    pub(super) const fn give_back(&mut self, policy: &LoanPolicy, charge: u32) {
        self.tokens = policy.given_back(self.tokens, charge);
    }

    pub(super) fn tokens(&self, policy: &LoanPolicy, now: Timestamp) -> u32 {
        self.tokens.min(self.cap(policy, now))
    }

    fn cap(&self, policy: &LoanPolicy, now: Timestamp) -> u32 {
        policy.cap(traffic::calls_milli(self.words, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_and_interest_go_by_the_cause() {
        let policy = LoanPolicy::default();
        let trip = |cause| {
            let (left, charge) = policy.lend(10_000, 20_000, cause)?;
            Some((left, charge, policy.repaid(left, 20_000, charge, cause)))
        };
        assert_eq!(trip(Cause::Error), Some((9_000, 1_000, 10_500)));
        assert_eq!(trip(Cause::Timeout), Some((9_000, 1_000, 10_000)));
        assert_eq!(trip(Cause::Lost), Some((9_000, 1_000, 10_000)));
        assert_eq!(trip(Cause::Throttled), Some((5_000, 5_000, 10_000)));
    }

    #[test]
    fn an_overload_answer_costs_a_small_bucket_all_it_holds_and_never_less_than_an_error() {
        let policy = LoanPolicy::default();
        assert_eq!(policy.lend(3_000, 3_000, Cause::Throttled), Some((0, 3_000)));
        assert_eq!(policy.lend(2_999, 3_000, Cause::Throttled), None);
        assert_eq!(policy.lend(400, 400, Cause::Throttled), None, "not for 0.4 of a token");
    }

    #[test]
    fn tokens_that_the_bucket_no_longer_holds_are_not_lent() {
        let policy = LoanPolicy::default();
        assert_eq!(policy.lend(120_000, 3_000, Cause::Error), Some((2_000, 1_000)));
        assert_eq!(policy.after_first_success(120_000, 3_000), 3_000);
        assert_eq!(policy.repaid(120_000, 3_000, 1_000, Cause::Error), 3_000);
    }

    #[test]
    fn the_bucket_is_sized_by_the_minute_and_never_below_the_floor() {
        let policy = LoanPolicy::default();
        assert_eq!(policy.cap(0), 3_000);
        assert_eq!(policy.cap(150_000), 3_000);
        assert_eq!(policy.cap(6_000_000), 120_000, "100 calls a second: 1.2 seconds' worth");
        assert_eq!(policy.cap(6_399_999), 127_999);
        assert_eq!(
            [6_400_000, 6_449_999, 6_450_000].map(|calls| policy.cap(calls)),
            [128_000, 128_000, 129_000]
        );
        let floor_milli = 500_500;
        assert_eq!(LoanPolicy { floor_milli, ..policy }.cap(6_449_999), floor_milli);
        assert_eq!(policy.cap(u64::MAX), u32::MAX);
    }
}
