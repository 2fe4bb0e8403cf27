//! All about one message.

use bytes::Bytes;
use relent_core::{Idempotency, Observed};
use relent_ledger::{
    Attempt, AttemptRecord, Message, MessageId, Older, Request, Stretch, Truncated, WaitRecord,
};
use rusqlite::{Connection, OptionalExtension, Row};

use super::{
    on_one_state,
    summary::{COLUMNS, FROM, Placed, WAIT, WIDTH, add_wait, summary, unknown, wait_record},
};
use crate::row::{Stored, duration, timestamp, verify_history};

/// A message with a stretch of its attempts and waits.
pub(crate) fn message(
    connection: &Connection,
    id: MessageId,
    log: Stretch,
) -> rusqlite::Result<Option<Message>> {
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
        complete(connection, placed, history.into(), log).map(Some)
    })
}

fn complete(
    connection: &Connection,
    placed: Placed,
    history: Bytes,
    log: Stretch,
) -> rusqlite::Result<Message> {
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
    let (attempts, waits, older) = stretch(connection, seq, log)?;
    Ok(Message { summary, request, key, repeat, labels, history, attempts, waits, older })
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

/// A stretch of the log. One row more than is wanted is read, which tells whether there are more.
fn stretch(
    connection: &Connection,
    seq: i64,
    log: Stretch,
) -> rusqlite::Result<(Vec<Attempt>, Vec<WaitRecord>, Older)> {
    let before = log.before.unwrap_or(u32::MAX);
    let mut attempts: Vec<Attempt> = connection
        .prepare_cached(
            "SELECT number, cycle, began_at, took, observed, detail, response, truncated \
             FROM attempt WHERE seq = ?1 AND number < ?2 ORDER BY number DESC LIMIT ?3",
        )?
        .query_map((seq, before, i64::from(log.limit) + 1), attempt)?
        .collect::<Result<_, _>>()?;
    let cut_attempts = in_order(&mut attempts, log.limit);
    let first = if cut_attempts { attempts.first().map_or(before, |attempt| attempt.number) } else { 0 };
    let mut waits: Vec<WaitRecord> = connection
        .prepare_cached(&format!(
            "SELECT {WAIT} FROM wait WHERE seq = ?1 AND after_attempt >= ?2 AND after_attempt < ?3 \
             ORDER BY ordinal DESC LIMIT ?4"
        ))?
        .query_map((seq, first, before, i64::from(log.most_waits()) + 1), wait_record)?
        .collect::<Result<_, _>>()?;
    let cut_waits = in_order(&mut waits, log.most_waits());
    Ok((attempts, waits, if cut_attempts || cut_waits { Older::More } else { Older::Nothing }))
}

/// Turns what was read newest first into its order, without what is more than wanted. Whether anything was.
fn in_order<T>(newest_first: &mut Vec<T>, most: u32) -> bool {
    let cut = newest_first.len() > most as usize;
    newest_first.truncate(most as usize);
    newest_first.reverse();
    cut
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
