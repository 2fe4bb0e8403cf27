//! What HTTP/2's errors say: above all, whether the server declares that it did not process the request.

use std::error::Error;

use h2::Reason;
use relent::ErrorClass;

use super::Seen;
use crate::http::classify::exchange_failure;

/// `None`: it is no error of HTTP/2.
pub(super) fn look(error: &(dyn Error + 'static)) -> Option<Seen> {
    let error = error.downcast_ref::<h2::Error>()?;
    Some(Seen::Class(class(error)))
}

/// # Source
///
/// RFC 9113, sections 6.8 (`GOAWAY`: streams above its last id "were not or will not be processed") and 8.7
/// (`REFUSED_STREAM`: "guaranteed that no application processing has occurred"). h2 gives a `GOAWAY` as their
/// error only to the streams above its last id; the others fail as their connection does.
fn class(error: &h2::Error) -> ErrorClass {
    let refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
    if error.is_remote() && (refused || error.is_go_away()) {
        return ErrorClass::Unprocessed;
    }
    match error.get_io() {
        Some(error) => exchange_failure(error),
        None if error.is_remote() => ErrorClass::Reset,
        None => ErrorClass::Protocol,
    }
}
