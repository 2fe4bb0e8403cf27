//! What `relent call` prints of an answer.

use std::fmt::Write as _;

use bytes::Bytes;
use http::response::Parts;
use relent::Report;
use serde::Serialize;

use super::journal::{Entry, Journal};
use crate::{
    exit::Exit,
    output::plain,
    wire::{Detail, Seconds, text_or_base64},
};

/// The status line and the headers, as `-i` prints them.
pub(super) fn head(head: &Parts) -> String {
    let mut text = format!("{:?} {}\n", head.version, head.status);
    for (name, value) in &head.headers {
        let _ = writeln!(text, "{name}: {}", plain(&String::from_utf8_lossy(value.as_bytes())));
    }
    text + "\n"
}

/// What `--json` prints.
#[derive(Serialize)]
pub(super) struct CallView {
    /// Why there was no further attempt.
    reason: &'static str,
    /// What the command ends with.
    exit_code: u8,
    took_s: Seconds,
    waited_s: Seconds,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<String>,
    attempts: Vec<AttemptView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<AnswerView>,
    /// Why there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct AttemptView {
    attempt: u32,
    /// A status, the name of an error class, or `timeout`.
    outcome: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    took_s: Seconds,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait: Option<Detail>,
}

#[derive(Serialize)]
struct AnswerView {
    status: u16,
    headers: Vec<(String, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
}

impl CallView {
    pub(super) fn new(
        answer: Result<(Parts, Bytes), String>,
        report: &Report,
        journal: &Journal,
        exit: Exit,
    ) -> Self {
        let (answer, error) = match answer {
            Ok((head, body)) => (Some(AnswerView::new(&head, &body)), None),
            Err(error) => (None, Some(error)),
        };
        Self {
            reason: report.stop.name(),
            exit_code: exit.code(),
            took_s: Seconds(report.took),
            waited_s: Seconds(report.waited),
            idempotency_key: journal.key(),
            attempts: journal.entries().into_iter().map(AttemptView::from).collect(),
            answer,
            error,
        }
    }
}

impl From<Entry> for AttemptView {
    fn from(entry: Entry) -> Self {
        Self {
            attempt: entry.number,
            outcome: entry.observed.map_or_else(|| "timeout".to_owned(), |observed| observed.to_string()),
            detail: entry.detail,
            took_s: Seconds(entry.took),
            wait: entry.wait.as_ref().map(Detail::from),
        }
    }
}

impl AnswerView {
    fn new(head: &Parts, body: &Bytes) -> Self {
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = head.headers.iter().map(|(name, value)| (name.to_string(), text(value)));
        let (body, body_base64) = text_or_base64(body);
        Self { status: head.status.as_u16(), headers: headers.collect(), body, body_base64 }
    }
}
