//! A gRPC service config: `methodConfig` with a `retryPolicy`, and the channel's `retryThrottling`.
//!
//! # Source
//!
//! gRPC proposal A6 and `service_config.proto`: five attempts at most, waits spread by a fifth to either side after
//! the cap, `grpc-retry-pushback-ms` to the millisecond.

use std::time::Duration;

use relent_core::{
    Answer, Backoff, BudgetPolicy, Classification, ErrorClass, Idempotency, Preset, Rules, Table,
    budget::GrpcPolicy,
};
use serde_json::{Value, json};

use super::{
    node::{Node, Seen},
    section::Section,
};
use crate::{
    change::Change,
    read::{Edit, Key},
    subject::{Format, Origin, Part, Subject, Unread},
};

pub(super) fn subjects(tree: &Value) -> Vec<Subject> {
    let seen = Seen::default();
    let top = Node::top(tree, &seen, ".");
    // Names resolve to a list of choices with a config each (proposal A2), of which a client takes one.
    let choices = if tree.is_array() { top.children() } else { Vec::new() };
    let chosen = choices.iter().filter_map(|choice| choice.get("serviceConfig"));
    [top].into_iter().chain(chosen).flat_map(|config| of_config(&config)).collect()
}

fn of_config(top: &Node<'_>) -> Vec<Subject> {
    let Some(methods) = top.get("methodConfig") else {
        return Vec::new();
    };
    let methods = methods.children();
    let retried = methods
        .iter()
        .filter(|method| method.get("retryPolicy").is_some() || method.get("hedgingPolicy").is_some());
    retried.map(|method| read(top, method)).collect()
}

fn read(top: &Node<'_>, method: &Node<'_>) -> Subject {
    let mut policy = Preset::GrpcA6.policy();
    policy.repeat = Idempotency::Safe;
    let subject = Subject::new(place(method), Format::Grpc, policy).at(&method.keys);
    let mut section = Section { subject, node: method.clone() };
    for name in ["name", "waitForReady", "maxRequestMessageBytes", "maxResponseMessageBytes"] {
        method.get(name).iter().for_each(Node::look);
    }
    deadline(&mut section);
    retry(&mut section);
    throttling(top, &mut section);
    for (part, origin) in ORIGINS {
        section.subject.origins.insert(part, origin);
    }
    if let Some(hedging) = method.get("hedgingPolicy") {
        hedging.look();
        let why = "hedging is not checked: every hedge is one more attempt, most at the same moment";
        section.subject.unread.push(hedging.refuse(why));
    }
    section.done()
}

/// The services and methods that it is for.
fn place(method: &Node<'_>) -> String {
    let names = method.get("name").map(|names| names.children()).unwrap_or_default();
    let text =
        |node: &Node<'_>, key: &str| node.get(key).and_then(|name| name.text().ok()).unwrap_or_default();
    let words: Vec<String> = names
        .iter()
        .map(|name| match (text(name, "service"), text(name, "method")) {
            (service, _) if service.is_empty() => "every method".into(),
            (service, method) if method.is_empty() => service,
            (service, method) => format!("{service}/{method}"),
        })
        .collect();
    if words.is_empty() { method.path() } else { words.join(", ") }
}

fn deadline(section: &mut Section<'_>) {
    let total = section.take(Part::Deadline, "timeout", |node| node.seconds());
    section.subject.policy.total_timeout = total;
    match total {
        Some(total) => {
            section.subject.policy.attempt_timeout = total;
            section.subject.origins.insert(
                Part::AttemptTimeout,
                Origin::Fixed("gRPC bounds no single attempt: one that hangs takes the whole deadline"),
            );
        }
        None if section.subject.is_unreadable(Part::Deadline) => {
            section.subject.origins.insert(Part::AttemptTimeout, Origin::UNREADABLE);
        }
        None => {
            let caller = "the caller sets a deadline, or there is none";
            section.subject.origins.insert(Part::Deadline, Origin::Elsewhere(caller));
            section.subject.origins.insert(Part::AttemptTimeout, Origin::Elsewhere(caller));
        }
    }
}

