//! `relent check` as it is spelled.

use std::path::PathBuf;

use clap::Args;

/// `relent check`.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  relent check policy.toml
  relent check appsettings.json --layers 2 --hosts 5
  relent check --preset envoy --load 850 --capacity 1000
  kubectl get configmap mesh -o jsonpath='{.data.envoy}' | relent check -

Read: policies of relent and servers' configurations with policies in them (TOML), resilience handlers of .NET
(appsettings.json), gRPC service configs (JSON), retry settings of the AWS SDKs (a shared config or an environment)
and of Azure's clients for .NET (appsettings.json, host.json), Envoy's routes (YAML or JSON), Istio's VirtualService,
resilience4j (a Spring Boot application.yml or application.properties).

Exit codes: 0 sound, 1 something is found, 2 a file cannot be read.")]
pub(crate) struct CheckArgs {
    /// Files to check; `-` reads standard input. Without any, the preset itself is checked.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// A built-in policy: what a policy of relent's leaves out is as in it [default: default].
    #[arg(long, value_name = "NAME")]
    pub(crate) preset: Option<String>,
    /// Whose configuration the files are, where that does not show [default: found by what stands in it].
    #[arg(long, value_name = "FORMAT", value_parser = ["relent", "microsoft", "grpc", "aws", "azure", "envoy", "istio", "resilience4j"])]
    pub(crate) format: Option<String>,
    /// How many layers retry by this policy, one inside the other.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20))]
    pub(crate) layers: Option<u32>,
    /// Calls a second before any retry: does the breaker see enough of them, and, with --capacity, can the dependency
    /// recover under them?
    #[arg(long, value_name = "λ", allow_hyphen_values = true)]
    pub(crate) load: Option<String>,
    /// Attempts a second that the dependency can serve.
    #[arg(long, value_name = "C", allow_hyphen_values = true)]
    pub(crate) capacity: Option<String>,
    /// Callers that call again as soon as their call has ended: can the dependency recover under them?
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) callers: Option<u32>,
    /// Hosts behind the dependency's name: does the breaker open where one of them is bad?
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) hosts: Option<u32>,
    /// How long the caller has for the whole call: `2s`.
    #[arg(long, value_name = "LENGTH", allow_hyphen_values = true)]
    pub(crate) deadline: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
