//! Budgets that can never let a retry through, refused with the arithmetic; and those that do little of what a
//! budget is for.

#[cfg(test)]
mod tests;

use alloc::{format, vec::Vec};
use core::{fmt, time::Duration};

use super::{BudgetPolicy, GrpcPolicy, LoanPolicy, Of, QuotaPolicy, RatioPolicy, SharePolicy};
use crate::{
    policy::{Doubt, Invalid, Warning},
    text::{Decimal, DurationText},
};

impl BudgetPolicy {
    /// Whether the budget can do what it says, and what about it is doubtful. Fields are named as in TOML.
    ///
    /// # Errors
    ///
    /// [`Invalid`] where no retry could ever be let through, or a number is outside of what its source allows.
    pub fn validate(&self) -> Result<Vec<Warning>, Invalid> {
        match self {
            Self::Loan(policy) => policy.check(),
            Self::Grpc(policy) => policy.check(),
            Self::Ratio(policy) => policy.check(),
            Self::Share(policy) => policy.check(),
            Self::Quota(policy) => policy.check(),
        }
    }
}

impl LoanPolicy {
    fn check(&self) -> Result<Vec<Warning>, Invalid> {
        let Self { earn_milli: earn, floor_milli: floor, start_milli: start, charge_milli: charge, .. } =
            *self;
        let fixed = self.per_call_milli == 0;
        if fixed && charge > floor {
            let reason = format!(
                "a retry costs {}, but the bucket never holds more than budget.floor {} (budget.per_call is 0): \
                 no retry could ever be let through; raise the floor or lower the charge",
                Tokens(charge),
                Tokens(floor)
            );
            return Err(Invalid::new("budget.charge", reason));
        }
        if earn == 0 && charge > start.min(floor) {
            let reason = format!(
                "nothing is earned (budget.earn is 0) and the bucket starts with {}, less than the {} that a \
                 retry costs: no retry could ever be let through; earn something or start with more",
                Tokens(start.min(floor)),
                Tokens(charge)
            );
            return Err(Invalid::new("budget.start", reason));
        }
        Ok(self.doubts())
    }

    fn doubts(&self) -> Vec<Warning> {
        let Self { earn_milli: earn, floor_milli: floor, start_milli: start, charge_milli: charge, .. } =
            *self;
        let mut doubts = Vec::new();
        if charge == 0 {
            doubts.push(Warning::new(
                Doubt::BudgetNeverRefuses,
                "budget.charge",
                "0: a retry after an error or a time-out is never refused",
            ));
        }
        if charge > 0 && earn >= charge {
            let reason = format!(
                "a first success earns {}, a retry costs {}: ten successes buy {} retries",
                Tokens(earn),
                Tokens(charge),
                u64::from(earn) * 10 / u64::from(charge)
            );
            doubts.push(Warning::new(Doubt::BudgetTooGenerous, "budget.earn", reason));
        }
        if charge > floor {
            let calls = (u64::from(charge) - 1) / u64::from(self.per_call_milli.max(1)) + 1;
            let reason = format!(
                "{} is less than the {} that a retry costs: below {calls} calls a minute there is no retry",
                Tokens(floor),
                Tokens(charge)
            );
            doubts.push(Warning::new(Doubt::BudgetTooSmall, "budget.floor", reason));
        }
        if start > floor {
            let reason =
                format!("{} is cut to budget.floor {} at the first use", Tokens(start), Tokens(floor));
            doubts.push(Warning::new(Doubt::BudgetStartIsCut, "budget.start", reason));
        }
        if start < charge && earn > 0 {
            let successes = (charge - start).div_ceil(earn);
            let reason = format!(
                "{} is less than the {} that a retry costs: the first comes after {successes} first successes",
                Tokens(start),
                Tokens(charge)
            );
            doubts.push(Warning::new(Doubt::BudgetStartsEmpty, "budget.start", reason));
        }
        doubts
    }
}

impl GrpcPolicy {
    pub(super) fn check(&self) -> Result<Vec<Warning>, Invalid> {
        let max = self.max_milli;
        if !(1_000..=1_000_000).contains(&max) || !max.is_multiple_of(1000) {
            let reason = format!("{} is not a whole number from 1 to 1000", Tokens(max));
            return Err(Invalid::new("budget.max_tokens", reason));
        }
        if !self.allows(self.after_failure(max)) {
            let reason = format!(
                "a full bucket has {}, the first failure leaves {}, and a retry needs more than half, {}: \
                 no retry could ever be let through; write at least 3",
                Tokens(max),
                Tokens(max - 1000),
                Tokens(max / 2)
            );
            return Err(Invalid::new("budget.max_tokens", reason));
        }
        match self.ratio_milli {
            0 => Err(Invalid::new("budget.token_ratio", "it must be above 0 in its first three decimals")),
            1..1000 => Ok(Vec::new()),
            ratio => {
                let reason = format!(
                    "a success returns {} and a failure costs 1: it holds back only while more than {} in 100 \
                     attempts fail",
                    Tokens(ratio),
                    u64::from(ratio) * 100 / (u64::from(ratio) + 1000)
                );
                Ok(Vec::from([Warning::new(Doubt::BudgetTooGenerous, "budget.token_ratio", reason)]))
            }
        }
    }
}

