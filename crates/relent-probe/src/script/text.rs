//! Scripts as people write them: `503 asks 2s as date, 2x reset, hang, 200 takes 1s half`.

use std::str::FromStr;

use http::{HeaderName, HeaderValue, Method, StatusCode};
use relent::{Invalid, parse_duration};

use super::{Rule, Script};
use crate::{
    act::{Act, Answer, Extent, has_body},
    hint::{Hint, ShouldRetry, WaitForm},
};

impl Script {
    /// Reads one sequence for all requests: acts between commas, each with a count before it where it happens
    /// several times.
    ///
    /// An act is `hang`, `reset` (the request was read), `reset-unread`, `close`, or a status with words after it
    /// in any order: `takes 80ms` (work before the answer), `slow 2s` (the head dribbles), `half` (the body breaks
    /// off), `body 64` (bytes), `asks 2s` with `as FORM` where it is not `Retry-After` in seconds,
    /// `should-retry yes`, and `with NAME=VALUE` for a header.
    ///
    /// # Errors
    ///
    /// What is not understood, and what may stand there.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        Ok(Self::new(acts(text)?))
    }

    /// The same with another sequence where method and path match. An empty method is any; a path may end in
    /// `*`. Of several that match the first counts.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn on(mut self, method: &str, path: &str, text: &str) -> Result<Self, Invalid> {
        let method = match method {
            "" => None,
            name => Some(Method::from_bytes(name.as_bytes()).map_err(|_| {
                Invalid::new("script.method", format!("\"{name}\" is no HTTP method; write for example POST"))
            })?),
        };
        if !path.starts_with('/') {
            return Err(Invalid::new("script.path", format!("\"{path}\" does not begin with a slash")));
        }
        self.rules.push(Rule { method, path: path.to_owned(), acts: acts(text)? });
        Ok(self)
    }
}

fn acts(text: &str) -> Result<Vec<Act>, Invalid> {
    let wrong = |why: String| Invalid::new("script", why);
    let mut acts = Vec::new();
    for entry in text.split(',') {
        let (times, act) = counted(entry.trim()).map_err(wrong)?;
        let act: Act = act.parse().map_err(wrong)?;
        acts.extend(std::iter::repeat_n(act, times));
    }
    Ok(acts)
}

fn counted(entry: &str) -> Result<(usize, &str), String> {
    let number = |count: &str| !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
    match entry.split_once("x ").filter(|(count, _)| number(count)) {
        None => Ok((1, entry)),
        Some((count, act)) => match count.parse() {
            Ok(times @ 1..=MOST_REPEATS) => Ok((times, act)),
            _ => Err(format!("\"{entry}\": an act is repeated 1 to {MOST_REPEATS} times")),
        },
    }
}

impl FromStr for Act {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let name = words.next().ok_or("an act is missing between two commas")?;
        let bare = match name {
            "hang" => Some(Self::Hang),
            "reset" => Some(Self::Reset),
            "reset-unread" => Some(Self::ResetUnread),
            "close" => Some(Self::Close),
            _ => None,
        };
        if let Some(act) = bare {
            return match words.next() {
                None => Ok(act),
                Some(word) => Err(format!("\"{word}\" after {name}: only a status may have words after it")),
            };
        }
        let status = name.parse::<u16>().ok().filter(|code| (200..=999).contains(code));
        let status = status.and_then(|code| StatusCode::from_u16(code).ok()).ok_or_else(|| {
            format!(
                "\"{name}\" is not an act: write a status from 200 to 999, hang, reset, reset-unread or close"
            )
        })?;
        let mut answer = Answer::new(status);
        while let Some(word) = words.next() {
            detail(&mut answer, word, &mut words)?;
        }
        if answer.extent == Extent::Half && (answer.body.is_empty() || !has_body(status)) {
            return Err(format!(
                "\"{text}\" has no body that could break off: write half after a status with one"
            ));
        }
        Ok(Self::Answer(answer))
    }
}

