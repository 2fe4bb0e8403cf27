//! `relent sim paper`: the two documents' numbers, reproduced on relent's own code.

use std::fmt::Write as _;

use relent_sim::paper::{Figure, Part, Setting};

use super::{progress, view::PaperView};
use crate::{
    args::SimPaperArgs,
    exit::Exit,
    output::{Table, print, print_json, words},
};

/// Carries it out.
pub(super) fn run(args: SimPaperArgs) -> anyhow::Result<Exit> {
    let setting = Setting { seed: args.seed, trials: args.trials };
    let bar = progress::of_runs(Part::ALL.len());
    let parts: Vec<(&str, Vec<Figure>)> = Part::ALL
        .iter()
        .map(|part| {
            let figures = part.figures(&setting);
            bar.inc(1);
            (part.title, figures)
        })
        .collect();
    bar.finish_and_clear();
    let differing = parts.iter().flat_map(|(_, figures)| figures).filter(|figure| !figure.agrees).count();
    match args.json {
        true => print_json(&PaperView::new(&setting, &parts))?,
        false => print(&described(&parts, differing))?,
    }
    Ok(if differing == 0 { Exit::Done } else { Exit::Failed })
}

fn described(parts: &[(&str, Vec<Figure>)], differing: usize) -> String {
    let mut out = String::new();
    for (title, figures) in parts {
        let heads = [words("CLAIM"), words("REPORTED"), words("REPRODUCED"), words("DIFFERENCE"), words("")];
        let mut table = Table::new(heads).uncut();
        for figure in figures {
            let Figure { claim, reported, found, difference, agrees, .. } = figure.clone();
            table.row([claim, reported, found, difference, if agrees { "ok" } else { "DIFFERS" }.into()]);
        }
        let _ = writeln!(out, "{title}\n\n{}", table.render(2));
    }
    let _ = match differing {
        0 => writeln!(out, "every figure is reproduced"),
        1 => writeln!(out, "1 figure differs"),
        _ => writeln!(out, "{differing} figures differ"),
    };
    out
}
