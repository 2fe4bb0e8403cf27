//! Durable HTTP delivery: messages from a ledger, sent under a policy, settled in the ledger.
//!
//! The files, from the inside out: [`plan`] is pure and says what to do next; `drive` owns time and runs it;
//! [`Transport`] is the border to the network, and `client` the real one, guarded against addresses that must
//! not be dialled. [`intake`] makes a message out of what a sender said, or says what is wrong with it.

#![forbid(unsafe_code)]

mod observe;
mod transport;

pub use observe::{AttemptEnded, Ended, Observe};
pub use transport::{Answered, Outbound, Transport};