/// Reads one word after a status, and what belongs to it.
fn detail<'a>(
    answer: &mut Answer,
    word: &str,
    words: &mut impl Iterator<Item = &'a str>,
) -> Result<(), String> {
    let mut length = || parse_duration(words.next().unwrap_or_default());
    match word {
        "takes" => answer.after = length()?,
        "slow" => answer.head_takes = length()?,
        "asks" => answer.hints.push(Hint::Wait(length()?, WaitForm::Seconds)),
        "half" => answer.extent = Extent::Half,
        "as" => reform(answer, words.next().unwrap_or_default())?,
        "should-retry" => {
            let should = match words.next() {
                Some("yes") => ShouldRetry::Yes,
                Some("no") => ShouldRetry::No,
                _ => return Err("should-retry is followed by yes or no".to_owned()),
            };
            answer.hints.push(Hint::ShouldRetry(should));
        }
        "body" => {
            let size =
                words.next().and_then(|size| size.parse::<usize>().ok()).filter(|size| *size <= MOST_BODY);
            let size =
                size.ok_or_else(|| format!("body is followed by its size in bytes, 0 to {MOST_BODY}"))?;
            answer.body = b"relent\n".iter().copied().cycle().take(size).collect();
        }
        "with" => {
            let pair = words.next().and_then(|pair| pair.split_once('='));
            let (name, value) = pair.ok_or("with is followed by a header: with NAME=VALUE")?;
            answer.headers.push((header_name(name)?, header_value(value)?));
        }
        _ => {
            return Err(format!(
                "\"{word}\" is not known after a status: write takes, slow, half, body, asks, as, should-retry or with"
            ));
        }
    }
    Ok(())
}

/// Puts the last wait that was asked for into another form.
fn reform(answer: &mut Answer, name: &str) -> Result<(), String> {
    let Some(Hint::Wait(wait, _)) = answer.hints.pop() else {
        return Err("\"as\" stands after a wait that is asked for: asks 2s as date".to_owned());
    };
    let form = WaitForm::from_name(name).ok_or_else(|| {
        let known: Vec<&str> = WaitForm::ALL.iter().map(|form| form.name()).collect();
        format!("\"{name}\" is not a form of asking; write one of {}", known.join(", "))
    })?;
    answer.hints.push(Hint::Wait(wait, form));
    Ok(())
}

fn header_name(name: &str) -> Result<HeaderName, String> {
    let ours = ["content-length", "transfer-encoding", "connection", "date"];
    match HeaderName::from_bytes(name.as_bytes()) {
        Ok(name) if ours.contains(&name.as_str()) => Err(format!("the dependency writes {name} itself")),
        Ok(name) => Ok(name),
        Err(_) => Err(format!("\"{name}\" is no header's name")),
    }
}

fn header_value(value: &str) -> Result<HeaderValue, String> {
    HeaderValue::from_str(value).map_err(|_| format!("\"{value}\" cannot stand in a header"))
}

/// The last act stays anyway; a script longer than this is a slip.
const MOST_REPEATS: usize = 10_000;
/// A body of 16 MiB is larger than a test of retries needs.
const MOST_BODY: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn answer(text: &str) -> Answer {
        match text.parse() {
            Ok(Act::Answer(answer)) => answer,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn words_after_a_status_stand_in_any_order() {
        let read = answer(
            "429 half asks 2s as x-ms-retry-after-ms with x-a=b takes 80ms body 14 slow 1s should-retry no",
        );
        assert_eq!(read.status, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(read.after, Duration::from_millis(80));
        assert_eq!(read.head_takes, Duration::from_secs(1));
        assert_eq!(read.extent, Extent::Half);
        assert_eq!(read.body, "relent\nrelent\n");
        let asked = Hint::Wait(Duration::from_secs(2), WaitForm::XMsRetryAfterMs);
        assert_eq!(read.hints, [asked, Hint::ShouldRetry(ShouldRetry::No)]);
        assert_eq!(read.headers[0].0, "x-a");
    }

    #[test]
    fn what_is_not_understood_is_named_with_what_may_stand_there() {
        for (text, part) in [
            ("", "missing"),
            ("503,,200", "missing"),
            ("100", "not an act"),
            ("refuse", "not an act"),
            ("hang 2s", "only a status"),
            ("503 asks", "duration"),
            ("503 as date", "stands after"),
            ("503 asks 1s as morse", "retry-after-ms"),
            ("503 should-retry maybe", "yes or no"),
            ("503 body -1", "size"),
            ("503 body 99999999", "size"),
            ("503 with date=now", "itself"),
            ("503 with x", "NAME=VALUE"),
            ("503 quickly", "takes"),
            ("0x 503", "1 to 10000"),
            ("204 half", "no body"),
            ("200 half body 0", "no body"),
        ] {
            let wrong = Script::parse(text).unwrap_err().to_string();
            assert!(wrong.contains(part), "{text}: {wrong}");
        }
        let script = || Script::new([]);
        assert!(script().on("GE T", "/", "200").unwrap_err().to_string().contains("no HTTP method"));
        assert!(script().on("GET", "orders", "200").unwrap_err().to_string().contains("slash"));
    }
}
