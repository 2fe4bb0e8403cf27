//! Which failures are repeated, and which are not.

use super::{Check, Verdict, silent, times};
use crate::suite::{Observations, plan::Main};

macro_rules! repeats {
    ($name:literal, $trial:literal, $demands:literal) => {
        Check {
            name: $name,
            demands: $demands,
            source: NOT_NOW,
            judge: |observed| repeated(observed, $trial),
        }
    };
}

macro_rules! stops {
    ($name:literal, $trial:literal, $demands:literal) => {
        Check { name: $name, demands: $demands, source: NO, judge: |observed| left(observed, $trial) }
    };
}

pub(super) const CHECKS: &[Check] = &[
    repeats!("repeats-408", "once-408", "Request timed out at the server: another try may succeed."),
    repeats!("repeats-429", "once-429", "Too many requests just now: another try later may succeed."),
    repeats!("repeats-502", "once-502", "A gateway met a broken answer: another try may succeed."),
    repeats!("repeats-503", "once-503", "Unavailable just now: another try may succeed."),
    repeats!("repeats-504", "once-504", "A gateway met no answer: another try may succeed."),
    repeats!("repeats-reset", "once-reset", "A connection reset is what every deployment looks like."),
    stops!("stops-at-400", "once-400", "A bad request stays bad."),
    stops!("stops-at-401", "once-401", "Who is not known now is not known in a second."),
    stops!("stops-at-403", "once-403", "Who may not now may not in a second."),
    stops!(
        "stops-at-404",
        "once-404",
        "What is not there is not there in a second, unless the contract says so."
    ),
    stops!("stops-at-422", "once-422", "What the business refuses it refuses again."),
];

fn repeated(observed: &Observations, trial: &str) -> Verdict {
    match observed.attempts(trial) {
        None => silent(observed, trial),
        Some(1) if observed.abilities.main == Main::Bare => Verdict::Undecided(
            "all that it sends is a POST without a key, which nobody may repeat".to_owned(),
        ),
        Some(attempts) => Verdict::of(attempts > 1, times(attempts)),
    }
}

fn left(observed: &Observations, trial: &str) -> Verdict {
    match observed.attempts(trial) {
        None => silent(observed, trial),
        Some(attempts) => Verdict::of(attempts == 1, times(attempts)),
    }
}

const NOT_NOW: &str =
    "Retries That Fail Better, 2026: retry only what says \"not now\"; RFC 9110, section 15";
const NO: &str = "Retry, Timeout, and Backoff: decision matrix and verification";
