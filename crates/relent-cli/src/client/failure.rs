//! Why a server did not do what it was asked, as a sentence with the way out.

use std::{error::Error, fmt, time::Duration};

use relent_core::format_duration;

use crate::{output::plain, wire::ProblemView};

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

    #[test]
    fn what_to_do_is_said_once_in_the_words_of_the_server() {
        let problem = serde_json::json!({
            "type": "urn:relent:problem:store-full",
            "title": "store full",
            "status": 503,
            "detail": "the store is full; nothing was stored, come back later",
        });
        let problem = Box::new(serde_json::from_value(problem).unwrap());
        let said = Failure::Refused { problem }.to_string();
        assert_eq!(said, "the store is full; nothing was stored, come back later");
    }
}
