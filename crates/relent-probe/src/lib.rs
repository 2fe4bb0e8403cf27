//! What does *this* client really do when its dependency fails?
//!
//! [`Dependency`] is a scripted dependency on a real socket, for anyone's tests: sequences of answers, delays, broken
//! connections, half bodies, slow heads, every way of asking a client to wait. It records what arrived, and whether
//! the client went away.
//!
//! [`Suite`] runs any client, a command in whatever language, through such scripts, and [`Card`] says what it did:
//! which failures it repeats, how often, on what schedule ([`fit`]), and which of the named [`checks`] it passes.
//!
//! Linux or another Unix. HTTP/1.1 without TLS, on the loopback address unless told otherwise.

#![forbid(unsafe_code)]

mod act;
mod card;
mod check;
mod client;
mod dependency;
mod fit;
mod hint;
mod record;
mod script;
mod suite;
mod trial;

pub use act::{Act, Answer, Extent, Gate};
pub use card::{Card, Fact, Grade, Judged, Run, Told};
pub use check::{Check, Verdict, checks};
pub use client::{Ask, Client};
pub use dependency::Dependency;
pub use fit::{Curve, Evidence, FirstRetry, Fit, JitterKind, fit, fit_within};
pub use hint::{Hint, ShouldRetry, WaitForm};
pub use record::{Arrival, Body, End, Limits, Whole};
pub use script::{Greeting, Head, Play, RequestKey, Script};
pub use suite::{Observations, Suite};
pub use trial::{Exit, Interruption, Seen, Trial};
