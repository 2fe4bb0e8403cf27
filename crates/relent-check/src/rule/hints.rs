//! Does it listen when the dependency asks for a pause, and does it come back alone?

use std::time::Duration;

use relent_core::{Answer, DurationText, Observed, Route, ServerWaitMode};

use super::Fault;
use crate::{
    change::Change,
    subject::{Part, Subject},
};

pub(super) fn check(subject: &Subject, faults: &mut Vec<Fault>) {
    if subject.retries() && subject.knows(Part::Hints) {
        faults.extend(ignored(subject));
        faults.extend(in_step(subject));
        faults.extend(unbounded(subject));
    }
}

fn ignored(subject: &Subject) -> Option<Fault> {
    let policy = &subject.policy;
    let again = |status| {
        let answer = policy.classify.answer(Observed::Status(status), Route::default());
        matches!(answer, Answer::NotNow | Answer::Throttled)
    };
    let asks: Vec<String> =
        [429, 503].into_iter().filter(|status| again(*status)).map(|s: u16| s.to_string()).collect();
    (policy.retry.server_wait.mode == ServerWaitMode::Ignore && !asks.is_empty()).then(|| Fault {
        name: "ignores_hints",
        part: Part::Hints,
        field: "retry.server_wait.mode",
        why: format!(
            "it repeats {} and ignores how long the dependency asks to be left alone",
            asks.join(" and ")
        ),
        mends: vec![Change::HintMode(ServerWaitMode::Above)],
        advice: "honour a Retry-After that fits the deadline",
    })
}

/// Everyone who met the same window is told the same instant. In our storms obeying it exactly sent 65 times the
/// normal load in the second in which it ended.
fn in_step(subject: &Subject) -> Option<Fault> {
    let how = match subject.policy.retry.server_wait.mode {
        ServerWaitMode::Replace => "obeyed exactly, in place of the wait",
        ServerWaitMode::Longer => "obeyed exactly where it is longer than the wait",
        ServerWaitMode::Within(_) => "obeyed exactly as far as it is obeyed",
        _ => return None,
    };
    Some(Fault {
        name: "hints_in_step",
        part: Part::Hints,
        field: "retry.server_wait.mode",
        why: format!("a hint is {how}: all who were told the same come back in the same moment"),
        mends: vec![Change::HintMode(ServerWaitMode::Above)],
        advice: "add jitter above the hint",
    })
}

fn unbounded(subject: &Subject) -> Option<Fault> {
    let policy = &subject.policy;
    let hints = policy.retry.server_wait;
    let obeyed = !matches!(hints.mode, ServerWaitMode::Ignore | ServerWaitMode::Within(_));
    (obeyed && policy.limit().is_none() && hints.limit > LONGEST_HINT).then(|| Fault {
        name: "unbounded_hint",
        part: Part::Hints,
        field: "retry.server_wait.limit",
        why: format!(
            "nothing in this file bounds the call, and a dependency that asks for {} is given it",
            match subject.origin(Part::Hints).path() {
                Some(_) => DurationText(hints.limit).to_string(),
                None => "days".to_owned(),
            }
        ),
        mends: vec![Change::HintLimit(Duration::from_secs(60))],
        advice: "bound how long a hint is obeyed",
    })
}

/// Longer than a restart or a quota's window; whoever waits so long should not wait in a call.
const LONGEST_HINT: Duration = Duration::from_secs(300);
