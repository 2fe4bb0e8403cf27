//! A message as the API shows it.

use std::{collections::BTreeMap, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use relent_core::{ErrorClass, Observed, Wait};
use relent_ledger::{Attempt, Message, Older, Summary, Truncated, WaitRecord};
use serde::{Deserialize, Serialize};

use super::{At, Name, Seconds};

/// One line about a message: an item of a list.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct SummaryView {
    /// Its name.
    pub(crate) id: String,
    /// Where it stands.
    pub(crate) state: Name,
    /// The HTTP method.
    pub(crate) method: String,
    /// The absolute URL.
    pub(crate) url: String,
    /// `scheme://host:port`.
    pub(crate) destination: String,
    /// The name of its policy.
    pub(crate) policy: String,
    /// When it was accepted.
    pub(crate) accepted_at: At,
    /// When it is due, while it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) due_at: Option<At>,
    /// Why it waits, while it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) wait: Option<Detail>,
    /// Of no use after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deadline: Option<At>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended_at: Option<At>,
    /// Why it is dead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<Name>,
    /// Attempts begun, in all cycles.
    pub(crate) attempts: u32,
    /// How often it was redriven.
    pub(crate) cycle: u32,
    /// How the last finished attempt ended: a status, or the class of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_outcome: Option<String>,
    /// That in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) last_detail: String,
}

/// All about a message.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct MessageView {
    /// One line about it.
    #[serde(flatten)]
    pub(crate) summary: SummaryView,
    /// The sender's idempotency key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// Whether it is safe to repeat: `safe`, `keyed`, `unsafe` or `never`.
    pub(crate) repeat: Name,
    /// Headers in the sender's order; those that carry credentials are `REDACTED`.
    pub(crate) headers: Vec<(String, String)>,
    /// The body.
    #[serde(flatten)]
    pub(crate) body: Content,
    /// The sender's own labels.
    pub(crate) labels: BTreeMap<String, String>,
    /// The newest attempts, or those that were asked for, in order, across all cycles.
    pub(crate) log: Vec<LogEntry>,
    /// The waits among and after them, in order.
    pub(crate) waits: Vec<WaitView>,
    /// Whether the log goes further back than this.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) older: bool,
}

/// The body of a message: text where it is UTF-8, otherwise base64; neither if it is empty.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Content {
    /// As text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) body: Option<String>,
    /// In base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) body_base64: Option<String>,
}

/// One attempt.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct LogEntry {
    /// Its number, from 1, on through all cycles.
    pub(crate) attempt: u32,
    /// The cycle it belongs to.
    pub(crate) cycle: u32,
    /// When it began.
    pub(crate) began_at: At,
    /// How it ended: a status, the class of the failure, or `unknown` if nobody saw its end. Absent while it is
    /// under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<String>,
    /// How long it took. Absent where nobody saw its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) took_s: Option<Seconds>,
    /// The failure in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
    /// The start of the response's body, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) response: Option<String>,
    /// The same in base64, where it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) response_base64: Option<String>,
    /// Whether the response was longer.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) truncated: bool,
}

/// One wait, with its whole derivation.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct WaitView {
    /// The attempt before it; 0 if there was none.
    pub(crate) after_attempt: u32,
    /// When it was decided on.
    pub(crate) decided_at: At,
    /// When it ends.
    pub(crate) until: At,
    /// Who asked, how long, and the draw.
    #[serde(flatten)]
    pub(crate) detail: Detail,
}

/// How a wait came to its length.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Detail {
    /// Who asked for it.
    pub(crate) origin: Name,
    /// How long it is.
    pub(crate) length_s: Seconds,
    /// What the receiver asked for, before any clamping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked_s: Option<Seconds>,
    /// The least it could have been.
    pub(crate) floor_s: Seconds,
    /// What chance added: length − floor.
    pub(crate) draw_s: Seconds,
    /// The most that chance could have added.
    pub(crate) ceiling_s: Seconds,
    /// Whether the receiver asked for more than it was given.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) clamped: bool,
}

impl From<Summary> for SummaryView {
    fn from(summary: Summary) -> Self {
        Self {
            id: summary.id.to_string(),
            state: summary.state.name().into(),
            method: summary.method,
            url: summary.url,
            destination: summary.destination.to_string(),
            policy: summary.policy,
            accepted_at: At(summary.accepted_at),
            due_at: summary.due_at.map(At),
            wait: summary.wait.as_ref().map(Detail::from),
            deadline: summary.deadline.map(At),
            ended_at: summary.ended_at.map(At),
            reason: summary.reason.map(|reason| reason.name().into()),
            attempts: summary.attempts,
            cycle: summary.cycle,
            last_outcome: summary.last_observed.map(|observed| observed.to_string()),
            last_detail: summary.last_detail,
        }
    }
}

impl From<Message> for MessageView {
    fn from(message: Message) -> Self {
        let (body, body_base64) = text_or_base64(&message.request.body);
        Self {
            summary: message.summary.into(),
            key: message.key,
            repeat: message.repeat.name().into(),
            headers: message.request.headers.into_iter().map(redact).collect(),
            body: Content { body, body_base64 },
            labels: message.labels,
            log: message.attempts.into_iter().map(LogEntry::from).collect(),
            waits: message.waits.iter().map(WaitView::from).collect(),
            older: message.older == Older::More,
        }
    }
}

