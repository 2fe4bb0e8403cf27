//! From what a sender said to a message, or to what is wrong with it and the way out.
//!
//! Everything that could only fail later is refused here, while somebody is there to read why: a request that
//! cannot be built, a header that is not the sender's to set, a message that could never be sent in its time.

mod fingerprint;
mod headers;
pub(crate) mod url;

use std::{collections::BTreeMap, fmt, time::Duration};

use bytes::Bytes;
use relent::{Decision, DurationText, History, Idempotency, Policy, Route, Timestamp};
use relent_ledger::{MessageId, NewMessage, Request};

use crate::Policies;

/// What a sender said.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Submission {
    /// The absolute URL, `http` or `https`.
    pub url: String,
    /// The HTTP method.
    pub method: String,
    /// Headers. The order counts only among headers of the same name.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
    /// The idempotency key.
    pub key: Option<String>,
    /// Not to be sent before.
    pub not_before: Option<When>,
    /// Of no use after. `None`: the policy's `business_deadline` counts, from the acceptance.
    pub deadline: Option<When>,
    /// The name of the policy. `None`: [`Policies::DEFAULT`].
    pub policy: Option<String>,
    /// Whether it is safe to repeat. `None`: what the policy says.
    pub repeat: Option<Idempotency>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
}

/// An instant as the sender said it. The difference matters to a replay: one hour from now is the same wish when
/// it is said again, and another instant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum When {
    /// At this instant.
    At(Timestamp),
    /// So long after the acceptance.
    In(Duration),
}

/// How much a message may be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct IntakeLimits {
    /// Bytes of the body. 1 MiB.
    pub body: usize,
    /// Bytes of the URL. 8,192: what common servers take in a request line.
    pub url: usize,
    /// How many headers. 64.
    pub headers: usize,
    /// Bytes of all header names and values together. 16,384: more than common servers take.
    pub header_bytes: usize,
    /// How many labels. 32.
    pub labels: usize,
    /// Bytes of a label's name or value. 256.
    pub label_bytes: usize,
}

impl Submission {
    /// A `POST` to this URL with nothing else said.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            method: "POST".to_owned(),
            headers: Vec::new(),
            body: Bytes::new(),
            key: None,
            not_before: None,
            deadline: None,
            policy: None,
            repeat: None,
            labels: BTreeMap::new(),
        }
    }

    /// A digest of everything that was said but the key. It depends on neither the time nor the settings, so what
    /// was accepted once is known again when it could not be accepted any more: after its deadline, without its
    /// policy, under a lower limit.
    pub fn fingerprint(&self) -> [u8; 32] {
        fingerprint::of(self)
    }
}

impl When {
    /// The instant, for a message accepted at `now`.
    pub fn from(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::In(length) => now.after(length),
        }
    }
}

impl Default for IntakeLimits {
    fn default() -> Self {
        Self {
            body: 1024 * 1024,
            url: 8192,
            headers: 64,
            header_bytes: 16 * 1024,
            labels: 32,
            label_bytes: 256,
        }
    }
}

/// Makes a message of a submission accepted at `now`, with a name of its own.
///
/// A refusal is about a new message. Whoever answers a sender with a key asks the ledger first
/// ([`Ledger::replay`](relent_ledger::Ledger::replay)) whether it is one.
///
/// # Errors
///
/// [`Invalid`] names the first field that is wrong.
pub fn prepare(
    submission: &Submission,
    policies: &Policies,
    limits: &IntakeLimits,
    now: Timestamp,
) -> Result<NewMessage, Invalid> {
    if submission.body.len() > limits.body {
        let reason = format!("{} bytes are more than the limit of {}", submission.body.len(), limits.body);
        return Err(Invalid { kind: InvalidKind::TooLarge, ..Invalid::new("body", reason) });
    }
    let destination = url::destination(&submission.url, limits.url)?;
    let method = method(&submission.method)?;
    let headers = headers::checked(&submission.headers, limits)?;
    if let Some(key) = &submission.key {
        check_key(key)?;
    }
    check_labels(&submission.labels, limits)?;
    let name = submission.policy.as_deref().unwrap_or(Policies::DEFAULT);
    let policy = policies.named(name).map_err(|unknown| Invalid::new("policy", unknown.to_string()))?;

    let id = MessageId::generate(now);
    let not_before = submission.not_before.map(|when| when.from(now)).filter(|at| *at > now);
    let deadline = submission.deadline.map(|when| when.from(now));
    let mut history = begin(policy, id, now, not_before, deadline)?;
    let route = Route { method: &method, path: url::path(&submission.url) };
    policy.classify.terms(route).apply(submission.repeat, &mut history);
    Ok(NewMessage {
        id,
        accepted_at: now,
        destination,
        repeat: history.idempotency,
        request: Request { method, url: submission.url.clone(), headers, body: submission.body.clone() },
        key: submission.key.clone(),
        fingerprint: submission.fingerprint(),
        policy: name.to_owned(),
        labels: submission.labels.clone(),
        not_before,
        deadline,
        history: Bytes::copy_from_slice(&history.to_bytes()),
    })
}

