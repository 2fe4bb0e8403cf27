//! relent's own policies: a file with one, or a server's configuration with several under `policies`.

use relent_core::{Gates, Policy, PolicyText};
use serde::Deserialize as _;
use serde_json::Value;

use super::Unreadable;
use crate::{
    change::Change,
    read::{Edit, Key},
    subject::{Format, Origin, Part, Subject, Unread},
};

pub(super) fn subjects(tree: &Value, base: &Policy) -> Result<Vec<Subject>, Unreadable> {
    match tree.get("policies").and_then(Value::as_object) {
        None => Ok(vec![subject("", tree, base)?]),
        Some(policies) => policies
            .iter()
            .map(|(name, text)| {
                let keys = [Key::Name("policies".into()), Key::Name(name.clone())];
                let place = format!("policies.{name}");
                subject(&place, text, &Policy::durable()).map(|subject| delivered(subject.at(&keys), text))
            })
            .collect(),
    }
}

/// A preset, or any other policy that stands in no file.
pub fn plain(policy: Policy) -> Subject {
    from_policy("", policy, |_| false)
}

fn subject(place: &str, tree: &Value, base: &Policy) -> Result<Subject, Unreadable> {
    let before = if place.is_empty() { String::new() } else { format!("{place}.") };
    let text = PolicyText::deserialize(tree)
        .map_err(|error| Unreadable { reason: format!("{before}{error}").trim_end().to_owned() })?;
    let policy =
        text.over(base.clone()).map_err(|invalid| Unreadable { reason: format!("{before}{invalid}") })?;
    Ok(from_policy(place, policy, |field| written(tree, field)))
}

fn from_policy(place: &str, policy: Policy, written: impl Fn(&str) -> bool) -> Subject {
    let deadline = policy.limit().map_or("total_timeout", |(field, _)| field);
    let mut subject = Subject::new(place, Format::Relent, policy);
    for (part, field) in FIELDS {
        let field = if part == Part::Deadline { deadline } else { field };
        let origin = match written(field) {
            true => Origin::Written(field.into()),
            false => Origin::Default(field.into()),
        };
        subject = subject.with(part, origin);
    }
    subject.with(
        Part::Visible,
        Origin::Fixed("every attempt, wait and stop is an event, a metric and a log line"),
    )
}

/// What delivery does not ask yet, whatever its policy says: what is written of it is named, and does not count.
fn delivered(mut subject: Subject, text: &Value) -> Subject {
    let policy = &mut subject.policy;
    (policy.budget, policy.breaker) = (None, None);
    (policy.admission, policy.attempt) = (Gates::default(), Gates::default());
    for section in NOT_ASKED.iter().filter(|section| text.get(**section).is_some()) {
        let path = format!("{}.{section}", subject.place);
        subject.unread.push(Unread { path, why: "delivery does not ask it yet: it is not in force".into() });
    }
    subject
        .with(
            Part::Budget,
            Origin::Fixed("delivery asks no budget yet; it bounds what is under way to each destination"),
        )
        .with(Part::Breaker, Origin::Fixed("delivery has no breaker yet"))
        .with(
            Part::Limits,
            Origin::Fixed("`delivery.per_destination` and `delivery.in_flight` bound what is under way"),
        )
}

fn written(tree: &Value, field: &str) -> bool {
    field.split('.').try_fold(tree, |table, key| table.get(key)).is_some()
}

/// The error with its line, from the text itself.
pub(super) fn located(text: &str) -> Option<String> {
    let several = toml::from_str::<toml::Table>(text).ok()?.contains_key("policies");
    let error = toml::from_str::<PolicyText>(text).err().filter(|_| !several)?;
    Some(error.to_string().trim_end().to_owned())
}

/// What the changed policy writes in the place of the change.
pub(super) fn edit(subject: &Subject, changed: &Subject, change: &Change) -> Option<Edit> {
    let field = change.field();
    let section = field.split('.').next().unwrap_or(field);
    if !subject.place.is_empty() && NOT_ASKED.contains(&section) {
        return None; // written there it would change nothing
    }
    let text = serde_json::to_value(PolicyText::from(&changed.policy)).ok()?;
    let value = field.split('.').try_fold(&text, |table, key| table.get(key))?.clone();
    let path =
        subject.keys.iter().cloned().chain(field.split('.').map(|name| Key::Name(name.to_owned()))).collect();
    let line = format!("{} = {}", super::qualified(subject, field), toml_value(&value)?);
    Some(Edit { path, value, line })
}

/// The value as TOML on one line.
fn toml_value(value: &Value) -> Option<String> {
    toml::Value::try_from(value).ok().map(|value| value.to_string())
}

/// The sections of a policy that delivery does not ask.
const NOT_ASKED: [&str; 4] = ["admission", "budget", "attempt", "breaker"];

/// The field that stands for each part.
const FIELDS: [(Part, &str); 14] = [
    (Part::Repeat, "repeat"),
    (Part::Deadline, "total_timeout"),
    (Part::AttemptTimeout, "attempt_timeout"),
    (Part::Attempts, "retry.max_attempts"),
    (Part::Backoff, "retry.backoff"),
    (Part::Jitter, "retry.jitter"),
    (Part::Cap, "retry.backoff"),
    (Part::Hints, "retry.server_wait.mode"),
    (Part::Budget, "budget"),
    (Part::Limits, "admission.concurrency"),
    (Part::Breaker, "breaker"),
    (Part::Classify, "classify"),
    (Part::Exhausted, "on_exhausted"),
    (Part::Alert, "alert"),
];
