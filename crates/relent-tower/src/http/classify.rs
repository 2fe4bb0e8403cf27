//! From what an HTTP client saw to [`Observed`]: nothing is judged here, that is the policy's table's part.
//!
//! The same error of the operating system means different things before and after the connection stands: a
//! reset in answer to a dial says that nothing was sent, a reset later says that something may have been. So
//! there is one function for each.

use std::io;

use ::http::StatusCode;
use relent::{ErrorClass, Observed};

/// An answer, whatever it says.
pub fn answered(status: StatusCode) -> Observed {
    Observed::Status(status.as_u16())
}

/// The class of an error met while dialling an address: nothing of a request was written.
///
/// What only we can have caused (no more file descriptors, ports or memory; a local rule that forbids it) is
/// [`ErrorClass::OwnFault`]: the receiver has no part in it.
pub fn dial_failure(error: &io::Error) -> ErrorClass {
    match error.kind() {
        _ if is_own_fault(error) => ErrorClass::OwnFault,
        io::ErrorKind::TimedOut => ErrorClass::ConnectTimeout,
        _ => ErrorClass::Connect,
    }
}

/// The class of an error met once the connection stood: something of a request may have been written.
pub fn exchange_failure(error: &io::Error) -> ErrorClass {
    match error.kind() {
        io::ErrorKind::TimedOut => ErrorClass::Timeout,
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => ErrorClass::Protocol,
        _ => ErrorClass::Reset,
    }
}

/// Whether an error is the doing of this machine alone.
pub fn is_own_fault(error: &io::Error) -> bool {
    let kind = matches!(
        error.kind(),
        io::ErrorKind::AddrInUse
            | io::ErrorKind::AddrNotAvailable
            | io::ErrorKind::OutOfMemory
            | io::ErrorKind::PermissionDenied
    );
    kind || matches!(error.raw_os_error(), Some(TOO_MANY_FILES | TOO_MANY_FILES_IN_SYSTEM))
}

/// `EMFILE` and `ENFILE`, which have no [`io::ErrorKind`]: the same numbers on every Unix.
const TOO_MANY_FILES: i32 = 24;
const TOO_MANY_FILES_IN_SYSTEM: i32 = 23;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_means_nothing_was_sent_only_while_dialling() {
        let reset = || io::Error::from(io::ErrorKind::ConnectionReset);
        assert_eq!(dial_failure(&reset()), ErrorClass::Connect);
        assert_eq!(exchange_failure(&reset()), ErrorClass::Reset);
    }

    #[test]
    fn what_the_kernel_says_of_a_dial_has_its_class() {
        for (kind, class) in [
            (io::ErrorKind::ConnectionRefused, ErrorClass::Connect),
            (io::ErrorKind::HostUnreachable, ErrorClass::Connect),
            (io::ErrorKind::NetworkUnreachable, ErrorClass::Connect),
            (io::ErrorKind::TimedOut, ErrorClass::ConnectTimeout),
            (io::ErrorKind::AddrNotAvailable, ErrorClass::OwnFault),
            (io::ErrorKind::PermissionDenied, ErrorClass::OwnFault),
        ] {
            assert_eq!(dial_failure(&io::Error::from(kind)), class, "{kind:?}");
        }
    }

    #[test]
    fn our_own_exhaustion_is_not_called_the_receivers() {
        for code in [TOO_MANY_FILES, TOO_MANY_FILES_IN_SYSTEM] {
            assert_eq!(dial_failure(&io::Error::from_raw_os_error(code)), ErrorClass::OwnFault, "{code}");
        }
    }

    #[test]
    fn what_breaks_an_exchange_has_its_class() {
        for (kind, class) in [
            (io::ErrorKind::BrokenPipe, ErrorClass::Reset),
            (io::ErrorKind::UnexpectedEof, ErrorClass::Reset),
            (io::ErrorKind::InvalidInput, ErrorClass::Protocol),
            (io::ErrorKind::InvalidData, ErrorClass::Protocol),
            (io::ErrorKind::TimedOut, ErrorClass::Timeout),
        ] {
            assert_eq!(exchange_failure(&io::Error::from(kind)), class, "{kind:?}");
        }
    }
}
