//! The policy's own doubts, as `relent explain` prints them as warnings: each is a fault, with a change that mends it.

use std::time::Duration;

use relent_core::{
    Backoff, BreakerPolicy, BudgetPolicy, ConcurrencyPolicy, Doubt, Jitter, OnExhausted, Policy, RatePolicy,
    Severity, Warning,
    budget::{GrpcPolicy, LoanPolicy, Of, QuotaPolicy, RatioPolicy, SharePolicy},
};

use super::{Fault, stop};
use crate::{
    change::Change,
    subject::{Format, Part, Subject},
    world::World,
};

pub(super) fn check(subject: &Subject, world: &World, faults: &mut Vec<Fault>) {
    let warnings = warnings(subject);
    let too_few = warnings.iter().any(|warning| warning.doubt == Doubt::ShareOfTooFew);
    for warning in warnings {
        let fault = match warning.doubt {
            // What happens at its limits, and may well be meant.
            doubt if doubt.severity() == Severity::Note => None,
            // Told already, by the rule that says which of the two it is.
            Doubt::WorstCaseDoesNotFit if any(&["no_room_to_retry", "attempts_out_of_reach"], faults) => None,
            Doubt::AttemptTimeoutNeverReached if any(&["no_room_to_retry"], faults) => None,
            // Of the two doubts about a small share the one that knows how small.
            Doubt::BudgetTooSmall if too_few => None,
            Doubt::BreakerTripsOnOneHost if world.hosts.is_some() => None,
            Doubt::NoDeadline if !subject.retries() => None,
            doubt => fault(subject, doubt, warning),
        };
        // Two curves may have the same doubt.
        faults.extend(
            fault.filter(|new| faults.iter().all(|old| (old.name, old.field) != (new.name, new.field))),
        );
    }
}

fn any(names: &[&str], faults: &[Fault]) -> bool {
    faults.iter().any(|fault| names.contains(&fault.name))
}

/// What the policy doubts of itself. A foreign one may be impossible in relent's eyes and possible in its client's;
/// then the rules of this crate have to do.
fn warnings(subject: &Subject) -> Vec<Warning> {
    let mut policy = subject.policy.clone();
    if subject.format != Format::Relent {
        // No losses and no reserve are known of foreign clients; a wait of nothing is told by its own rule.
        policy.retry.max_losses = policy.retry.max_losses.max(1);
        if subject.habits.waits_nothing {
            policy.retry.backoff = Backoff::Constant(Duration::from_nanos(1));
        }
    }
    let mut warnings = policy.validate().unwrap_or_default();
    if subject.habits.waits_nothing {
        warnings.retain(|warning| warning.doubt != Doubt::NoJitter);
    }
    warnings
}

fn fault(subject: &Subject, doubt: Doubt, warning: Warning) -> Option<Fault> {
    let Row { part, field, mends, advice } = row(subject, doubt, &warning.field);
    let why = match doubt {
        // The policy's own sentence speaks of settings that only relent has.
        Doubt::NoDeadline if subject.format != Format::Relent => {
            "nothing bounds the whole call: a dependency that does not answer holds its callers as long as it likes".into()
        }
        _ if field.is_empty() => warning.to_string(),
        _ => warning.reason,
    };
    subject.knows(part).then(|| Fault { name: doubt.name(), part, field, why, mends, advice })
}

/// What a doubt is about, and what mends it.
struct Row {
    part: Part,
    field: &'static str,
    mends: Vec<Change>,
    advice: &'static str,
}

fn row(subject: &Subject, doubt: Doubt, field: &str) -> Row {
    let policy = &subject.policy;
    match doubt {
        Doubt::TotalNeverReached
        | Doubt::NoDeadline
        | Doubt::AttemptTimeoutNeverReached
        | Doubt::WorstCaseDoesNotFit
        | Doubt::FirstLossIsPoison
        | Doubt::NoCaller => one_call(policy, doubt),
        Doubt::NoJitter => {
            row_of(Part::Jitter, "retry.jitter", vec![Change::Jitter(Jitter::Full)], "draw the waits")
        }
        Doubt::CurveNeverReached => never_reached(policy, field),
        Doubt::MoreAttemptsThanCalls
        | Doubt::FirstAttemptsFallBehind
        | Doubt::AttemptsWaitForPermits
        | Doubt::ShareOfTooFew => limits(policy, doubt, policy.retry.max_attempts),
        Doubt::BreakerWindowTooShort
        | Doubt::SlowCallsNeverSeen
        | Doubt::ProbeOutlived
        | Doubt::BreakerTripsOnOneCall
        | Doubt::BreakerTripsOnOneHost => breaker(policy, doubt, field),
        Doubt::BudgetNeverRefuses
        | Doubt::BudgetTooGenerous
        | Doubt::BudgetTooSmall
        | Doubt::BudgetStartIsCut
        | Doubt::BudgetStartsEmpty
        | Doubt::BudgetNeverRefills => row_of(
            Part::Budget,
            "budget",
            policy.budget.map(|budget| Change::Budget(usual(budget))).into_iter().collect(),
            "take the numbers that this kind of budget is known by",
        ),
        // A doubt that this crate knows no mend for is a fault all the same.
        _ => row_of(Part::Attempts, "", Vec::new(), "`relent explain` shows the whole policy"),
    }
}

