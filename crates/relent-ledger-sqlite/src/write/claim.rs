//! Giving out what is due, and taking it back.

use std::collections::HashSet;

use bytes::Bytes;
use relent_core::{StopReason, Timestamp};
use relent_ledger::{ClaimQuery, Claimed, Claims, Destination, Error, MessageId, State, Ticket, Work};
use rusqlite::{Connection, Error as Sqlite, ErrorCode, OptionalExtension, Row, ffi, params};

use super::{Count, Delta, Write};
use crate::{
    error::sqlite,
    row::{Stored, integer, nanos, timestamp, verify_history},
    thread::Returned,
};

/// A message that waits: when it is due, and which.
type Candidate = (i64, i64);

/// Marks what is due as in flight. With it come the times at which the messages were due, should nobody take
/// them.
pub(crate) fn claim(write: &mut Write<'_>, query: &ClaimQuery) -> Result<(Claims, Vec<Returned>), Error> {
    let candidates = longest_due(write, query.limit.saturating_add(1), &query.skip)
        .map_err(sqlite("look for what is due"))?;
    let now = nanos(query.now);
    let taken = candidates.iter().take(query.limit).take_while(|(due_at, _)| *due_at <= now).count();
    let next_due = candidates.get(taken).map(|(due_at, _)| timestamp(*due_at));
    let mut claims = Claims { claimed: Vec::with_capacity(taken), next_due };
    let mut due = Vec::with_capacity(taken);
    for &(due_at, seq) in &candidates[..taken] {
        let claimed = take(write, seq, query.now).map_err(sqlite("claim a message"))?;
        let Some(claimed) = claimed else {
            write.moved(State::Waiting, State::Dead);
            write.delta.add(Count::Dead(StopReason::Unreadable), 1);
            continue;
        };
        write.moved(State::Waiting, State::InFlight);
        let (Claimed::Work(ticket, _) | Claimed::Unreadable(ticket, _)) = &claimed;
        due.push((*ticket, timestamp(due_at)));
        claims.claimed.push(claimed);
    }
    Ok((claims, due))
}

/// Puts messages back that nobody took, due when they were. Tickets that are over by now are left alone.
pub(crate) fn release(
    connection: &Connection,
    returned: &[Returned],
    delta: &mut Delta,
) -> rusqlite::Result<()> {
    for (ticket, due_at) in returned {
        let put_back = connection
            .prepare_cached(
                "UPDATE message SET state = 'waiting', due_at = ?3 \
                 WHERE id = ?1 AND epoch = ?2 AND state = 'in_flight'",
            )?
            .execute(params![ticket.id.to_bytes(), integer(ticket.epoch), nanos(*due_at)])?;
        if put_back == 1 {
            delta.add(Count::State(State::InFlight), -1);
            delta.add(Count::State(State::Waiting), 1);
        }
    }
    Ok(())
}

/// Puts everything back that an earlier owner had in flight, due at once.
pub(crate) fn recover(connection: &Connection, now: Timestamp) -> rusqlite::Result<()> {
    let put_back = connection.execute(
        "UPDATE message SET state = 'waiting', due_at = ?1 WHERE state = 'in_flight'",
        [nanos(now)],
    )?;
    let put_back = i64::try_from(put_back).unwrap_or(i64::MAX);
    let mut delta = Delta::default();
    delta.add(Count::State(State::InFlight), -put_back);
    delta.add(Count::State(State::Waiting), put_back);
    delta.store(connection)
}

/// The `want` messages that have been due longest or will be due first, in that order.
fn longest_due(write: &Write<'_>, want: usize, skip: &[Destination]) -> rusqlite::Result<Vec<Candidate>> {
    let skip = skip
        .iter()
        .filter_map(|destination| number(write, destination).transpose())
        .collect::<rusqlite::Result<HashSet<i64>>>()?;
    let mut statement = write.prepare(
        "SELECT coalesce(due_at, 0), seq, destination FROM message INDEXED BY message_due \
         WHERE state = 'waiting' ORDER BY due_at, seq",
    )?;
    let mut rows = statement.query([])?;
    let mut found = Vec::with_capacity(want.min(1024));
    let mut skipped = 0;
    while found.len() < want {
        let Some(row) = rows.next()? else { return Ok(found) };
        if !skip.is_empty() && skip.contains(&row.get(2)?) {
            skipped += 1;
            if skipped == MOST_SKIPPED {
                return longest_due_elsewhere(write, want, &skip);
            }
        } else {
            found.push((row.get(0)?, row.get(1)?));
        }
    }
    Ok(found)
}

/// The same where a destination that is skipped has the head of the queue to itself: destination by
/// destination, so that its backlog costs nothing.
fn longest_due_elsewhere(
    write: &Write<'_>,
    want: usize,
    skip: &HashSet<i64>,
) -> rusqlite::Result<Vec<Candidate>> {
    let mut statement = write.prepare(
        "SELECT coalesce(due_at, 0), seq FROM message INDEXED BY message_due_by_destination \
         WHERE state = 'waiting' AND destination = ?1 ORDER BY due_at, seq LIMIT ?2",
    )?;
    let limit = i64::try_from(want).unwrap_or(i64::MAX);
    let mut found: Vec<Candidate> = Vec::new();
    for (first, destination) in waiting_destinations(write)? {
        if skip.contains(&destination) {
            continue;
        }
        if found.get(want - 1).is_some_and(|last| last.0 < first) {
            break;
        }
        for candidate in
            statement.query_map(params![destination, limit], |row| Ok((row.get(0)?, row.get(1)?)))?
        {
            found.push(candidate?);
        }
        found.sort_unstable();
        found.truncate(want);
    }
    Ok(found)
}