impl RatioPolicy {
    fn check(&self) -> Result<Vec<Warning>, Invalid> {
        if !(Duration::from_secs(1)..=Duration::from_secs(3600)).contains(&self.window) {
            let reason = format!("{} is not within 1s and 1h", DurationText(self.window));
            return Err(Invalid::new("budget.window", reason));
        }
        if self.share_milli > MOST_SHARE {
            let reason = format!("{} is more than 1000 retries for each call", Tokens(self.share_milli));
            return Err(Invalid::new("budget.share", reason));
        }
        if self.share_milli == 0 && self.floor_per_second == 0 {
            return Err(Invalid::new("budget.share", NOTHING));
        }
        Ok(self.doubts())
    }

    fn doubts(&self) -> Vec<Warning> {
        let share = self.share_milli;
        let mut doubts = Vec::new();
        if share >= 1000 {
            let (doubt, reason) = match self.of {
                Of::Originals => {
                    let doubled =
                        format!("{} retries for each call: the traffic may double and more", Tokens(share));
                    (Doubt::BudgetTooGenerous, doubled)
                }
                Of::All => (
                    Doubt::BudgetNeverRefuses,
                    format!("{} of all requests: no retry is ever refused", Tokens(share)),
                ),
            };
            doubts.push(Warning::new(doubt, "budget.share", reason));
        }
        if self.of == Of::Originals && self.floor_per_second == 0 && share < 1000 {
            let calls = 1000_u32.div_ceil(share);
            let reason = format!(
                "0: with fewer than {calls} calls in {} there is no retry ({calls} × {} ≥ 1)",
                DurationText(self.window),
                Tokens(share)
            );
            doubts.push(Warning::new(Doubt::BudgetTooSmall, "budget.floor_per_second", reason));
        }
        doubts
    }
}

impl SharePolicy {
    fn check(&self) -> Result<Vec<Warning>, Invalid> {
        let Self { share_milli: share, floor } = *self;
        if share == 0 && floor == 0 {
            return Err(Invalid::new("budget.share", NOTHING));
        }
        let mut doubts = Vec::new();
        if share >= 1000 {
            let reason = format!(
                "{} of the calls in flight: a call has one retry at a time, so none is ever refused",
                Tokens(share)
            );
            doubts.push(Warning::new(Doubt::BudgetNeverRefuses, "budget.share", reason));
        }
        if floor == 0 && share < 1000 {
            let calls = 1000_u32.div_ceil(share);
            let reason = format!("0: with fewer than {calls} calls in flight there is no retry");
            doubts.push(Warning::new(Doubt::BudgetTooSmall, "budget.floor", reason));
        }
        Ok(doubts)
    }
}

impl QuotaPolicy {
    fn check(&self) -> Result<Vec<Warning>, Invalid> {
        let capacity = self.capacity_milli;
        let charges = [
            ("budget.transient", self.transient_milli),
            ("budget.timeout", self.timeout_milli),
            ("budget.throttled", self.throttled_milli),
        ];
        if charges.iter().all(|(_, charge)| *charge > capacity) {
            let reason = format!(
                "{} holds none of the charges {}, {} and {}: no retry could ever be let through",
                Tokens(capacity),
                Tokens(charges[0].1),
                Tokens(charges[1].1),
                Tokens(charges[2].1)
            );
            return Err(Invalid::new("budget.capacity", reason));
        }
        let mut doubts = Vec::new();
        for (field, charge) in charges {
            if charge > capacity {
                let reason = format!(
                    "{} is more than budget.capacity {}: after such a failure there is never a retry",
                    Tokens(charge),
                    Tokens(capacity)
                );
                doubts.push(Warning::new(Doubt::BudgetTooSmall, field, reason));
            }
            if charge == 0 {
                doubts.push(Warning::new(
                    Doubt::BudgetNeverRefuses,
                    field,
                    "0: after such a failure a retry is never refused",
                ));
            }
        }
        if self.first_success_milli == 0 {
            let reason =
                "0: what failed retries took never comes back, and after one outage there is no retry";
            doubts.push(Warning::new(Doubt::BudgetNeverRefills, "budget.first_success", reason));
        }
        Ok(doubts)
    }
}

/// Thousandths as a decimal number.
struct Tokens(u32);

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Decimal(u128::from(self.0) * 1_000_000).fmt(f)
    }
}

const NOTHING: &str = "0, and the floor is 0: no retry could ever be let through; raise either";
/// Finagle's own limit, in thousandths.
const MOST_SHARE: u32 = 1_000_000;
