//! The flags of the simulator.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `relent sim`.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  relent sim run S4 --policy plain-loop        a stall, and the storm that outlives it
  relent sim run S4 --html report.html         the same under relent's default, as a page
  relent sim gate --policy my.toml             is my policy good in all of them?

A POLICY is a file, or the name of a built-in one: default, durable, microsoft-standard, grpc-a6, aws-2026,
azure-core, envoy, no-retries, plain-loop, grpc-budget, aws-2026-quota.")]
pub(crate) struct SimArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: SimCommand,
}

/// The commands of the simulator.
#[derive(Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// List the standard scenarios, and what a good policy keeps in each.
    List(SimListArgs),
    /// Run one scenario under a policy.
    Run(SimRunArgs),
    /// Put a policy through the standard scenarios; ends with 1 if it fails a gate.
    Gate(SimGateArgs),
    /// Put two policies through the same scenarios, side by side.
    Compare(SimCompareArgs),
    /// Reproduce the numbers of the two documents that relent goes back to; ends with 1 if one differs.
    Paper(SimPaperArgs),
}

/// `relent sim list`.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  relent sim list
  relent sim list S4                           the file of a scenario, to be copied and changed")]
pub(crate) struct SimListArgs {
    /// Print this scenario's file.
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenario: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `relent sim run`.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  relent sim run S4 --policy my.toml --seed 7 --html report.html
  relent sim run my-scenario.toml --set callers.rate=900 --set effect.0.for=20s

The same scenario, policy and seed give the same report, to the byte, on any machine.")]
pub(crate) struct SimRunArgs {
    /// A standard scenario (`relent sim list`), or a file.
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenario: String,
    /// A file, or the name of a built-in policy.
    #[arg(long, value_name = "POLICY", default_value = "default")]
    pub(crate) policy: String,
    /// The run's supply of chance.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Replace a value of the scenario's file; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) settings: Vec<String>,
    /// Print JSON.
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Print the series as comma-separated values.
    #[arg(long)]
    pub(crate) csv: bool,
    /// Write the report as a page that needs nothing else.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// `relent sim gate`.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  relent sim gate --policy my.toml
  relent sim gate --policy my.toml --scenario S4,S7

Exit codes: 0 every gate that counts is passed, 1 a gate failed (it is named), 2 wrong use.")]
pub(crate) struct SimGateArgs {
    /// A file, or the name of a built-in policy.
    #[arg(long, value_name = "POLICY", default_value = "default")]
    pub(crate) policy: String,
    /// The run's supply of chance.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Only these: standard scenarios or files, between commas.
    #[arg(long = "scenario", value_name = "LIST", value_delimiter = ',')]
    pub(crate) scenarios: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `relent sim compare`.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  relent sim compare plain-loop my.toml
  relent sim compare today.toml tomorrow.toml --scenario S4,S7,mine.toml")]
pub(crate) struct SimCompareArgs {
    /// A policy: a file, or the name of a built-in one.
    #[arg(value_name = "A")]
    pub(crate) one: String,
    /// The other.
    #[arg(value_name = "B")]
    pub(crate) other: String,
    /// The run's supply of chance; both meet the same arrivals.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Only these: standard scenarios or files, between commas.
    #[arg(long = "scenario", value_name = "LIST", value_delimiter = ',')]
    pub(crate) scenarios: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `relent sim paper`.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  relent sim paper
  relent sim paper --seed 7 --json

With seed 42, the article's, its experiment comes out to the digit; with any other within the intervals that a
thousand seeds gave.")]
pub(crate) struct SimPaperArgs {
    /// The seed of .NET's generator.
    #[arg(long, value_name = "N", default_value_t = 42)]
    pub(crate) seed: i32,
    /// How often each random figure is drawn.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) trials: u32,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
