//! What went wrong, as a class and in words.
//!
//! The words are kept in the attempt log and shown, so they name hosts and addresses but never a URL, which
//! may carry a password or a token.

use std::{error::Error, fmt, io};

use hyper_util::client::legacy;
use relent::ErrorClass;
use relent_tower::http::classify;

type BoxError = Box<dyn Error + Send + Sync>;

/// Why an exchange ended before its end.
pub(super) enum Fault {
    /// No response head came.
    NoHead(legacy::Error),
    /// The body broke off.
    BrokenBody(hyper::Error),
}

/// Why there is no connection. Its class is known where it is made.
#[derive(Debug)]
pub(super) struct ConnectFailure {
    class: ErrorClass,
    what: String,
    source: Option<BoxError>,
}

impl Fault {
    /// The class. `reached` says whether the request was handed to a connection.
    pub(super) fn class(&self, reached: bool) -> ErrorClass {
        let mut cause = Some(self.error());
        while let Some(error) = cause {
            if let Some(class) = class_of(error, reached) {
                return class;
            }
            cause = error.source();
        }
        ErrorClass::Other
    }

    /// The chain of causes in one line.
    pub(super) fn in_words(&self) -> String {
        let outermost = self.error();
        // hyper-util's own "client error (SendRequest)" says nothing that its cause does not.
        let mut cause = outermost.source().filter(|_| matches!(self, Self::NoHead(_))).or(Some(outermost));
        let mut words = String::new();
        while let Some(error) = cause {
            let text = error.to_string();
            if !words.contains(&text) {
                words.push_str(if words.is_empty() { "" } else { ": " });
                words.push_str(&text);
            }
            cause = error.source();
        }
        one_line(&words)
    }

    fn error(&self) -> &(dyn Error + 'static) {
        match self {
            Self::NoHead(error) => error,
            Self::BrokenBody(error) => error,
        }
    }
}

impl ConnectFailure {
    /// A failure that nothing caused but itself.
    pub(super) fn new(class: ErrorClass, what: String) -> Self {
        Self { class, what, source: None }
    }

    /// A failure with its cause.
    pub(super) fn from(class: ErrorClass, what: String, source: impl Into<BoxError>) -> Self {
        Self { class, what, source: Some(source.into()) }
    }

    /// Whether the fault is ours, so that no other address would do better.
    pub(super) fn is_own_fault(&self) -> bool {
        self.class == ErrorClass::OwnFault
    }
}

impl fmt::Display for ConnectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Error for ConnectFailure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

/// What one error of a chain says, if it says anything.
fn class_of(error: &(dyn Error + 'static), reached: bool) -> Option<ErrorClass> {
    if let Some(failure) = error.downcast_ref::<ConnectFailure>() {
        return Some(failure.class);
    }
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return Some(classify::exchange_failure(error));
    }
    let error = error.downcast_ref::<hyper::Error>()?;
    // "Canceled" is hyper's word for a request that it gives back unwritten.
    if !reached || error.is_canceled() {
        Some(ErrorClass::NotSent)
    } else if error.is_parse() {
        Some(ErrorClass::Protocol)
    } else if error.is_incomplete_message() || error.is_closed() {
        Some(ErrorClass::Reset)
    } else if error.is_user() || error.source().is_some() {
        None
    } else {
        Some(ErrorClass::Protocol)
    }
}

/// Without line breaks and other control characters, and not endless: some of it came from afar.
fn one_line(words: &str) -> String {
    words.chars().map(|char| if char.is_control() { ' ' } else { char }).take(MAX_WORDS).collect()
}

/// Room for the longest chain that says something; a certificate may name hundreds of hosts.
const MAX_WORDS: usize = 400;
