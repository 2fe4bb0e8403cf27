//! Does it back off, does it jitter, and is the jitter lost at the cap?

use std::time::Duration;

use relent_core::{Backoff, DurationText, Jitter};

use super::Fault;
use crate::{
    change::Change,
    figure::sample::pinned_milli,
    subject::{Part, Subject},
};

pub(super) fn check(subject: &Subject, faults: &mut Vec<Fault>) {
    if !subject.retries() {
        return;
    }
    faults.extend(no_backoff(subject));
    faults.extend(does_not_grow(subject));
    faults.extend(little_jitter(subject));
    faults.extend(lost_at_cap(subject));
}

fn no_backoff(subject: &Subject) -> Option<Fault> {
    subject.habits.waits_nothing.then(|| Fault {
        name: "no_backoff",
        part: Part::Backoff,
        field: "retry.backoff",
        why: "an immediate retry meets the same trouble, and doubles the load on it".into(),
        mends: vec![Change::Backoff(Backoff::Exponential {
            base: Duration::from_millis(200),
            factor_milli: 2000,
            max: Duration::from_secs(10),
        })],
        advice: "wait between attempts",
    })
}

/// With a single wait there is nothing to grow.
fn does_not_grow(subject: &Subject) -> Option<Fault> {
    let retry = &subject.policy.retry;
    let waits = retry.max_attempts.map_or(MOST_WAITS, |attempts| (attempts - 1).min(MOST_WAITS));
    if subject.habits.waits_nothing || waits < 2 || !subject.knows(Part::Backoff) {
        return None;
    }
    let ceiling = |n| retry.backoff.ceiling(n).min(retry.max_wait);
    let first = ceiling(1);
    let grows_itself = retry.jitter == Jitter::Decorrelated && retry.backoff.greatest() > first;
    if grows_itself || (2..=waits).any(|n| ceiling(n) > first) {
        return None;
    }
    let max = first.saturating_mul(10).min(retry.max_wait.max(first));
    Some(Fault {
        name: "backoff_does_not_grow",
        part: Part::Backoff,
        field: "retry.backoff",
        why: format!(
            "every wait is at most {}: as long as an outage lasts, each caller comes back just as often",
            DurationText(first)
        ),
        mends: vec![Change::Backoff(Backoff::Exponential { base: first, factor_milli: 2000, max })],
        advice: "let the waits grow",
    })
}

/// The narrowest jitter of the clients that people know is a fifth to either side (gRPC, Azure); a quarter of that
/// is no spread.
fn little_jitter(subject: &Subject) -> Option<Fault> {
    let Jitter::Proportional { below_milli, above_milli } = subject.policy.retry.jitter else {
        return None;
    };
    let milli = below_milli.saturating_add(above_milli);
    (1..LEAST_SPREAD).contains(&milli).then(|| Fault {
        name: "little_jitter",
        part: Part::Jitter,
        field: "retry.jitter",
        why: format!(
            "its waits are spread over {} % of their length: callers that failed together come back almost together",
            f64::from(milli) / 10.0
        ),
        mends: vec![Change::Jitter(Jitter::Proportional { below_milli: 200, above_milli: 200 })],
        advice: "spread the waits by a fifth to either side at least",
    })
}

fn lost_at_cap(subject: &Subject) -> Option<Fault> {
    let retry = &subject.policy.retry;
    let reached = retry.max_attempts.map_or(MOST_WAITS, |attempts| (attempts - 1).min(MOST_WAITS));
    let cap = retry.backoff.greatest().min(retry.max_wait);
    let (n, milli) =
        (1..=reached).map(|n| (n, lost_milli(subject, n, cap))).find(|(_, milli)| *milli >= TENTH)?;
    let all = reached.saturating_add(1);
    let unmet = unmet(&retry.backoff, all);
    Some(Fault {
        name: "jitter_lost_at_cap",
        part: Part::Cap,
        field: "retry.jitter",
        why: format!(
            "wait {n} is exactly {} in {} % of all calls, since the cap cuts it after the jitter: callers in the \
             same outage come back in step",
            DurationText(cap),
            milli / 10
        ),
        mends: [unmet.map(Change::Backoff), Some(Change::Jitter(Jitter::Full))]
            .into_iter()
            .flatten()
            .collect(),
        advice: "choose a longest wait that is not met, or a jitter that draws below it",
    })
}

/// The share of calls, in thousandths, whose `n`-th wait is exactly the cap.
fn lost_milli(subject: &Subject, n: u32, cap: Duration) -> u32 {
    let policy = &subject.policy;
    match policy.retry.jitter {
        Jitter::PollyV2 if policy.retry.longest_waits(n, relent_core::Hints::None).last() >= Some(&cap) => {
            pinned_milli(policy, n, cap)
        }
        Jitter::Proportional { below_milli, above_milli } if subject.habits.cuts_after_jitter => {
            let plain = uncut(&policy.retry.backoff, n).as_nanos();
            let part = |milli: u32| plain * u128::from(milli) / 1000;
            let (least, most) = (plain - part(below_milli.min(1000)), plain + part(above_milli));
            let over = most.saturating_sub(cap.as_nanos()) * 1000 / (most - least).max(1);
            u32::try_from(over.min(1000)).unwrap_or(1000)
        }
        _ => 0,
    }
}

/// The curve's value without its cap.
fn uncut(curve: &Backoff, n: u32) -> Duration {
    match curve {
        Backoff::Exponential { base, factor_milli, .. } => {
            Backoff::Exponential { base: *base, factor_milli: *factor_milli, max: FAR }.ceiling(n)
        }
        Backoff::Linear { base, .. } => Backoff::Linear { base: *base, max: FAR }.ceiling(n),
        other => other.ceiling(n),
    }
}

/// The curve with a cap that its waits do not meet: twice the longest of them. A constant wait, which is its own cap,
/// may grow. `None`: it would be hours.
fn unmet(curve: &Backoff, attempts: u32) -> Option<Backoff> {
    let growing = match curve {
        Backoff::Constant(wait) => Backoff::Exponential { base: *wait, factor_milli: 2000, max: *wait },
        other => other.clone(),
    };
    let longest = uncut(&growing, attempts.saturating_sub(1)).saturating_mul(2);
    let max = Duration::from_secs(longest.as_secs() + 1);
    match growing {
        _ if longest > LONGEST_CAP => None,
        Backoff::Exponential { base, factor_milli, .. } => {
            Some(Backoff::Exponential { base, factor_milli, max })
        }
        Backoff::Linear { base, .. } => Some(Backoff::Linear { base, max }),
        _ => None,
    }
}

/// Beyond this the waits of a call are all alike, or the call is over.
const MOST_WAITS: u32 = 32;
const LEAST_SPREAD: u32 = 100;
const TENTH: u32 = 100;
const LONGEST_CAP: Duration = Duration::from_secs(3600);
const FAR: Duration = Duration::from_secs(1 << 40);
