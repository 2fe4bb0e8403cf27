//! Safe retries for HTTP as a tower layer, kept apart from `relent` so that the versions of `http` and `tower`
//! bind nobody who does not use them.
//!
//! [`http::classify`] and [`http::failure`] put what was seen into the words of the core; [`http::hints`] reads
//! how long a server asks to be left alone; [`Replay`] is what may be sent again. Nothing here opens a
//! connection or reads a clock.

#![forbid(unsafe_code)]

pub mod http;
mod replay;

pub use replay::{Replay, ReplayBody, ReplayError};

/// Any error: what tower's own layers make of theirs.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