/// Where a single call never gets to, or never ends.
fn one_call(policy: &Policy, doubt: Doubt) -> Row {
    let fewer = |most: u32| (1..most).rev().map(Change::MaxAttempts).collect();
    match doubt {
        Doubt::TotalNeverReached => row_of(
            Part::Deadline,
            "total_timeout",
            policy.business_deadline.map(Change::TotalTimeout).into_iter().collect(),
            "let one of the two count",
        ),
        Doubt::AttemptTimeoutNeverReached => row_of(
            Part::AttemptTimeout,
            "attempt_timeout",
            policy.limit().map(|(_, limit)| Change::AttemptTimeout(limit)).into_iter().collect(),
            "bound an attempt by less than the call",
        ),
        Doubt::WorstCaseDoesNotFit => row_of(
            Part::Attempts,
            "retry.max_attempts",
            policy.retry.max_attempts.map(fewer).unwrap_or_default(),
            "ask for no more attempts than fit, or wait less between them",
        ),
        Doubt::FirstLossIsPoison => {
            row_of(Part::Attempts, "retry.max_losses", vec![Change::MaxLosses(3)], "allow for a restart")
        }
        Doubt::NoCaller => row_of(
            Part::Exhausted,
            "on_exhausted",
            vec![Change::OnExhausted(OnExhausted::DeadLetter)],
            "keep what nobody waits for",
        ),
        _ => {
            row_of(Part::Deadline, "total_timeout", stop::deadline(policy), "bound the whole call by a time")
        }
    }
}

fn row_of(part: Part, field: &'static str, mends: Vec<Change>, advice: &'static str) -> Row {
    Row { part, field, mends, advice }
}

fn never_reached(policy: &Policy, field: &str) -> Row {
    let cut = |curve: &Backoff| match curve {
        Backoff::Exponential { base, factor_milli, .. } => {
            Backoff::Exponential { base: *base, factor_milli: *factor_milli, max: policy.retry.max_wait }
        }
        Backoff::Linear { base, .. } => Backoff::Linear { base: *base, max: policy.retry.max_wait },
        Backoff::Steps(steps) => {
            Backoff::Steps(steps.iter().map(|step| (*step).min(policy.retry.max_wait)).collect())
        }
        other => other.clone(),
    };
    let throttled = policy.retry.throttled_backoff.as_ref().filter(|_| field == "retry.throttled_backoff");
    let (field, change) = match throttled {
        Some(curve) => ("retry.throttled_backoff", Change::ThrottledBackoff(cut(curve))),
        None => ("retry.backoff", Change::Backoff(cut(&policy.retry.backoff))),
    };
    Row { part: Part::Backoff, field, mends: vec![change], advice: "let one of the two count" }
}

fn limits(policy: &Policy, doubt: Doubt, attempts: Option<u32>) -> Row {
    let (field, change) = match doubt {
        Doubt::MoreAttemptsThanCalls => (
            "attempt.concurrency.limit",
            policy.admission.concurrency.zip(policy.attempt.concurrency).map(|(calls, attempts)| {
                Change::AttemptConcurrency(ConcurrencyPolicy { limit: calls.limit, ..attempts })
            }),
        ),
        Doubt::FirstAttemptsFallBehind => (
            "attempt.rate",
            policy.admission.rate.zip(policy.attempt.rate).map(|(calls, attempts)| {
                Change::AttemptRate(RatePolicy { permits: calls.permits, per: calls.per, ..attempts })
            }),
        ),
        Doubt::AttemptsWaitForPermits => (
            "attempt.rate.burst",
            policy.attempt.rate.map(|rate| {
                let burst = rate.burst.max(attempts.unwrap_or(2));
                Change::AttemptRate(RatePolicy { burst, ..rate })
            }),
        ),
        _ => ("budget.floor", Some(Change::BudgetFloor(3))),
    };
    let part = if field == "budget.floor" { Part::Budget } else { Part::Limits };
    Row { part, field, mends: change.into_iter().collect(), advice: "let the limits agree with each other" }
}

fn breaker(policy: &Policy, doubt: Doubt, field: &str) -> Row {
    let usual = BreakerPolicy::default();
    let (field, change) = match doubt {
        Doubt::BreakerWindowTooShort => {
            ("breaker.window", Change::BreakerWindow(policy.attempt_timeout.saturating_mul(2)))
        }
        Doubt::SlowCallsNeverSeen => {
            ("breaker.slow_calls.longer_than", Change::SlowAfter(policy.attempt_timeout / 2))
        }
        Doubt::ProbeOutlived => ("breaker.probe_timeout", Change::ProbeTimeout(policy.attempt_timeout)),
        Doubt::BreakerTripsOnOneHost => {
            ("breaker.failure_rate", Change::BreakerRate(usual.failure_rate_milli.unwrap_or(600)))
        }
        _ if field == "breaker.consecutive_failures" => {
            ("breaker.consecutive_failures", Change::BreakerRow(5))
        }
        _ => ("breaker.min_calls", Change::BreakerMinCalls(usual.min_calls)),
    };
    Row {
        part: Part::Breaker,
        field,
        mends: vec![change],
        advice: "let retries absorb single failures, and the breaker end outages",
    }
}

/// The numbers that a kind of budget is known by.
fn usual(budget: BudgetPolicy) -> BudgetPolicy {
    match budget {
        BudgetPolicy::Grpc(_) => BudgetPolicy::Grpc(GrpcPolicy::default()),
        BudgetPolicy::Ratio(ratio) => BudgetPolicy::Ratio(match ratio.of {
            Of::Originals => RatioPolicy::FINAGLE,
            Of::All => RatioPolicy::SRE,
        }),
        BudgetPolicy::Share(_) => BudgetPolicy::Share(SharePolicy::default()),
        BudgetPolicy::Quota(_) => BudgetPolicy::Quota(QuotaPolicy::default()),
        _ => BudgetPolicy::Loan(LoanPolicy::default()),
    }
}
