//! `relent sim compare`: two policies that meet the same arrivals.

use std::fmt::Write as _;

use relent_sim::{
    Scenario,
    gate::{Trial, Verdict},
    trials::run_all,
};

use super::{
    choose::{self, Chosen},
    progress,
    view::CompareView,
};
use crate::{
    args::SimCompareArgs,
    exit::Exit,
    output::{Table, numbers, plain_block, print, print_json, words},
};

/// Carries it out.
pub(super) fn run(args: SimCompareArgs) -> anyhow::Result<Exit> {
    let scenarios = choose::scenarios(&args.scenarios)?;
    let (one, other) = (Chosen::policy(&args.one)?, Chosen::policy(&args.other)?);
    let jobs: Vec<_> =
        scenarios.iter().flat_map(|scenario| [(scenario, &one.policy), (scenario, &other.policy)]).collect();
    let bar = progress::of_runs(jobs.len());
    let trials = run_all(&jobs, args.seed, &|_| bar.inc(1));
    bar.finish_and_clear();
    let pairs: Vec<(&Scenario, &Trial, &Trial)> = scenarios
        .iter()
        .zip(trials.chunks_exact(2))
        .map(|(scenario, pair)| (scenario, &pair[0], &pair[1]))
        .collect();
    match args.json {
        true => print_json(&CompareView::new(&one.name, &other.name, args.seed, &pairs))?,
        false => print(&plain_block(&described(&one.name, &other.name, args.seed, &pairs), 0))?,
    }
    Ok(Exit::Done)
}

fn described(one: &str, other: &str, seed: u64, pairs: &[(&Scenario, &Trial, &Trial)]) -> String {
    let heads = [
        words("SCENARIO"),
        words("POLICY"),
        numbers("REQUESTS/CALL"),
        numbers("SUCCEEDED"),
        numbers("RESCUED"),
        numbers("RECOVERY"),
        words("GATES"),
    ];
    let mut table = Table::new(heads);
    for (scenario, first, second) in pairs {
        table.row(row(&scenario.id, one, first));
        table.row(row("", other, second));
    }
    let rest = "requests, successes and rescues are of the time in which something goes wrong";
    let mut out = format!("seed {seed}; {rest}\n\n{}", table.render(0));
    let each = pairs
        .iter()
        .flat_map(|(scenario, first, second)| [(scenario, one, first), (scenario, other, second)]);
    let failed: String = each.map(|(scenario, policy, trial)| failed(scenario, policy, trial)).collect();
    if !failed.is_empty() {
        out = format!("{out}\n{failed}");
    }
    out
}

/// A line for each gate that was not kept.
fn failed(scenario: &Scenario, policy: &str, trial: &Trial) -> String {
    let control = if scenario.control.is_some() { " (a control, does not count)" } else { "" };
    trial.failed().fold(String::new(), |mut out, judgement| {
        let (gate, found, bound) = (judgement.gate.words(), judgement.value_text(), judgement.bound_text());
        let _ = writeln!(out, "failed: {} under {policy}{control}: {gate}: {found}, {bound}", scenario.id);
        out
    })
}

fn row(scenario: &str, policy: &str, trial: &Trial) -> [String; 7] {
    let report = &trial.report;
    let sums = report.window("trigger").unwrap_or(report.all());
    let figure = |value: Option<f64>, unit: &str, digits: usize| {
        value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}{unit}"))
    };
    let count = |verdict| trial.judgements.iter().filter(|judgement| judgement.verdict == verdict).count();
    let gates = match (count(Verdict::Pass), count(Verdict::Fail)) {
        (0, 0) => "–".to_owned(),
        (passed, 0) => format!("{passed} passed"),
        (passed, failed) => format!("{passed} passed, {failed} failed"),
    };
    let recovery = match report.recovery {
        None => "–".to_owned(),
        Some(relent_sim::Recovery::Never) => "never".to_owned(),
        Some(relent_sim::Recovery::After(length)) => format!("{} s", length.as_secs()),
    };
    [
        scenario.to_owned(),
        policy.to_owned(),
        figure(sums.arrivals_per_call(), "", 3),
        figure(sums.success_percent(), " %", 1),
        figure(sums.rescued_percent(), " %", 1),
        recovery,
        gates,
    ]
}
