//! What the simulator's commands print as JSON. Figures are rounded to six decimals; a recovery that never came is
//! `"never"`.

use std::collections::BTreeMap;

use relent_sim::{
    Point, Recovery, Report, Scenario, Sums,
    gate::{Judgement, Trial},
    paper::{Figure, Setting},
    scenario::{Relative, Side},
};
use serde::Serialize;

use crate::wire::Seconds;

/// `relent sim run`.
#[derive(Serialize)]
pub(super) struct RunView<'a> {
    scenario: &'a str,
    title: &'a str,
    policy: &'a str,
    seed: u64,
    duration_s: Seconds,
    trigger_s: Option<[Seconds; 2]>,
    recovery: Option<RecoveryView>,
    recovery_without_retries: Option<RecoveryView>,
    windows: BTreeMap<&'a str, WindowView>,
    ends: BTreeMap<&'static str, u64>,
    gates: Vec<JudgementView<'a>>,
    interval_s: Seconds,
    points: Vec<PointView>,
}

/// `relent sim gate`.
#[derive(Serialize)]
pub(super) struct GateView<'a> {
    policy: &'a str,
    seed: u64,
    passed: bool,
    failed: &'a [&'a str],
    scenarios: Vec<TrialView<'a>>,
}

/// `relent sim compare`.
#[derive(Serialize)]
pub(super) struct CompareView<'a> {
    seed: u64,
    policies: [&'a str; 2],
    scenarios: Vec<[TrialView<'a>; 2]>,
}

/// `relent sim paper`.
#[derive(Serialize)]
pub(super) struct PaperView<'a> {
    seed: i32,
    trials: u32,
    reproduced: bool,
    figures: Vec<FigureView<'a>>,
}

#[derive(Serialize)]
struct FigureView<'a> {
    part: &'a str,
    claim: &'a str,
    reported: &'a str,
    reproduced: &'a str,
    difference: &'a str,
    agrees: bool,
}

/// `relent sim list`.
#[derive(Serialize)]
pub(super) struct ListView<'a> {
    scenarios: Vec<ScenarioView<'a>>,
}

#[derive(Serialize)]
struct ScenarioView<'a> {
    id: &'a str,
    title: &'a str,
    duration_s: Seconds,
    gates: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    control: Option<&'a str>,
}

#[derive(Serialize)]
struct TrialView<'a> {
    scenario: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    control: Option<&'a str>,
    recovery: Option<RecoveryView>,
    windows: BTreeMap<&'a str, WindowView>,
    gates: Vec<JudgementView<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum RecoveryView {
    After { after_s: Seconds },
    Never(&'static str),
}

#[derive(Serialize)]
struct JudgementView<'a> {
    measure: &'static str,
    over: &'a str,
    side: &'static str,
    /// What it was held to; absent where it is no number.
    bound: Option<f64>,
    times_no_retries: Option<f64>,
    /// What was found; absent where there was nothing to measure, or a recovery never came.
    value: Option<f64>,
    verdict: &'static str,
}

#[derive(Serialize)]
struct WindowView {
    calls: u64,
    ended: u64,
    succeeded: u64,
    faltered: u64,
    rescued: u64,
    requests: u64,
    rejected: u64,
    successes: u64,
    peak_10ms: u64,
    breakers_opened: u64,
    useful_s: f64,
    wasted_s: f64,
    requests_per_call: Option<f64>,
    success_percent: Option<f64>,
    rescued_percent: Option<f64>,
}

#[derive(Serialize)]
struct PointView {
    calls: u64,
    ended: u64,
    succeeded: u64,
    requests: u64,
    answered: u64,
    rejected: u64,
    successes: u64,
    useful_s: f64,
    wasted_s: f64,
    waiting: u32,
    in_flight: u32,
    queued: u32,
    breakers_open: u32,
    breakers_half_open: u32,
}

impl<'a> RunView<'a> {
    pub(super) fn new(scenario: &'a Scenario, policy: &'a str, seed: u64, trial: &'a Trial) -> Self {
        let report = &trial.report;
        let since_start = |at: relent_core::Timestamp| Seconds(at.since(relent_core::Timestamp::ZERO));
        Self {
            scenario: &scenario.id,
            title: &scenario.title,
            policy,
            seed,
            duration_s: Seconds(scenario.duration),
            trigger_s: report.trigger.map(|(from, until)| [since_start(from), since_start(until)]),
            recovery: report.recovery.map(RecoveryView::new),
            recovery_without_retries: trial
                .without
                .as_ref()
                .and_then(|without| without.recovery)
                .map(RecoveryView::new),
            windows: windows(report),
            ends: report.ends.iter().map(|(reason, count)| (reason.name(), *count)).collect(),
            gates: trial.judgements.iter().map(JudgementView::new).collect(),
            interval_s: Seconds(report.interval),
            points: report.points.iter().map(PointView::new).collect(),
        }
    }
}