/// The decision state of a new message: the policy's patience begins when the message may first be sent, its
/// `business_deadline` when it was accepted. An explicit deadline replaces the latter.
fn begin(
    policy: &Policy,
    id: MessageId,
    now: Timestamp,
    not_before: Option<Timestamp>,
    deadline: Option<Timestamp>,
) -> Result<History, Invalid> {
    if deadline.is_some_and(|at| at <= now) {
        return Err(Invalid::new("deadline", "is past: give one that is still to come, or none"));
    }
    let start = not_before.unwrap_or(now);
    let business = deadline.or_else(|| policy.business_deadline.map(|length| now.after(length)));
    let history = policy.begin(id.seed(), start, None, business);
    match policy.retry.decide(&history, start) {
        Decision::Retry(_) => Ok(history),
        Decision::Stop(_) => Err(no_room(policy, start.since(now), deadline.map(|at| at.since(now)))),
    }
}

/// Says, with the arithmetic, that a message could never be sent.
fn no_room(policy: &Policy, start: Duration, deadline: Option<Duration>) -> Invalid {
    let least = policy.retry.min_attempt.saturating_add(policy.retry.reserve);
    let needs = format!(
        "the first attempt may begin {} after the acceptance and needs more than {}",
        DurationText(start),
        DurationText(least)
    );
    match deadline {
        Some(length) => Invalid::new(
            "deadline",
            format!("leaves no room: {needs}, and it is {} away", DurationText(length)),
        ),
        None => {
            let length = policy.business_deadline.or(policy.total_timeout).unwrap_or_default();
            let gives = format!("the policy gives {} in all", DurationText(length));
            Invalid::new("not_before", format!("leaves no room: {needs}, and {gives}; give a deadline"))
        }
    }
}

fn method(method: &str) -> Result<String, Invalid> {
    let invalid = |reason: String| Err(Invalid::new("method", reason));
    let Ok(parsed) = http::Method::from_bytes(method.as_bytes()) else {
        return invalid("is not an HTTP method: write for example POST".to_owned());
    };
    let upper = method.to_ascii_uppercase();
    match upper.as_str() {
        "CONNECT" | "TRACE" => invalid(format!("{upper} is not for messages: use POST, PUT or another")),
        "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS" if upper != method => {
            invalid(format!("methods are case-sensitive: write {upper}"))
        }
        _ if parsed.as_str().len() > MOST_METHOD => {
            invalid(format!("is longer than {MOST_METHOD} characters"))
        }
        _ => Ok(method.to_owned()),
    }
}

/// A key is sent as a header on every attempt, so it is what every receiver can read.
fn check_key(key: &str) -> Result<(), Invalid> {
    if key.is_empty() || key.len() > MOST_KEY || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Invalid::new(
            "key",
            format!("must be 1 to {MOST_KEY} visible ASCII characters, no spaces"),
        ));
    }
    Ok(())
}

fn check_labels(labels: &BTreeMap<String, String>, limits: &IntakeLimits) -> Result<(), Invalid> {
    if labels.len() > limits.labels {
        let reason = format!("{} labels are more than the limit of {}", labels.len(), limits.labels);
        return Err(Invalid::new("labels", reason));
    }
    for (name, value) in labels {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
        if name.is_empty() || name.len() > limits.label_bytes || !name.chars().all(plain) {
            let shown: String = name.chars().take(MOST_SHOWN).flat_map(char::escape_default).collect();
            let reason = format!(
                "the name \"{shown}\" must be 1 to {} of the characters A-Z a-z 0-9 - _ . /",
                limits.label_bytes
            );
            return Err(Invalid::new("labels", reason));
        }
        if value.len() > limits.label_bytes || value.chars().any(char::is_control) {
            let reason = format!("must be at most {} bytes without control characters", limits.label_bytes);
            return Err(Invalid::new(format!("labels.{name}"), reason));
        }
    }
    Ok(())
}

/// What is wrong with a submission.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Invalid {
    /// The field, as the API names it: `url`, `headers.host`.
    pub field: String,
    /// What is wrong with it and the way out.
    pub reason: String,
    /// Which kind of wrong.
    pub kind: InvalidKind,
}

/// The kinds of wrong that a sender is told apart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InvalidKind {
    /// It says what cannot be done (HTTP: 422).
    Unprocessable,
    /// The body is over the limit (HTTP: 413).
    TooLarge,
}

impl Invalid {
    /// A field that says what cannot be done.
    pub fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into(), kind: InvalidKind::Unprocessable }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.reason)
    }
}

impl std::error::Error for Invalid {}

/// The longest key: what the stores of receivers commonly hold, and well below any header limit.
const MOST_KEY: usize = 255;

/// Longer than any registered method (the longest have 16 characters).
const MOST_METHOD: usize = 32;

/// How much of a wrong name is shown back.
const MOST_SHOWN: usize = 40;
