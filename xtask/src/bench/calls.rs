//! The bench of calls: measured, counted by callgrind, printed as tables in Markdown, and held to the bars.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use super::{
    bars::{self, Kind, Verdict},
    callgrind,
    facts::{Facts, Row, Table},
};
use crate::run::cargo_output;

/// Measures and prints everything. Falling short of a bar is an error only if asked for: it is a measurement.
pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    let is_strict = match args {
        [] => false,
        ["--strict"] => true,
        _ => return Err("`cargo xtask bench calls` takes nothing but --strict".into()),
    };
    let bench = build()?;
    let printed = Command::new(&bench)
        .args(["--bench", "--facts"])
        .output()
        .map_err(|error| format!("{}: {error}", bench.display()))?;
    if !printed.status.success() {
        return Err(format!("the bench failed: {}", String::from_utf8_lossy(&printed.stderr)));
    }
    let mut facts = Facts::parse(&String::from_utf8_lossy(&printed.stdout))?;
    match callgrind::is_there() {
        true => count(&mut facts, &bench)?,
        false => eprintln!("there is no valgrind: instructions are not counted"),
    }
    facts.tables.iter().for_each(print);
    let short = judge(&facts)?;
    match short {
        1.. if is_strict => Err(format!("{short} bars are not met")),
        _ => Ok(()),
    }
}

/// Builds the bench and says where it is.
fn build() -> Result<PathBuf, String> {
    let args = ["bench", "--package", "relent", "--bench", "calls", "--no-run", "--message-format", "json"];
    eprintln!("$ cargo {}", args.join(" "));
    let messages = cargo_output(&args)?;
    let is_it = |message: &Value| message["target"]["name"] == "calls" && message["executable"].is_string();
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let executable =
        messages.filter(is_it).find_map(|message| message["executable"].as_str().map(PathBuf::from));
    executable.ok_or_else(|| "cargo names no executable for the bench".into())
}

/// Counts the instructions of every row that one thread can make a few thousand times.
fn count(facts: &mut Facts, bench: &Path) -> Result<(), String> {
    eprintln!("counting instructions, some minutes");
    let rows = facts.tables.iter_mut().flat_map(|table| &mut table.rows);
    for row in rows.filter(|row| row.together.is_none() && row.ns < SLOW) {
        row.instructions = Some(callgrind::per_call(bench, &row.name)?);
    }
    Ok(())
}

fn print(table: &Table) {
    let is_shared = table.rows.iter().any(|row| row.together.is_some());
    let heads = match is_shared {
        true => ["1 thread, ns", "2 threads, ns a call", "M/s of two", "undisturbed rounds"],
        false => ["ns", "× relent", "instructions", "allocations"],
    };
    println!("\n| {} | {} |\n|---|---|---|---|---|", table.title, heads.join(" | "));
    let relent = table.rows.iter().find(|row| row.short_name() == "relent");
    for row in &table.rows {
        let cells = match row.together {
            Some(two) => {
                [row.ns.round_to(), two.ns.round_to(), (1000.0 / two.ns).round_to(), two.rounds.round_to()]
            }
            None => alone(row, relent),
        };
        let name = row.short_name();
        let name = if name.starts_with("relent") { format!("**{name}**") } else { name.into() };
        println!("| {name} | {} |", cells.join(" | "));
    }
}

fn alone(row: &Row, relent: Option<&Row>) -> [String; 4] {
    let ratio = relent.map_or(String::new(), |relent| format!("{:.2}", row.ns / relent.ns));
    let instructions = row.instructions.map_or(String::new(), Figure::round_to);
    [row.ns.round_to(), ratio, instructions, format!("{:.0}", row.allocations)]
}

/// Prints what each bar comes to. How many bars are not met; an aim is no bar.
fn judge(facts: &Facts) -> Result<usize, String> {
    println!("\n| | held to | figure | |\n|---|---|---|---|");
    let mut short = 0;
    for bar in bars::all() {
        let (figure, verdict) = bar.judge(facts)?;
        short += usize::from(verdict == Verdict::FallsShort && bar.kind == Kind::Bar);
        let figure = figure.map_or(String::new(), |figure| format!("{figure:.2}"));
        let kind = if bar.kind == Kind::Aim { "aim: " } else { "" };
        println!("| {} | {kind}{} | {figure} | {} |", bar.what, bar.limit.words(), verdict.words());
    }
    Ok(short)
}

/// Figures for people: digits that mean something.
trait Figure {
    fn round_to(self) -> String;
}

impl Figure for f64 {
    fn round_to(self) -> String {
        match self {
            _ if !self.is_finite() => "–".into(),
            ..10.0 if self.fract() != 0.0 => format!("{self:.1}"),
            _ => format!("{self:.0}"),
        }
    }
}

/// Nanoseconds: what takes longer waits for something.
const SLOW: f64 = 20_000.0;
