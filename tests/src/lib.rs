//! Faults and fixtures for the tests that span crates: the real binary, a receiver with a script, a client
//! that keeps its own list of what was accepted, and the ways to take the power away.
//!
//! Nothing here shares code with what it tests: the HTTP on both sides is written out by hand, so that a
//! mistake in the library beneath the server cannot agree with itself.

#![forbid(unsafe_code)]

pub mod binary;
pub mod campaign;
pub mod chance;
pub mod client;
pub mod judge;
pub mod orders;
pub mod power;
pub mod receiver;
pub mod server;
pub mod trial;
pub mod wall;
mod wire;
