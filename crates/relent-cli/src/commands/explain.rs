//! `relent explain`: what a policy makes of a script of outcomes. Nothing is sent, and nothing of it is worked out
//! here: the timeline is the core's own, the same that the server would live through.

mod means;
mod view;

use std::{fmt::Write as _, fs, path::Path};

use relent::Timestamp;
use relent_core::{
    Idempotency, Policy, PolicyText, Preset, Route, StopReason, Timeline, Warning, parse_script, timeline,
};

use crate::{
    args::ExplainArgs,
    exit::{Exit, Misuse},
    nearest::with_suggestion,
    output::{print, print_json},
};

/// Carries it out.
pub(crate) async fn run(args: ExplainArgs) -> anyhow::Result<Exit> {
    let explained = Explained::new(&args)?;
    match args.json {
        true => print_json(&view::View::new(&explained))?,
        false => {
            for warning in &explained.warnings {
                eprintln!("relent: {}: {warning}", warning.severity().name());
            }
            print(&explained.describe())?;
        }
    }
    Ok(Exit::Done)
}

/// All that there is to say.
struct Explained {
    /// The policy's name: its file or its preset.
    name: String,
    policy: Policy,
    warnings: Vec<Warning>,
    seed: u64,
    timeline: Option<Timeline>,
}

impl Explained {
    fn new(args: &ExplainArgs) -> anyhow::Result<Self> {
        let (name, mut policy) = policy(args.preset.as_deref(), args.policy.as_deref())?;
        if let Some(repeat) = &args.repeat {
            policy.repeat = Idempotency::from_name(repeat).ok_or_else(|| {
                Misuse::new(format!("--repeat {repeat}: write safe, keyed, unsafe or never"))
            })?;
        }
        let warnings = policy.validate().map_err(|invalid| Misuse::new(format!("{name}: {invalid}")))?;
        let script = args.outcomes.as_deref().map(parse_script).transpose();
        let script = script.map_err(|wrong| Misuse::new(format!("--outcomes: {wrong}")))?;
        let timeline = script.map(|script| {
            let history = policy.begin(args.seed, Timestamp::ZERO, None, None);
            timeline(&policy, history, Route::default(), &script)
        });
        Ok(Self { name, policy, warnings, seed: args.seed, timeline })
    }

    fn describe(&self) -> String {
        let mut out = format!("policy {}, repeat {}", self.name, self.policy.repeat.name());
        match &self.timeline {
            Some(timeline) => {
                let _ = writeln!(out, ", seed {}\n\n{timeline}", self.seed);
                out += hint(timeline.end);
                out += &beyond_one_call(&self.policy);
            }
            None => {
                let text = toml::to_string(&PolicyText::from(&self.policy));
                let _ = writeln!(out, "\n\n{}", text.unwrap_or_else(|error| error.to_string()).trim_end());
            }
        }
        out += "\nwhat it does\n";
        for line in self.policy.in_words().lines() {
            let _ = writeln!(out, "  {line}");
        }
        let _ = write!(out, "\nwhat an outcome means\n{}", means::describe(&self.policy.classify));
        out
    }
}

/// The preset, and over it what the file says.
pub(super) fn policy(preset: Option<&str>, file: Option<&Path>) -> anyhow::Result<(String, Policy)> {
    let preset = preset.unwrap_or(Preset::Default.name());
    let base = Preset::from_name(preset).ok_or_else(|| {
        let known: Vec<&str> = Preset::ALL.iter().map(|preset| preset.name()).collect();
        Misuse::new(format!("--preset: there is no policy \"{preset}\"; write one of {}", known.join(", ")))
    })?;
    match file {
        None => Ok((preset.to_owned(), base.policy())),
        Some(file) => Ok((file.display().to_string(), read(file, base)?)),
    }
}

fn read(file: &Path, base: Preset) -> anyhow::Result<Policy> {
    let wrong = |why: &dyn std::fmt::Display| Misuse::new(format!("{}: {why}", file.display()));
    let text = fs::read_to_string(file).map_err(|error| wrong(&error))?;
    parse(&text, base.policy()).map_err(|why| wrong(&why))
}

/// One policy's text, over what it leaves out. An empty one is refused, as `relent check` does: it is what a command
/// that failed writes, and what the default does would be told under its name.
pub(super) fn parse(text: &str, base: Policy) -> Result<Policy, String> {
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        return Err(EMPTY.into());
    }
    let read: PolicyText = toml::from_str(text).map_err(|error| {
        match toml::from_str::<toml::Table>(text).is_ok_and(|table| table.contains_key("policies")) {
            true => SEVERAL.into(),
            false => with_suggestion(error.to_string().trim_end()),
        }
    })?;
    read.over(base).map_err(|invalid| invalid.to_string())
}

/// What the policy has that calls share: a timeline of one call cannot show it, and must not hide it.
fn beyond_one_call(policy: &Policy) -> String {
    let gates = [&policy.admission, &policy.attempt];
    let shared = [
        ("its budget", policy.budget.is_some()),
        ("its breaker", policy.breaker.is_some()),
        ("its limits", gates.iter().any(|gates| gates.concurrency.is_some() || gates.rate.is_some())),
    ];
    let named: Vec<&str> = shared.iter().filter(|(_, there)| *there).map(|(name, _)| *name).collect();
    match named.as_slice() {
        [] => String::new(),
        named => format!(
            "not shown, since calls share it: {} may refuse an attempt of a call in your process\n",
            named.join(", ")
        ),
    }
}

/// A stop that surprises people most, explained where it is met.
const fn hint(end: Option<StopReason>) -> &'static str {
    match end {
        Some(StopReason::Ambiguous) => {
            "the last attempt may have been carried out, and nobody said that this call may be repeated; where it \
             may,\nsay --repeat safe or --repeat keyed here, and `repeat` in the policy\n"
        }
        _ => "",
    }
}

const EMPTY: &str =
    "it is empty; write a policy, or name a built-in one, such as default, instead of the file";

const SEVERAL: &str = "it is a server's configuration, and here one policy is asked for: write the one that is meant, \
                       what stands under its [policies.NAME], to a file of its own; `relent check` reads them all";
