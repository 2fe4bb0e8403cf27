//! Does it stop by attempts, by time and by budget, and do its attempts fit?

use std::time::Duration;

use relent_core::{Brief, BudgetPolicy, DurationText, Hints, OnExhausted, Policy};

use super::Fault;
use crate::{
    change::Change,
    figure::sample::{Pace, Tally},
    subject::{Part, Subject},
    world::World,
};

pub(super) fn check(subject: &Subject, world: &World, faults: &mut Vec<Fault>) {
    faults.extend(outlasts_caller(subject, world));
    if !subject.retries() {
        return;
    }
    faults.extend(out_of_reach(subject));
    let no_room = no_room(subject);
    if no_room.is_none() {
        faults.extend(cut_short(subject));
    }
    faults.extend(no_room);
    faults.extend(unlimited(subject));
    faults.extend(no_budget(subject));
}

/// Whether the file tells what the arithmetic of one call needs.
fn timed(subject: &Subject) -> bool {
    [Part::Deadline, Part::AttemptTimeout, Part::Attempts, Part::Backoff]
        .into_iter()
        .all(|part| subject.knows(part))
}

fn out_of_reach(subject: &Subject) -> Option<Fault> {
    let policy = &subject.policy;
    let (most, (field, limit)) = (policy.retry.max_attempts?, policy.limit()?);
    let best = policy.attempts_at_best().filter(|best| *best < most && subject.knows(Part::Backoff))?;
    Some(Fault {
        name: "attempts_out_of_reach",
        part: Part::Attempts,
        field: "retry.max_attempts",
        why: format!(
            "of {most} attempts only {best} can begin even if each fails at once: the waits before attempt {} are \
             never short enough for {} {}",
            best + 1,
            path(subject, Part::Deadline, field),
            DurationText(limit)
        ),
        mends: vec![Change::MaxAttempts(best)],
        advice: "ask for no more attempts than fit, or wait less between them",
    })
}

/// After an attempt that takes its whole time, another whole one must fit, or retries help only against failures
/// that are quick.
fn no_room(subject: &Subject) -> Option<Fault> {
    let policy = &subject.policy;
    let (room, (field, limit)) = (policy.room()?, policy.limit()?);
    let worst = policy.attempts_at_worst();
    if !timed(subject) || worst.whole.is_none_or(|whole| whole >= 2) {
        return None;
    }
    let wait = longest_waits(policy, 2)?;
    let needed = policy.attempt_timeout.saturating_mul(2).saturating_add(wait);
    let limit_name = path(subject, Part::Deadline, field);
    let why = if policy.attempt_timeout >= room {
        format!(
            "one attempt may take {} and use up {limit_name} {}: a call that hangs is never retried",
            DurationText(policy.attempt_timeout),
            DurationText(limit)
        )
    } else {
        format!(
            "after an attempt that times out there is no room for another whole one: {} + {} + {} = {} > {limit_name} {}",
            DurationText(policy.attempt_timeout),
            Brief(wait),
            DurationText(policy.attempt_timeout),
            Brief(needed),
            DurationText(limit)
        )
    };
    // Where nothing says how little is worth beginning, the others must fit too.
    let all = policy.retry.max_attempts.filter(|_| policy.retry.min_attempt.is_zero());
    let shorter = [all.and_then(|attempts| whole(policy, attempts)), rounded(room.saturating_sub(wait) / 2)];
    Some(Fault {
        name: "no_room_to_retry",
        part: Part::AttemptTimeout,
        field: "attempt_timeout",
        why,
        mends: shorter.into_iter().flatten().map(Change::AttemptTimeout).collect(),
        advice: "bound one attempt so that two fit into the whole call",
    })
}

/// A policy that says how little is worth beginning has thought of it.
fn cut_short(subject: &Subject) -> Option<Fault> {
    let policy = &subject.policy;
    policy.room()?;
    if !timed(subject) || !policy.retry.min_attempt.is_zero() {
        return None;
    }
    let tally = Tally::of(policy, Pace::TimingOut);
    let share = tally.share_milli(tally.cut_short);
    let left = tally.least_left.filter(|_| share >= 10)?;
    let last = tally.by_attempts.keys().next_back().copied()?;
    let attempts = policy.retry.max_attempts.unwrap_or(last);
    let mends = [
        whole(policy, attempts).map(Change::AttemptTimeout),
        Some(Change::MinAttempt(policy.attempt_timeout)),
        Some(Change::MaxAttempts(last.saturating_sub(1).max(1))),
    ];
    Some(Fault {
        name: "attempt_cut_short",
        part: Part::AttemptTimeout,
        field: "attempt_timeout",
        why: format!(
            "where every attempt times out, attempt {last} is cut short in {} % of the calls, to as little as {} of \
             its {}",
            share.div_ceil(10),
            Brief(left),
            DurationText(policy.attempt_timeout)
        ),
        mends: mends.into_iter().flatten().collect(),
        advice: "begin no attempt for which its time is not left",
    })
}

