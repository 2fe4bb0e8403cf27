//! What can go wrong in a store.

use std::fmt;

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
    /// The ticket is over: the message was settled or claimed anew since. Nothing was written.
    Stale,
    /// The disk or a limit is full. Nothing was written; come back later.
    Full,
    /// The store is shutting down. Nothing was written.
    Closed,
    /// Another process owns the store.
    Owned,
    /// What is stored cannot be read.
    Corrupt,
    /// The caller asked for what the contract does not allow, such as a second message with the same id.
    /// Nothing was written.
    Misuse,
    /// Anything else: the disk, the connection.
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
