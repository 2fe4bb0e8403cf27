//! From an HTTP client's error to its class: what is known about whether the request left us.
//!
//! A client's error is a chain of causes, and none of its links alone says enough: the same reset means that
//! nothing was sent where it answers a dial, and that something may have been where it breaks an exchange. So
//! the chain is walked from the outermost link to the innermost, and what an outer one tells about the phase
//! counts for those below it.
//!
//! Feature `hyper` knows the errors of hyper and of hyper-util's client (which are reqwest's as well), feature
//! `h2` those of HTTP/2. Without them a chain is read by its I/O errors alone.

#[cfg(feature = "h2")]
mod h2;
#[cfg(feature = "hyper")]
mod hyper;

use std::{error::Error, io};

use relent::{ErrorClass, io_error_class};

use super::classify::{dial_failure, exchange_failure};

/// How far a client had come when it failed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Phase {
    /// Nobody has said.
    Unknown,
    /// There was no connection yet: nothing was sent.
    Dialling,
    /// The connection stood: something of the request may have been sent.
    Exchanging,
}

/// The class of an HTTP client's error, by all that its chain of causes says.
///
/// - *Not sent*: [`Dns`](ErrorClass::Dns), [`Connect`](ErrorClass::Connect),
///   [`ConnectTimeout`](ErrorClass::ConnectTimeout), [`Tls`](ErrorClass::Tls),
///   [`OwnFault`](ErrorClass::OwnFault), and [`NotSent`](ErrorClass::NotSent) where a connection gave the request
///   back unwritten.
/// - *Refused before processing*: [`Unprocessed`](ErrorClass::Unprocessed), HTTP/2's `REFUSED_STREAM` and a
///   `GOAWAY` that leaves the request's stream out.
/// - *Maybe processed*: [`Reset`](ErrorClass::Reset) (also a connection that was closed before the message was
///   complete), [`Timeout`](ErrorClass::Timeout), [`Protocol`](ErrorClass::Protocol),
///   [`Other`](ErrorClass::Other).
///
/// What nothing in the chain explains is `Other`: the tables do not repeat what nobody understands.
///
/// # Examples
///
/// ```
/// use std::io;
/// use relent::{ErrorClass, Sent, Observed};
/// use relent_tower::http::failure::failure;
///
/// let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
/// let class = failure(&refused);
/// assert_eq!((class, Observed::Error(class).sent()), (ErrorClass::Connect, Sent::No));
/// ```
pub fn failure(error: &(dyn Error + 'static)) -> ErrorClass {
    failure_in(error, Phase::Unknown)
}

/// [`failure`] of a client that is known to have come so far.
pub fn failure_in(error: &(dyn Error + 'static), mut phase: Phase) -> ErrorClass {
    let mut link = Some(error);
    let mut speaks_of_tls = false;
    while let Some(error) = link {
        match look(error, &mut phase) {
            Seen::Class(class) => return class,
            Seen::Nothing => {}
        }
        speaks_of_tls |= phase == Phase::Dialling && is_about_tls(error);
        link = below(error);
    }
    if speaks_of_tls { ErrorClass::Tls } else { ErrorClass::Other }
}

/// What one link of a chain says.
enum Seen {
    /// The class; nothing below makes it another.
    Class(ErrorClass),
    /// Nothing by itself.
    Nothing,
}

fn look(error: &(dyn Error + 'static), phase: &mut Phase) -> Seen {
    #[cfg(feature = "hyper")]
    if let Some(seen) = hyper::look(error, phase) {
        return seen;
    }
    #[cfg(feature = "h2")]
    if let Some(seen) = h2::look(error) {
        return seen;
    }
    match error.downcast_ref::<io::Error>() {
        Some(error) if wraps_a_cause(error) => Seen::Nothing,
        Some(error) => io_failure(error, *phase),
        None if *phase == Phase::Dialling && error.to_string() == DNS_ERROR => Seen::Class(ErrorClass::Dns),
        None => Seen::Nothing,
    }
}

fn io_failure(error: &io::Error, phase: Phase) -> Seen {
    use io::ErrorKind as Kind;
    let unexplained = matches!(error.kind(), Kind::Other | Kind::InvalidInput | Kind::Unsupported);
    Seen::Class(match phase {
        Phase::Unknown => match io_error_class(error) {
            ErrorClass::Other => return Seen::Nothing,
            class => class,
        },
        Phase::Dialling if unexplained => return Seen::Nothing,
        // A dial says neither of these: they come from the handshake above it.
        Phase::Dialling if matches!(error.kind(), Kind::InvalidData | Kind::UnexpectedEof) => ErrorClass::Tls,
        Phase::Dialling => dial_failure(error),
        Phase::Exchanging => exchange_failure(error),
    })
}

/// The next link. An I/O error that wraps another names that one's cause as its own, and would skip it.
fn below<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}

/// Whether an I/O error says nothing but that there is another error in it.
fn wraps_a_cause(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Other && error.get_ref().is_some()
}

/// TLS libraries have errors of their own, which nobody can name without depending on all of them.
fn is_about_tls(error: &(dyn Error + 'static)) -> bool {
    let text = error.to_string();
    ["certificate", "SSL", "TLS", "tls", "handshake"].iter().any(|word| text.contains(word))
}

/// How hyper-util's connector says that a name was not found; its type has no name.
const DNS_ERROR: &str = "dns error";

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    #[derive(Debug)]
    struct Wrapped(&'static str, Option<Box<dyn Error + Send + Sync>>);

    impl fmt::Display for Wrapped {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Wrapped {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|error| error as &(dyn Error + 'static))
        }
    }

    fn of(what: &'static str, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Wrapped {
        Wrapped(what, Some(cause.into()))
    }

    #[test]
    fn the_same_error_means_less_before_there_is_a_connection() {
        let reset = || of("something broke", io::Error::from(io::ErrorKind::ConnectionReset));
        assert_eq!(failure_in(&reset(), Phase::Dialling), ErrorClass::Connect);
        assert_eq!(failure_in(&reset(), Phase::Exchanging), ErrorClass::Reset);
        assert_eq!(failure(&reset()), ErrorClass::Reset, "where nobody knows, it may have been sent");
    }

    #[test]
    fn an_error_in_an_io_error_is_looked_at() {
        let handshake = io::Error::new(io::ErrorKind::InvalidData, "bad certificate");
        let wrapped = io::Error::other(handshake);
        assert_eq!(failure_in(&wrapped, Phase::Dialling), ErrorClass::Tls);
        let twice = io::Error::other(of("connector", io::Error::from(io::ErrorKind::ConnectionRefused)));
        assert_eq!(failure(&twice), ErrorClass::Connect);
    }

    #[test]
    fn what_a_connector_says_in_words_is_heard() {
        let failed = |what, cause: &'static str| failure_in(&of(what, cause), Phase::Dialling);
        assert_eq!(failed("dns error", "no such host"), ErrorClass::Dns);
        assert_eq!(failed("SSL routines: certificate verify failed", "self-signed"), ErrorClass::Tls);
        assert_eq!(
            failed("invalid URL, scheme is not http", ""),
            ErrorClass::Other,
            "dialling it again is no use"
        );
        let unsupported = io::Error::other("unsupported scheme gopher");
        assert_eq!(failure_in(&unsupported, Phase::Dialling), ErrorClass::Other);
        assert_eq!(
            failure(&Wrapped("dns error", None)),
            ErrorClass::Other,
            "a server may call itself what it likes"
        );
    }

    #[test]
    fn what_nothing_explains_is_not_repeated() {
        assert_eq!(failure(&Wrapped("who knows", None)), ErrorClass::Other);
        assert_eq!(failure(&io::Error::from(io::ErrorKind::NotFound)), ErrorClass::Other);
        assert_eq!(failure(&io::Error::other("a reason")), ErrorClass::Other);
    }
}
