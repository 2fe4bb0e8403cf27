//! What a worker says of the message it holds.

use relent_core::{Settlement, StopReason, Timestamp, Wait};
use relent_ledger::{AttemptEnd, Error, Finish, Shelve, State, Ticket, Truncated};
use rusqlite::params;

use super::{Count, InFlight, Write, misuse};
use crate::{
    error::sqlite,
    row::{length, nanos},
};

/// Records that an attempt begins.
pub(crate) fn begin_attempt(write: &mut Write<'_>, ticket: &Ticket, at: Timestamp) -> Result<u32, Error> {
    let held = write.in_flight(ticket)?;
    if let Some(open) = held.open_attempt {
        return Err(misuse(format!("attempt {open} of {} was begun and is not finished", ticket.id)));
    }
    let number = held.attempts.saturating_add(1);
    insert_attempt(write, &held, number, at).map_err(sqlite("record the start of an attempt"))?;
    write.delta.add(Count::Attempts, 1);
    Ok(number)
}

/// Ends the work under a ticket.
pub(crate) fn finish(write: &mut Write<'_>, ticket: &Ticket, finish: &Finish) -> Result<(), Error> {
    let held = write.in_flight(ticket)?;
    if let Some(end) = &finish.attempt {
        if held.open_attempt != Some(end.number) {
            return Err(misuse(format!("attempt {} of {} is not under way", end.number, ticket.id)));
        }
        end_attempt(write, held.seq, end).map_err(sqlite("record the end of an attempt"))?;
    }
    write
        .execute(
            "UPDATE message SET history = ?2, history_sum = ?3 WHERE seq = ?1",
            params![held.seq, &finish.history[..], crc32fast::hash(&finish.history)],
        )
        .map_err(sqlite("record a history"))?;
    settle(write, &held, finish).map_err(sqlite("settle a message"))
}

/// Gives a message to the dead letters as it is, whatever is spoiled in it.
pub(crate) fn shelve(write: &mut Write<'_>, ticket: &Ticket, shelve: &Shelve) -> Result<(), Error> {
    let seq = write.place_in_flight(ticket)?;
    write
        .execute("UPDATE message SET last_detail = ?2 WHERE seq = ?1", params![seq, shelve.detail])
        .and_then(|_| bury(write, seq, shelve.at, shelve.reason))
        .map_err(sqlite("shelve a message"))
}

fn insert_attempt(write: &Write<'_>, held: &InFlight, number: u32, at: Timestamp) -> rusqlite::Result<()> {
    write.execute(
        "INSERT INTO attempt (seq, number, cycle, began_at) VALUES (?1, ?2, ?3, ?4)",
        params![held.seq, number, held.cycle, nanos(at)],
    )?;
    write.execute(
        "UPDATE message SET attempts = ?2, open_attempt = ?2 WHERE seq = ?1",
        params![held.seq, number],
    )?;
    Ok(())
}

fn end_attempt(write: &Write<'_>, seq: i64, end: &AttemptEnd) -> rusqlite::Result<()> {
    let observed = end.observed.to_string();
    write.execute(
        "UPDATE attempt SET took = ?3, observed = ?4, detail = ?5, response = ?6, truncated = ?7 \
         WHERE seq = ?1 AND number = ?2",
        params![
            seq,
            end.number,
            length(end.took),
            observed,
            end.detail,
            &end.response[..],
            end.truncated == Truncated::Yes,
        ],
    )?;
    write.execute(
        "UPDATE message SET open_attempt = NULL, last_observed = ?2, last_detail = ?3 WHERE seq = ?1",
        params![seq, observed, end.detail],
    )?;
    Ok(())
}

fn settle(write: &mut Write<'_>, held: &InFlight, finish: &Finish) -> rusqlite::Result<()> {
    match finish.settlement {
        Settlement::Ack => {
            write.execute(
                "UPDATE message SET state = 'delivered', ended_at = ?2 WHERE seq = ?1",
                params![held.seq, nanos(finish.at)],
            )?;
            write.moved(State::InFlight, State::Delivered);
            Ok(())
        }
        Settlement::Retry { wait } | Settlement::Defer { wait } => {
            write.record_wait(held.seq, finish.at, held.attempts, &wait)?;
            put_back(write, held.seq, finish.at, &wait)
        }
        Settlement::Leave => put_back(write, held.seq, finish.at, &Wait::NONE),
        Settlement::DeadLetter { reason } => bury(write, held.seq, finish.at, reason),
    }
}

fn put_back(write: &mut Write<'_>, seq: i64, at: Timestamp, wait: &Wait) -> rusqlite::Result<()> {
    write.execute(
        "UPDATE message SET state = 'waiting', due_at = ?2 WHERE seq = ?1",
        params![seq, nanos(at.after(wait.length))],
    )?;
    write.moved(State::InFlight, State::Waiting);
    Ok(())
}

fn bury(write: &mut Write<'_>, seq: i64, at: Timestamp, reason: StopReason) -> rusqlite::Result<()> {
    write.execute(
        "UPDATE message SET state = 'dead', reason = ?2, ended_at = ?3 WHERE seq = ?1",
        params![seq, reason.name(), nanos(at)],
    )?;
    write.moved(State::InFlight, State::Dead);
    write.delta.add(Count::Dead(reason), 1);
    Ok(())
}
