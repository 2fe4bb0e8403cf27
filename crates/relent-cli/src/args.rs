//! The command line as it is spelled; what a flag means stands with its command and in `settings`.

mod call;
mod check;
mod client;
mod dead;
mod probe;
mod serve;
mod sim;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub(crate) use call::CallArgs;
pub(crate) use check::CheckArgs;
pub(crate) use client::{CancelArgs, ClientArgs, ListArgs, PageArgs, SendArgs, ShowArgs, StatusArgs};
pub(crate) use dead::{CommonArgs, DeadArgs, DeadCommand, LettersArgs};
pub(crate) use probe::{ProbeArgs, ProbeCommand, ProbeServeArgs};
pub(crate) use serve::{LogFormat, ServeArgs, Synchronous};
pub(crate) use sim::{
    SimArgs, SimCommand, SimCompareArgs, SimGateArgs, SimListArgs, SimPaperArgs, SimRunArgs,
};

/// Retries that know when to stop, and where the work goes then.
#[derive(Debug, Parser)]
#[command(name = "relent", version, propagate_version = true, after_help = FIRST_STEPS)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the server: accepts messages over HTTP and delivers them.
    Serve(Box<ServeArgs>),
    /// Hand one message to the server and print its id.
    Send(SendArgs),
    /// List messages, newest first.
    Ls(ListArgs),
    /// Show one message: every attempt, and why it waited.
    Show(ShowArgs),
    /// Show counts and ages.
    Status(StatusArgs),
    /// Stop messages that are still waiting.
    Cancel(CancelArgs),
    /// Work on the dead letters: what was given up, and why.
    Dead(DeadArgs),
    /// Send one request under a policy, here and now, and print the answer.
    Call(Box<CallArgs>),
    /// Show the timeline that a policy gives for a script of outcomes; nothing is sent.
    Explain(ExplainArgs),
    /// Ask a retry policy, relent's own or another client's, what it must answer; nothing is sent.
    Check(Box<CheckArgs>),
    /// Put policies through a storm: a dependency that gets into trouble, simulated; nothing is sent.
    Sim(SimArgs),
    /// Find out what a client really does when its dependency fails, and grade it.
    Probe(Box<ProbeArgs>),
    /// Check a store against its own rules, also while its server runs; nothing is changed.
    Fsck(FsckArgs),
    /// Watch relent at work: a flaky receiver, a server, 1,000 orders, under a minute.
    Demo(DemoArgs),
}

/// `relent explain`.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  relent explain --preset durable --outcomes '30x 503, timeout, 429 asks 2s takes 80ms, 200' --seed 7

An outcome is a status, an error class (dns, connect, reset, ...), `timeout` (hangs until the attempt's time-out)
or `lost` (the worker died). After it may stand what the server `asks` for and how long the attempt `takes`; before
it, how often it happens. Without --outcomes the policy and its classification are shown.")]
pub(crate) struct ExplainArgs {
    /// A file with one policy. What it leaves out is as in the preset.
    #[arg(value_name = "POLICY.toml")]
    pub(crate) policy: Option<PathBuf>,
    /// A built-in policy: `default` (for a caller who waits), `durable`, or one that is known from elsewhere:
    /// `microsoft-standard`, `grpc-a6`, `aws-2026`, `azure-core`, `envoy` [default: default].
    #[arg(long, value_name = "NAME")]
    pub(crate) preset: Option<String>,
    /// What the dependency answers, attempt by attempt, between commas.
    #[arg(long, value_name = "LIST")]
    pub(crate) outcomes: Option<String>,
    /// The call's supply of chance: the same seed gives the same waits.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Whether the call may be repeated when nobody knows what it did [default: what the policy says].
    #[arg(long, value_name = "HOW", value_parser = ["safe", "keyed", "unsafe", "never"])]
    pub(crate) repeat: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `relent fsck`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  relent fsck --data ./relent-data")]
pub(crate) struct FsckArgs {
    /// The data folder to check.
    #[arg(long, value_name = "DIR", env = "RELENT_DATA", default_value = DEFAULT_DATA)]
    pub(crate) data: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `relent demo`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  relent demo --orders 200 --receiver-log receiver.jsonl")]
pub(crate) struct DemoArgs {
    /// How many orders to send.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) orders: u32,
    /// The receiver's supply of chance: which orders fail, and how.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Also write what the receiver saw to this file: one JSON object a line and request.
    #[arg(long, value_name = "FILE")]
    pub(crate) receiver_log: Option<PathBuf>,
    /// Keep the folder with the server's store, settings and log, and say where it is.
    #[arg(long)]
    pub(crate) keep: bool,
    /// Print the counts as JSON, and the story to stderr.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where the data is unless somebody says otherwise.
pub(crate) const DEFAULT_DATA: &str = "./relent-data";

const FIRST_STEPS: &str = "\
Exit codes: 0 done, 1 the thing failed or was found, 2 wrong use; of `relent call` also 3, nobody knows.

First steps:
  relent demo                                    see what it does, in under a minute
  relent serve                                   run a server on 127.0.0.1:8484
  relent send https://example.com/hook -d '{}'   hand it a message
  relent dead ls                                 what was given up, and why";

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_json() {
        fn check(command: &clap::Command) -> usize {
            let mut subs = command.get_subcommands().filter(|sub| sub.get_name() != "help").peekable();
            if subs.peek().is_some() {
                return subs.map(check).sum();
            }
            let has = command.get_arguments().any(|argument| argument.get_long() == Some("json"));
            assert!(has, "`{}` has no --json", command.get_name());
            1
        }
        let checked = check(&Cli::command());
        assert!(checked >= 13, "only {checked} commands were found");
    }

    #[test]
    fn every_help_page_has_an_example() {
        fn check(command: &clap::Command) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let steps = help.contains("Example:") || help.contains("First steps:");
            assert!(steps, "`{}` has no example", command.get_name());
            command.get_subcommands().filter(|sub| sub.get_name() != "help").for_each(check);
        }
        check(&Cli::command());
    }
}
