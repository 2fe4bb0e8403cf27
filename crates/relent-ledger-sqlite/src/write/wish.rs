//! What a person wants done with a message.

use relent_core::{Timestamp, Wait, WaitOrigin};
use relent_ledger::{Discard, Error, MessageId, Redrive, Settled, State};
use rusqlite::{OptionalExtension, params};

use super::{Count, Write};
use crate::{
    error::{corrupt, sqlite},
    row::{nanos, reason},
};

/// A message as a person finds it.
struct Found {
    seq: i64,
    state: State,
    numbers: Result<Numbers, String>,
    reason: Option<String>,
}

/// What a new cycle counts on from. A row in which it is spoiled can still be discarded or cancelled.
struct Numbers {
    cycle: u32,
    attempts: u32,
}

/// Sends a dead letter again. An attempt that its last cycle left open is nobody's to conclude any more.
pub(crate) fn redrive(write: &mut Write<'_>, id: MessageId, redrive: &Redrive) -> Result<Settled, Error> {
    let Some(found) = find(write, id)? else { return Ok(Settled::NotFound) };
    if found.state != State::Dead {
        return Ok(Settled::Refused(found.state));
    }
    let numbers = found.numbers.as_ref().map_err(|what| corrupt(format!("{id}: {what}")))?;
    if numbers.cycle != redrive.seen_cycle {
        return Ok(Settled::Refused(found.state));
    }
    leave_the_dead(write, &found, State::Waiting)?;
    write
        .execute(
            "UPDATE message SET state = 'waiting', due_at = ?2, cycle = cycle + 1, open_attempt = NULL, \
             deadline = ?3, ended_at = NULL, reason = NULL, history = ?4, history_sum = ?5 WHERE seq = ?1",
            params![
                found.seq,
                nanos(redrive.at),
                redrive.deadline.map(nanos),
                &redrive.history[..],
                crc32fast::hash(&redrive.history),
            ],
        )
        .and_then(|_| {
            let wait = Wait::exactly(core::time::Duration::ZERO, WaitOrigin::Redrive);
            write.record_wait(found.seq, redrive.at, numbers.attempts, &wait)
        })
        .map_err(sqlite("redrive a dead letter"))?;
    Ok(Settled::Done)
}

/// Takes a dead letter off the list.
pub(crate) fn discard(write: &mut Write<'_>, id: MessageId, discard: Discard) -> Result<Settled, Error> {
    let Some(found) = find(write, id)? else { return Ok(Settled::NotFound) };
    // A spoiled cycle is nobody's to compare: such a row is discarded whatever was seen.
    let cycle = found.numbers.as_ref().map_or(discard.seen_cycle, |numbers| Some(numbers.cycle));
    if found.state != State::Dead || (discard.seen_cycle.is_some() && discard.seen_cycle != cycle) {
        return Ok(Settled::Refused(found.state));
    }
    leave_the_dead(write, &found, State::Discarded)?;
    end(write, &found, State::Discarded, discard.at)
}

/// Stops a message that waits or is held.
pub(crate) fn cancel(write: &mut Write<'_>, id: MessageId, at: Timestamp) -> Result<Settled, Error> {
    let Some(found) = find(write, id)? else { return Ok(Settled::NotFound) };
    if !matches!(found.state, State::Waiting | State::Held) {
        return Ok(Settled::Refused(found.state));
    }
    write.moved(found.state, State::Cancelled);
    end(write, &found, State::Cancelled, at)
}

fn find(write: &Write<'_>, id: MessageId) -> Result<Option<Found>, Error> {
    let row = write
        .prepare("SELECT seq, state, cycle, attempts, reason FROM message WHERE id = ?1")
        .and_then(|mut statement| {
            statement
                .query_row([id.to_bytes()], |row| {
                    let state: String = row.get(1)?;
                    let number = |index, name| {
                        row.get(index).map_err(|_| format!("its {name} is no number; it can be discarded"))
                    };
                    let numbers = number(2, "cycle")
                        .and_then(|cycle| number(3, "attempts").map(|attempts| Numbers { cycle, attempts }));
                    Ok((row.get(0)?, state, numbers, row.get(4)?))
                })
                .optional()
        })
        .map_err(sqlite("look up a message"))?;
    let Some((seq, state, numbers, reason)) = row else { return Ok(None) };
    let state =
        State::from_name(&state).ok_or_else(|| corrupt(format!("{id}: no state is called {state:?}")))?;
    Ok(Some(Found { seq, state, numbers, reason }))
}

fn leave_the_dead(write: &mut Write<'_>, found: &Found, to: State) -> Result<(), Error> {
    let reason = reason(found.reason.as_deref().unwrap_or_default()).map_err(corrupt)?;
    write.moved(State::Dead, to);
    write.delta.add(Count::Dead(reason), -1);
    Ok(())
}

fn end(write: &Write<'_>, found: &Found, state: State, at: Timestamp) -> Result<Settled, Error> {
    write
        .execute(
            "UPDATE message SET state = ?2, due_at = NULL, ended_at = ?3 WHERE seq = ?1",
            params![found.seq, state.name(), nanos(at)],
        )
        .map_err(sqlite("end a message"))?;
    Ok(Settled::Done)
}
