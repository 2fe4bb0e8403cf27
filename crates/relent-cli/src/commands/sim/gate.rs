//! `relent sim gate`: is a policy good in every storm that it may meet?

use std::fmt::Write as _;

use relent_sim::{
    Scenario,
    gate::{Judgement, Trial, Verdict},
    trials::run_all,
};

use super::{
    choose::{self, Chosen},
    progress,
    view::GateView,
};
use crate::{
    args::SimGateArgs,
    exit::Exit,
    output::{Table, plain_block, print, print_json, words},
};

/// Carries it out.
pub(super) fn run(args: SimGateArgs) -> anyhow::Result<Exit> {
    let scenarios = choose::scenarios(&args.scenarios)?;
    let chosen = Chosen::policy(&args.policy)?;
    let jobs: Vec<_> = scenarios.iter().map(|scenario| (scenario, &chosen.policy)).collect();
    let bar = progress::of_runs(jobs.len());
    let trials = run_all(&jobs, args.seed, &|_| bar.inc(1));
    bar.finish_and_clear();
    let tried: Vec<(&Scenario, &Trial)> = scenarios.iter().zip(&trials).collect();
    let failed = failed(&tried);
    match args.json {
        true => print_json(&GateView::new(&chosen.name, args.seed, &tried, &failed))?,
        false => print(&plain_block(&described(&chosen.name, args.seed, &tried, &failed), 0))?,
    }
    Ok(if failed.is_empty() { Exit::Done } else { Exit::Failed })
}

/// The scenarios with a failed gate that counts.
fn failed<'a>(tried: &[(&'a Scenario, &Trial)]) -> Vec<&'a str> {
    tried
        .iter()
        .filter(|(scenario, trial)| scenario.control.is_none() && trial.failed().next().is_some())
        .map(|(scenario, _)| scenario.id.as_str())
        .collect()
}

fn described(policy: &str, seed: u64, tried: &[(&Scenario, &Trial)], failed: &[&str]) -> String {
    let mut out = format!("policy {policy}, seed {seed}\n\n{}\n", gates(tried.iter().copied()).render(0));
    for (scenario, trial) in tried {
        if let (Some(why), true) = (&scenario.control, trial.failed().next().is_some()) {
            let _ = writeln!(out, "{} is a control, and its failure does not count: {why}", scenario.id);
        }
    }
    let _ = match failed {
        [] => writeln!(out, "passed"),
        failed => writeln!(out, "failed: {}", failed.join(", ")),
    };
    out
}

/// A row for each gate.
pub(super) fn gates<'a>(tried: impl Iterator<Item = (&'a Scenario, &'a Trial)>) -> Table {
    let mut table = Table::new([words("SCENARIO"), words("GATE"), words("FOUND"), words("BOUND"), words("")]);
    for (scenario, trial) in tried {
        if trial.judgements.is_empty() {
            let (none, silent) = (String::new(), String::new());
            table.row([
                scenario.id.clone(),
                "none: it is there to be looked at".into(),
                none,
                silent,
                "–".into(),
            ]);
        }
        for judgement in &trial.judgements {
            table.row(row(scenario, judgement));
        }
    }
    table
}

fn row(scenario: &Scenario, judgement: &Judgement) -> [String; 5] {
    let verdict = match (judgement.verdict, &scenario.control) {
        (Verdict::Fail, Some(_)) => "fail (control)",
        (Verdict::Fail, None) => "FAIL",
        (verdict, _) => verdict.name(),
    };
    [
        scenario.id.clone(),
        judgement.gate.words(),
        judgement.value_text(),
        judgement.bound_text(),
        verdict.to_owned(),
    ]
}
