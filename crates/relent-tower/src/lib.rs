//! What HTTP says about the next try, kept apart from `relent` so that the versions of `http` and `tower` bind
//! nobody who does not use them.
//!
//! [`http::classify`] puts what was seen into the words of the core; [`http::hints`] reads how long a server
//! asks to be left alone. Nothing here opens a connection or reads a clock.

#![forbid(unsafe_code)]

pub mod http;