/// The destinations for which something waits, with the earliest time due, the earliest first. One seek each:
/// SQLite has no loose index scan, so the recursion steps from one to the next.
fn waiting_destinations(write: &Write<'_>) -> rusqlite::Result<Vec<(i64, i64)>> {
    let mut statement = write.prepare(
        "WITH RECURSIVE step (destination) AS ( \
           SELECT min(destination) FROM message INDEXED BY message_due_by_destination WHERE state = 'waiting' \
           UNION ALL \
           SELECT (SELECT min(destination) FROM message INDEXED BY message_due_by_destination \
                   WHERE state = 'waiting' AND message.destination > step.destination) \
           FROM step WHERE step.destination IS NOT NULL) \
         SELECT coalesce((SELECT due_at FROM message INDEXED BY message_due_by_destination \
                          WHERE state = 'waiting' AND message.destination = step.destination \
                          ORDER BY due_at LIMIT 1), 0), destination \
         FROM step WHERE destination IS NOT NULL ORDER BY 1",
    )?;
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

fn number(write: &Write<'_>, destination: &Destination) -> rusqlite::Result<Option<i64>> {
    write
        .prepare("SELECT id FROM destination WHERE name = ?1")?
        .query_row([destination.as_str()], |row| row.get(0))
        .optional()
}

/// Marks a message as in flight and reads it. `None`: not even a ticket can be made for it, so that nobody
/// could settle it; it is shelved here.
fn take(write: &Write<'_>, seq: i64, now: Timestamp) -> rusqlite::Result<Option<Claimed>> {
    let named = write
        .prepare(
            "UPDATE message SET state = 'in_flight', due_at = NULL, epoch = epoch + 1 WHERE seq = ?1 \
             RETURNING id, epoch",
        )?
        .query_row([seq], |row| Ok(Ticket { id: MessageId::from_bytes(row.get(0)?), epoch: row.get(1)? }));
    let ticket = match named {
        Ok(ticket) => ticket,
        Err(error) if is_unreadable(&error) => {
            shelve_without_ticket(write, seq, now, &error)?;
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    match read_work(write, seq) {
        Ok(Ok(work)) => Ok(Some(Claimed::Work(ticket, Box::new(work)))),
        Ok(Err(what)) => Ok(Some(Claimed::Unreadable(ticket, what))),
        Err(Sqlite::QueryReturnedNoRows) => {
            Ok(Some(Claimed::Unreadable(ticket, "its content is missing".into())))
        }
        Err(error) if is_unreadable(&error) => Ok(Some(Claimed::Unreadable(ticket, error.to_string()))),
        Err(error) => Err(error),
    }
}

fn shelve_without_ticket(
    write: &Write<'_>,
    seq: i64,
    now: Timestamp,
    error: &Sqlite,
) -> rusqlite::Result<()> {
    write
        .execute(
            "UPDATE message SET state = 'dead', due_at = NULL, reason = 'unreadable', ended_at = ?2, \
             last_detail = ?3 WHERE seq = ?1",
            params![seq, nanos(now), format!("no ticket can be made: {error}")],
        )
        .map(drop)
}

/// Whether a failure is about one row and says nothing about the others.
fn is_unreadable(error: &Sqlite) -> bool {
    match error {
        // A constraint on types: the row's epoch has come to its end.
        Sqlite::SqliteFailure(failure, _) => {
            failure.code == ErrorCode::DatabaseCorrupt
                || failure.extended_code == ffi::SQLITE_CONSTRAINT_DATATYPE
        }
        Sqlite::FromSqlConversionFailure(..)
        | Sqlite::IntegralValueOutOfRange(..)
        | Sqlite::InvalidColumnType(..)
        | Sqlite::Utf8Error(..) => true,
        _ => false,
    }
}

fn read_work(write: &Write<'_>, seq: i64) -> rusqlite::Result<Result<Work, String>> {
    let columns = Stored::COLUMNS;
    let mut statement = write.prepare(&format!(
        "SELECT {columns}, message.history, message.history_sum, message.cycle, message.attempts, \
                message.open_attempt \
         FROM message JOIN content USING (seq) JOIN destination ON destination.id = message.destination \
         WHERE seq = ?1"
    ))?;
    statement.query_row([seq], |row| {
        let mutable = Mutable::read(row, Stored::WIDTH)?;
        Ok(work(Stored::read(row)?, mutable))
    })
}

/// The columns of a message row that a worker needs.
struct Mutable {
    history: Vec<u8>,
    history_sum: i64,
    cycle: u32,
    attempts: u32,
    open_attempt: Option<u32>,
}

impl Mutable {
    fn read(row: &Row<'_>, from: usize) -> rusqlite::Result<Self> {
        Ok(Self {
            history: row.get(from)?,
            history_sum: row.get(from + 1)?,
            cycle: row.get(from + 2)?,
            attempts: row.get(from + 3)?,
            open_attempt: row.get(from + 4)?,
        })
    }
}

fn work(stored: Stored, mutable: Mutable) -> Result<Work, String> {
    stored.verify()?;
    verify_history(&mutable.history, mutable.history_sum)?;
    let destination = Destination::new(stored.destination.as_str());
    let accepted_at = timestamp(stored.accepted_at);
    let (key, policy) = (stored.key.clone(), stored.policy.clone());
    let (request, labels) = stored.decode()?;
    Ok(Work {
        request,
        destination,
        key,
        policy,
        labels,
        accepted_at,
        history: Bytes::from(mutable.history),
        cycle: mutable.cycle,
        attempts: mutable.attempts,
        interrupted: mutable.open_attempt,
    })
}

/// How many skipped messages are passed over before their backlog is stepped around: about a millisecond.
const MOST_SKIPPED: usize = 1000;
