//! relent's durable store on embedded SQLite.
//!
//! A commit that is on disk costs one sync whether it carries one row or a hundred, so one writer thread takes
//! requests from a bounded channel and commits many together: each in a savepoint of its own, answered only
//! when the commit returned. Reads run beside it on connections of their own.
//!
//! One process owns a store at a time, by a lock of the operating system on `relent.lock` beside the database.
//! The lock proves that the earlier owner is gone, so whatever that one had in flight is due at once.

#![forbid(unsafe_code)]

mod audit;
mod error;
mod ledger;
mod open;
mod read;
mod row;
mod thread;
mod write;

pub use audit::audit_file;
pub use ledger::SqliteLedger;
pub use open::{Options, Synchronous};
