//! Policies with a name of their own: relent's two, and those that people know from elsewhere.
//!
//! Each of the latter is equal to its source: the same attempts, waits, controls and answers worth repeating.
//! Two things are relent's own in all of them. Who may be repeated is not a number of a source but a fact about
//! the call, so `repeat` is `unsafe` until the caller says otherwise, even where the source repeats every method.
//! And a retry for which no time would be left is not waited for, where most sources wait and are cut off.

mod aws;
mod azure;
mod envoy;
mod grpc;
mod microsoft;

use alloc::vec::Vec;
use core::time::Duration;

use crate::{
    classify::{Answer, Classification, ErrorClass, Rules, Table},
    decision::names,
    policy::Policy,
    retry::{Over, RetryPolicy, ServerWait, ServerWaitMode},
};

/// A policy with a name of its own.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Preset {
    /// For a caller who waits.
    Default,
    /// For durable work.
    Durable,
    /// The standard resilience handler of Microsoft.Extensions.Http.Resilience: 1,000 calls at once, 30 s in all,
    /// three retries from 2 s with Polly's jitter, a breaker at 10 % of 100 calls in 30 s, 10 s an attempt.
    MicrosoftStandard,
    /// The example of gRPC's design document A6: four attempts, 100 ms doubling to 1 s, ± 20 %, and its throttling
    /// of ten tokens, a tenth back.
    GrpcA6,
    /// The AWS SDKs' standard mode of 2026: three attempts, full jitter under 50 ms, or 1 s when throttled,
    /// doubling to 20 s, and a quota of 500 that pays 14 or 5 a retry.
    Aws2026,
    /// Azure Core for .NET: three retries, 0.8 s doubling to 60 s, ± 20 %, 100 s an attempt.
    AzureCore,
    /// Envoy's router: one retry under 25 ms, budget of 20 % of what is in flight, but three at least.
    Envoy,
}

names!(Preset {
    Default => "default",
    Durable => "durable",
    MicrosoftStandard => "microsoft-standard",
    GrpcA6 => "grpc-a6",
    Aws2026 => "aws-2026",
    AzureCore => "azure-core",
    Envoy => "envoy",
});

impl Preset {
    /// The policy.
    pub fn policy(self) -> Policy {
        match self {
            Self::Default => Policy::live(),
            Self::Durable => Policy::durable(),
            Self::MicrosoftStandard => microsoft::standard(),
            Self::GrpcA6 => grpc::a6(),
            Self::Aws2026 => aws::standard_2026(),
            Self::AzureCore => azure::core(),
            Self::Envoy => envoy::router(),
        }
    }
}

/// What the foreign presets begin from: relent's default without what no source has, a least attempt and a
/// budget; and hints obeyed however long, since what ends a call is its deadline.
fn foreign(hints: ServerWaitMode) -> Policy {
    let live = Policy::live();
    let server_wait = ServerWait { mode: hints, limit: DAY, over: Over::Clamp };
    let retry = RetryPolicy { min_attempt: Duration::ZERO, server_wait, ..live.retry };
    Policy { retry, budget: None, total_timeout: None, ..live }
}

/// The documents' table, but for these answers. Failures of the network are all "not now": the sources know
/// them as one error and do not look inside.
fn any_network_failure(statuses: Vec<(u16, u16, Answer)>) -> Classification {
    let errors = [ErrorClass::Dns, ErrorClass::Tls, ErrorClass::Protocol];
    let errors = errors.map(|class| (class, Answer::NotNow)).into();
    Classification { rules: Rules { statuses, errors }, ..Classification::new(Table::Documents) }
}

const DAY: Duration = Duration::from_secs(24 * 3600);
