//! Taking a message in.

use relent_core::{Wait, WaitOrigin};
use relent_ledger::{Accepted, Error, MessageId, NewMessage, State};
use rusqlite::{OptionalExtension, params};

use super::{Count, Write, misuse};
use crate::{
    error::sqlite,
    row::{Content, nanos},
};

/// Stores a message with its idempotency record, unless its key is taken.
pub(crate) fn accept(
    write: &mut Write<'_>,
    message: &NewMessage,
    content: &Content,
) -> Result<Accepted, Error> {
    if let Some(key) = &message.key
        && let Some(known) = replay(write, key, message.fingerprint)?
    {
        return Ok(known);
    }
    if id_taken(write, message.id).map_err(sqlite("look up an id"))? {
        return Err(misuse(format!("a message with the id {} was accepted before", message.id)));
    }
    insert(write, message, content).map_err(sqlite("store a message"))?;
    write.delta.add(Count::Accepted, 1);
    write.delta.add(Count::State(State::Waiting), 1);
    Ok(Accepted::New)
}

/// Takes the pages of a small message and gives them back: a disk with no room for them refuses this too.
pub(crate) fn room(write: &mut Write<'_>) -> Result<(), Error> {
    let name = "-".repeat(ROOM);
    write
        .execute("INSERT INTO destination (name) VALUES (?1)", [&name])
        .and_then(|_| write.execute("DELETE FROM destination WHERE name = ?1", [&name]))
        .map(drop)
        .map_err(sqlite("make room for a message"))
}

/// What was accepted with this key before.
pub(crate) fn replay(write: &Write<'_>, key: &str, fingerprint: [u8; 32]) -> Result<Option<Accepted>, Error> {
    let known = first_of(write, key).map_err(sqlite("look up an idempotency key"))?;
    Ok(known.map(
        |(id, first)| {
            if first == fingerprint { Accepted::Replayed(id) } else { Accepted::Conflict(id) }
        },
    ))
}

/// The message that has the key, and its fingerprint.
fn first_of(write: &Write<'_>, key: &str) -> rusqlite::Result<Option<(MessageId, Vec<u8>)>> {
    write
        .prepare(
            "SELECT message.id, idempotency.fingerprint \
             FROM idempotency JOIN message USING (seq) WHERE idempotency.key = ?1",
        )?
        .query_row([key], |row| Ok((MessageId::from_bytes(row.get(0)?), row.get(1)?)))
        .optional()
}

fn id_taken(write: &Write<'_>, id: MessageId) -> rusqlite::Result<bool> {
    write.prepare("SELECT 1 FROM message WHERE id = ?1")?.exists([id.to_bytes()])
}

fn insert(write: &Write<'_>, message: &NewMessage, content: &Content) -> rusqlite::Result<()> {
    let due_at = message.not_before.unwrap_or(message.accepted_at);
    let seq: i64 = write
        .prepare(
            "INSERT INTO message (id, destination, accepted_at, state, due_at, epoch, cycle, attempts, deadline, \
                                  last_detail, history, history_sum) \
             VALUES (?1, ?2, ?3, 'waiting', ?4, 0, 0, 0, ?5, '', ?6, ?7)",
        )?
        .insert(params![
            message.id.to_bytes(),
            destination(write, message.destination.as_str())?,
            nanos(message.accepted_at),
            nanos(due_at),
            message.deadline.map(nanos),
            &message.history[..],
            crc32fast::hash(&message.history),
        ])?;
    insert_content(write, seq, message, content)?;
    if let Some(key) = &message.key {
        write.execute(
            "INSERT INTO idempotency (key, seq, fingerprint) VALUES (?1, ?2, ?3)",
            params![key, seq, message.fingerprint],
        )?;
    }
    if let Some(not_before) = message.not_before {
        let wait = Wait::exactly(not_before.since(message.accepted_at), WaitOrigin::NotBefore);
        write.record_wait(seq, message.accepted_at, 0, &wait)?;
    }
    Ok(())
}

fn insert_content(
    write: &Write<'_>,
    seq: i64,
    message: &NewMessage,
    content: &Content,
) -> rusqlite::Result<()> {
    write
        .execute(
            "INSERT INTO content (seq, key, fingerprint, policy, repeat, method, url, headers, labels, sum, body) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            params![
                seq,
                message.key,
                message.fingerprint,
                message.policy,
                message.repeat.name(),
                message.request.method,
                message.request.url,
                content.headers,
                content.labels,
                content.sum,
                &message.request.body[..],
            ],
        )
        .map(drop)
}

/// The number of a destination, which it gets when it is first seen. Not kept in memory: a number given in a
/// request that is undone must not outlive it.
fn destination(write: &Write<'_>, name: &str) -> rusqlite::Result<i64> {
    let known =
        write.prepare("SELECT id FROM destination WHERE name = ?1")?.query_row([name], |row| row.get(0));
    match known.optional()? {
        Some(id) => Ok(id),
        None => write.prepare("INSERT INTO destination (name) VALUES (?1)")?.insert([name]),
    }
}

/// Bytes of a message's rows, more than any page has left over.
const ROOM: usize = 8 * 1024;
