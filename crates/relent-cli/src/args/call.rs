//! The flags of `relent call`.

use std::path::PathBuf;

use clap::Args;

/// `relent call`.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  relent call https://api.example/orders -d '{\"order\": 7}' -H 'content-type: application/json' --idempotency-key

Each attempt and each wait goes to stderr as it happens, the body of the answer to stdout. GET, HEAD, OPTIONS, TRACE,
PUT and DELETE are repeated; POST and PATCH only where nothing was sent, unless there is a key, or --repeat says more.
Redirects are not followed, -d sends its bytes as they are, and no proxy is taken from the environment. A retry budget
of the policy is left aside: it weighs many calls, and this is one.

Exit codes:
  0  answered with success (2xx)
  1  not carried out: it was answered with a plain no, or nothing was sent; or a GET, HEAD, OPTIONS or TRACE failed
  2  wrong use
  3  nobody knows: no success came in the end, and some attempt may have been carried out: it had no answer, or a 5xx,
     408, 429, 302 or 303, or under a key a 409; or the answer's body broke off. Look before you repeat it; under an
     idempotency key, which is told on stderr and in the JSON, repeat it with the same one")]
pub(crate) struct CallArgs {
    /// An absolute http or https URL.
    pub(crate) url: String,
    /// The HTTP method [default: GET, and POST with a body].
    #[arg(short = 'X', long = "request", value_name = "METHOD")]
    pub(crate) method: Option<String>,
    /// A header; may be repeated.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// The body; `@FILE` reads it from a file, `@-` from stdin.
    #[arg(
        short = 'd',
        long = "data",
        visible_alias = "data-binary",
        value_name = "BODY",
        allow_hyphen_values = true
    )]
    pub(crate) body: Option<String>,
    /// A file with one policy. What it leaves out is as in the preset.
    #[arg(long, value_name = "POLICY.toml")]
    pub(crate) policy: Option<PathBuf>,
    /// A built-in policy, as in `relent explain` [default: default].
    #[arg(long, value_name = "NAME")]
    pub(crate) preset: Option<String>,
    /// Whether it may be repeated when nobody knows what an attempt did [default: as the method says].
    #[arg(long, value_name = "HOW", value_parser = ["safe", "keyed", "unsafe", "never"])]
    pub(crate) repeat: Option<String>,
    /// Sends an idempotency key, the same on every attempt: this one, or a fresh one. It is told before it is sent.
    #[arg(long, value_name = "KEY", num_args = 0..=1, default_missing_value = "")]
    pub(crate) idempotency_key: Option<String>,
    /// How long the call may take with all its attempts and waits, such as 30s [default: as the policy says].
    #[arg(long, value_name = "LENGTH", allow_hyphen_values = true)]
    pub(crate) deadline: Option<String>,
    /// How long the answer's body may pause between two pieces.
    #[arg(long, value_name = "LENGTH", allow_hyphen_values = true, default_value = "30s")]
    pub(crate) idle: String,
    /// Certificates to trust beside Mozilla's, in PEM.
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// Print the answer's status and headers before its body.
    #[arg(short = 'i', long)]
    pub(crate) include: bool,
    /// Say nothing of attempts and waits, and of a key only where it is needed to repeat the call.
    #[arg(short = 's', long)]
    pub(crate) silent: bool,
    /// The call's supply of chance: the same seed gives the same waits.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Print JSON to stdout: the answer with its body, and every attempt.
    #[arg(long)]
    pub(crate) json: bool,
}
