//! Why a server did not do what it was asked, as a sentence with the way out.

use std::{error::Error, fmt, time::Duration};

use relent_core::format_duration;

use crate::{
    exit::Misuse,
    output::plain,
    wire::{KEY_CONFLICT, ProblemView},
};

/// A request that came to nothing.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nobody listens there: nothing was sent.
    Unreachable { server: String, source: Box<dyn Error + Send + Sync> },
    /// The connection broke after the request may have arrived.
    CutOff { server: String, source: Box<dyn Error + Send + Sync> },
    /// No answer came in time. It may have done what it was asked, or nobody listens there.
    Late { server: String, patience: Duration },
    /// The token is not the server's.
    Token { server: String, from: String },
    /// The server said no, why, and what to do.
    Refused { problem: Box<ProblemView> },
    /// What answered does not speak this API.
    Odd { server: String, what: String },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { server, .. } => write!(
                f,
                "no server answers at {server}; start one with `relent serve`, or say where it is with --server \
                 or --data"
            ),
            Self::CutOff { server, .. } => write!(
                f,
                "the connection to {server} broke before its answer, so it may have done what it was asked; look \
                 with `relent ls`, and send with --key to be able to send again"
            ),
            Self::Late { server, patience } => write!(
                f,
                "{server} did not answer within {}, so it may have done what it was asked; look with `relent ls`, \
                 wait longer with --timeout, and send with --key to be able to send again",
                format_duration(*patience)
            ),
            Self::Token { server, from } => write!(
                f,
                "the server at {server} refused the token from {from}; name its data folder with --data, or give \
                 its token in RELENT_TOKEN"
            ),
            Self::Refused { problem } => refused(f, problem),
            Self::Odd { server, what } => {
                write!(f, "{server} does not answer like a relent server: {}; check --server", plain(what))
            }
        }
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unreachable { source, .. } | Self::CutOff { source, .. } => Some(source.as_ref()),
            Self::Late { .. } | Self::Token { .. } | Self::Refused { .. } | Self::Odd { .. } => None,
        }
    }
}

impl Failure {
    /// The same to whoever typed what the server refuses: wrong use, told by the flag that it was typed with and not
    /// by the API's field. `flag` knows it, and knows none for what was not typed. A key that belongs to another
    /// message is no wrong use: it is well written, and the other one came first.
    pub(crate) fn typed(self, flag: impl Fn(&str) -> Option<String>) -> anyhow::Error {
        let Self::Refused { problem } = &self else { return self.into() };
        let is_wrong = matches!(problem.status, 400 | 422) && problem.kind != KEY_CONFLICT;
        match problem.field.as_deref().and_then(|field| Some((field, flag(field)?))) {
            Some((field, flag)) if is_wrong => {
                let detail = problem.detail.trim_end_matches('.');
                let rest = detail.strip_prefix(field).unwrap_or(detail).trim_start_matches([':', ' ']);
                Misuse::new(plain(&format!("{flag}: {rest}")))
            }
            _ => self.into(),
        }
    }
}

fn refused(f: &mut fmt::Formatter<'_>, problem: &ProblemView) -> fmt::Result {
    let detail = plain(problem.detail.trim_end_matches('.'));
    match &problem.field {
        Some(field) if !detail.contains(field.as_str()) => write!(f, "{}: {detail}", plain(field)),
        _ => f.write_str(&detail),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    fn refusal(kind: &str, status: u16, field: Option<&str>, detail: &str) -> Failure {
        let problem = serde_json::json!({
            "type": format!("urn:relent:problem:{kind}"),
            "title": kind,
            "status": status,
            "detail": detail,
            "field": field,
        });
        Failure::Refused { problem: Box::new(serde_json::from_value(problem).unwrap()) }
    }

    #[test]
    fn what_to_do_is_said_once_in_the_words_of_the_server() {
        let detail = "the store is full; nothing was stored, come back later";
        assert_eq!(refusal("store-full", 503, None, detail).to_string(), detail);
    }

    #[test]
    fn what_was_typed_is_wrong_use_and_told_by_its_flag() {
        let flag = |field: &str| (field == "not_before").then(|| "--not-before".to_owned());
        for (detail, said) in [
            ("not_before \"soon\" is not a time; write", "--not-before: \"soon\" is not a time; write"),
            ("not_before: leaves no room", "--not-before: leaves no room"),
            ("another word", "--not-before: another word"),
        ] {
            let error = refusal("invalid", 422, Some("not_before"), detail).typed(flag);
            assert_eq!((error.to_string(), Exit::of(&error)), (said.to_owned(), Exit::Misused));
        }
        for failure in [
            refusal("invalid", 422, Some("body"), "nobody typed this"),
            refusal("key-conflict", 422, Some("not_before"), "the key belongs to message 7"),
            refusal("store-full", 503, Some("not_before"), "the store is full"),
        ] {
            assert_eq!(Exit::of(&failure.typed(flag)), Exit::Failed);
        }
    }
}
