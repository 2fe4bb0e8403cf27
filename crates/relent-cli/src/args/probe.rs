//! The flags of `relent probe`.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args, Subcommand};

/// `relent probe`.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Example:
  relent probe -- curl --silent --retry 3 --max-time 2 -X {method} -H 'Idempotency-Key: {key}' -d {body} {url}
  relent probe --html card.html -- python3 client.py
  relent probe serve --script '503 asks 2s, reset, 200'

The command makes one call. {url}, {method}, {body} and {key} stand for what is asked of it, and RELENT_PROBE_URL,
_METHOD, _BODY and _KEY say the same in its environment; an empty key is none, an empty body is none. Where it knows
{calls} (RELENT_PROBE_CALLS) as well, it makes as many calls as that in one process.

What it did is told by what arrived. Exit codes: 0 no check failed, 1 a check failed, 2 wrong use."
)]
pub(crate) struct ProbeArgs {
    /// Serve a script instead of running a client.
    #[command(subcommand)]
    pub(crate) serve: Option<ProbeCommand>,
    /// The client's command line, after `--`.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
    /// How many copies of the client fail together.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) copies: u32,
    /// How many calls one process makes in an outage, if it knows {calls}.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) calls: u32,
    /// How long each client is watched after its first request, before it is killed.
    #[arg(
        long,
        value_name = "DURATION",
        allow_hyphen_values = true,
        default_value = "20s",
        value_parser = relent_core::parse_duration
    )]
    pub(crate) patience: Duration,
    /// How long everything may take; what is not over by then is undecided.
    #[arg(
        long,
        value_name = "DURATION",
        allow_hyphen_values = true,
        default_value = "5m",
        value_parser = relent_core::parse_duration
    )]
    pub(crate) time: Duration,
    /// How many clients are at work at a time.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) parallel: u32,
    /// Also write the card as a page that needs nothing else.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `relent probe` does besides.
#[derive(Debug, Subcommand)]
pub(crate) enum ProbeCommand {
    /// Serve a script to clients in any language, and print what arrives.
    Serve(ProbeServeArgs),
}

/// `relent probe serve`.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  relent probe serve --script '2x 503 asks 1s, reset, 200' --by path --on 'POST /orders/* = hang, 201'

An act is `hang`, `reset` (after the request was read), `reset-unread`, `close`, or a status with words after it:
`takes 80ms`, `slow 2s` (the head dribbles), `half` (the body breaks off), `body 64`, `asks 2s` (Retry-After in
seconds), `asks 2s as FORM` (date, rfc850, asctime, retry-after-ms, x-ms-retry-after-ms, x-amz-retry-after, ratelimit,
ratelimit-reset, x-ratelimit-reset), `should-retry no`, `with NAME=VALUE`. A number before it repeats it: `3x 503`. The last act stays.")]
pub(crate) struct ProbeServeArgs {
    /// What is done with the requests, in turn.
    #[arg(long, value_name = "ACTS", default_value = "200")]
    pub(crate) script: String,
    /// Which requests share a turn: `all`, `path`, `method-path`, or `header:NAME`.
    #[arg(long, value_name = "KEY", default_value = "all")]
    pub(crate) by: String,
    /// Other acts for a method and a path, which may end in `*`; may be repeated. The first that matches counts.
    #[arg(long, value_name = "[METHOD] PATH = ACTS")]
    pub(crate) on: Vec<String>,
    /// Where it listens.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8485")]
    pub(crate) listen: std::net::SocketAddr,
    /// Listen on an address that is not loopback: whoever reaches it is served.
    #[arg(long)]
    pub(crate) allow_remote: bool,
    /// Print JSON, an object a line.
    #[arg(long)]
    pub(crate) json: bool,
}
