//! The simulated driver in its smallest form: a policy and a script of outcomes give a timeline.
//!
//! `relent explain` prints it, the golden files keep it, and the agreement test holds the live and the durable
//! driver to it.

use alloc::vec::Vec;
use core::time::Duration;

use crate::{
    classify::{ErrorClass, Observed, Route},
    decision::{Decision, StopReason},
    history::History,
    policy::Policy,
    time::Timestamp,
    verdict::Verdict,
};

/// One outcome of a script.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ScriptedOutcome {
    /// What the driver will see.
    pub observed: Observed,
    /// What the dependency will ask for.
    pub server_wait: Option<Duration>,
    /// How long the attempt would take; the attempt time-out or a deadline may cut it.
    pub took: Duration,
}

/// The outcomes of a call's attempts, in order.
pub type Script = [ScriptedOutcome];

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

impl ScriptedOutcome {
    /// An outcome that is seen at once.
    pub const fn at_once(observed: Observed) -> Self {
        Self { observed, server_wait: None, took: Duration::ZERO }
    }

    /// An attempt that hangs until its time-out.
    pub const fn hangs() -> Self {
        let observed = Observed::Error(ErrorClass::Timeout);
        Self { observed, server_wait: None, took: Duration::MAX }
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
