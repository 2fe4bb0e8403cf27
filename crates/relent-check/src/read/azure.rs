//! The retries of Azure's clients for .NET: `Retry` of a client's section or of `AzureDefaults` in `appsettings.json`,
//! and `clientRetryOptions` of an extension in `host.json`.
//!
//! # Source
//!
//! azure-sdk-for-net, `RetryOptions`, `DelayStrategy` (the wait is cut at its longest after the jitter) and
//! `FixedDelayStrategy` (whose longest is the delay itself, so that half of its draws are exactly that).

use std::time::Duration;

use relent_core::{Backoff, Idempotency, Preset};
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
    wherever(tree, ":", is_retry, read)
}

/// A section of that name with the settings that only Azure's have.
fn is_retry(node: &Node<'_>) -> bool {
    let named = node.name().eq_ignore_ascii_case("retry");
    let amqp = node.name().eq_ignore_ascii_case("clientRetryOptions");
    let has = |names: &[&str]| names.iter().any(|name| node.get(name).is_some());
    (named && has(&["MaxRetries", "Mode", "NetworkTimeout"]))
        || (amqp && has(&["MaxRetries", "MaximumRetries", "Mode", "TryTimeout", "Delay"]))
}

fn read(node: &Node<'_>) -> Subject {
    let amqp = node.name().eq_ignore_ascii_case("clientRetryOptions");
    let mut policy = Preset::AzureCore.policy();
    policy.repeat = Idempotency::Safe;
    let subject = Subject::new(node.path(), Format::Azure, policy).at(&node.keys);
    let mut section = Section { subject, node: node.clone() };
    let retries = section.take(Part::Attempts, "MaxRetries", Node::count);
    let retries = retries.or_else(|| section.take(Part::Attempts, "MaximumRetries", Node::count));
    section.subject.policy.retry.max_attempts = Some(retries.unwrap_or(3).saturating_add(1));
    backoff(&mut section);
    let timeout = if amqp { "TryTimeout" } else { "NetworkTimeout" };
    let own = Duration::from_secs(if amqp { 60 } else { 100 });
    section.subject.policy.attempt_timeout =
        section.take_time_span(Part::AttemptTimeout, timeout).unwrap_or(own);
    for (part, origin) in ORIGINS {
        section.subject.origins.insert(part, origin);
    }
    section.done()
}

fn backoff(section: &mut Section<'_>) {
    let fixed = section.take(Part::Backoff, "Mode", |node| {
        let word = node.text()?;
        match word.to_ascii_lowercase().as_str() {
            "fixed" | "0" => Ok(true),
            "exponential" | "1" => Ok(false),
            _ => Err(node.refuse(format!("\"{word}\" is not Exponential or Fixed"))),
        }
    });
    let base = section.take_time_span(Part::Backoff, "Delay").unwrap_or(Duration::from_millis(800));
    let cap = section.take_time_span(Part::Cap, "MaxDelay");
    let cap = cap.or_else(|| section.take_time_span(Part::Cap, "MaximumDelay"));
    let max = cap.unwrap_or(Duration::from_secs(60)).max(base);
    let Subject { policy, habits, .. } = &mut section.subject;
    policy.retry.backoff = match fixed {
        Some(true) => Backoff::Constant(base),
        _ => Backoff::Exponential { base, factor_milli: 2000, max },
    };
    habits.waits_nothing = base.is_zero();
    habits.cuts_after_jitter = true;
}

pub(super) fn edit(subject: &Subject, change: &Change) -> Option<Edit> {
    let set = |name: &str, value: Value| Some(Edit::below(&subject.keys, &[name], value, ":", " = "));
    let span = |length: &Duration| json!(timespan::format(*length));
    let fixed = matches!(subject.policy.retry.backoff, Backoff::Constant(_));
    match change {
        Change::MaxAttempts(attempts) => set("MaxRetries", json!(attempts.saturating_sub(1))),
        Change::AttemptTimeout(length) => set("NetworkTimeout", span(length)),
        Change::Backoff(Backoff::Exponential { base, .. }) if subject.habits.waits_nothing => {
            set("Delay", span(base))
        }
        Change::Backoff(Backoff::Exponential { .. }) if fixed => set("Mode", json!("Exponential")),
        Change::Backoff(Backoff::Exponential { max, .. }) => set("MaxDelay", span(max)),
        Change::Time(index) => {
            let days = subject.days.get(*index)?;
            set(days.path.rsplit(':').next()?, json!(days.meant))
        }
        _ => None,
    }
}

const ORIGINS: [(Part, Origin); 11] = [
    (Part::Deadline, Origin::Elsewhere("a CancellationToken in code bounds a call, if one does")),
    (Part::Jitter, Origin::Fixed("a fifth to either side of the wait")),
    (Part::Hints, Origin::Fixed("never sooner than Retry-After asks, and exactly then, however long it is")),
    (Part::Budget, Origin::Fixed("no setting of the client bounds retries over all calls")),
    (Part::Breaker, Origin::Fixed("the client has none")),
    (Part::Limits, Origin::Elsewhere("the client limits nothing; code around it may")),
    (
        Part::Repeat,
        Origin::Elsewhere(
            "it repeats every method; whether the service honours a repeated one is its contract",
        ),
    ),
    (Part::Classify, Origin::Fixed("408, 429, 500, 502, 503, 504 and failures of the network")),
    (Part::Exhausted, Origin::Fixed("the last answer becomes an exception for the caller")),
    (Part::Alert, Origin::Elsewhere("alerts stand where its traces are collected")),
    (Part::Visible, Origin::Elsewhere("it logs and traces each attempt, for whoever listens")),
];
