//! Whether a dependency that was overloaded can recover while callers keep calling as the policy says.

use std::time::Duration;

use relent_core::Policy;

use super::outage::steady_milli;
use crate::{
    subject::{Part, Subject},
    world::{PerSecond, World},
};

/// Calls that come whatever becomes of them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OpenLoop {
    /// λ.
    pub load: PerSecond,
    /// ρ, retries for each call in steady failure, in thousandths.
    pub retries_milli: u64,
    /// λ(1 + ρ), and the floor of a budget that has one.
    pub arrivals: PerSecond,
    /// C.
    pub capacity: PerSecond,
}

/// Callers that call again as soon as their call has ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClosedLoop {
    /// N.
    pub callers: u32,
    /// Attempts of one round of a caller that is stuck.
    pub attempts: u32,
    /// How long that round takes: time-outs and mean waits.
    pub round: Duration,
    /// What arrives while all are stuck.
    pub arrivals: PerSecond,
    /// C.
    pub capacity: PerSecond,
}

impl OpenLoop {
    /// λ(1 + ρ) against C. `None` where one of the numbers is missing.
    ///
    /// # Source
    ///
    /// Recovery needs λ(1 + ρ) < C: a ratio ρ adds ρλ in steady failure. At 85 % load a fifth never recovered in
    /// our storms, and a tenth took four times as long as no retries.
    pub fn of(subject: &Subject, world: &World) -> Option<Self> {
        let (load, capacity) = (world.load?, world.capacity?);
        let retries_milli = steady_milli(subject)?;
        let floor = match &subject.policy.budget {
            Some(relent_core::BudgetPolicy::Ratio(ratio)) if subject.retries() => {
                u64::from(ratio.floor_per_second) * 1000
            }
            _ => 0,
        };
        let arrivals = load.times(retries_milli.saturating_add(1000)).milli().saturating_add(floor);
        Some(Self { load, retries_milli, arrivals: PerSecond::from_milli(arrivals), capacity })
    }

    /// Whether what arrives leaves capacity for what waits.
    pub fn recovers(&self) -> bool {
        self.arrivals < self.capacity
    }
}

impl ClosedLoop {
    /// N ÷ (time-out + mean wait) against C. `None` where one of the numbers is missing.
    ///
    /// Attempts without limit come to wait as long as the curve allows, so its end counts. A call with a limit ends
    /// and its caller calls anew, so its whole round counts, as far as its deadline lets it get.
    ///
    /// # Source
    ///
    /// The DynamoDB disruption of 2015: serial callers, all stuck, repeat until they succeed. The condition is
    /// sufficient for recovery, not necessary.
    pub fn of(subject: &Subject, world: &World) -> Option<Self> {
        let (callers, capacity) = (world.callers?, world.capacity?);
        if !subject.knows(Part::AttemptTimeout) || !subject.knows(Part::Attempts) {
            return None;
        }
        let (attempts, round) = round(&subject.policy, subject.retries());
        let per_second =
            u128::from(callers) * u128::from(attempts) * 1_000_000_000_000 / round.as_nanos().max(1);
        let arrivals = PerSecond::from_milli(u64::try_from(per_second).unwrap_or(u64::MAX));
        Some(Self { callers, attempts, round, arrivals, capacity })
    }

    /// Whether what arrives while all are stuck is less than the capacity.
    pub fn recovers(&self) -> bool {
        self.arrivals < self.capacity
    }
}

/// Attempts of a stuck call and how long they take, with waits as long as they are on average.
fn round(policy: &Policy, retries: bool) -> (u32, Duration) {
    let timeout = policy.attempt_timeout;
    let Some(most) = policy.retry.max_attempts else {
        let last = policy.retry.mean_waits(LATE).last().copied().unwrap_or_default();
        return (1, timeout.saturating_add(last));
    };
    let most = if retries { most } else { 1 };
    let room = policy.room().unwrap_or(Duration::MAX);
    let mut round = timeout.min(room);
    for (begun, wait) in (1..most).zip(policy.retry.mean_waits(most - 1)) {
        let begins = round.saturating_add(wait);
        if begins.saturating_add(policy.retry.min_attempt) >= room {
            return (begun, round);
        }
        round = begins.saturating_add(timeout).min(room);
    }
    (most, round)
}

/// By then a curve has reached its cap.
const LATE: u32 = 200;
