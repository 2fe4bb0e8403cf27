//! What `relent probe --json` and `relent probe serve --json` print.

use std::collections::BTreeMap;

use relent_core::Timestamp;
use relent_probe::{
    Arrival, Card, Curve, End, Evidence, Exit, FirstRetry, Fit, JitterKind, Judged, Run, Told, Whole,
};
use serde::Serialize;

use crate::wire::Seconds;

/// A report card.
#[derive(Serialize)]
pub(super) struct CardView<'a> {
    command: &'a str,
    copies: u32,
    patience_s: Seconds,
    took_s: Seconds,
    lateness_s: Seconds,
    grade: GradeView,
    facts: BTreeMap<&'static str, &'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<ScheduleView<'a>>,
    checks: Vec<CheckView<'a>>,
    trials: Vec<TrialView<'a>>,
}

#[derive(Serialize)]
struct GradeView {
    passed: usize,
    failed: usize,
    undecided: usize,
}

#[derive(Serialize)]
struct CheckView<'a> {
    name: &'static str,
    verdict: &'static str,
    seen: &'a str,
    demands: &'static str,
    source: &'static str,
}

#[derive(Serialize)]
struct ScheduleView<'a> {
    first_at_once: bool,
    curve: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    base_s: Option<Seconds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    factor: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    factor_range: Option<(f64, f64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cap_s: Option<Seconds>,
    jitter: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    jitter_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jitter_span_s: Option<Seconds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pinned_at_s: Option<Seconds>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    undecided: Vec<&'a str>,
    statistics: StatisticsView,
}

#[derive(Serialize)]
struct StatisticsView {
    runs: usize,
    waits: usize,
    medians_s: Vec<Seconds>,
    widths_s: Vec<Seconds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_odds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runner_up: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kolmogorov_smirnov: Option<f64>,
}

#[derive(Serialize)]
struct TrialView<'a> {
    name: &'static str,
    script: &'a str,
    method: &'static str,
    runs: Vec<RunView>,
}

#[derive(Serialize)]
struct RunView {
    attempts: usize,
    waits_s: Vec<Seconds>,
    exit: String,
}

impl<'a> CardView<'a> {
    pub(super) fn new(card: &'a Card) -> Self {
        let grade = card.grade();
        Self {
            command: &card.command,
            copies: card.copies,
            patience_s: Seconds(card.patience),
            took_s: Seconds(card.took),
            lateness_s: Seconds(card.lateness),
            grade: GradeView { passed: grade.passed, failed: grade.failed, undecided: grade.undecided },
            facts: card.facts.iter().map(|fact| (fact.name, fact.value.as_str())).collect(),
            schedule: card.fit.as_ref().map(ScheduleView::new),
            checks: card.checks.iter().map(CheckView::new).collect(),
            trials: card.trials.iter().map(TrialView::new).collect(),
        }
    }
}

impl<'a> CheckView<'a> {
    fn new(check: &'a Judged) -> Self {
        Self {
            name: check.name,
            verdict: check.verdict.name(),
            seen: check.verdict.why(),
            demands: check.demands,
            source: check.source,
        }
    }
}

impl<'a> ScheduleView<'a> {
    fn new(fit: &'a Fit) -> Self {
        let (mut base_s, mut factor, mut factor_range, mut cap_s) = (None, None, None, None);
        let mut undecided = Vec::new();
        match &fit.curve {
            Curve::Constant { wait } => base_s = Some(Seconds(*wait)),
            Curve::Linear { base, cap } => (base_s, cap_s) = (Some(Seconds(*base)), cap.map(Seconds)),
            Curve::Exponential { base, factor: grows, factor_range: range, cap } => {
                (base_s, cap_s) = (Some(Seconds(*base)), cap.map(Seconds));
                (factor, factor_range) = (Some(*grows), Some(*range));
            }
            Curve::Undecided { why, .. } => undecided.push(why.as_str()),
            Curve::AtOnce | Curve::Irregular { .. } => {}
        }
        let (mut jitter_share, mut jitter_span_s) = (None, None);
        match &fit.jitter {
            JitterKind::Proportional { share } => jitter_share = Some(*share),
            JitterKind::Additive { span } => jitter_span_s = Some(Seconds(*span)),
            JitterKind::Undecided { why } => undecided.push(why.as_str()),
            _ => {}
        }
        Self {
            first_at_once: fit.first == FirstRetry::AtOnce,
            curve: fit.curve.name(),
            base_s,
            factor,
            factor_range,
            cap_s,
            jitter: fit.jitter.name(),
            jitter_share,
            jitter_span_s,
            pinned_at_s: fit.pinned_at.map(Seconds),
            undecided,
            statistics: StatisticsView::new(&fit.evidence),
        }
    }
}

impl StatisticsView {
    fn new(evidence: &Evidence) -> Self {
        Self {
            runs: evidence.runs,
            waits: evidence.waits,
            medians_s: evidence.each.iter().map(|(median, _)| Seconds(*median)).collect(),
            widths_s: evidence.each.iter().map(|(_, width)| Seconds(*width)).collect(),
            log_odds: evidence.log_odds,
            runner_up: evidence.runner_up,
            kolmogorov_smirnov: evidence.ks_distance,
        }
    }
}

impl<'a> TrialView<'a> {
    fn new(trial: &'a Told) -> Self {
        let run = |run: &Run| RunView {
            attempts: run.attempts,
            waits_s: run.waits.iter().copied().map(Seconds).collect(),
            exit: match run.exit {
                Exit::Code(code) => code.to_string(),
                Exit::Signal => "signal".to_owned(),
                Exit::CutOff => "cut_off".to_owned(),
            },
        };
        Self {
            name: trial.name,
            script: &trial.script,
            method: trial.method,
            runs: trial.runs.iter().map(run).collect(),
        }
    }
}

/// One request at the scripted dependency. Headers that came several times are joined by commas.
#[derive(Serialize)]
pub(super) struct ArrivalView {
    number: u64,
    at_s: Seconds,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    path: String,
    headers: BTreeMap<String, String>,
    body_length: u64,
    body_sha256: String,
    body_whole: bool,
    connection: u64,
    on_connection: u64,
    end: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after_s: Option<Seconds>,
}

impl ArrivalView {
    pub(super) fn new(arrival: &Arrival, began: Timestamp) -> Self {
        let mut headers: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in &arrival.headers {
            let value = String::from_utf8_lossy(value.as_bytes());
            let all = headers.entry(name.to_string()).or_default();
            if !all.is_empty() {
                all.push_str(", ");
            }
            all.push_str(&value);
        }
        Self {
            number: arrival.number,
            at_s: Seconds(arrival.at.since(began)),
            method: arrival.method.as_ref().map(ToString::to_string),
            path: arrival.path.clone(),
            headers,
            body_length: arrival.body.length,
            body_sha256: arrival.body.sha256.clone(),
            body_whole: arrival.body.whole == Whole::Yes,
            connection: arrival.connection,
            on_connection: arrival.on_connection,
            end: end_name(arrival.end),
            status: match arrival.end {
                End::Answered { status, .. } => Some(status.as_u16()),
                _ => None,
            },
            after_s: arrival.end.at().map(|at| Seconds(at.since(arrival.at))),
        }
    }
}

/// What became of a request, in one word.
pub(super) const fn end_name(end: End) -> &'static str {
    match end {
        End::Pending => "pending",
        End::Answered { .. } => "answered",
        End::Broken { .. } => "broken",
        End::ClientGone { .. } => "client_gone",
        End::Unreadable { .. } => "unreadable",
    }
}
