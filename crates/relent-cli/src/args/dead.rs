//! The flags of `relent dead`.

use clap::{Args, Subcommand};

use super::{ClientArgs, PageArgs, ShowArgs};

/// `relent dead`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  relent dead ls")]
pub(crate) struct DeadArgs {
    /// What to do with them.
    #[command(subcommand)]
    pub(crate) command: DeadCommand,
}

/// The commands on dead letters.
#[derive(Debug, Subcommand)]
pub(crate) enum DeadCommand {
    /// List the dead letters, newest first.
    #[command(
        after_help = "Example:\n  relent dead ls --reason attempts_exhausted --to https://shop.example --all"
    )]
    Ls {
        /// Which of them.
        #[command(flatten)]
        common: CommonArgs,
        /// Which part of the list.
        #[command(flatten)]
        page: PageArgs,
        /// How to reach the server.
        #[command(flatten)]
        client: ClientArgs,
    },
    /// Show one dead letter: every attempt, and why it was given up.
    #[command(after_help = "Example:\n  relent dead show 0198c5d2-7f3a-7c41-9d55-3b1f2a6e8c90")]
    Show(ShowArgs),
    /// Send dead letters again, each in a new cycle with its policy's full patience.
    #[command(after_help = "\
Example:
  relent dead redrive 0198c5d2-7f3a-7c41-9d55-3b1f2a6e8c90
  relent dead redrive --reason attempts_exhausted,business_deadline --to https://shop.example

With --reason or --to it first says which letters it is about to send and asks. An ambiguous letter may have been
carried out already, and a poison_crash one may take the server down again: they go only where --reason names them.")]
    Redrive(LettersArgs),
    /// Take dead letters off the list; they stay readable.
    #[command(after_help = "\
Example:
  relent dead discard 0198c5d2-7f3a-7c41-9d55-3b1f2a6e8c90
  relent dead discard --reason permanent --to https://old.example

With --reason or --to it first says which letters it is about to discard and asks. Those that are ambiguous or
poison_crash go only where --reason names them.")]
    Discard(LettersArgs),
}

/// What dead letters have in common.
#[derive(Args, Clone, Debug)]
pub(crate) struct CommonArgs {
    /// Only those that are dead for this reason; may be repeated, or a list between commas.
    #[arg(long = "reason", value_name = "REASON", value_delimiter = ',')]
    pub(crate) reasons: Vec<String>,
    /// Only those for this destination, such as https://shop.example; may be repeated, or a list between commas.
    #[arg(long = "to", value_name = "ORIGIN", value_delimiter = ',')]
    pub(crate) destinations: Vec<String>,
}

/// Some dead letters: these, or all that have something in common.
#[derive(Args, Debug)]
pub(crate) struct LettersArgs {
    /// The dead letters.
    #[arg(
        value_name = "ID",
        required_unless_present_any = ["reasons", "destinations"],
        conflicts_with_all = ["reasons", "destinations", "limit"]
    )]
    pub(crate) ids: Vec<String>,
    /// Instead: all that have this in common.
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// No more of them than this, the newest: for a first try.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
    /// Do not ask.
    #[arg(long)]
    pub(crate) yes: bool,
    /// How to reach the server.
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}
