//! The names of all doubts about a policy: a closed list, so that whoever shows, counts or silences one can name it.

use crate::decision::names;

/// What may be wrong with a policy that is possible. Each comes with its field and the arithmetic as a
/// [`Warning`](super::Warning).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Doubt {
    /// The total time-out is longer than the business deadline.
    TotalNeverReached,
    /// Only attempts bound the whole call.
    NoDeadline,
    /// The attempt time-out is longer than the whole call.
    AttemptTimeoutNeverReached,
    /// Not every attempt fits if each takes its whole time-out after the longest waits; not even two do, or not all
    /// if each fails at once.
    WorstCaseDoesNotFit,
    /// Not every attempt fits if each takes its whole time-out after the longest waits; but two do, so that a
    /// time-out has its retry, and all do if each fails at once. The deadline cuts what is left, which is what it is
    /// for: relent's own default is such a policy.
    LateAttemptsAreCut,
    /// The first attempt that is lost with its worker is the last.
    FirstLossIsPoison,
    /// Callers that fail together come back together.
    NoJitter,
    /// The curve grows beyond `max_wait`.
    CurveNeverReached,
    /// Durable work is to go back to a caller, and nobody waits for it.
    NoCaller,
    /// More attempts are let in than calls.
    MoreAttemptsThanCalls,
    /// Calls are let in faster than their first attempts.
    FirstAttemptsFallBehind,
    /// The attempts of one call wait for permits until there is no time left.
    AttemptsWaitForPermits,
    /// The share that may be retries is less than one.
    ShareOfTooFew,
    /// The breaker's window holds hardly any attempt that times out.
    BreakerWindowTooShort,
    /// An attempt is given up before it could be slow.
    SlowCallsNeverSeen,
    /// A probe loses its place while it is under way.
    ProbeOutlived,
    /// A single bad call opens the breaker.
    BreakerTripsOnOneCall,
    /// One bad host of a small pool opens the breaker for all.
    BreakerTripsOnOneHost,
    /// The budget lets every retry through, or every one of some cause.
    BudgetNeverRefuses,
    /// What the budget earns is as much as retries cost.
    BudgetTooGenerous,
    /// Ordinary traffic is too little for a retry.
    BudgetTooSmall,
    /// Part of what is there at the start is cut at the first use.
    BudgetStartIsCut,
    /// The first failures get no retry.
    BudgetStartsEmpty,
    /// What retries took never comes back.
    BudgetNeverRefills,
}

names!(Doubt {
    TotalNeverReached => "total_never_reached",
    NoDeadline => "no_deadline",
    AttemptTimeoutNeverReached => "attempt_timeout_never_reached",
    WorstCaseDoesNotFit => "worst_case_does_not_fit",
    LateAttemptsAreCut => "late_attempts_are_cut",
    FirstLossIsPoison => "first_loss_is_poison",
    NoJitter => "no_jitter",
    CurveNeverReached => "curve_never_reached",
    NoCaller => "no_caller",
    MoreAttemptsThanCalls => "more_attempts_than_calls",
    FirstAttemptsFallBehind => "first_attempts_fall_behind",
    AttemptsWaitForPermits => "attempts_wait_for_permits",
    ShareOfTooFew => "share_of_too_few",
    BreakerWindowTooShort => "breaker_window_too_short",
    SlowCallsNeverSeen => "slow_calls_never_seen",
    ProbeOutlived => "probe_outlived",
    BreakerTripsOnOneCall => "breaker_trips_on_one_call",
    BreakerTripsOnOneHost => "breaker_trips_on_one_host",
    BudgetNeverRefuses => "budget_never_refuses",
    BudgetTooGenerous => "budget_too_generous",
    BudgetTooSmall => "budget_too_small",
    BudgetStartIsCut => "budget_start_is_cut",
    BudgetStartsEmpty => "budget_starts_empty",
    BudgetNeverRefills => "budget_never_refills",
});

/// How much a doubt weighs.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Severity {
    /// What happens at the policy's limits. It may well be meant.
    Note,
    /// Probably not what was meant.
    Warning,
}

names!(Severity { Note => "note", Warning => "warning" });

impl Doubt {
    /// How much it weighs.
    pub const fn severity(self) -> Severity {
        match self {
            Self::LateAttemptsAreCut => Severity::Note,
            _ => Severity::Warning,
        }
    }
}
