//! The simulator against figures that were published before it was written, by a simulator that shares no code with
//! it: the same scenarios, the loop of "Retries That Fail Better" under five budgets. They are facts to be met, and
//! nothing here was adjusted to what the code gives. A figure is met within 15 %, or 3 points of a percentage, or
//! 3 s, whichever is the most; what never recovers must not recover.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use relent_core::Policy;
use relent_sim::{Recovery, Report, policies::named, run, scenario::standard};

/// One published line: a measure, and a figure for each policy of [`POLICIES`].
struct Line {
    scenario: &'static str,
    measure: Measure,
    figures: [Option<f64>; 5],
    /// Seeds that were averaged; of recoveries the worst counts.
    seeds: u64,
    settings: &'static [(&'static str, &'static str)],
}

#[derive(Clone, Copy)]
enum Measure {
    Success(&'static str),
    Rescued(&'static str),
    ArrivalsPerCall(&'static str),
    Recovery,
}

const NEVER: Option<f64> = Some(f64::INFINITY);
const POLICIES: [&str; 5] = ["no-retries", "plain-loop", "grpc-budget", "aws-2026-quota", "default"];

#[rustfmt::skip]
const LINES: &[Line] = &[
    three("S2", Measure::Success("trigger"), [80.2, 100.0, 80.4, 100.0, 100.0]),
    three("S2b", Measure::Success("trigger"), [80.2, 99.3, 80.5, 99.3, 99.3]),
    three("S3", Measure::ArrivalsPerCall("trigger"), [1.00, 4.96, 1.00, 1.01, 1.02]),
    three("S3", Measure::Success("half a minute after"), [100.0; 5]),
    three("S3b", Measure::Success("1s"), [0.0, 95.8, 0.0, 3.3, 6.2]),
    three("S4", Measure::ArrivalsPerCall("trigger"), [1.00, 2.37, 1.01, 1.08, 1.12]),
    three("S4", Measure::Recovery, [45.0, f64::INFINITY, 46.0, 50.0, 53.0]),
    three("S4b", Measure::Recovery, [0.0, f64::INFINITY, 0.0, 0.0, 0.0]),
    one("S5", Measure::Recovery, [Some(9.0), NEVER, Some(9.0), None, Some(13.0)]),
    one("S5c", Measure::Recovery, [None, NEVER, None, None, None]),
    one("S6", Measure::Recovery, [None, NEVER, None, None, None]),
    one("S7", Measure::Recovery, [None, NEVER, Some(35.0), None, Some(53.0)]),
    one("S7b", Measure::Recovery, [NEVER; 5]),
    one("S8", Measure::ArrivalsPerCall("from ten seconds in"), [Some(1.0), None, Some(1.0), Some(1.0), Some(1.0)]),
    one("S11", Measure::ArrivalsPerCall("outage"), [None, Some(4.95), Some(1.06), Some(2.56), Some(1.12)]),
    one("S11", Measure::Rescued("20 %"), [None, Some(100.0), Some(81.0), Some(100.0), Some(97.0)]),
    Line { settings: &[("callers.clients", "10000")],
        ..one("S11", Measure::ArrivalsPerCall("outage"), [None, None, None, None, Some(1.5)]) },
    Line { settings: &[("callers.clients", "10000")],
        ..one("S11", Measure::Rescued("20 %"), [None, None, None, None, Some(81.0)]) },
    Line { settings: &[("callers.clients", "50000")],
        ..one("S11", Measure::ArrivalsPerCall("outage"), [None, None, None, None, Some(1.8)]) },
    Line { settings: &[("callers.clients", "50000")],
        ..one("S11", Measure::Rescued("20 %"), [None, None, None, None, Some(78.0)]) },
];

const fn three(scenario: &'static str, measure: Measure, figures: [f64; 5]) -> Line {
    let [none, plain, grpc, aws, loan] = figures;
    let figures = [Some(none), Some(plain), Some(grpc), Some(aws), Some(loan)];
    Line { scenario, measure, figures, seeds: 3, settings: &[] }
}

const fn one(scenario: &'static str, measure: Measure, figures: [Option<f64>; 5]) -> Line {
    Line { scenario, measure, figures, seeds: 1, settings: &[] }
}

#[test]
fn the_published_figures_of_five_budgets_are_met() {
    let reports = Reports::of_all_that_the_lines_need();
    let mut missed = Vec::new();
    for line in LINES {
        for (policy, figure) in POLICIES.iter().zip(line.figures) {
            let Some(figure) = figure else { continue };
            let runs: Vec<f64> =
                (1..=line.seeds).map(|seed| line.measure.of(reports.of(line, policy, seed))).collect();
            let found = line.measure.together(&runs);
            println!("{:4} {:20} {policy:16} {figure:8.2} {found:8.2}", line.scenario, line.measure.name());
            if !line.measure.is_met(figure, found) {
                missed.push(format!(
                    "{} {} {policy}: {found} for {figure}",
                    line.scenario,
                    line.measure.name()
                ));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

impl Measure {
    fn of(self, report: &Report) -> f64 {
        let window = |name| report.window(name).unwrap_or_else(|| panic!("{}: no {name}", report.scenario));
        let value = match self {
            Self::Success(name) => window(name).success_percent(),
            Self::Rescued(name) => window(name).rescued_percent(),
            Self::ArrivalsPerCall(name) => window(name).arrivals_per_call(),
            Self::Recovery => report.recovery.map(|recovery| match recovery {
                Recovery::After(length) => length.as_secs_f64(),
                Recovery::Never => f64::INFINITY,
            }),
        };
        value.unwrap_or_else(|| panic!("{}: nothing to measure {}", report.scenario, self.name()))
    }

    fn together(self, runs: &[f64]) -> f64 {
        match self {
            Self::Recovery => runs.iter().copied().fold(0.0, f64::max),
            _ => runs.iter().sum::<f64>() / runs.len() as f64,
        }
    }

    fn is_met(self, figure: f64, found: f64) -> bool {
        let least: f64 = match self {
            Self::Success(_) | Self::Rescued(_) | Self::Recovery => 3.0,
            Self::ArrivalsPerCall(_) => 0.0,
        };
        match figure.is_finite() {
            true => (found - figure).abs() <= least.max(0.15 * figure),
            false => found == figure,
        }
    }

    fn name(self) -> String {
        match self {
            Self::Success(window) => format!("success in {window}"),
            Self::Rescued(window) => format!("rescued in {window}"),
            Self::ArrivalsPerCall(window) => format!("arrivals/call in {window}"),
            Self::Recovery => "recovery".into(),
        }
    }
}

type Run = (&'static str, &'static [(&'static str, &'static str)], &'static str, u64);

/// Every run that the lines need, made once, on all cores.
struct Reports(BTreeMap<Run, Report>);

impl Reports {
    fn of_all_that_the_lines_need() -> Self {
        let mut runs: Vec<Run> = Vec::new();
        for line in LINES {
            for (policy, _) in POLICIES.iter().zip(line.figures).filter(|(_, figure)| figure.is_some()) {
                runs.extend((1..=line.seeds).map(|seed| (line.scenario, line.settings, *policy, seed)));
            }
        }
        runs.sort_unstable();
        runs.dedup();
        let (next, reports) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
        thread::scope(|scope| {
            for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(|| {
                    while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let report = made(*run);
                        reports.lock().expect("no run panicked").insert(*run, report);
                    }
                });
            }
        });
        Self(reports.into_inner().expect("no run panicked"))
    }

    fn of(&self, line: &Line, policy: &'static str, seed: u64) -> &Report {
        &self.0[&(line.scenario, line.settings, policy, seed)]
    }
}

fn made((id, settings, policy, seed): Run) -> Report {
    let scenario = standard(id).expect("a standard scenario").scenario(settings).expect("it is possible");
    let policy: Policy = named(policy).expect("a built-in policy");
    run(&scenario, &policy, seed)
}
