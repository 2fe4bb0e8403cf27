//! Durable HTTP delivery: messages from a ledger, sent under a policy, settled in the ledger.
//!
//! The files, from the inside out: [`plan`] is pure and says what to do next; `drive` owns time and runs it;
//! [`Transport`] is the border to the network, and `client` the real one, guarded against addresses that must
//! not be dialled. [`intake`] makes a message out of what a sender said, or says what is wrong with it.

#![forbid(unsafe_code)]

mod client;
mod drive;
mod guard;
pub mod intake;
mod observe;
pub mod plan;
mod policies;
mod redrive;
mod transport;

pub use client::{ClientSettings, HttpClient, Resolve, Resolving, SettingsError, SystemResolver, tls_config};
pub use drive::{Deliverer, Limits, RunReport};
pub use guard::Guard;
pub use intake::{IntakeLimits, Invalid, InvalidKind, Submission, When, prepare, url::origin};
pub use observe::{AttemptEnded, Ended, Observe};
pub use policies::{Policies, UnknownPolicy};
pub use redrive::{RedriveError, redrive};
pub use transport::{Answered, Outbound, Transport};
