//! Pages of messages.

use relent_ledger::{Cursor, ListQuery, Page, State, Summary};
use rusqlite::{Connection, params};

use super::{
    on_one_state,
    summary::{COLUMNS, FROM, Placed, add_wait, summary},
};

/// A page, newest first by the order of acceptance, which nothing changes: so pages stay as they are while
/// messages come and go.
pub(crate) fn list(connection: &Connection, query: &ListQuery) -> rusqlite::Result<Page<Summary>> {
    on_one_state(connection, || {
        let before = query.after.map_or(i64::MAX, |Cursor(seq)| i64::try_from(seq).unwrap_or(i64::MAX));
        let want = query.limit.saturating_add(1);
        let mut found = Vec::new();
        if query.states.is_empty() {
            found = newest(connection, None, before, want)?;
        }
        // State by state: SQLite would sort everything that is in any of them.
        for state in State::ALL.into_iter().filter(|state| query.states.contains(state)) {
            found.extend(newest(connection, Some(state), before, want)?);
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

fn newest(
    connection: &Connection,
    state: Option<State>,
    before: i64,
    want: usize,
) -> rusqlite::Result<Vec<Placed>> {
    let want = i64::try_from(want).unwrap_or(i64::MAX);
    match state {
        None => connection
            .prepare_cached(&format!(
                "SELECT {COLUMNS} FROM {FROM} WHERE message.seq < ?1 ORDER BY message.seq DESC LIMIT ?2"
            ))?
            .query_map([before, want], summary)?
            .collect(),
        Some(state) => connection
            .prepare_cached(&format!(
                "SELECT {COLUMNS} FROM {FROM} WHERE message.state = ?1 AND message.seq < ?2 \
                 ORDER BY message.seq DESC LIMIT ?3"
            ))?
            .query_map(params![state.name(), before, want], summary)?
            .collect(),
    }
}
