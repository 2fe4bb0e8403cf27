//! What the errors of hyper, and of hyper-util's client, say.

use std::error::Error;

use hyper_util::client::legacy;
use relent::ErrorClass;

use super::{Phase, Seen};

/// `None`: it is no error of theirs.
pub(super) fn look(error: &(dyn Error + 'static), phase: &mut Phase) -> Option<Seen> {
    if let Some(error) = error.downcast_ref::<legacy::Error>() {
        if *phase == Phase::Unknown {
            *phase = if error.is_connect() { Phase::Dialling } else { Phase::Exchanging };
        }
        return Some(Seen::Nothing);
    }
    let error = error.downcast_ref::<hyper::Error>()?;
    Some(match exchange(error) {
        // A connection's own greeting failed: no request went out on it.
        Some(_) if *phase == Phase::Dialling => Seen::Class(ErrorClass::Connect),
        Some(class) => Seen::Class(class),
        None => {
            if *phase == Phase::Unknown {
                *phase = Phase::Exchanging;
            }
            Seen::Nothing
        }
    })
}

/// What an error of a connection says by itself. `None`: its cause says it.
fn exchange(error: &hyper::Error) -> Option<ErrorClass> {
    // "Canceled" is hyper's word for a request that it gives back unwritten.
    if error.is_canceled() {
        Some(ErrorClass::NotSent)
    } else if error.is_timeout() {
        Some(ErrorClass::Timeout)
    } else if error.is_parse() {
        Some(ErrorClass::Protocol)
    } else if error.is_incomplete_message() || error.is_closed() {
        Some(ErrorClass::Reset)
    } else if error.is_user() || error.is_body_write_aborted() {
        // The request's own body failed. What caused that is no word of the connection's.
        Some(ErrorClass::Other)
    } else if error.source().is_some() {
        None
    } else {
        Some(ErrorClass::Protocol)
    }
}
