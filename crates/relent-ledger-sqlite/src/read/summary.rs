//! One line about a message.

use relent_core::{Observed, StopReason, Wait, WaitOrigin};
use relent_ledger::{Destination, MessageId, State, Summary, WaitRecord};
use rusqlite::{
    Connection, OptionalExtension, Row,
    types::{Type, ValueRef},
};

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

/// Reads a line, but for its wait. What is spoiled is shown as well as it can be: one bad row must not hide the
/// others, and whoever is to mend or discard it must see its id.
pub(crate) fn summary(row: &Row<'_>) -> rusqlite::Result<Placed> {
    let time = |column| number(row, column).map(timestamp);
    let count = |column| number(row, column).map_or(u32::MAX, |n| u32::try_from(n).unwrap_or(u32::MAX));
    let state_name = text(row, 2).unwrap_or_default();
    let state = State::from_name(&state_name);
    let url = text(row, 4);
    let last_detail = match (state, &url) {
        (None, _) => format!("its state is unreadable: {state_name:?}"),
        (_, None) => "its content is missing".into(),
        _ => text(row, 15).unwrap_or_default(),
    };
    let summary = Summary {
        id: MessageId::from_bytes(row.get(1).unwrap_or_default()),
        state: state.unwrap_or(State::Dead),
        method: text(row, 3).unwrap_or_default(),
        destination: Destination::new(text(row, 5).unwrap_or_default()),
        policy: text(row, 6).unwrap_or_default(),
        accepted_at: time(7).unwrap_or_default(),
        due_at: time(8),
        wait: None,
        deadline: time(9),
        ended_at: time(10),
        reason: text(row, 11).as_deref().and_then(StopReason::from_name),
        attempts: count(12),
        cycle: count(13),
        last_observed: text(row, 14).as_deref().and_then(Observed::from_name),
        last_detail,
        url: url.unwrap_or_default(),
    };
    Ok((row.get(0)?, summary))
}

/// A text as well as it can be read; `None` where there is none.
fn text(row: &Row<'_>, column: usize) -> Option<String> {
    match row.get_ref(column) {
        Ok(ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
        Ok(ValueRef::Integer(number)) => Some(number.to_string()),
        Ok(ValueRef::Real(number)) => Some(number.to_string()),
        Ok(ValueRef::Null) | Err(_) => None,
    }
}

fn number(row: &Row<'_>, column: usize) -> Option<i64> {
    row.get(column).unwrap_or_default()
}

/// Adds the last recorded wait, if the message waits.
pub(crate) fn add_wait(connection: &Connection, (seq, summary): &mut Placed) -> rusqlite::Result<()> {
    if summary.state == State::Waiting {
        let last = connection
            .prepare_cached(&format!("SELECT {WAIT} FROM wait WHERE seq = ?1 ORDER BY ordinal DESC LIMIT 1"))?
            .query_row([*seq], |row| Ok(wait_record(row).ok()))
            .optional()?;
        summary.wait = last.flatten().map(|record| record.wait);
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

/// A stored word that is none of ours.
pub(crate) fn unknown(column: usize, kind: &str, name: &str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(
        column,
        Type::Text,
        format!("no {kind} is called {name:?}").into(),
    )
}
