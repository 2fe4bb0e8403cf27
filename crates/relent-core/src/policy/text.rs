//! The policy as people write it, in TOML or any other format that serde reads.
//!
//! The text is lenient about types (a time-out may arrive as a number) so that [`PolicyText::over`] can refuse it
//! with the name of the field and the way out, which a deserialiser could not say.

mod breaker;
mod budget;
mod curve;
mod gates;
mod read;
mod scalar;
mod write;

use alloc::{string::String, vec::Vec};

use breaker::BreakerText;
use budget::BudgetText;
use gates::GatesText;
use scalar::{Pairs, Scalar, WordOr};
use serde::{Deserialize, Serialize};

/// A policy as it is written. Every field may be left out; [`PolicyText::over`] says what then counts. A field
/// that is not known is refused with the list of those that are.
///
/// ```toml
/// preset = "durable"            # any name of a Preset
/// repeat = "keyed"              # safe | keyed | unsafe | never
/// attempt_timeout = "2s"
/// total_timeout = "5s"          # or "none"
/// business_deadline = "3d"      # or "none"
/// on_exhausted = "dead_letter"  # caller | dead_letter | discard
/// alert = "orders on call"      # who finds out; or "none"
///
/// [admission.concurrency]       # once per call; or concurrency = "none"
/// limit = 200
/// queue = 100                   # left out: 0
///
/// [admission.rate]              # or rate = "none"
/// permits = 1000
/// per = "1s"
/// burst = 50                    # left out: 1
///
/// [retry]
/// max_attempts = 5              # or "unlimited"
/// min_attempt = "100ms"
/// reserve = "0s"
/// max_losses = 3
/// max_wait = "1d"
/// jitter = "full"               # none | full | equal | decorrelated | polly_v2 | { below = 0.2, above = 0.2 }
/// backoff = { kind = "exponential", base = "200ms", factor = 2, max = "10s" }
///                               # or kind = "constant" with wait, "linear" with base and max,
///                               # "steps" with waits = ["1s", "5s"]
/// throttled_backoff = "none"    # or a backoff; what it leaves out is as in backoff
/// server_wait = { mode = "above", limit = "60s", over = "stop" }
///                               # above | longer | replace | ignore | { within = "5s" }; over: stop | clamp
///
/// [budget]                      # or budget = "none"
/// kind = "loan"                 # or kind = "none", or one of the others below
/// earn = 0.1
/// gain = 0.5
/// floor = 3
/// per_call = 0.02
/// start = 1
/// charge = 1
/// throttled = 5
/// # kind = "grpc":  max_tokens = 10, token_ratio = 0.1
/// # kind = "ratio": of = "originals", share = 0.2, window = "10s", floor_per_second = 10; of: originals | all
/// # kind = "share": share = 0.2, floor = 3
/// # kind = "quota": capacity = 500, transient = 14, timeout = 14, throttled = 5, first_success = 1
///
/// [attempt]                     # for each attempt; as in admission
/// concurrency = { limit = 100 }
/// rate = "none"
///
/// [breaker]                     # or breaker = "none"
/// failure_rate = 0.6            # or "none"
/// slow_calls = "none"           # or { longer_than = "1s", rate = 0.8 }
/// consecutive_failures = "none" # or a count
/// window = "10s"                # or a number of calls: 100
/// min_calls = 20
/// break_time = { kind = "exponential", base = "2s", factor = 2, max = "30s" }
/// break_jitter = 0.25
/// probes = 3
/// probe_timeout = "10s"
///
/// [classify]
/// table = "documents"           # or "webhook"
/// status = { 404 = "not_now", 5xx = "no", 500-503 = "not_now" }
/// error = { tls = "not_now" }   # success | not_now | throttled | no
///
/// [[classify.route]]
/// method = "GET"
/// path = "/orders/*"            # left out: every path
/// status = { 404 = "not_now" }
/// repeat = "never"              # as above, whatever the method says; left out: as the method says
/// fresh_for = "2s"              # an answer is of no use later; left out: total_timeout
/// ```
///
/// [`From<&Policy>`](From) gives the complete text of a policy, for printing: every setting is there, and
/// `over` any base gives an equal policy.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct PolicyText {
    #[serde(skip_serializing_if = "Option::is_none")]
    preset: Option<String>,
    repeat: Option<String>,
    attempt_timeout: Option<Scalar>,
    total_timeout: Option<Scalar>,
    business_deadline: Option<Scalar>,
    on_exhausted: Option<String>,
    alert: Option<String>,
    #[serde(default)]
    admission: GatesText,
    #[serde(default)]
    retry: RetryText,
    budget: Option<WordOr<BudgetText>>,
    #[serde(default)]
    attempt: GatesText,
    breaker: Option<WordOr<BreakerText>>,
    #[serde(default)]
    classify: ClassifyText,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct RetryText {
    max_attempts: Option<Scalar>,
    min_attempt: Option<Scalar>,
    reserve: Option<Scalar>,
    max_losses: Option<Scalar>,
    max_wait: Option<Scalar>,
    jitter: Option<WordOr<ProportionText>>,
    backoff: Option<BackoffText>,
    throttled_backoff: Option<WordOr<BackoffText>>,
    #[serde(default)]
    server_wait: ServerWaitText,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct BackoffText {
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait: Option<Scalar>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<Scalar>,
    #[serde(skip_serializing_if = "Option::is_none")]
    factor: Option<Scalar>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<Scalar>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<Vec<Scalar>>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct ProportionText {
    below: Option<Scalar>,
    above: Option<Scalar>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct ServerWaitText {
    mode: Option<WordOr<WithinText>>,
    limit: Option<Scalar>,
    over: Option<String>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct WithinText {
    within: Scalar,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct ClassifyText {
    table: Option<String>,
    status: Option<Pairs<String>>,
    error: Option<Pairs<String>>,
    route: Option<Vec<RouteText>>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct RouteText {
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    path: Option<String>,
    #[serde(default)]
    status: Pairs<String>,
    #[serde(default)]
    error: Pairs<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeat: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fresh_for: Option<Scalar>,
}
