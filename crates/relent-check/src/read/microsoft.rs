//! The resilience handlers of .NET in `appsettings.json`, as `HttpStandardResilienceOptions` binds a section.
//!
//! # Source
//!
//! dotnet/extensions, `HttpStandardResilienceOptions` and `StandardPipelineNames.cs`; Polly 8, `RetryStrategyOptions`,
//! `CircuitBreakerStrategyOptions`, `RetryHelper.cs` for what is cut after the jitter. Keys are compared without case.

use std::time::Duration;

use relent_core::{Backoff, ConcurrencyPolicy, Idempotency, Jitter, Preset, ServerWaitMode, Window};
use serde_json::{Value, json};

use super::{
    node::{Node, wherever},
    section::Section,
    timespan,
};
use crate::{
    change::Change,
    read::Edit,
    subject::{Format, Origin, Part, Subject},
};

pub(super) fn subjects(tree: &Value) -> Vec<Subject> {
    wherever(tree, ":", is_handler, read)
}

/// A section with the names that only these options have.
fn is_handler(node: &Node<'_>) -> bool {
    let has = |names: &str| node.get(names).is_some();
    has("TotalRequestTimeout.Timeout")
        || has("AttemptTimeout.Timeout")
        || ["MaxRetryAttempts", "BackoffType", "UseJitter", "ShouldRetryAfterHeader"]
            .iter()
            .any(|name| has(&format!("Retry.{name}")))
        || ["FailureRatio", "MinimumThroughput", "SamplingDuration", "BreakDuration"]
            .iter()
            .any(|name| has(&format!("CircuitBreaker.{name}")))
}

fn read(node: &Node<'_>) -> Subject {
    let mut policy = Preset::MicrosoftStandard.policy();
    policy.repeat = Idempotency::Safe;
    let place = node.path();
    let subject = Subject::new(&place, Format::Microsoft, policy).at(&node.keys);
    let mut section = Section { subject, node: node.clone() };
    timeouts(&mut section);
    retry(&mut section);
    breaker(&mut section);
    limiter(&mut section);
    for (part, origin) in [
        (
            Part::Repeat,
            Origin::Elsewhere(
                "it repeats every method, POST too, unless code calls DisableForUnsafeHttpMethods()",
            ),
        ),
        (Part::Classify, Origin::Fixed("408, 429, 5xx and failures of the network; only code changes that")),
        (Part::Exhausted, Origin::Fixed("the last answer or exception goes to the caller")),
        (Part::Alert, Origin::Elsewhere("alerts stand where its metrics are collected")),
        (
            Part::Visible,
            Origin::Elsewhere(
                "it counts attempts and retries under the meter Polly, for whoever listens to it",
            ),
        ),
    ] {
        section.subject.origins.insert(part, origin);
    }
    hedging(&section).into_iter().for_each(|unread| section.subject.unread.push(unread));
    section.done()
}

fn timeouts(section: &mut Section<'_>) {
    if let Some(total) = section.take_time_span(Part::Deadline, "TotalRequestTimeout.Timeout") {
        section.subject.policy.total_timeout = Some(total);
    }
    if let Some(attempt) = section.take_time_span(Part::AttemptTimeout, "AttemptTimeout.Timeout") {
        section.subject.policy.attempt_timeout = attempt;
        if let Some(breaker) = &mut section.subject.policy.breaker {
            breaker.probe_timeout = attempt;
        }
    }
    for name in [
        "TotalRequestTimeout.Name",
        "AttemptTimeout.Name",
        "Retry.Name",
        "CircuitBreaker.Name",
        "RateLimiter.Name",
    ] {
        section.node.get(name).iter().for_each(Node::look);
    }
}

