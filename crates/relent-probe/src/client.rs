//! The client that is probed: a command with places for what it is to ask, run in a process group of its own.

use std::{ffi::OsString, io, process::Stdio};

use relent::Invalid;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

/// A command that makes one call to a URL, or as many as it is told.
///
/// In its arguments `{url}`, `{method}`, `{body}`, `{key}` and `{calls}` stand for what is asked of it; the same is in
/// its environment as `RELENT_PROBE_URL`, `_METHOD`, `_BODY`, `_KEY` and `_CALLS`. A key that is empty is none.
#[derive(Clone, Debug)]
pub struct Client {
    words: Vec<OsString>,
}

/// What a client is asked to do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ask {
    /// The method.
    pub method: &'static str,
    /// The idempotency key; empty for none.
    pub key: String,
    /// The body; empty for none.
    pub body: String,
    /// How many calls to make, one after the other.
    pub calls: u32,
}

impl Client {
    /// A client from its command line.
    ///
    /// # Errors
    ///
    /// Without a program.
    pub fn new(words: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Self, Invalid> {
        let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
        if words.first().is_none_or(|program| program.is_empty()) {
            let why = "there is no program; write it after `--`, for example: -- curl --retry 3 {url}";
            return Err(Invalid::new("command", why));
        }
        Ok(Self { words })
    }

    /// The command line as it was given.
    pub fn line(&self) -> String {
        let words: Vec<_> = self.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        words.join(" ")
    }

    /// Starts it.
    pub(crate) fn start(&self, url: &str, ask: &Ask) -> io::Result<Running> {
        let calls = ask.calls.to_string();
        let places =
            [("url", url), ("method", ask.method), ("body", &ask.body), ("key", &ask.key), ("calls", &calls)];
        let fill = |word: &OsString| match word.to_str() {
            None => word.clone(), // what is not text has no places
            Some(text) => OsString::from(filled(text, &places)),
        };
        let mut command = Command::new(fill(&self.words[0]));
        command.args(self.words[1..].iter().map(fill));
        for (name, value) in places {
            command.env(format!("RELENT_PROBE_{}", name.to_uppercase()), value);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        let child = command.spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Ok(Running { child, group })
    }
}

/// A client at work. Dropped, it and whatever it started are killed.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) child: Child,
    group: Option<Pid>,
}

impl Running {
    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, signal); // it may have ended meanwhile
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

fn filled(text: &str, places: &[(&str, &str)]) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let known = places.iter().find(|(name, _)| {
            rest[open + 1..].strip_prefix(name).is_some_and(|after| after.starts_with('}'))
        });
        out += &rest[..open];
        match known {
            Some((name, value)) => {
                out += value;
                rest = &rest[open + name.len() + 2..];
            }
            None => {
                out.push('{');
                rest = &rest[open + 1..];
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_once_and_everything_else_stays() {
        let places = [("url", "http://x/{key}"), ("key", "k"), ("body", "")];
        for (text, expected) in [
            ("{url}", "http://x/{key}"),
            ("a={key}&b={body};", "a=k&b=;"),
            ("{\"n\":{key}}", "{\"n\":k}"),
            ("{unknown} {", "{unknown} {"),
            ("", ""),
        ] {
            assert_eq!(filled(text, &places), expected, "{text}");
        }
    }

    #[test]
    fn a_command_without_a_program_is_refused() {
        assert!(Client::new(Vec::<String>::new()).is_err());
        assert!(Client::new([""]).is_err());
        assert_eq!(Client::new(["curl", "{url}"]).unwrap().line(), "curl {url}");
    }
}
