//! `relent send`: one message to the server, and its id on standard output when it is on disk.

use std::{
    fs,
    io::{self, Read as _},
};

use anyhow::Context as _;
use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::{
    args::SendArgs,
    client::Client,
    exit::{Exit, Misuse},
    output::print,
    wire::{HeaderList, StateView, SubmissionText},
};

/// Carries it out.
pub(crate) async fn run(args: SendArgs) -> anyhow::Result<Exit> {
    let submission = submission(&args)?;
    let client = Client::new(&args.client)?;
    let answer = client.post("/v1/messages", serde_json::to_vec(&submission)?).await;
    let answer = answer.map_err(|failure| failure.typed(flag))?;
    if args.client.json {
        print(&answer.line())?;
        return Ok(Exit::Done);
    }
    let accepted: StateView = answer.read()?;
    print(&format!("{}\n", accepted.id))?;
    if answer.replayed {
        eprintln!("relent: accepted before under this key; nothing was stored now");
    }
    Ok(Exit::Done)
}

/// The flag with which a field of the API is written here; `None`: it is not written by a person.
fn flag(field: &str) -> Option<String> {
    let (field, name) = field.split_once('.').unwrap_or((field, ""));
    let flag = match field {
        "url" => "URL",
        "method" => "-X",
        "headers" => "-H",
        "key" => "--key",
        "not_before" => "--not-before",
        "deadline" => "--deadline",
        "policy" => "--policy",
        "repeat" => "--repeat",
        "labels" => "--label",
        _ => return None,
    };
    Some(format!("{flag} {name}").trim_end().to_owned())
}

/// What the flags say, as the API takes it. What only the server can judge is left to it.
fn submission(args: &SendArgs) -> anyhow::Result<SubmissionText> {
    let body = args.body.as_deref().map(body).transpose()?;
    let (text, base64) = match body.map(String::from_utf8) {
        None => (None, None),
        Some(Ok(text)) => (Some(text), None),
        Some(Err(bytes)) => (None, Some(STANDARD.encode(bytes.as_bytes()))),
    };
    let headers = args.headers.iter().map(|text| header(text)).collect::<anyhow::Result<Vec<_>>>()?;
    if let Some((name, value)) = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("idempotency-key"))
    {
        return Err(Misuse::new(format!(
            "-H \"{name}: {value}\": every attempt carries the key that the message has; write --key {value}"
        )));
    }
    Ok(SubmissionText {
        url: Some(args.url.clone()),
        method: args.method.clone(),
        headers: HeaderList(headers),
        body: text,
        body_base64: base64,
        key: args.key.clone(),
        not_before: args.not_before.clone(),
        deadline: args.deadline.clone(),
        policy: args.policy.clone(),
        repeat: args.repeat.clone(),
        labels: args.labels.iter().map(|text| label(text)).collect::<anyhow::Result<_>>()?,
    })
}

/// The bytes that `-d` names: itself, a file's after `@`, standard input's for `@-`. They are sent as they are:
/// no line end is taken off.
pub(super) fn body(text: &str) -> anyhow::Result<Vec<u8>> {
    match text.strip_prefix('@') {
        None => Ok(text.as_bytes().to_vec()),
        Some("-") => {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes).context("standard input cannot be read")?;
            Ok(bytes)
        }
        Some("") => Err(Misuse::new("-d @: name a file after the @, or - for standard input")),
        Some(file) => fs::read(file)
            .map_err(|error| Misuse::new(format!("-d @{file}: the body's file cannot be read: {error}"))),
    }
}

pub(super) fn header(text: &str) -> anyhow::Result<(String, String)> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(Misuse::new(format!("-H \"{text}\" is not a header; write it as \"name: value\""))),
    }
}

fn label(text: &str) -> anyhow::Result<(String, String)> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(Misuse::new(format!("--label \"{text}\" is not a label; write it as name=value"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_labels_are_split_at_the_first_mark() {
        assert_eq!(header("X-Time: 12:30").unwrap(), ("X-Time".to_owned(), "12:30".to_owned()));
        assert_eq!(header("X-Empty:").unwrap(), ("X-Empty".to_owned(), String::new()));
        assert_eq!(label("note=a=b").unwrap(), ("note".to_owned(), "a=b".to_owned()));
    }

    #[test]
    fn a_field_is_told_by_its_flag() {
        assert_eq!(flag("not_before").as_deref(), Some("--not-before"));
        assert_eq!(flag("headers.host").as_deref(), Some("-H host"));
        assert_eq!(flag("labels.a.b").as_deref(), Some("--label a.b"));
        assert_eq!(flag("body"), None, "its JSON is ours");
    }

    #[test]
    fn what_cannot_be_split_is_wrong_use() {
        for text in ["no colon", ": no name"] {
            assert!(header(text).unwrap_err().is::<Misuse>(), "{text}");
        }
        for text in ["no mark", "=no name"] {
            assert!(label(text).unwrap_err().is::<Misuse>(), "{text}");
        }
    }
}