fn retry(section: &mut Section<'_>) {
    if section.node.get("retryPolicy").is_some_and(|policy| !policy.value.is_object()) {
        for part in [Part::Attempts, Part::Backoff, Part::Classify] {
            section.subject.origins.insert(part, Origin::UNREADABLE);
        }
    }
    let attempts = section.take(Part::Attempts, "retryPolicy.maxAttempts", Node::count);
    if let Some((node, more)) = attempts
        .filter(|n| *n > MOST_ATTEMPTS)
        .and_then(|n| section.node.get("retryPolicy.maxAttempts").zip(Some(n)))
    {
        section.subject.unread.push(node.refuse(format!("clients treat {more} as {MOST_ATTEMPTS}")));
    }
    // Where the number cannot be read it retries all the same.
    let fallback = if section.subject.is_unreadable(Part::Attempts) { MOST_ATTEMPTS } else { 1 };
    section.subject.policy.retry.max_attempts = Some(attempts.unwrap_or(fallback).clamp(1, MOST_ATTEMPTS));
    let seconds = |node: &Node<'_>| node.seconds();
    let base = section.take(Part::Backoff, "retryPolicy.initialBackoff", seconds);
    let max = section.take(Part::Backoff, "retryPolicy.maxBackoff", seconds);
    let factor = section.take(Part::Backoff, "retryPolicy.backoffMultiplier", Node::thousandths);
    let base = base.unwrap_or(Duration::from_millis(100));
    section.subject.policy.retry.backoff = Backoff::Exponential {
        base: base.min(max.unwrap_or(base)),
        factor_milli: factor.unwrap_or(1000),
        max: max.unwrap_or(base),
    };
    let codes = section.take(Part::Classify, "retryPolicy.retryableStatusCodes", codes);
    let codes = codes.unwrap_or_default();
    section.subject.policy.classify = classification(&codes);
    section.subject.repeats = codes;
}

/// Status codes by name or number, by their names.
fn codes(node: &Node<'_>) -> Result<Vec<String>, Unread> {
    let named = |code: String| match code.parse::<usize>() {
        Ok(number) => CODES.get(number).map(|name| (*name).to_owned()).ok_or(code),
        Err(_) => Ok(code.to_ascii_uppercase()),
    };
    let known = |code: String| match named(code) {
        Ok(name) if CODES.contains(&name.as_str()) => Ok(name),
        Ok(code) | Err(code) => Err(node.refuse(format!("\"{code}\" is no status of gRPC"))),
    };
    node.texts()?.into_iter().map(known).collect()
}

/// The nearest that HTTP has to these codes, by `http-grpc-status-mapping.md` and its reverse.
fn classification(codes: &[String]) -> Classification {
    let has = |code: &str| codes.iter().any(|known| known == code);
    let answer = |code: &str| if has(code) { Answer::NotNow } else { Answer::No };
    let down = answer("UNAVAILABLE");
    let mut statuses: Vec<(u16, u16, Answer)> = vec![
        (400, 400, answer("INVALID_ARGUMENT")),
        (401, 401, answer("UNAUTHENTICATED")),
        (403, 403, answer("PERMISSION_DENIED")),
        (404, 404, answer("NOT_FOUND")),
        (405, 405, answer("UNIMPLEMENTED")),
        (408, 408, answer("DEADLINE_EXCEEDED")),
        (409, 409, answer("ABORTED")),
        (422, 422, answer("FAILED_PRECONDITION")),
        (429, 429, if has("RESOURCE_EXHAUSTED") { Answer::Throttled } else { down }),
        (500, 500, if has("INTERNAL") || has("UNKNOWN") { Answer::NotNow } else { Answer::No }),
        (502, 504, down),
    ];
    statuses.sort_unstable_by_key(|&(low, high, _)| (low, high));
    let network = [
        ErrorClass::Dns,
        ErrorClass::Connect,
        ErrorClass::ConnectTimeout,
        ErrorClass::Tls,
        ErrorClass::NotSent,
        ErrorClass::Unprocessed,
        ErrorClass::Reset,
    ];
    let late = [ErrorClass::HeaderTimeout, ErrorClass::BodyTimeout, ErrorClass::Timeout];
    let errors = network.map(|class| (class, down)).into_iter();
    let errors = errors.chain(late.map(|class| (class, answer("DEADLINE_EXCEEDED"))));
    let errors = errors.chain([(ErrorClass::Protocol, answer("INTERNAL"))]).collect();
    Classification { rules: Rules { statuses, errors }, ..Classification::new(Table::Documents) }
}

