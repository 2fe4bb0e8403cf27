//! The flags of the commands that speak to a server.

use std::{path::PathBuf, time::Duration};

use clap::Args;

use super::DEFAULT_DATA;

/// How to reach the server; the same for every command.
#[derive(Args, Clone, Debug)]
pub(crate) struct ClientArgs {
    /// The server [default: what the file `address` in the data folder says, else http://127.0.0.1:8484].
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// The server's data folder, for its address and its token (RELENT_TOKEN wins).
    #[arg(long, value_name = "DIR", env = "RELENT_DATA", default_value = DEFAULT_DATA)]
    pub(crate) data: PathBuf,
    /// How long to wait for each answer of the server.
    #[arg(
        long,
        value_name = "DURATION",
        allow_hyphen_values = true,
        default_value = "30s",
        value_parser = relent_core::parse_duration
    )]
    pub(crate) timeout: Duration,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `relent send`.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  relent send https://example.com/hook -H 'content-type: application/json' -d '{\"order\": 7}' --key order-7

With --repeat keyed (the default) every attempt carries the same Idempotency-Key: it is the receiver's duty to
honour it. With --repeat unsafe a message whose attempt ended ambiguously is shelved instead of sent again.")]
pub(crate) struct SendArgs {
    /// Where the message goes: an absolute http or https URL.
    pub(crate) url: String,
    /// The HTTP method [default: POST].
    #[arg(short = 'X', long = "method", value_name = "METHOD")]
    pub(crate) method: Option<String>,
    /// A header; may be repeated.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// The body; `@FILE` reads it from a file, `@-` from stdin.
    #[arg(short = 'd', long = "body", value_name = "BODY", allow_hyphen_values = true)]
    pub(crate) body: Option<String>,
    /// The idempotency key: sending the same again with it is accepted once.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Not to be sent before this: a duration from now (`10m`) or an RFC 3339 time.
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    pub(crate) not_before: Option<String>,
    /// Of no use after this: a duration from now (`1h`) or an RFC 3339 time.
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    pub(crate) deadline: Option<String>,
    /// The policy: `durable`, or a name from `[policies.NAME]` of the server's settings [default: durable].
    #[arg(long, value_name = "NAME")]
    pub(crate) policy: Option<String>,
    /// Whether it may be sent again when nobody knows what an attempt did [default: the policy's, keyed].
    #[arg(long, value_name = "HOW", value_parser = ["safe", "keyed", "unsafe", "never"])]
    pub(crate) repeat: Option<String>,
    /// A label of your own; may be repeated.
    #[arg(long = "label", value_name = "NAME=VALUE")]
    pub(crate) labels: Vec<String>,
    /// How to reach the server.
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// `relent ls`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  relent ls --state waiting,in_flight --limit 20")]
pub(crate) struct ListArgs {
    /// Only these states: waiting, in_flight, held, delivered, dead, discarded, cancelled.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) state: Vec<String>,
    /// Which part of the list.
    #[command(flatten)]
    pub(crate) page: PageArgs,
    /// How to reach the server.
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// Which part of a list.
#[derive(Args, Clone, Debug)]
pub(crate) struct PageArgs {
    /// How many to show, 1 to 250.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=250))]
    pub(crate) limit: u16,
    /// Show all of them, page after page.
    #[arg(long, conflicts_with = "limit")]
    pub(crate) all: bool,
    /// Go on where an earlier list ended.
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
}

/// `relent show`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  relent show 0198c5d2-7f3a-7c41-9d55-3b1f2a6e8c90")]
pub(crate) struct ShowArgs {
    /// The message.
    pub(crate) id: String,
    /// No more attempts than this, the newest; at most 250.
    #[arg(long, value_name = "N")]
    pub(crate) attempts: Option<u32>,
    /// Only attempts with a number below this.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) before: Option<u32>,
    /// How to reach the server.
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// `relent status`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  relent status --json")]
pub(crate) struct StatusArgs {
    /// How to reach the server.
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// `relent cancel`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  relent cancel 0198c5d2-7f3a-7c41-9d55-3b1f2a6e8c90")]
pub(crate) struct CancelArgs {
    /// Which messages, and how to reach the server.
    #[command(flatten)]
    pub(crate) ids: IdsArgs,
}

/// Some messages.
#[derive(Args, Debug)]
pub(crate) struct IdsArgs {
    /// The messages.
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// How to reach the server.
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}
