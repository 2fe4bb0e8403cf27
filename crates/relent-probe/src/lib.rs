//! What does *this* client really do when its dependency fails?
//!
//! [`Dependency`] is a scripted dependency on a real socket, for anyone's tests: sequences of answers, delays, broken
//! connections, half bodies, slow heads, every way of asking a client to wait. It records what arrived, and whether
//! the client went away.
//!
//! Linux or another Unix. HTTP/1.1 without TLS, on the loopback address unless told otherwise.

#![forbid(unsafe_code)]

mod act;
mod dependency;
mod fit;
mod hint;
mod record;
mod script;

pub use act::{Act, Answer, Extent};
pub use dependency::Dependency;
pub use fit::{Curve, Evidence, FirstRetry, Fit, JitterKind, fit};
pub use hint::{Hint, ShouldRetry, WaitForm};
pub use record::{Arrival, Body, End, Limits, Whole};
pub use script::{Greeting, Head, Play, RequestKey, Script};
