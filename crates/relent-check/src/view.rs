//! A report for programs.

use serde::Serialize;
use serde_json::Value;

use crate::{
    answer::Answer,
    figure::{
        Figures,
        recovery::{ClosedLoop, OpenLoop},
        sample::Tally,
    },
    finding::{Finding, Limit, Mend},
    report::Report,
    subject::Unread,
};

/// What `relent check --json` prints of one retry. Times are in seconds, shares of one.
#[derive(Serialize)]
pub struct View {
    #[serde(skip_serializing_if = "String::is_empty")]
    place: String,
    format: &'static str,
    sound: bool,
    findings: Vec<FindingView>,
    limits: Vec<LimitView>,
    answers: Vec<AnswerView>,
    figures: FiguresView,
    unread: Vec<UnreadView>,
}

#[derive(Serialize)]
struct FindingView {
    name: &'static str,
    field: String,
    why: String,
    /// The line to write; absent where no single setting mends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<&'static str>,
}

#[derive(Serialize)]
struct LimitView {
    name: &'static str,
    why: String,
    advice: String,
}

#[derive(Serialize)]
struct AnswerView {
    question: &'static str,
    verdict: &'static str,
    says: String,
    from: Vec<String>,
}

#[derive(Serialize)]
struct UnreadView {
    path: String,
    why: String,
}

/// What is not told is absent.
#[derive(Serialize)]
struct FiguresView {
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts_at_best: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts_at_worst: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    whole_attempts_at_worst: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fail_at_once: Option<TallyView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_out: Option<TallyView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    longest_call_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    longest_call_with_hints_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts_of_one_call: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts_per_call_in_an_outage: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    through_layers: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_loop: Option<LoopView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    closed_loop: Option<LoopView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    one_bad_host_opens_the_breaker_of: Option<u32>,
}

#[derive(Serialize)]
struct TallyView {
    /// The share of calls by how many attempts begin.
    attempts: std::collections::BTreeMap<u32, f64>,
    /// The share of calls in which an attempt begins without its whole time-out.
    cut_short: f64,
}

#[derive(Serialize)]
struct LoopView {
    arrivals_per_second: f64,
    capacity_per_second: f64,
    recovers: bool,
}

impl From<&Report> for View {
    fn from(report: &Report) -> Self {
        Self {
            place: report.place.clone(),
            format: report.format.name(),
            sound: report.findings.is_empty(),
            findings: report.findings.iter().map(FindingView::from).collect(),
            limits: report.limits.iter().map(LimitView::from).collect(),
            answers: report.answers.iter().map(AnswerView::from).collect(),
            figures: (&report.figures).into(),
            unread: report.unread.iter().map(UnreadView::from).collect(),
        }
    }
}

impl From<&Finding> for FindingView {
    fn from(finding: &Finding) -> Self {
        let (mend, value, advice) = match &finding.mend {
            Mend::Set(edit) => (Some(edit.line.clone()), Some(edit.value.clone()), None),
            Mend::Do(advice) => (None, None, Some(*advice)),
        };
        Self {
            name: finding.name,
            field: finding.field.clone(),
            why: finding.why.clone(),
            mend,
            value,
            advice,
        }
    }
}

impl From<&Limit> for LimitView {
    fn from(limit: &Limit) -> Self {
        Self { name: limit.name, why: limit.why.clone(), advice: limit.advice.clone() }
    }
}

impl From<&Answer> for AnswerView {
    fn from(answer: &Answer) -> Self {
        Self {
            question: answer.question.name(),
            verdict: answer.verdict.name(),
            says: answer.says.clone(),
            from: answer.from.clone(),
        }
    }
}

impl From<&Unread> for UnreadView {
    fn from(unread: &Unread) -> Self {
        Self { path: unread.path.clone(), why: unread.why.clone() }
    }
}

impl From<&Figures> for FiguresView {
    fn from(figures: &Figures) -> Self {
        let seconds = |length: std::time::Duration| length.as_secs_f64();
        Self {
            limit_s: figures.limit.as_ref().map(|(_, length)| seconds(*length)),
            attempts_at_best: figures.at_best,
            attempts_at_worst: figures.at_worst.and_then(|worst| worst.begin),
            whole_attempts_at_worst: figures.at_worst.and_then(|worst| worst.whole),
            fail_at_once: figures.at_once.as_ref().map(TallyView::from),
            time_out: figures.timing_out.as_ref().map(TallyView::from),
            longest_call_s: figures.longest.map(seconds),
            longest_call_with_hints_s: figures.longest_with_hints.map(seconds),
            attempts_of_one_call: figures.one_call,
            attempts_per_call_in_an_outage: figures.outage.attempts_milli.map(milli),
            through_layers: figures.through_layers.map(|(_, through)| milli(through)),
            open_loop: figures.open_loop.as_ref().map(LoopView::from),
            closed_loop: figures.closed_loop.as_ref().map(LoopView::from),
            one_bad_host_opens_the_breaker_of: figures.one_host_in,
        }
    }
}

impl From<&Tally> for TallyView {
    fn from(tally: &Tally) -> Self {
        let share = |calls: u32| f64::from(tally.share_milli(calls)) / 1000.0;
        Self {
            attempts: tally.by_attempts.iter().map(|(attempts, calls)| (*attempts, share(*calls))).collect(),
            cut_short: share(tally.cut_short),
        }
    }
}

impl From<&OpenLoop> for LoopView {
    fn from(open: &OpenLoop) -> Self {
        Self {
            arrivals_per_second: milli(open.arrivals.milli()),
            capacity_per_second: milli(open.capacity.milli()),
            recovers: open.recovers(),
        }
    }
}

impl From<&ClosedLoop> for LoopView {
    fn from(closed: &ClosedLoop) -> Self {
        Self {
            arrivals_per_second: milli(closed.arrivals.milli()),
            capacity_per_second: milli(closed.capacity.milli()),
            recovers: closed.recovers(),
        }
    }
}

/// Thousandths as a number; what is printed is far below 2^53.
fn milli(milli: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "printed")]
    let number = milli as f64;
    number / 1000.0
}
