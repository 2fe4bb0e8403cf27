//! Pages of messages.

use relent_ledger::{Cursor, ListQuery, Page, State, Summary};
use rusqlite::{Connection, params};

use super::{
    on_one_state,
    summary::{COLUMNS, FROM, Placed, add_wait, summary},
};
use crate::row::array;

/// A page, newest first by the order of acceptance, which nothing changes: so pages stay as they are while
/// messages come and go.
pub(crate) fn list(connection: &Connection, query: &ListQuery) -> rusqlite::Result<Page<Summary>> {
    on_one_state(connection, || {
        let wanted = Wanted::by(query);
        let mut found = Vec::new();
        if query.states.is_empty() {
            found = newest(connection, None, &wanted)?;
        }
        // State by state: SQLite would sort everything that is in any of them.
        for state in State::ALL.into_iter().filter(|state| query.states.contains(state)) {
            found.extend(newest(connection, Some(state), &wanted)?);
        }
        found.sort_unstable_by_key(|(seq, _)| std::cmp::Reverse(*seq));
        let more = found.len() > query.limit;
        found.truncate(query.limit);
        for placed in &mut found {
            add_wait(connection, placed)?;
        }
        let last = found.last().and_then(|(seq, _)| u64::try_from(*seq).ok()).map(Cursor);
        let next = if more { last.or(query.after) } else { None };
        Ok(Page { items: found.into_iter().map(|(_, summary)| summary).collect(), next })
    })
}

/// What is read of each state, as parameters.
struct Wanted {
    before: i64,
    most: i64,
    reasons: Option<String>,
    destinations: Option<String>,
}

impl Wanted {
    /// One more than the page holds, which tells whether there are more.
    fn by(query: &ListQuery) -> Self {
        Self {
            before: query.after.map_or(i64::MAX, |Cursor(seq)| i64::try_from(seq).unwrap_or(i64::MAX)),
            most: i64::try_from(query.limit.saturating_add(1)).unwrap_or(i64::MAX),
            reasons: array(query.reasons.iter().map(|reason| reason.name())),
            destinations: array(query.destinations.iter().map(relent_ledger::Destination::as_str)),
        }
    }
}

fn newest(connection: &Connection, state: Option<State>, wanted: &Wanted) -> rusqlite::Result<Vec<Placed>> {
    let Wanted { before, most, reasons, destinations } = wanted;
    match state {
        None => connection
            .prepare_cached(&format!(
                "SELECT {COLUMNS} FROM {FROM} WHERE message.seq < ?1 AND {FITS} \
                 ORDER BY message.seq DESC LIMIT ?2"
            ))?
            .query_map(params![before, most, reasons, destinations], summary)?
            .collect(),
        Some(state) => connection
            .prepare_cached(&format!(
                "SELECT {COLUMNS} FROM {FROM} WHERE message.state = ?5 AND message.seq < ?1 AND {FITS} \
                 ORDER BY message.seq DESC LIMIT ?2"
            ))?
            .query_map(params![before, most, reasons, destinations, state.name()], summary)?
            .collect(),
    }
}

/// Asked of each message on the way. There is no index for it: people work the dead letters off, so they are few,
/// and an index would be paid for by every delivery.
const FITS: &str = "(?3 IS NULL OR message.reason IN (SELECT value FROM json_each(?3))) \
    AND (?4 IS NULL OR message.destination IN \
    (SELECT id FROM destination WHERE name IN (SELECT value FROM json_each(?4))))";
