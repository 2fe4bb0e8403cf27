//! `relent show`: one message, every attempt, and for every wait who asked for it and what was drawn.

use std::fmt::Write as _;

use http::Method;
use relent::{Clock as _, Timestamp, UnixClock};
use relent_ledger::MessageId;

use super::words;
use crate::{
    args::ShowArgs,
    client::Client,
    exit::{Exit, Misuse},
    output::{Table, count, instant, length, plain, plain_block, print, relative, words as text},
    wire::{LogEntry, MessageView},
};

/// Carries it out.
pub(crate) async fn run(args: ShowArgs) -> anyhow::Result<Exit> {
    show(args, "/v1/messages").await
}

/// Shows the message in the collection `path`.
pub(super) async fn show(args: ShowArgs, path: &str) -> anyhow::Result<Exit> {
    let id = id(&args.id)?;
    let parameters = [("attempts", args.attempts), ("before", args.before)];
    let given = parameters.iter().filter_map(|(name, value)| value.map(|value| format!("{name}={value}")));
    let query = given.collect::<Vec<_>>().join("&");
    let path = if query.is_empty() { format!("{path}/{id}") } else { format!("{path}/{id}?{query}") };
    let answer = Client::new(&args.client)?.ask(Method::GET, &path).await?;
    match args.client.json {
        true => print(&answer.line())?,
        false => print(&describe(&answer.read()?, UnixClock::new().now()))?,
    }
    Ok(Exit::Done)
}

/// The id that a person wrote.
pub(super) fn id(text: &str) -> anyhow::Result<MessageId> {
    text.trim().parse().map_err(|error| Misuse::new(format!("\"{text}\" is {error}")))
}

fn describe(message: &MessageView, now: Timestamp) -> String {
    let mut out = facts(message, now).render(0);
    for (name, value) in &message.headers {
        let _ = writeln!(out, "header    {}: {}", plain(name), plain(value));
    }
    out += &content("body", message.body.body.as_deref(), message.body.body_base64.as_deref());
    let _ = writeln!(out);
    if message.summary.attempts == 0 {
        let _ = writeln!(out, "not tried yet");
    }
    if message.older {
        let _ = match message.log.first() {
            Some(first) => writeln!(out, "(the log goes further back: --before {})", first.attempt),
            None => writeln!(out, "(the log is not shown)"),
        };
    }
    out += &waits_after(message, 0, now);
    for entry in &message.log {
        out += &attempt(entry);
        out += &waits_after(message, entry.attempt, now);
    }
    out
}

fn facts(message: &MessageView, now: Timestamp) -> Table {
    let summary = &message.summary;
    let moment = |at| format!("{} ({})", instant(at), relative(at, now));
    let mut table = Table::new([text(""), text("")]).uncut();
    let mut fact = |name: &str, value: String| table.row([name.to_owned(), value]);
    fact("message", summary.id.clone());
    fact("state", words::state(summary, now));
    fact("request", format!("{} {}", summary.method, summary.url));
    fact("policy", format!("{}, repeat {}", summary.policy, message.repeat));
    if let Some(key) = &message.key {
        fact("key", key.clone());
    }
    fact("accepted", moment(summary.accepted_at));
    if let Some(deadline) = summary.deadline {
        fact("deadline", moment(deadline));
    }
    if let Some(ended) = summary.ended_at {
        fact("ended", moment(ended));
    }
    fact("attempts", attempts(message));
    for (name, value) in &message.labels {
        fact("label", format!("{name}={value}"));
    }
    table
}

fn attempts(message: &MessageView) -> String {
    let redriven = match message.summary.cycle {
        0 => String::new(),
        times => format!(", {} by a person", count(times.into(), "redrive")),
    };
    format!("{}{redriven}", message.summary.attempts)
}

fn attempt(entry: &LogEntry) -> String {
    let outcome = match (&entry.outcome, entry.took_s) {
        (None, _) => "under way, or cut off with its server".to_owned(),
        (Some(outcome), Some(took)) => format!("{} after {}", words::outcome(outcome), length(took)),
        (Some(outcome), None) => words::outcome(outcome),
    };
    let mut out = format!("attempt {}  {}  {outcome}\n", entry.attempt, instant(entry.began_at));
    if let Some(detail) = &entry.detail {
        let _ = writeln!(out, "    {}", plain(detail));
    }
    out += &content("answer", entry.response.as_deref(), entry.response_base64.as_deref());
    if entry.truncated {
        let _ = writeln!(out, "    (the answer was longer; this is its start)");
    }
    out
}

fn waits_after(message: &MessageView, attempt: u32, now: Timestamp) -> String {
    let waits = message.waits.iter().filter(|wait| wait.after_attempt == attempt);
    waits.map(|wait| format!("    {}\n", words::wait(wait, now))).collect()
}

/// A body of many lines under its name; bytes that are no text only by their size.
fn content(name: &str, text: Option<&str>, base64: Option<&str>) -> String {
    match (text, base64) {
        (Some(text), _) => format!("  {name}:\n{}", plain_block(text, 4)),
        // Three bytes for every four characters; the padding makes it up to two bytes fewer.
        (None, Some(base64)) => {
            format!("  {name}: about {}, not text (see --json)\n", count(base64.len() as u64 / 4 * 3, "byte"))
        }
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_whose_end_nobody_saw_is_said_to_be_unknown_and_not_how_long_it_took() {
        let entry = |json| serde_json::from_value(json).unwrap();
        let lost = attempt(&entry(serde_json::json!({
            "attempt": 2, "cycle": 0, "began_at": "2026-11-30T13:45:07Z", "outcome": "unknown",
        })));
        assert_eq!(lost, "attempt 2  2026-11-30 13:45:07.000  unknown (nobody saw its end)\n");
        let timed_out = attempt(&entry(serde_json::json!({
            "attempt": 1, "cycle": 0, "began_at": "2026-11-30T13:45:07Z", "outcome": "timeout", "took_s": 1.5,
        })));
        assert!(timed_out.ends_with("  timeout after 1.5s\n"), "{timed_out}");
    }
}