impl From<Attempt> for LogEntry {
    fn from(attempt: Attempt) -> Self {
        let begun = Self {
            attempt: attempt.number,
            cycle: attempt.cycle,
            began_at: At(attempt.began_at),
            outcome: None,
            took_s: None,
            detail: None,
            response: None,
            response_base64: None,
            truncated: false,
        };
        let Some(end) = attempt.end else { return begun };
        let (response, response_base64) = text_or_base64(&end.response);
        Self {
            outcome: Some(end.observed.to_string()),
            took_s: took(end.observed, end.took).map(Seconds),
            detail: (!end.detail.is_empty()).then_some(end.detail),
            response,
            response_base64,
            truncated: end.truncated == Truncated::Yes,
            ..begun
        }
    }
}

impl From<&WaitRecord> for WaitView {
    fn from(record: &WaitRecord) -> Self {
        Self {
            after_attempt: record.after_attempt,
            decided_at: At(record.decided_at),
            until: At(record.decided_at.after(record.wait.length)),
            detail: Detail::from(&record.wait),
        }
    }
}

impl From<&Wait> for Detail {
    fn from(wait: &Wait) -> Self {
        Self {
            origin: wait.origin.name().into(),
            length_s: Seconds(wait.length),
            asked_s: wait.asked.map(Seconds),
            floor_s: Seconds(wait.floor),
            draw_s: Seconds(wait.length.saturating_sub(wait.floor)),
            ceiling_s: Seconds(wait.ceiling),
            clamped: wait.was_clamped(),
        }
    }
}

/// How long an attempt took, unless nobody saw its end: then what is recorded is no measurement.
pub(crate) fn took(observed: Observed, recorded: Duration) -> Option<Duration> {
    (observed != Observed::Error(ErrorClass::Lost)).then_some(recorded)
}

pub(crate) fn text_or_base64(bytes: &[u8]) -> (Option<String>, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok("") => (None, None),
        Ok(text) => (Some(text.to_owned()), None),
        Err(_) => (None, Some(STANDARD.encode(bytes))),
    }
}

fn redact((name, value): (String, String)) -> (String, String) {
    let value = if is_credential(&name) { "REDACTED".to_owned() } else { value };
    (name, value)
}

/// Whether a request header carries a secret that a list of messages must not show.
fn is_credential(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let known = ["authorization", "cookie", "proxy-authorization"].contains(&name.as_str());
    let speaks_of_one = SECRET_WORDS.iter().any(|word| name.contains(word));
    known || speaks_of_one || (name.ends_with("-key") && name != "idempotency-key")
}

/// Words for a secret, wherever in a header's name they stand. One shown is worse than a harmless one hidden.
const SECRET_WORDS: [&str; 8] =
    ["secret", "password", "passwd", "apikey", "api-key", "signature", "token", "credential"];

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[cfg(test)]
mod tests {
    use relent_core::Timestamp;
    use relent_ledger::AttemptRecord;

    use super::*;

    #[test]
    fn headers_with_secrets_are_redacted_and_the_idempotency_key_is_not() {
        for (name, secret) in [
            ("Authorization", true),
            ("cookie", true),
            ("Proxy-Authorization", true),
            ("X-Api-Key", true),
            ("x-auth-token", true),
            ("Webhook-Signature", true),
            ("X-Signature-256", true),
            ("Client-Secret", true),
            ("X-Password-Hash", true),
            ("X-Passwd", true),
            ("ApiKey", true),
            ("X-Api-Key-Id", true),
            ("Token", true),
            ("x-tokens", true),
            ("X-Amz-Credential", true),
            ("Idempotency-Key", false),
            ("content-type", false),
            ("x-keyboard", false),
        ] {
            let shown = redact((name.to_owned(), "value".to_owned())).1;
            assert_eq!(shown, if secret { "REDACTED" } else { "value" }, "{name}");
        }
    }

    #[test]
    fn an_attempt_whose_end_nobody_saw_has_no_duration() {
        let ended = |observed, took| AttemptRecord {
            took,
            observed,
            detail: String::new(),
            response: bytes::Bytes::new(),
            truncated: Truncated::No,
        };
        let view = |end| {
            let attempt = Attempt { number: 1, cycle: 0, began_at: Timestamp::ZERO, end: Some(end) };
            serde_json::to_value(LogEntry::from(attempt)).unwrap()
        };
        let lost = view(ended(Observed::Error(ErrorClass::Lost), Duration::ZERO));
        assert_eq!((&lost["outcome"], lost.get("took_s")), (&"unknown".into(), None));
        let quick = view(ended(Observed::Status(200), Duration::ZERO));
        assert_eq!((&quick["outcome"], &quick["took_s"]), (&"200".into(), &0.0.into()));
    }

    #[test]
    fn bytes_that_are_not_text_are_shown_in_base64() {
        assert_eq!(text_or_base64(b""), (None, None));
        assert_eq!(text_or_base64("é".as_bytes()), (Some("é".to_owned()), None));
        assert_eq!(text_or_base64(&[0xff, 0x00]), (None, Some("/wA=".to_owned())));
    }
}
