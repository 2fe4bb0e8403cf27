//! What the readers answer: lists, single messages, the tally. A row that cannot be read is shown as far as it
//! can be, with what is wrong with it in its detail.

mod list;
mod message;
mod summary;
mod tally;

use rusqlite::{Connection, TransactionBehavior};

pub(crate) use list::list;
pub(crate) use message::message;
pub(crate) use tally::{kept, tally};

/// Runs `read` on one state of the store, whatever is committed meanwhile.
pub(crate) fn on_one_state<T>(
    connection: &Connection,
    read: impl FnOnce() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let transaction = rusqlite::Transaction::new_unchecked(connection, TransactionBehavior::Deferred)?;
    let answer = read()?;
    transaction.finish()?;
    Ok(answer)
}
