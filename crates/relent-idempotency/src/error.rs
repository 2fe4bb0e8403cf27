//! What can go wrong in a store.

use std::fmt;

use relent::{Cause, Classify, Sent, Verdict};

/// A store's failure: what kind, what it was about, and the cause beneath.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    what: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The kinds of failure that a caller treats differently.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The lease is lost: another run, or an operator, has the record, or its life is over. Nothing was written.
    Stale,
    /// The disk or a limit is full. Nothing was written; come back later.
    Full,
    /// What is stored cannot be read.
    Corrupt,
    /// The caller asked for what the contract does not allow. Nothing was written.
    Misuse,
    /// The store did not answer in time. Whether it did what it was asked is not known.
    TimedOut,
    /// Anything else: the disk, the connection. Whether it did what it was asked may not be known.
    Unavailable,
}

impl Error {
    /// A failure of that kind; `what` says what was being done, in lower case without a full stop.
    pub fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), source: None }
    }

    /// The same with the cause beneath.
    #[must_use]
    pub fn with_source(self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { source: Some(source.into()), ..self }
    }

    /// The lease is lost.
    pub fn stale() -> Self {
        Self::new(ErrorKind::Stale, "the lease on the record is lost")
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// Whatever is asked of a store may be asked again, so all that matters is whether that can help.
impl Classify for Error {
    fn classify(&self) -> Verdict {
        let cause = match self.kind {
            ErrorKind::Stale | ErrorKind::Corrupt | ErrorKind::Misuse => return Verdict::Permanent,
            ErrorKind::TimedOut => Cause::Timeout,
            ErrorKind::Full | ErrorKind::Unavailable => Cause::Error,
        };
        Verdict::Failure { cause, sent: Sent::Maybe, server_wait: None }
    }
}
