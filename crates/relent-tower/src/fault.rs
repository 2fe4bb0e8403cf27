//! How an attempt fails without a response.

use std::{error, fmt};

use crate::BoxError;

/// The inner service's own error, whatever its type: what its attempt ended with.
///
/// It is transparent: it says what that error says, and its source is that error's.
pub struct Fault(BoxError);

/// How a call fails: the inner service's last error where there is one, and why it was the last.
///
/// A response is never an error, whatever its status: when retries end on a 503, the caller gets that response.
pub type Error = relent::Error<Fault>;

impl Fault {
    pub(crate) fn of(error: impl Into<BoxError>) -> Self {
        Self(error.into())
    }

    /// The inner service's error.
    pub fn get_ref(&self) -> &(dyn error::Error + 'static) {
        &*self.0
    }

    /// The inner service's error.
    pub fn into_inner(self) -> BoxError {
        self.0
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl error::Error for Fault {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.0.source()
    }
}
