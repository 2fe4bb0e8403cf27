//! `relent check`: what is wrong with a retry before production finds out. Nothing is sent, and nothing of it is
//! worked out here: `relent-check` has the questions and the arithmetic.

use std::{
    fmt::Write as _,
    fs, io,
    io::Read as _,
    path::{Path, PathBuf},
};

use relent_check::{Document, Format, PerSecond, Report, View, World, check, of_policy};
use relent_core::{Policy, Preset, parse_duration};
use serde::Serialize;

use crate::{
    args::CheckArgs,
    exit::{Exit, Misuse},
    nearest::with_suggestion,
    output::{plain, plain_block, print, print_json},
};

/// Carries it out: 0 where everything is sound, 1 for findings, 2 where a file cannot be read.
pub(crate) async fn run(args: CheckArgs) -> anyhow::Result<Exit> {
    let world = world(&args)?;
    let checked = checked(&args, &world)?;
    match args.json {
        true => print_json(&Whole::new(&checked))?,
        false => {
            print(&checked.iter().fold(String::new(), |text, one| text + &one.describe()))?;
            for Checked { name, outcome } in &checked {
                if let Err(reason) = outcome {
                    eprintln!("relent: {}: {}", plain(name), plain_block(reason, 0).trim_end());
                }
            }
        }
    }
    Ok(checked.iter().map(Checked::exit).max_by_key(|exit| *exit as u8).unwrap_or(Exit::Done))
}

/// A file, and what is in it or why it cannot be read.
struct Checked {
    name: String,
    outcome: Result<Vec<Report>, String>,
}

fn checked(args: &CheckArgs, world: &World) -> anyhow::Result<Vec<Checked>> {
    let preset = args.preset.as_deref().unwrap_or(Preset::Default.name());
    let base = Preset::from_name(preset).map(Preset::policy).ok_or_else(|| {
        let known: Vec<&str> = Preset::ALL.iter().map(|preset| preset.name()).collect();
        Misuse::new(format!("--preset: there is no policy \"{preset}\"; write one of {}", known.join(", ")))
    })?;
    if args.files.is_empty() {
        let report = check(&of_policy(base), world);
        return Ok(vec![Checked { name: preset.to_owned(), outcome: Ok(vec![report]) }]);
    }
    let format = args.format.as_deref().and_then(Format::from_name);
    let one = |file: &PathBuf| Checked {
        name: if is_standard_input(file) { "standard input".into() } else { file.display().to_string() },
        outcome: reports(file, format, &base, world),
    };
    Ok(args.files.iter().map(one).collect())
}

fn reports(file: &Path, format: Option<Format>, base: &Policy, world: &World) -> Result<Vec<Report>, String> {
    let text = match is_standard_input(file) {
        true => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map(|_| text)
        }
        false => fs::read_to_string(file),
    };
    let text = text.map_err(|error| error.to_string())?;
    // Only relent's own are in TOML; without this a slip in one is read as YAML, and complained of as that.
    let format = format.or_else(|| (file.extension()? == "toml").then_some(Format::Relent));
    let document = Document::parse(&text, format, base).map_err(|why| with_suggestion(&why.to_string()))?;
    Ok(document.subjects.iter().map(|subject| check(subject, world)).collect())
}

fn is_standard_input(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn world(args: &CheckArgs) -> anyhow::Result<World> {
    let rate = |flag: &str, text: &Option<String>| -> anyhow::Result<Option<PerSecond>> {
        let read = text.as_deref().map(str::parse).transpose();
        read.map_err(|why: String| Misuse::new(format!("{flag}: {why}")))
    };
    let deadline = args.deadline.as_deref().map(parse_duration).transpose();
    let world = World {
        layers: args.layers,
        load: rate("--load", &args.load)?,
        capacity: rate("--capacity", &args.capacity)?,
        callers: args.callers,
        hosts: args.hosts,
        deadline: deadline.map_err(|why| Misuse::new(format!("--deadline: {why}")))?,
    };
    if world.deadline.is_some_and(|deadline| deadline.is_zero()) {
        return Err(Misuse::new("--deadline: a caller that has no time makes no call; write for example 2s"));
    }
    if world.callers.is_some() && world.capacity.is_none() {
        return Err(Misuse::new("--callers needs --capacity: what they send is held against it"));
    }
    if world.capacity.is_some() && world.load.is_none() && world.callers.is_none() {
        return Err(Misuse::new("--capacity needs --load or --callers: what arrives is held against it"));
    }
    Ok(world)
}

impl Checked {
    fn exit(&self) -> Exit {
        match &self.outcome {
            Err(_) => Exit::Misused,
            Ok(reports) if reports.iter().any(|report| !report.findings.is_empty()) => Exit::Failed,
            Ok(_) => Exit::Done,
        }
    }

    fn describe(&self) -> String {
        let mut text = String::new();
        for report in self.outcome.iter().flatten() {
            let place = if report.place.is_empty() { String::new() } else { format!(" {}", report.place) };
            let _ = writeln!(text, "{}{}: {}", plain(&self.name), plain(&place), report.format.words());
            text += &plain_block(&report.to_string(), 0);
        }
        text
    }
}

#[derive(Serialize)]
struct Whole {
    sound: bool,
    files: Vec<FileView>,
}

#[derive(Serialize)]
struct FileView {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    retries: Vec<View>,
}

impl Whole {
    fn new(checked: &[Checked]) -> Self {
        let view = |one: &Checked| FileView {
            name: one.name.clone(),
            error: one.outcome.as_ref().err().cloned(),
            retries: one.outcome.iter().flatten().map(View::from).collect(),
        };
        Self {
            sound: checked.iter().all(|one| one.exit() == Exit::Done),
            files: checked.iter().map(view).collect(),
        }
    }
}
