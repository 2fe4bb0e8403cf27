//! The named checks. Each asks one thing of what the trials showed, says where the demand comes from, and knows
//! nothing of the client. Where the trials cannot tell, it says so and why.

mod classification;
pub(crate) mod hints;
mod patience;
mod safety;
mod schedule;
pub(crate) mod together;

use std::time::Duration;

use relent::Brief;

use crate::{suite::Observations, trial::Exit};

/// One check.
#[derive(Clone, Copy)]
pub struct Check {
    /// Its name; what the grade counts.
    pub name: &'static str,
    /// What it demands.
    pub demands: &'static str,
    /// Where the demand comes from.
    pub source: &'static str,
    judge: fn(&Observations) -> Verdict,
}

/// What a check found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// The demand is met, as was seen so.
    Passed(String),
    /// It is not met, as was seen so.
    Failed(String),
    /// It cannot be told, for this reason.
    Undecided(String),
}

impl Verdict {
    /// `passed`, `failed` or `undecided`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Passed(_) => "passed",
            Self::Failed(_) => "failed",
            Self::Undecided(_) => "undecided",
        }
    }

    /// What was seen, or why it cannot be told.
    pub fn why(&self) -> &str {
        match self {
            Self::Passed(why) | Self::Failed(why) | Self::Undecided(why) => why,
        }
    }

    fn of(met: bool, seen: String) -> Self {
        if met { Self::Passed(seen) } else { Self::Failed(seen) }
    }
}

impl Check {
    /// What it finds.
    pub(crate) fn judge(&self, observed: &Observations) -> Verdict {
        (self.judge)(observed)
    }
}

/// Every check, in the order of the report.
pub fn checks() -> impl Iterator<Item = &'static Check> {
    [
        classification::CHECKS,
        safety::CHECKS,
        schedule::CHECKS,
        hints::CHECKS,
        patience::CHECKS,
        together::CHECKS,
    ]
    .into_iter()
    .flatten()
}

/// Why a trial has nothing to say.
fn silent(observed: &Observations, trial: &str) -> Verdict {
    Verdict::Undecided(match observed.copies(trial).first() {
        _ if !observed.trials.contains_key(trial) => {
            format!("the trial `{trial}` was not run: {}", lacking(trial))
        }
        None => format!("the time was up before the trial `{trial}`"),
        Some(_) => format!("the client sent nothing in the trial `{trial}`"),
    })
}

const fn lacking(trial: &str) -> &'static str {
    match trial.as_bytes() {
        [b'p', b'o', b's', b't', ..] => {
            "asked for a POST without a key, the client did not send one; write {method}, {body} and {key} in the command"
        }
        [b'k', b'e', b'y', ..] => {
            "asked for a POST with a key, the client did not send one; write {method}, {body} and {key} in the command"
        }
        [b'p', b'u', b't', ..] => {
            "asked for a PUT with a body, the client did not send one; write {method} and {body} in the command"
        }
        [b'd', b'r', b'i', ..] => "the client never gives up on silence, so no pace is too slow for it",
        _ => "what it builds on did not happen",
    }
}

fn times(attempts: usize) -> String {
    if attempts == 1 { "sent once".to_owned() } else { format!("sent {attempts} times") }
}

fn brief(length: Duration) -> String {
    Brief(Duration::from_millis(u64::try_from(length.as_millis()).unwrap_or(u64::MAX))).to_string()
}

/// How a client ended, in words.
pub(crate) fn ended(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("ended with code {code}"),
        Exit::Signal => "was ended by a signal".to_owned(),
        Exit::CutOff => "was still at work when our patience ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_check_has_a_name_of_its_own_a_demand_and_a_source() {
        let names: BTreeSet<&str> = checks().map(|check| check.name).collect();
        assert_eq!(names.len(), checks().count());
        for check in checks() {
            assert!(!check.demands.is_empty() && !check.source.is_empty(), "{}", check.name);
        }
    }
}
