//! The counts, as they are kept.

use relent_ledger::Tally;
use rusqlite::Connection;

use super::on_one_state;
use crate::{row::timestamp, write::Count};

/// The kept counts. Reading them costs the same at any size: a few rows and the ends of two indexes.
pub(crate) fn tally(connection: &Connection) -> rusqlite::Result<Tally> {
    on_one_state(connection, || {
        let mut tally = kept(connection)?;
        tally.oldest_waiting =
            oldest(connection, "SELECT min(accepted_at) FROM message WHERE ended_at IS NULL")?;
        tally.oldest_dead = oldest(connection, "SELECT min(ended_at) FROM message WHERE state = 'dead'")?;
        Ok(tally)
    })
}

/// The counts without the ages. Counts that are zero are left out, and so is a row that names none of ours.
pub(crate) fn kept(connection: &Connection) -> rusqlite::Result<Tally> {
    let mut tally = Tally::default();
    let mut statement = connection.prepare_cached("SELECT name, value FROM tally WHERE value > 0")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (name, value): (String, u64) = (row.get(0)?, row.get(1)?);
        match Count::from_name(&name) {
            Some(Count::Accepted) => tally.accepted = value,
            Some(Count::Attempts) => tally.attempts = value,
            Some(Count::State(state)) => drop(tally.states.insert(state, value)),
            Some(Count::Dead(reason)) => drop(tally.dead.insert(reason.name(), value)),
            None => {}
        }
    }
    Ok(tally)
}

fn oldest(connection: &Connection, sql: &str) -> rusqlite::Result<Option<relent_core::Timestamp>> {
    let nanos: Option<i64> = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    Ok(nanos.map(timestamp))
}
