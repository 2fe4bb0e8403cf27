//! One line about a message.

use relent_core::{Observed, StopReason, Wait, WaitOrigin};
use relent_ledger::{Destination, MessageId, State, Summary, WaitRecord};
use rusqlite::{Connection, OptionalExtension, Row, types::Type};

use crate::row::{duration, timestamp};

/// A message's place in the order of acceptance, and its line.
pub(crate) type Placed = (i64, Summary);

/// The columns that [`summary`] reads.
pub(crate) const COLUMNS: &str = "message.seq, message.id, message.state, content.method, content.url, \
    destination.name, content.policy, message.accepted_at, message.due_at, message.deadline, \
    message.ended_at, message.reason, message.attempts, message.cycle, message.last_observed, \
    message.last_detail";

/// How many these are.
pub(crate) const WIDTH: usize = 16;

/// Where they come from. The content may be missing; the message is shown all the same.
pub(crate) const FROM: &str = "message LEFT JOIN content ON content.seq = message.seq \
    LEFT JOIN destination ON destination.id = message.destination";

/// Reads a line, but for its wait.
pub(crate) fn summary(row: &Row<'_>) -> rusqlite::Result<Placed> {
    let text = |column| row.get::<_, Option<String>>(column);
    let time = |column| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.map(timestamp));
    let url = text(4)?;
    let detail: String = row.get(15)?;
    let summary = Summary {
        id: MessageId::from_bytes(row.get(1)?),
        state: state(row, 2)?,
        method: text(3)?.unwrap_or_default(),
        destination: Destination::new(text(5)?.unwrap_or_default()),
        policy: text(6)?.unwrap_or_default(),
        accepted_at: timestamp(row.get(7)?),
        due_at: time(8)?,
        wait: None,
        deadline: time(9)?,
        ended_at: time(10)?,
        reason: text(11)?.as_deref().and_then(StopReason::from_name),
        attempts: row.get(12)?,
        cycle: row.get(13)?,
        last_observed: text(14)?.as_deref().and_then(Observed::from_name),
        last_detail: if url.is_some() { detail } else { "its content is missing".into() },
        url: url.unwrap_or_default(),
    };
    Ok((row.get(0)?, summary))
}

/// Adds the last recorded wait, if the message waits.
pub(crate) fn add_wait(connection: &Connection, (seq, summary): &mut Placed) -> rusqlite::Result<()> {
    if summary.state == State::Waiting {
        let last = connection
            .prepare_cached(&format!("SELECT {WAIT} FROM wait WHERE seq = ?1 ORDER BY ordinal DESC LIMIT 1"))?
            .query_row([*seq], wait_record)
            .optional()?;
        summary.wait = last.map(|record| record.wait);
    }
    Ok(())
}

/// The columns that [`wait_record`] reads.
pub(crate) const WAIT: &str = "decided_at, after_attempt, length, origin, asked, floor, ceiling";

/// Reads a wait.
pub(crate) fn wait_record(row: &Row<'_>) -> rusqlite::Result<WaitRecord> {
    let origin: String = row.get(3)?;
    Ok(WaitRecord {
        decided_at: timestamp(row.get(0)?),
        after_attempt: row.get(1)?,
        wait: Wait {
            length: duration(row.get(2)?),
            origin: WaitOrigin::from_name(&origin).ok_or_else(|| unknown(3, "origin", &origin))?,
            asked: row.get::<_, Option<i64>>(4)?.map(duration),
            floor: duration(row.get(5)?),
            ceiling: duration(row.get(6)?),
        },
    })
}

fn state(row: &Row<'_>, column: usize) -> rusqlite::Result<State> {
    let name: String = row.get(column)?;
    State::from_name(&name).ok_or_else(|| unknown(column, "state", &name))
}

/// A stored word that is none of ours.
pub(crate) fn unknown(column: usize, kind: &str, name: &str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(
        column,
        Type::Text,
        format!("no {kind} is called {name:?}").into(),
    )
}
