//! What the property tests draw from.

use proptest::{prelude::*, sample::select};
use relent_core::Cause;

/// Any cause of a failure.
pub(crate) fn cause() -> impl Strategy<Value = Cause> {
    select(vec![Cause::Error, Cause::Timeout, Cause::Throttled, Cause::Lost])
}