fn unlimited(subject: &Subject) -> Option<Fault> {
    let policy = &subject.policy;
    let total = policy.total_timeout.filter(|_| policy.business_deadline.is_none())?;
    (policy.retry.max_attempts.is_none()).then(|| Fault {
        name: "unlimited_attempts",
        part: Part::Attempts,
        field: "retry.max_attempts",
        why: format!(
            "nothing but {} {} ends the attempts of a call whose caller waits",
            path(subject, Part::Deadline, "total_timeout"),
            DurationText(total)
        ),
        mends: vec![Change::MaxAttempts(5)],
        advice: "keep attempts few",
    })
}

fn outlasts_caller(subject: &Subject, world: &World) -> Option<Fault> {
    let deadline = world.deadline?;
    let policy = &subject.policy;
    let timed = subject.knows(Part::AttemptTimeout) || policy.limit().is_some();
    let longest = policy.longest_call(Hints::None).filter(|longest| timed && *longest > deadline)?;
    let total = deadline.saturating_add(policy.retry.reserve);
    Some(Fault {
        name: "outlasts_caller",
        part: Part::Deadline,
        field: "total_timeout",
        why: format!(
            "a call may take {}{}, and its caller has {}",
            Brief(longest),
            sum(policy, longest),
            DurationText(deadline)
        ),
        mends: vec![Change::TotalTimeout(total)],
        advice: "bound the whole call by what its caller has",
    })
}

/// `: 4 × 1s + 1.4s`, where it is the sum and not the deadline.
fn sum(policy: &Policy, longest: Duration) -> String {
    let Some(attempts) =
        policy.retry.max_attempts.filter(|_| policy.room().is_none_or(|room| longest < room))
    else {
        return String::new();
    };
    let waits = longest.saturating_sub(policy.attempt_timeout.saturating_mul(attempts));
    format!(" ({attempts} × {} + {})", DurationText(policy.attempt_timeout), Brief(waits))
}

/// Retries are for a blip; what ends them in an outage is a budget or a breaker.
fn no_budget(subject: &Subject) -> Option<Fault> {
    let policy = &subject.policy;
    let neither = policy.budget.is_none() && policy.breaker.is_none();
    (neither && subject.knows(Part::Budget)).then(|| Fault {
        name: "no_budget",
        part: Part::Budget,
        field: "budget",
        why: match policy.attempts_at_best() {
            _ if !subject.knows(Part::Attempts) => {
                "it has neither a budget nor a breaker: every call makes all its attempts, as long as an outage lasts".into()
            }
            Some(attempts) => format!(
                "it has neither a budget nor a breaker: {attempts} attempts for every call, as long as an outage lasts"
            ),
            None => "it has neither a budget nor a breaker: nothing bounds what retries add in an outage".into(),
        },
        mends: vec![Change::Budget(BudgetPolicy::default()), Change::Breaker(Default::default())],
        advice: "bound retries over all calls, or stop them by a breaker",
    })
}

/// What mends a call that nothing bounds: its longest, or three days for work that nobody waits for.
pub(super) fn deadline(policy: &Policy) -> Vec<Change> {
    match policy.on_exhausted {
        OnExhausted::Caller => {
            let longest = policy.longest_call(Hints::None).and_then(rounded_up);
            // Nobody waits a day: there nothing bounds an attempt either.
            let longest = longest.filter(|longest| *longest < Duration::from_secs(86_400));
            vec![Change::TotalTimeout(longest.unwrap_or(Duration::from_secs(30)))]
        }
        OnExhausted::DeadLetter | OnExhausted::Discard => {
            vec![Change::BusinessDeadline(Duration::from_secs(3 * 86_400))]
        }
    }
}

/// The longest that the waits between so many attempts can be together.
fn longest_waits(policy: &Policy, attempts: u32) -> Option<Duration> {
    let waits = policy.retry.longest_waits(attempts.checked_sub(1)?, Hints::None);
    Some(waits.iter().fold(Duration::ZERO, |all, wait| all.saturating_add(*wait)))
}

/// The attempt time-out with which so many fit whole, unless it were much shorter than it is.
fn whole(policy: &Policy, attempts: u32) -> Option<Duration> {
    let left = policy.room()?.saturating_sub(longest_waits(policy, attempts)?);
    rounded(left / attempts.max(1)).filter(|shorter| *shorter >= policy.attempt_timeout / 4)
}

/// The setting as the file names it.
fn path<'a>(subject: &'a Subject, part: Part, field: &'a str) -> &'a str {
    subject.origin(part).path().unwrap_or(field)
}

/// Down to two digits, so that a proposal looks like one. `None`: nothing is left.
fn rounded(length: Duration) -> Option<Duration> {
    let millis = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
    let step = match millis {
        0 => return None,
        1..100 => 1,
        100..10_000 => 10,
        _ => 1_000,
    };
    Some(Duration::from_millis(millis / step * step))
}

fn rounded_up(length: Duration) -> Option<Duration> {
    Some(Duration::from_secs(length.as_secs().checked_add(1)?))
}
