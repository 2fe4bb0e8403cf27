//! What `relent explain --json` prints.

use std::collections::BTreeMap;

use relent_core::{Answer, Decision, PolicyText, Step, Timeline, Verdict};
use serde::Serialize;

use super::{Explained, means};
use crate::wire::{Detail, Seconds};

/// The whole answer.
#[derive(Serialize)]
pub(super) struct View {
    name: String,
    policy: PolicyText,
    warnings: Vec<WarningView>,
    seed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeline: Option<TimelineView>,
    /// By answer: ranges of statuses and error classes, routes aside.
    classification: BTreeMap<&'static str, Vec<String>>,
    routes: Vec<String>,
}

#[derive(Serialize)]
struct WarningView {
    severity: &'static str,
    doubt: &'static str,
    field: String,
    reason: String,
}

#[derive(Serialize)]
struct TimelineView {
    steps: Vec<StepView>,
    /// The reason to stop; absent where the script ended first.
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<&'static str>,
    /// When it stopped, or when the next attempt would begin; counted from the call's start as all here.
    at_s: Seconds,
    attempts: u32,
    losses: u32,
}

#[derive(Serialize)]
struct StepView {
    attempt: u32,
    began_s: Seconds,
    ended_s: Seconds,
    outcome: String,
    means: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait: Option<Detail>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<&'static str>,
}

impl View {
    pub(super) fn new(explained: &Explained) -> Self {
        let classify = &explained.policy.classify;
        let warning = |warning: &relent_core::Warning| WarningView {
            severity: warning.severity().name(),
            doubt: warning.doubt.name(),
            field: warning.field.clone(),
            reason: warning.reason.clone(),
        };
        Self {
            name: explained.name.clone(),
            policy: PolicyText::from(&explained.policy),
            warnings: explained.warnings.iter().map(warning).collect(),
            seed: explained.seed,
            timeline: explained.timeline.as_ref().map(TimelineView::new),
            classification: Answer::ALL
                .iter()
                .map(|answer| (answer.name(), means::meaning(classify, *answer)))
                .collect(),
            routes: classify.routes.iter().map(means::route).collect(),
        }
    }
}

impl TimelineView {
    fn new(timeline: &Timeline) -> Self {
        let since = |at: relent_core::Timestamp| Seconds(at.since(timeline.history.started));
        let step = |step: &Step| StepView {
            attempt: step.number,
            began_s: since(step.began),
            ended_s: since(step.ended),
            outcome: step.observed.to_string(),
            means: means(step.verdict),
            wait: match &step.decision {
                Decision::Retry(wait) => Some(Detail::from(wait)),
                Decision::Stop(_) => None,
            },
            stop: match step.decision {
                Decision::Stop(reason) => Some(reason.name()),
                Decision::Retry(_) => None,
            },
        };
        Self {
            steps: timeline.steps.iter().map(step).collect(),
            end: timeline.end.map(relent_core::StopReason::name),
            at_s: since(timeline.at),
            attempts: timeline.history.attempts,
            losses: timeline.history.losses,
        }
    }
}

const fn means(verdict: Verdict) -> &'static str {
    use relent_core::{Cause, Neutral};
    match verdict {
        Verdict::Success => Answer::Success.name(),
        Verdict::Permanent => Answer::No.name(),
        Verdict::Neutral(Neutral::Cancelled) => "cancelled",
        Verdict::Neutral(Neutral::OwnFault) => "own_fault",
        Verdict::Failure { cause: Cause::Throttled, .. } => Answer::Throttled.name(),
        Verdict::Failure { cause: Cause::Error, .. } => Answer::NotNow.name(),
        Verdict::Failure { cause: Cause::Timeout, .. } => "timeout",
        Verdict::Failure { cause: Cause::Lost, .. } => "lost",
    }
}