impl<'a> GateView<'a> {
    pub(super) fn new(
        policy: &'a str,
        seed: u64,
        tried: &[(&'a Scenario, &'a Trial)],
        failed: &'a [&'a str],
    ) -> Self {
        let scenarios = tried.iter().map(|(scenario, trial)| TrialView::new(scenario, trial)).collect();
        Self { policy, seed, passed: failed.is_empty(), failed, scenarios }
    }
}

impl<'a> CompareView<'a> {
    pub(super) fn new(
        one: &'a str,
        other: &'a str,
        seed: u64,
        pairs: &[(&'a Scenario, &'a Trial, &'a Trial)],
    ) -> Self {
        let scenarios = pairs
            .iter()
            .map(|(scenario, first, second)| [first, second].map(|trial| TrialView::new(scenario, trial)))
            .collect();
        Self { seed, policies: [one, other], scenarios }
    }
}

impl<'a> PaperView<'a> {
    pub(super) fn new(setting: &Setting, parts: &'a [(&'a str, Vec<Figure>)]) -> Self {
        let view = |part: &'a str, figure: &'a Figure| FigureView {
            part,
            claim: &figure.claim,
            reported: &figure.reported,
            reproduced: &figure.found,
            difference: &figure.difference,
            agrees: figure.agrees,
        };
        let figures: Vec<FigureView<'a>> = parts
            .iter()
            .flat_map(|(part, figures)| figures.iter().map(move |figure| view(part, figure)))
            .collect();
        let reproduced = figures.iter().all(|figure| figure.agrees);
        Self { seed: setting.seed, trials: setting.trials, reproduced, figures }
    }
}

impl<'a> ListView<'a> {
    pub(super) fn new(scenarios: &'a [Scenario]) -> Self {
        let view = |scenario: &'a Scenario| ScenarioView {
            id: &scenario.id,
            title: &scenario.title,
            duration_s: Seconds(scenario.duration),
            gates: scenario.gates.len(),
            control: scenario.control.as_deref(),
        };
        Self { scenarios: scenarios.iter().map(view).collect() }
    }
}

impl<'a> TrialView<'a> {
    fn new(scenario: &'a Scenario, trial: &'a Trial) -> Self {
        Self {
            scenario: &scenario.id,
            control: scenario.control.as_deref(),
            recovery: trial.report.recovery.map(RecoveryView::new),
            windows: windows(&trial.report),
            gates: trial.judgements.iter().map(JudgementView::new).collect(),
        }
    }
}

impl RecoveryView {
    fn new(recovery: Recovery) -> Self {
        match recovery {
            Recovery::After(after) => Self::After { after_s: Seconds(after) },
            Recovery::Never => Self::Never("never"),
        }
    }
}

impl<'a> JudgementView<'a> {
    fn new(judgement: &'a Judgement) -> Self {
        let gate = &judgement.gate;
        let finite = |value: f64| value.is_finite().then(|| rounded(value));
        Self {
            measure: gate.measure.name(),
            over: &gate.over,
            side: match gate.side {
                Side::AtMost => "at_most",
                Side::AtLeast => "at_least",
            },
            bound: finite(judgement.bound),
            times_no_retries: gate.relative.map(|Relative::NoRetries| gate.bound),
            value: judgement.value.and_then(finite),
            verdict: judgement.verdict.name(),
        }
    }
}

impl WindowView {
    fn new(sums: &Sums) -> Self {
        Self {
            calls: sums.calls,
            ended: sums.ended,
            succeeded: sums.succeeded,
            faltered: sums.faltered,
            rescued: sums.rescued,
            requests: sums.arrivals,
            rejected: sums.rejected,
            successes: sums.successes,
            peak_10ms: sums.peak,
            breakers_opened: sums.breakers_opened,
            useful_s: seconds(sums.useful),
            wasted_s: seconds(sums.wasted),
            requests_per_call: sums.arrivals_per_call().map(rounded),
            success_percent: sums.success_percent().map(rounded),
            rescued_percent: sums.rescued_percent().map(rounded),
        }
    }
}

impl PointView {
    fn new(point: &Point) -> Self {
        Self {
            calls: point.calls,
            ended: point.ended,
            succeeded: point.succeeded,
            requests: point.arrivals,
            answered: point.answered,
            rejected: point.rejected,
            successes: point.successes,
            useful_s: seconds(point.useful),
            wasted_s: seconds(point.wasted),
            waiting: point.waiting,
            in_flight: point.in_flight,
            queued: point.queued,
            breakers_open: point.open,
            breakers_half_open: point.half_open,
        }
    }
}

fn windows(report: &Report) -> BTreeMap<&str, WindowView> {
    report.windows.iter().map(|(window, sums)| (window.name.as_str(), WindowView::new(sums))).collect()
}

fn seconds(nanos: u64) -> f64 {
    rounded(std::time::Duration::from_nanos(nanos).as_secs_f64())
}

fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
