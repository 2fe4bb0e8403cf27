//! What the writer does for a request, inside its savepoint.

mod accept;
mod claim;
mod delta;
mod settle;
mod wish;

use relent_core::{Timestamp, Wait};
use relent_ledger::{Error, ErrorKind, MessageId, State, Ticket};
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};

use crate::{
    error::sqlite,
    row::{integer, length, nanos},
};
pub(crate) use accept::{accept, replay, room};
pub(crate) use claim::{claim, recover, release};
pub(crate) use delta::{Count, Delta};
pub(crate) use settle::{begin_attempt, finish, shelve};
pub(crate) use wish::{cancel, discard, redrive};

/// A request's hold on the store: the transaction, and what the request changes in the counts.
pub(crate) struct Write<'c> {
    connection: &'c Connection,
    delta: Delta,
}

/// A message in flight, found by its ticket.
struct InFlight {
    seq: i64,
    attempts: u32,
    cycle: u32,
    open_attempt: Option<u32>,
}

impl<'c> Write<'c> {
    pub(crate) fn new(connection: &'c Connection) -> Self {
        Self { connection, delta: Delta::default() }
    }

    pub(crate) fn into_delta(self) -> Delta {
        self.delta
    }

    fn prepare(&self, sql: &str) -> rusqlite::Result<CachedStatement<'c>> {
        self.connection.prepare_cached(sql)
    }

    fn execute(&self, sql: &str, parameters: impl rusqlite::Params) -> rusqlite::Result<usize> {
        self.prepare(sql)?.execute(parameters)
    }

    fn moved(&mut self, from: State, to: State) {
        self.delta.add(Count::State(from), -1);
        self.delta.add(Count::State(to), 1);
    }

    /// The message under a ticket that is not over.
    fn in_flight(&self, ticket: &Ticket) -> Result<InFlight, Error> {
        self.prepare(
            "SELECT seq, attempts, cycle, open_attempt FROM message \
             WHERE id = ?1 AND epoch = ?2 AND state = 'in_flight'",
        )
        .and_then(|mut statement| {
            statement
                .query_row(params![ticket.id.to_bytes(), integer(ticket.epoch)], |row| {
                    Ok(InFlight {
                        seq: row.get(0)?,
                        attempts: row.get(1)?,
                        cycle: row.get(2)?,
                        open_attempt: row.get(3)?,
                    })
                })
                .optional()
        })
        .map_err(sqlite("look up a ticket"))?
        .ok_or_else(|| stale(ticket.id))
    }

    /// The place of the message under a ticket that is not over. Nothing else of the row need be readable.
    fn place_in_flight(&self, ticket: &Ticket) -> Result<i64, Error> {
        self.prepare("SELECT seq FROM message WHERE id = ?1 AND epoch = ?2 AND state = 'in_flight'")
            .and_then(|mut statement| {
                statement
                    .query_row(params![ticket.id.to_bytes(), integer(ticket.epoch)], |row| row.get(0))
                    .optional()
            })
            .map_err(sqlite("look up a ticket"))?
            .ok_or_else(|| stale(ticket.id))
    }

    /// Records a wait after the ones there are.
    fn record_wait(
        &self,
        seq: i64,
        decided_at: Timestamp,
        after_attempt: u32,
        wait: &Wait,
    ) -> rusqlite::Result<()> {
        self.execute(
            "INSERT INTO wait (seq, ordinal, decided_at, after_attempt, length, origin, asked, floor, ceiling) \
             VALUES (?1, (SELECT coalesce(max(ordinal), 0) + 1 FROM wait WHERE seq = ?1), \
                     ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                seq,
                nanos(decided_at),
                after_attempt,
                length(wait.length),
                wait.origin.name(),
                wait.asked.map(length),
                length(wait.floor),
                length(wait.ceiling),
            ],
        )
        .map(drop)
    }
}

fn stale(id: MessageId) -> Error {
    Error::new(ErrorKind::Stale, format!("the ticket for {id} is over"))
}

fn misuse(what: String) -> Error {
    Error::new(ErrorKind::Misuse, what)
}
