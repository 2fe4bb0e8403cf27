//! The retries of the AWS SDKs: `retry_mode` and `max_attempts` of a profile in `~/.aws/config`, or the variables of
//! an environment.
//!
//! # Source
//!
//! AWS SDKs and Tools Reference Guide, "Retry behavior"; botocore, `retries/standard.py` for the standard mode and
//! `retryhandler.py` for the legacy one (a random share of a second, doubled each time, five attempts, no quota).

use std::time::Duration;

use relent_core::{
    Backoff, BudgetPolicy, Idempotency, Jitter, Policy, Preset, ServerWaitMode, budget::QuotaPolicy,
};
use serde_json::{Value, json};

use super::{
    node::{Node, Seen},
    section::Section,
};
use crate::{
    change::Change,
    read::{Edit, Key},
    subject::{Format, Origin, Part, Subject},
};

/// Whether a text has one of these settings on a line of its own, and not below `retry`, where a policy of relent that
/// has a slip elsewhere has its `max_attempts`.
pub(super) fn shows(text: &str) -> bool {
    let mut ours = true;
    for line in text.lines() {
        let bare = line.trim();
        if let Some(section) = bare.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            ours = section != "retry" && !section.ends_with(".retry");
        }
        let key = bare.strip_prefix("export ").unwrap_or(bare).split_once('=').map(|(key, _)| key.trim());
        if ours && key.is_some_and(|key| PROFILE.contains(&key) || ENVIRONMENT.contains(&key)) {
            return true;
        }
    }
    false
}

/// Whether what reads as TOML is of this kind: variables at the top, or the settings of a profile. relent's own
/// policies have `max_attempts` too, but only under `retry`.
pub(super) fn is_in(tree: &Value) -> bool {
    let table = |value: &Value, names: &[&str]| names.iter().any(|name| value.get(*name).is_some());
    let profile = |(name, value): (&String, &Value)| name != "retry" && table(value, &PROFILE);
    table(tree, &ENVIRONMENT) || tree.as_object().is_some_and(|all| all.iter().any(profile))
}

pub(super) fn subjects(tree: &Value) -> Vec<Subject> {
    let seen = Seen::default();
    let top = Node::top(tree, &seen, ".");
    let mut found = Vec::new();
    if ENVIRONMENT.iter().any(|name| top.get(name).is_some()) {
        found.push(read(&top, "the environment", ENVIRONMENT));
    }
    let profiles = top.children();
    let set = |profile: &&Node<'_>| PROFILE.iter().any(|name| profile.get(name).is_some());
    for profile in profiles.iter().filter(set) {
        let place = format!("[{}]", profile.name());
        found.push(read(profile, &place, PROFILE));
    }
    found
}

fn read(node: &Node<'_>, place: &str, names: [&str; 3]) -> Subject {
    let [mode, attempts, new] = names;
    let subject = Subject::new(place, Format::Aws, standard(true)).at(&node.keys);
    let mut section = Section { subject, node: node.clone() };
    let new = section.take(Part::Visible, new, Node::truth).unwrap_or(true);
    let mode = section.take(Part::Backoff, mode, |node| {
        let word = node.text()?.to_ascii_lowercase();
        match MODES.contains(&word.as_str()) {
            true => Ok(word),
            false => Err(node.refuse(format!("\"{word}\" is not one of {}", MODES.join(", ")))),
        }
    });
    let legacy = mode.as_deref() == Some("legacy");
    let adaptive = mode.as_deref() == Some("adaptive");
    section.subject.policy = if legacy { self::legacy() } else { standard(new) };
    if let Some(attempts) = section.take(Part::Attempts, attempts, Node::count) {
        section.subject.policy.retry.max_attempts = Some(attempts.max(1));
    }
    let by_mode = section.subject.origin(Part::Backoff).clone();
    for (part, origin) in origins(legacy, adaptive, by_mode) {
        section.subject.origins.insert(part, origin);
    }
    let Section { mut subject, node } = section;
    if let Some(defaults) = node.get("defaults_mode") {
        subject.unread.push(defaults.refuse("it sets time-outs of connections that differ from SDK to SDK"));
    }
    subject
}

