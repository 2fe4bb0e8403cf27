//! All about one message.

use bytes::Bytes;
use relent_core::{Idempotency, Observed};
use relent_ledger::{Attempt, AttemptRecord, Message, MessageId, Request, Truncated, WaitRecord};
use rusqlite::{Connection, OptionalExtension, Row};

use super::{
    on_one_state,
    summary::{COLUMNS, FROM, Placed, WAIT, WIDTH, add_wait, summary, unknown, wait_record},
};
use crate::row::{Stored, duration, timestamp, verify_history};

/// A message with its attempts and waits.
pub(crate) fn message(connection: &Connection, id: MessageId) -> rusqlite::Result<Option<Message>> {
    on_one_state(connection, || {
        let found = connection
            .prepare_cached(&format!(
                "SELECT {COLUMNS}, message.history, message.history_sum FROM {FROM} WHERE message.id = ?1"
            ))?
            .query_row([id.to_bytes()], |row| {
                Ok((summary(row)?, row.get::<_, Vec<u8>>(WIDTH)?, row.get::<_, i64>(WIDTH + 1)?))
            })
            .optional()?;
        let Some((mut placed, history, history_sum)) = found else { return Ok(None) };
        add_wait(connection, &mut placed)?;
        if let Err(what) = verify_history(&history, history_sum) {
            placed.1.last_detail = what;
        }
        complete(connection, placed, history.into()).map(Some)
    })
}

fn complete(connection: &Connection, placed: Placed, history: Bytes) -> rusqlite::Result<Message> {
    let (seq, mut summary) = placed;
    let stored = stored(connection, seq)?;
    let (key, repeat) = match &stored {
        Some(stored) => (stored.key.clone(), Idempotency::from_name(&stored.repeat).unwrap_or_default()),
        None => (None, Idempotency::default()),
    };
    let mut request = Request {
        method: summary.method.clone(),
        url: summary.url.clone(),
        headers: Vec::new(),
        body: Bytes::new(),
    };
    let mut labels = Default::default();
    if let Some(stored) = stored {
        let verified = stored.verify();
        let body = stored.body.clone();
        match stored.decode() {
            Ok(decoded) => (request, labels) = decoded,
            Err(what) => {
                request.body = body.into();
                summary.last_detail = what;
            }
        }
        if let Err(what) = verified {
            summary.last_detail = what;
        }
    }
    Ok(Message {
        summary,
        request,
        key,
        repeat,
        labels,
        history,
        attempts: attempts(connection, seq)?,
        waits: waits(connection, seq)?,
    })
}

fn stored(connection: &Connection, seq: i64) -> rusqlite::Result<Option<Stored>> {
    let columns = Stored::COLUMNS;
    connection
        .prepare_cached(&format!(
            "SELECT {columns} FROM message JOIN content USING (seq) \
             JOIN destination ON destination.id = message.destination WHERE seq = ?1"
        ))?
        .query_row([seq], Stored::read)
        .optional()
}

fn attempts(connection: &Connection, seq: i64) -> rusqlite::Result<Vec<Attempt>> {
    connection
        .prepare_cached(
            "SELECT number, cycle, began_at, took, observed, detail, response, truncated \
             FROM attempt WHERE seq = ?1 ORDER BY number",
        )?
        .query_map([seq], attempt)?
        .collect()
}

fn attempt(row: &Row<'_>) -> rusqlite::Result<Attempt> {
    let end = match row.get::<_, Option<String>>(4)? {
        None => None,
        Some(name) => Some(AttemptRecord {
            took: duration(row.get(3)?),
            observed: Observed::from_name(&name).ok_or_else(|| unknown(4, "observation", &name))?,
            detail: row.get(5)?,
            response: Bytes::from(row.get::<_, Vec<u8>>(6)?),
            truncated: if row.get(7)? { Truncated::Yes } else { Truncated::No },
        }),
    };
    Ok(Attempt { number: row.get(0)?, cycle: row.get(1)?, began_at: timestamp(row.get(2)?), end })
}

fn waits(connection: &Connection, seq: i64) -> rusqlite::Result<Vec<WaitRecord>> {
    connection
        .prepare_cached(&format!("SELECT {WAIT} FROM wait WHERE seq = ?1 ORDER BY ordinal"))?
        .query_map([seq], wait_record)?
        .collect()
}
