//! Retries that know when to stop.

#![forbid(unsafe_code)]

mod clock;

pub use relent_core;
pub use relent_core::*;

#[cfg(feature = "tokio")]
pub use clock::UnixClock;
pub use clock::{Clock, ManualClock, TokioClock};
