//! The simulated driver in its smallest form: a policy and a script of outcomes give a timeline.
//!
//! `relent explain` prints it, the golden files keep it, and the agreement test holds the live and the durable
//! driver to it.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;

use crate::{
    classify::{ErrorClass, Observed, Route},
    decision::{Decision, StopReason},
    history::History,
    policy::Policy,
    script::Script,
    text::Brief,
    time::Timestamp,
    verdict::{Cause, Neutral, Verdict},
};

/// One attempt and what was decided after it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Step {
    /// The attempt, counted from 1, losses included.
    pub number: u32,
    /// When it began.
    pub began: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// What was seen.
    pub observed: Observed,
    /// What it meant.
    pub verdict: Verdict,
    /// What to do next.
    pub decision: Decision,
}

/// What a policy makes of a script.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Timeline {
    /// The attempts.
    pub steps: Vec<Step>,
    /// Why it stopped. `None`: the script ended while the policy would go on.
    pub end: Option<StopReason>,
    /// When it stopped, or when the next attempt would begin.
    pub at: Timestamp,
    /// The decision state at the end.
    pub history: History,
}

impl fmt::Display for Timeline {
    /// A table of attempts, times counted from the call's start, and a line that says how it ended.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = |at: Timestamp| Brief(at.since(self.history.started));
        let heads = ["#", "began", "ended", "outcome", "means", "then"].map(String::from);
        let rows: Vec<[String; 6]> = core::iter::once(heads)
            .chain(self.steps.iter().map(|step| {
                [
                    step.number.to_string(),
                    since(step.began).to_string(),
                    since(step.ended).to_string(),
                    step.observed.to_string(),
                    meaning(step.verdict).to_string(),
                    match step.decision {
                        Decision::Retry(wait) => format!("wait {wait}"),
                        Decision::Stop(reason) => format!("stop: {}", reason.name()),
                    },
                ]
            }))
            .collect();
        if !self.steps.is_empty() {
            write_table(f, &rows)?;
        }
        let at = since(self.at);
        match self.end {
            Some(reason) => write!(f, "stopped at {at}: {}", reason.name())?,
            None => write!(f, "the script ends; the next attempt would begin at {at}")?,
        }
        write!(f, " ({} counted, {} lost)", self.history.attempts, self.history.losses)
    }
}

/// Runs a call with this history through the script, in virtual time.
pub fn timeline(policy: &Policy, mut history: History, route: Route<'_>, script: &Script) -> Timeline {
    let mut steps = Vec::with_capacity(script.len());
    let mut now = history.started;
    if let Decision::Stop(reason) = policy.retry.decide(&history, now) {
        return Timeline { steps, end: Some(reason), at: now, history };
    }
    for (number, outcome) in (1..).zip(script) {
        let began = now;
        let give_up_at = policy.give_up_at(&history, began);
        let ended = began.after(outcome.took);
        let (ended, observed, server_wait) = if ended > give_up_at {
            (give_up_at, Observed::Error(ErrorClass::Timeout), None)
        } else {
            (ended, outcome.observed, outcome.server_wait)
        };
        let verdict = policy.classify.verdict(observed, route, server_wait);
        let decision = policy.retry.conclude(&mut history, verdict, ended);
        steps.push(Step { number, began, ended, observed, verdict, decision });
        match decision {
            Decision::Retry(wait) => now = ended.after(wait.length),
            Decision::Stop(reason) => return Timeline { steps, end: Some(reason), at: ended, history },
        }
    }
    Timeline { steps, end: None, at: now, history }
}

/// Columns as wide as their widest cell; the last is ragged.
fn write_table(f: &mut fmt::Formatter<'_>, rows: &[[String; 6]]) -> fmt::Result {
    let mut widths = [0; 6];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.len().max(*width);
        }
    }
    for [number, cells @ .., last] in rows {
        write!(f, "{number:>width$}", width = widths[0])?;
        for (cell, width) in cells.iter().zip(&widths[1..]) {
            write!(f, "  {cell:<width$}")?;
        }
        writeln!(f, "  {last}")?;
    }
    Ok(())
}

const fn meaning(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Success => "done",
        Verdict::Permanent => "no",
        Verdict::Neutral(Neutral::Cancelled) => "cancelled",
        Verdict::Neutral(Neutral::OwnFault) => "own fault",
        Verdict::Failure { cause: Cause::Error, .. } => "not now",
        Verdict::Failure { cause: Cause::Timeout, .. } => "timed out",
        Verdict::Failure { cause: Cause::Throttled, .. } => "throttled",
        Verdict::Failure { cause: Cause::Lost, .. } => "lost",
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::script::parse_script;

    fn ended(policy: &Policy, upstream: Option<Timestamp>, script: &str) -> Timeline {
        let history = policy.begin(7, Timestamp::from_secs(100), upstream, None);
        timeline(policy, history, Route::default(), &parse_script(script).unwrap())
    }

    #[test]
    fn an_answer_in_the_last_moment_of_an_attempt_counts() {
        let policy = Policy::live();
        assert_eq!(ended(&policy, None, "200 takes 2s").end, Some(StopReason::Succeeded));
        let late = ended(&policy, None, "200 takes 2000000001ns");
        assert_eq!(late.steps[0].observed, Observed::Error(ErrorClass::Timeout));
        assert_eq!(late.at.since(Timestamp::from_secs(102)), Duration::ZERO);
    }

    #[test]
    fn what_has_no_attempt_or_no_end_says_so() {
        let policy = Policy::live();
        let passed = ended(&policy, Some(Timestamp::from_secs(99)), "200");
        assert_eq!(passed.to_string(), "stopped at 0s: upstream_deadline (0 counted, 0 lost)");
        let open = ended(&policy, None, "connect takes 1s");
        let last = open.to_string();
        assert!(last.contains("the script ends; the next attempt would begin at 1."), "{last}");
        assert!(last.ends_with("(1 counted, 0 lost)"), "{last}");
    }
}
