//! Whether it waits as it is asked to.

use std::time::Duration;

use super::{Check, Verdict, brief, silent, times};
use crate::{
    hint::{Hint, WaitForm},
    script::Script,
    suite::{Observations, waits},
    trial::{Exit, Seen},
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "waits-as-asked-503",
        demands: "After a 503 with Retry-After in seconds it does not come back sooner.",
        source: HONOUR,
        judge: |observed| asked(observed, "asked-503", "once-503"),
    },
    Check {
        name: "waits-as-asked-429",
        demands: "After a 429 with Retry-After in seconds it does not come back sooner.",
        source: "RFC 6585, section 4",
        judge: |observed| asked(observed, "asked-429", "once-429"),
    },
    Check {
        name: "waits-as-asked-date",
        demands: "After a 503 with a date in Retry-After it does not come back sooner.",
        source: HONOUR,
        judge: |observed| asked(observed, "asked-date", "once-503"),
    },
    Check {
        name: "bounds-what-is-asked",
        demands: "Asked to wait an hour, it gives up at once; it neither comes back sooner nor sleeps.",
        source: "Retry, Timeout, and Backoff: bound every delay",
        judge: bounds,
    },
    Check {
        name: "spreads-what-is-asked",
        demands: "Copies that are asked to wait equally long come back spread over at least a tenth of that.",
        source: "RFC 9110, section 10.2.3, names the least wait; jitter belongs above it",
        judge: spreads,
    },
];

/// What a trial asked for, at least.
pub(crate) fn wait_asked(observed: &Observations, trial: &str, seen: &Seen) -> Option<Duration> {
    let script = Script::parse(&observed.trials.get(trial)?.script).ok()?;
    let Some(Hint::Wait(wait, form)) = script.first_hint() else { return None };
    // The answer was written in a moment before its last byte was out; a date asks for less the later it is read.
    let written = seen.arrivals.first()?.end.at()?;
    let early = Duration::from_millis(5);
    Some(match form {
        WaitForm::Date | WaitForm::Rfc850 | WaitForm::Asctime | WaitForm::XRateLimitReset => {
            form.asks(wait, written.before(early)).saturating_sub(early)
        }
        _ => form.asks(wait, written),
    })
}

/// Whether a trial's first retry came no sooner than was asked; with the wait. `None` without a retry.
pub(crate) fn heard(observed: &Observations, trial: &str) -> Option<(Heard, Duration, Duration)> {
    let seen = observed.one(trial)?;
    let asked = wait_asked(observed, trial, seen)?;
    let waited = waits(&seen.arrivals).first().copied()?;
    let heard = if waited + TIMERS >= asked { Heard::Yes } else { Heard::No };
    Some((heard, waited, asked))
}

/// Whether a client did what it was asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Heard {
    Yes,
    No,
}

fn asked(observed: &Observations, trial: &str, without: &str) -> Verdict {
    let Some(seen) = observed.one(trial) else { return silent(observed, trial) };
    match heard(observed, trial) {
        Some((heard, waited, asked)) => {
            Verdict::of(heard == Heard::Yes, format!("asked for {}, waited {}", brief(asked), brief(waited)))
        }
        None if observed.attempts(without).unwrap_or_default() < 2 => {
            Verdict::Undecided("it does not repeat this answer, asked or not".to_owned())
        }
        None if seen.exit == Exit::CutOff => {
            Verdict::Undecided("it was still waiting when our patience ended".to_owned())
        }
        None => Verdict::Passed("it gave up rather than wait".to_owned()),
    }
}

fn bounds(observed: &Observations) -> Verdict {
    let Some(seen) = observed.one("asked-long") else { return silent(observed, "asked-long") };
    let attempts = seen.arrivals.len();
    match seen.exit {
        _ if observed.attempts("once-503").unwrap_or_default() < 2 && attempts < 2 => {
            Verdict::Undecided("it does not repeat a 503, asked or not".to_owned())
        }
        _ if attempts > 1 => {
            let waited = waits(&seen.arrivals).first().copied().unwrap_or_default();
            Verdict::Failed(format!("{}, the second time after {}", times(attempts), brief(waited)))
        }
        Exit::CutOff => Verdict::Undecided("it was still waiting when our patience ended".to_owned()),
        Exit::Code(_) | Exit::Signal => Verdict::Passed("it gave up".to_owned()),
    }
}

fn spreads(observed: &Observations) -> Verdict {
    let copies = observed.copies("asked-503");
    let above: Vec<Duration> = copies
        .iter()
        .filter_map(|seen| {
            let asked = wait_asked(observed, "asked-503", seen)?;
            let waited = waits(&seen.arrivals).first().copied()?;
            (waited + TIMERS >= asked).then(|| waited.saturating_sub(asked))
        })
        .collect();
    if above.len() < FEWEST || above.len() * 2 < copies.len() {
        let why = format!(
            "{} of {} copies came back no sooner than asked; {FEWEST} are needed",
            above.len(),
            copies.len()
        );
        return Verdict::Undecided(why);
    }
    let mut sorted = above;
    sorted.sort();
    let quartile = |share: usize| sorted[(sorted.len() - 1) * share / 4];
    let width = (quartile(3) - quartile(1)) * 2;
    let asked = copies.iter().find_map(|seen| wait_asked(observed, "asked-503", seen)).unwrap_or_default();
    let least = (asked / 10).max(observed.lateness * 3);
    let seen =
        format!("{} copies spread over {} above the {} asked for", sorted.len(), brief(width), brief(asked));
    Verdict::of(width > least, seen)
}

/// How much sooner than asked still counts as asked: clocks and timers are exact to some milliseconds.
const TIMERS: Duration = Duration::from_millis(15);
const FEWEST: usize = 8;
const HONOUR: &str = "RFC 9110, section 10.2.3; Retry, Timeout, and Backoff: honour a valid Retry-After";
