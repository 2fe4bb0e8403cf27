//! The flags of `relent serve`. Each setting has a key in the settings file; a flag that is given wins over the
//! environment, that over the file, and the file over the default.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

/// `relent serve`.
#[derive(Args, Debug, Default)]
#[command(after_help = "\
Example:
  relent serve --config relent.toml --listen 127.0.0.1:9000 --allow-target 10.0.0.0/8
  relent serve --print-config > relent.toml

Environment: RELENT_CONFIG, RELENT_DATA, RELENT_LISTEN, RELENT_TOKEN (the API token, instead of the file
`token` in the data folder). A flag wins over the environment, the environment over the file.

Of a policy in [policies.NAME] the sections admission, budget, attempt and breaker are read and checked, but not yet
applied to deliveries: that is for a later release. A policy that sets one is warned of at the start.")]
pub(crate) struct ServeArgs {
    /// The settings file (TOML).
    #[arg(long, value_name = "FILE", env = "RELENT_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// The data folder, made if it is missing [default: ./relent-data].
    #[arg(long, value_name = "DIR", env = "RELENT_DATA")]
    pub(crate) data: Option<PathBuf>,
    /// Where the API listens [default: 127.0.0.1:8484]. What is not loopback needs RELENT_TOKEN.
    #[arg(long, value_name = "ADDR", env = "RELENT_LISTEN")]
    pub(crate) listen: Option<String>,
    /// Deliver to these addresses although they are private or loopback; may be repeated.
    #[arg(long, value_name = "CIDR")]
    pub(crate) allow_target: Vec<String>,
    /// The form of the logs on stderr [default: text].
    #[arg(long, value_name = "FORM")]
    pub(crate) log: Option<LogFormat>,
    /// What is logged: `error`, `warn`, `info`, `debug`, or a filter such as `info,relent_deliver=debug`
    /// [default: info].
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log_level: Option<String>,
    /// The largest request body, for example `256KiB` [default: 1MiB].
    #[arg(long, value_name = "SIZE")]
    pub(crate) body_limit: Option<String>,
    /// How long attempts in flight may take to finish after SIGTERM [default: 10s].
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) drain: Option<String>,
    /// The most attempts in flight at a time [default: 256].
    #[arg(long, value_name = "N")]
    pub(crate) in_flight: Option<usize>,
    /// The most attempts in flight at a time to one destination [default: 32].
    #[arg(long, value_name = "N")]
    pub(crate) per_destination: Option<usize>,
    /// How long a connection to a receiver may take to be made [default: 5s].
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) connect_timeout: Option<String>,
    /// How much of a response is kept [default: 16KiB].
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_response: Option<String>,
    /// Trust these certificate authorities (PEM) as well.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Whether a commit waits for the disk [default: full]. With `off` a power loss may take accepted messages.
    #[arg(long, value_name = "MODE")]
    pub(crate) synchronous: Option<Synchronous>,
    /// Drain and end when standard input is closed, as after SIGTERM: for a parent that must not leave a server behind,
    /// however it ends itself.
    #[arg(long)]
    pub(crate) until_stdin_closes: bool,
    /// Serve `/metrics` without a token.
    #[arg(long)]
    pub(crate) metrics_public: bool,
    /// Print the settings in force as TOML that reads back to the same, and end.
    #[arg(long)]
    pub(crate) print_config: bool,
    /// Log JSON, the line of the start included, as `--log json` does; with --print-config print JSON.
    #[arg(long, conflicts_with = "log")]
    pub(crate) json: bool,
}

/// The form of the logs.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Whether a commit waits for the disk.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Synchronous {
    /// A commit is on the disk when it is answered.
    #[default]
    Full,
    /// A commit is with the operating system: it survives the process, not a power loss.
    Off,
}