fn retry(section: &mut Section<'_>) {
    if let Some(retries) = section.take(Part::Attempts, "Retry.MaxRetryAttempts", Node::count) {
        // int.MaxValue is how Polly says "for ever".
        section.subject.policy.retry.max_attempts =
            (retries < i32::MAX.unsigned_abs()).then_some(retries + 1);
    }
    let kind = section.take(Part::Backoff, "Retry.BackoffType", |node| {
        let word = node.text()?;
        match word.to_ascii_lowercase().as_str() {
            "constant" | "0" => Ok(Kind::Constant),
            "linear" | "1" => Ok(Kind::Linear),
            "exponential" | "2" => Ok(Kind::Exponential),
            _ => Err(node.refuse(format!("\"{word}\" is not Constant, Linear or Exponential"))),
        }
    });
    let base = section.take_time_span(Part::Backoff, "Retry.Delay").unwrap_or(Duration::from_secs(2));
    let cap = section.take_time_span(Part::Cap, "Retry.MaxDelay");
    let jitter = section.take(Part::Jitter, "Retry.UseJitter", Node::truth).unwrap_or(true);
    let max = cap.unwrap_or(DAY).max(base);
    let kind = kind.unwrap_or(Kind::Exponential);
    let Subject { policy, habits, .. } = &mut section.subject;
    policy.retry.backoff = match kind {
        Kind::Constant => Backoff::Constant(base),
        Kind::Linear => Backoff::Linear { base, max },
        Kind::Exponential => Backoff::Exponential { base, factor_milli: 2000, max },
    };
    policy.retry.jitter = match (jitter, kind) {
        (false, _) => Jitter::None,
        (true, Kind::Exponential) => Jitter::PollyV2,
        (true, _) => Jitter::Proportional { below_milli: 250, above_milli: 250 },
    };
    habits.waits_nothing = base.is_zero();
    habits.cuts_after_jitter = cap.is_some();
    let obeyed = section.take(Part::Hints, "Retry.ShouldRetryAfterHeader", Node::truth).unwrap_or(true);
    if !obeyed {
        section.subject.policy.retry.server_wait.mode = ServerWaitMode::Ignore;
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Constant,
    Linear,
    Exponential,
}

fn breaker(section: &mut Section<'_>) {
    let mut breaker = section.subject.policy.breaker.take().unwrap_or_default();
    if let Some(milli) = section.take(Part::Breaker, "CircuitBreaker.FailureRatio", Node::thousandths) {
        breaker.failure_rate_milli = Some(milli);
    }
    if let Some(calls) = section.take(Part::Breaker, "CircuitBreaker.MinimumThroughput", Node::count) {
        breaker.min_calls = calls;
    }
    if let Some(window) = section.take_time_span(Part::Breaker, "CircuitBreaker.SamplingDuration") {
        breaker.window = Window::Time(window);
    }
    if let Some(length) = section.take_time_span(Part::Breaker, "CircuitBreaker.BreakDuration") {
        breaker.break_time = Backoff::Constant(length);
    }
    section.subject.policy.breaker = Some(breaker);
    section
        .subject
        .origins
        .insert(Part::Budget, Origin::Fixed("it has no budget; its breaker ends an outage"));
}

fn limiter(section: &mut Section<'_>) {
    let permits = "RateLimiter.DefaultRateLimiterOptions.PermitLimit";
    let limit = section.take(Part::Limits, permits, Node::count).unwrap_or(1000);
    let queue = section.take(Part::Limits, "RateLimiter.DefaultRateLimiterOptions.QueueLimit", Node::count);
    let concurrency = ConcurrencyPolicy { limit, queue: queue.unwrap_or(0) };
    section.subject.policy.admission.concurrency = Some(concurrency);
}

fn hedging(section: &Section<'_>) -> Vec<crate::subject::Unread> {
    let told = |node: Node<'_>| {
        node.look();
        node.refuse("hedging is not checked: every hedge is one more attempt at the same moment")
    };
    section.node.get("Hedging").into_iter().chain(section.node.get("Endpoint")).map(told).collect()
}

/// A handler has no least time to begin an attempt with, no budget and no spread above a hint.
pub(super) fn edit(subject: &Subject, change: &Change) -> Option<Edit> {
    let set = |names: &[&str], value: Value| Some(Edit::below(&subject.keys, names, value, ":", " = "));
    let span = |length: &Duration| json!(timespan::format(*length));
    match change {
        Change::MaxAttempts(attempts) if *attempts > 1 => {
            set(&["Retry", "MaxRetryAttempts"], json!(attempts - 1))
        }
        Change::AttemptTimeout(length) => set(&["AttemptTimeout", "Timeout"], span(length)),
        Change::TotalTimeout(length) => set(&["TotalRequestTimeout", "Timeout"], span(length)),
        Change::Jitter(Jitter::Full | Jitter::Proportional { .. })
            if subject.policy.retry.jitter == Jitter::None =>
        {
            set(&["Retry", "UseJitter"], json!(true))
        }
        Change::Backoff(Backoff::Exponential { base, .. }) if subject.habits.waits_nothing => {
            set(&["Retry", "Delay"], span(base))
        }
        Change::Backoff(Backoff::Exponential { max, .. } | Backoff::Linear { max, .. })
            if subject.habits.cuts_after_jitter && is_exponential(subject) =>
        {
            set(&["Retry", "MaxDelay"], span(max))
        }
        Change::Backoff(Backoff::Exponential { .. }) => set(&["Retry", "BackoffType"], json!("Exponential")),
        Change::HintMode(_) if subject.policy.retry.server_wait.mode == ServerWaitMode::Ignore => {
            set(&["Retry", "ShouldRetryAfterHeader"], json!(true))
        }
        Change::BreakerRate(milli) => {
            set(&["CircuitBreaker", "FailureRatio"], json!(f64::from(*milli) / 1000.0))
        }
        Change::BreakerMinCalls(calls) => set(&["CircuitBreaker", "MinimumThroughput"], json!(calls)),
        Change::BreakerWindow(length) => set(&["CircuitBreaker", "SamplingDuration"], span(length)),
        Change::Time(index) => {
            let days = subject.days.get(*index)?;
            let names: Vec<&str> = days.path.split(':').skip(subject.keys.len()).collect();
            set(&names, json!(days.meant))
        }
        _ => None,
    }
}

fn is_exponential(subject: &Subject) -> bool {
    matches!(subject.policy.retry.backoff, Backoff::Exponential { .. } | Backoff::Linear { .. })
}

const DAY: Duration = Duration::from_secs(86_400);