fn throttling<'a>(top: &Node<'a>, section: &mut Section<'a>) {
    let Some(throttling) = top.get("retryThrottling") else {
        section.subject.policy.budget = None;
        section.subject.origins.insert(Part::Budget, Origin::Default(top.path_of("retryThrottling")));
        return;
    };
    let tokens = section.take_at(&throttling, Part::Budget, "maxTokens", Node::count);
    let ratio = section.take_at(&throttling, Part::Budget, "tokenRatio", Node::thousandths);
    let budget = GrpcPolicy {
        max_milli: tokens.unwrap_or(10).saturating_mul(1000),
        ratio_milli: ratio.unwrap_or(100),
    };
    section.subject.policy.budget = Some(BudgetPolicy::Grpc(budget));
    section.subject.unread.extend(throttling.unread());
}

pub(super) fn edit(subject: &Subject, change: &Change) -> Option<Edit> {
    let retry = |name: &str, value: Value| {
        Some(Edit::below(&subject.keys, &["retryPolicy", name], value, ".", " = "))
    };
    let seconds = |length: &Duration| json!(format!("{}s", length.as_secs_f64()));
    match change {
        Change::MaxAttempts(attempts) if *attempts > 1 => retry("maxAttempts", json!(attempts)),
        Change::TotalTimeout(length) => {
            Some(Edit::below(&subject.keys, &["timeout"], seconds(length), ".", " = "))
        }
        Change::Backoff(Backoff::Exponential { max, .. }) if doubles(subject) => {
            retry("maxBackoff", seconds(max))
        }
        Change::Backoff(Backoff::Exponential { factor_milli, .. }) => {
            retry("backoffMultiplier", json!(f64::from(*factor_milli) / 1000.0))
        }
        Change::Statuses(_) => {
            let noes: Vec<&str> = [400, 401, 403, 405, 422].into_iter().filter_map(code_of).collect();
            let kept: Vec<&String> =
                subject.repeats.iter().filter(|code| !noes.contains(&code.as_str())).collect();
            let codes = if kept.is_empty() { json!(["UNAVAILABLE"]) } else { json!(kept) };
            retry("retryableStatusCodes", codes)
        }
        Change::Budget(_) => {
            let usual = json!({ "maxTokens": 10, "tokenRatio": 0.1 });
            let methods = Key::Name("methodConfig".into());
            let config: Vec<Key> = subject.keys.iter().take_while(|key| **key != methods).cloned().collect();
            Some(Edit::below(&config, &["retryThrottling"], usual, ".", " = "))
        }
        _ => None,
    }
}

/// The code that says "no" as this status of HTTP does.
pub(crate) fn code_of(status: u16) -> Option<&'static str> {
    Some(match status {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        405 => "UNIMPLEMENTED",
        422 => "FAILED_PRECONDITION",
        _ => return None,
    })
}

fn doubles(subject: &Subject) -> bool {
    matches!(subject.policy.retry.backoff, Backoff::Exponential { factor_milli: 1001.., .. })
}

const ORIGINS: [(Part, Origin); 9] = [
    (Part::Jitter, Origin::Fixed("a fifth to either side, after the cap")),
    (Part::Cap, Origin::Fixed("the jitter is drawn after it")),
    (Part::Hints, Origin::Fixed("grpc-retry-pushback-ms is obeyed to the millisecond")),
    (Part::Breaker, Origin::Fixed("a service config has none")),
    (Part::Limits, Origin::Elsewhere("a service config limits nothing; code around it may")),
    (Part::Repeat, Origin::Elsewhere("whoever configured a method for retries says that it may be repeated")),
    (Part::Exhausted, Origin::Fixed("the last status goes to the caller")),
    (Part::Alert, Origin::Elsewhere("alerts stand where its metrics are collected")),
    (
        Part::Visible,
        Origin::Elsewhere("its metrics of retries (proposal A96) are off until code turns them on"),
    ),
];

const MOST_ATTEMPTS: u32 = 5;
/// By number.
const CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];
