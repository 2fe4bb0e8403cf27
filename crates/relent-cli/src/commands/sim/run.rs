//! `relent sim run`: one scenario, one policy, and what came of it.

use std::fmt::Write as _;

use relent_sim::{
    Point, Recovery, Report, Scenario, Sums,
    gate::Trial,
    policies::without_retries,
    report::{Page, csv, html},
    run_with_progress,
};

use super::{
    choose::{self, Chosen},
    gate::gates,
    progress,
    view::RunView,
};
use crate::{
    args::SimRunArgs,
    exit::Exit,
    output::{PageFile, Table, length, numbers, plain_block, print, print_json, thousands, words},
    wire::Seconds,
};

/// Carries it out.
pub(super) fn run(args: SimRunArgs) -> anyhow::Result<Exit> {
    let scenario = choose::scenario(&args.scenario, &args.settings)?;
    let chosen = Chosen::policy(&args.policy)?;
    let file = args.html.as_deref().map(PageFile::open).transpose()?;
    let trial = tried(&scenario, &chosen, args.seed);
    if let Some(file) = &file {
        let page = Page {
            scenario: &scenario,
            policy_name: &chosen.name,
            policy: &chosen.policy,
            policy_text: &chosen.text()?,
            seed: args.seed,
            trial: &trial,
        };
        file.write(&html(&page))?;
    }
    match (args.json, args.csv) {
        (true, _) => print_json(&RunView::new(&scenario, &chosen.name, args.seed, &trial))?,
        (_, true) => print(&csv(&trial.report))?,
        _ => print(&plain_block(&described(&scenario, &chosen.name, args.seed, &trial), 0))?,
    }
    Ok(Exit::Done)
}

/// The run, and the same without retries, with a bar over the time of each.
fn tried(scenario: &Scenario, chosen: &Chosen, seed: u64) -> Trial {
    let bar = progress::of_time(scenario);
    let run = |policy| run_with_progress(scenario, policy, seed, &mut |at| progress::move_to(&bar, at));
    let report = run(&chosen.policy);
    let without = run(&without_retries(&chosen.policy));
    bar.finish_and_clear();
    Trial::judge(scenario, &chosen.policy, report, Some(without))
}

fn described(scenario: &Scenario, policy: &str, seed: u64, trial: &Trial) -> String {
    let report = &trial.report;
    let mut out = format!("{}  {}\npolicy {policy}, seed {seed}\n\n", scenario.id, scenario.title);
    out += &windows(report);
    let _ = writeln!(out, "\n{}", lines(report));
    if let Some(recovery) = report.recovery {
        let without = trial.without.as_ref().and_then(|without| without.recovery);
        let without = without.map_or(String::new(), |other| format!("; without retries {}", told(other)));
        let _ = writeln!(out, "recovery  {}{without}", told(recovery));
    }
    let ends: Vec<String> = report
        .ends
        .iter()
        .map(|(reason, count)| format!("{} {}", thousands(*count), reason.name().replace('_', " ")))
        .collect();
    let _ = writeln!(out, "calls     {}", ends.join(", "));
    if !trial.judgements.is_empty() {
        let _ = write!(out, "\n{}", gates(std::iter::once((scenario, trial))).render(0));
    }
    out
}

fn told(recovery: Recovery) -> String {
    match recovery {
        Recovery::After(after) => length(Seconds(after)),
        Recovery::Never => "never".into(),
    }
}

/// The sums, a column for each window.
fn windows(report: &Report) -> String {
    let heads = [
        words("WINDOW"),
        numbers("CALLS"),
        numbers("SUCCEEDED"),
        numbers("RESCUED"),
        numbers("REQUESTS/CALL"),
        numbers("REJECTED"),
        numbers("WASTED WORK"),
        numbers("MOST IN 10 MS"),
    ];
    let mut table = Table::new(heads);
    for (window, sums) in &report.windows {
        let Sums { calls, rejected, peak, .. } = sums;
        table.row([
            window.name.clone(),
            thousands(*calls),
            percent(sums.success_percent()),
            percent(sums.rescued_percent()),
            sums.arrivals_per_call().map_or_else(dash, |ratio| format!("{ratio:.3}")),
            thousands(*rejected),
            percent(sums.wasted_percent()),
            thousands(*peak),
        ]);
    }
    table.render(0)
}

fn percent(value: Option<f64>) -> String {
    value.map_or_else(dash, |value| format!("{value:.1} %"))
}

fn dash() -> String {
    "–".into()
}

/// The run at a glance: a row of small bars for each of the most telling series.
fn lines(report: &Report) -> String {
    type Of = fn(&Point) -> u64;
    let series: [(&str, Of); 4] = [
        ("requests", |point| point.arrivals),
        ("succeeded", |point| point.succeeded),
        ("waiting", |point| u64::from(point.waiting)),
        ("queue", |point| u64::from(point.queued)),
    ];
    series.into_iter().fold(String::new(), |mut out, (name, of)| {
        let values: Vec<u64> = report.points.iter().map(of).collect();
        let most = values.iter().copied().max().unwrap_or_default();
        let _ = writeln!(out, "{name:10}{}  up to {}", bars(&values, most), thousands(most));
        out
    })
}

/// As many bars as fit a line, each the greatest of its stretch.
fn bars(values: &[u64], most: u64) -> String {
    let each = values.len().div_ceil(BARS).max(1);
    values
        .chunks(each)
        .map(|stretch| {
            let value = stretch.iter().copied().max().unwrap_or_default();
            // Anything above nothing shows.
            let level = (value * 8).div_ceil(most.max(1));
            LEVELS[usize::try_from(level).unwrap_or(8).min(8)]
        })
        .collect()
}

const BARS: usize = 74;
const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_fit_a_line_and_anything_above_nothing_shows() {
        assert_eq!(bars(&[0, 1, 500, 1000], 1000), " ▁▄█");
        assert_eq!(bars(&[0; 500], 0).chars().count(), 72);
        let long: Vec<u64> = (0..10_000).collect();
        assert!(bars(&long, 9_999).chars().count() <= BARS);
        assert!(bars(&long, 9_999).ends_with('█'));
    }
}