fn standard(new: bool) -> Policy {
    let mut policy = Preset::Aws2026.policy();
    policy.repeat = Idempotency::Safe;
    if !new {
        policy.retry.backoff = capped(Duration::from_secs(1), Duration::from_secs(20));
        policy.retry.throttled_backoff = None;
        policy.retry.server_wait.mode = ServerWaitMode::Ignore;
        policy.budget = Some(BudgetPolicy::Quota(QuotaPolicy::AWS_LEGACY));
    }
    policy
}

fn legacy() -> Policy {
    let mut policy = standard(false);
    policy.retry.max_attempts = Some(5);
    policy.retry.backoff = capped(Duration::from_secs(1), Duration::from_secs(86_400));
    policy.retry.jitter = Jitter::Full;
    policy.budget = None;
    policy
}

const fn capped(base: Duration, max: Duration) -> Backoff {
    Backoff::Exponential { base, factor_milli: 2000, max }
}

fn origins(legacy: bool, adaptive: bool, by_mode: Origin) -> Vec<(Part, Origin)> {
    let limits = match adaptive {
        true => Origin::Fixed("it slows its own requests down after it was throttled"),
        false => Origin::Elsewhere("the SDK limits nothing; code around it may"),
    };
    let hints = match legacy {
        true => by_mode.clone(),
        false => Origin::Fixed("x-amz-retry-after, within 5 s of the wait, without jitter of its own"),
    };
    vec![
        (Part::Deadline, Origin::Elsewhere("an operation's time-out in code bounds a call, if one does")),
        (
            Part::AttemptTimeout,
            Origin::Elsewhere("time-outs of an attempt differ from SDK to SDK and stand in code"),
        ),
        (Part::Jitter, Origin::Fixed("full jitter below the curve")),
        (Part::Cap, Origin::Fixed("the jitter is drawn below it")),
        (Part::Hints, hints),
        (Part::Budget, by_mode),
        (Part::Breaker, Origin::Fixed("the SDK has none; its quota is its budget")),
        (Part::Limits, limits),
        (Part::Repeat, Origin::Elsewhere("the service's model says which operations carry a token")),
        (
            Part::Classify,
            Origin::Fixed("the error codes of throttling and transient failures, 500, 502, 503, 504"),
        ),
        (Part::Exhausted, Origin::Fixed("the last error goes to the caller")),
        (Part::Alert, Origin::Elsewhere("alerts stand where its metrics are collected")),
        (Part::Visible, Origin::Elsewhere("the SDK's metrics count attempts, where code collects them")),
    ]
}

pub(super) fn edit(subject: &Subject, change: &Change) -> Option<Edit> {
    let environment = subject.keys.is_empty();
    let [mode, attempts, _] = if environment { ENVIRONMENT } else { PROFILE };
    let legacy = subject.policy.budget.is_none();
    let (name, value) = match change {
        Change::Budget(_) | Change::HintMode(_) if legacy => (mode, "standard".to_owned()),
        Change::MaxAttempts(most) => (attempts, most.to_string()),
        _ => return None,
    };
    let mut path = subject.keys.clone();
    path.push(Key::Name(name.to_owned()));
    let line = match environment {
        true => format!("{name}={value}"),
        false => format!("{} {name} = {value}", subject.place),
    };
    Some(Edit { path, value: json!(value), line })
}

/// Mode, attempts, and whether the retries of 2026 are on.
const PROFILE: [&str; 3] = ["retry_mode", "max_attempts", "new_retries_2026"];
const ENVIRONMENT: [&str; 3] = ["AWS_RETRY_MODE", "AWS_MAX_ATTEMPTS", "AWS_NEW_RETRIES_2026"];
const MODES: [&str; 3] = ["standard", "adaptive", "legacy"];
