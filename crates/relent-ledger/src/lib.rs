//! The contract of relent's durable store.
//!
//! A store keeps messages and knows nothing of policies: it is told a [`Settlement`](relent_core::Settlement)
//! and keeps the decision state as bytes that it does not understand. The contract is small, and executable:
//! every rule in the docs of [`Ledger`] is a named test of the suite that each store runs.
//!
//! What happened to a message stands in its attempt log and its recorded waits ([`Attempt`], [`WaitRecord`]);
//! what decides about it stands in its history.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod audit;
mod contract;
mod error;
mod message;
mod read;
#[cfg(feature = "suite")]
pub mod suite;

pub use audit::{Audit, Finding, Rule};
pub use contract::{
    Accepted, AttemptEnd, ClaimQuery, Claimed, Claims, Discard, Finish, Ledger, NewMessage, Redrive, Settled,
    Shelve, Ticket, Truncated, Work,
};
pub use error::{Error, ErrorKind};
pub use message::{Destination, MessageId, ParseIdError, Request, State};
pub use read::{
    Attempt, AttemptRecord, Cursor, ListQuery, Message, Older, Page, Stretch, Summary, Tally, WaitRecord,
};
