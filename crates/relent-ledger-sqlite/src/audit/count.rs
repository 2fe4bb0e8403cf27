//! The counts, counted anew. No index is trusted: one that has lost an entry would hide what is missing.

use relent_core::StopReason;
use relent_ledger::{Finding, Rule, State, Tally};
use rusqlite::{Connection, Row, types::ValueRef};

use crate::row::timestamp;

/// Counts the rows. Rows in a state or with a reason that nobody knows are findings.
pub(super) fn count(connection: &Connection, findings: &mut Vec<Finding>) -> rusqlite::Result<Tally> {
    let mut unknown = |kind: &str, name: &str, count: u64| {
        let detail = format!("no {kind} is called {name:?}, which {count} messages have");
        findings.push(Finding { rule: Rule::Ends, id: None, detail });
    };
    let mut tally = Tally::default();
    for (name, count) in groups(connection, "SELECT state, count(*) FROM message NOT INDEXED GROUP BY state")?
    {
        tally.accepted += count;
        match State::from_name(&name) {
            Some(state) => drop(tally.states.insert(state, count)),
            None => unknown("state", &name, count),
        }
    }
    let dead =
        "SELECT coalesce(reason, ''), count(*) FROM message NOT INDEXED WHERE state = 'dead' GROUP BY 1";
    for (name, count) in groups(connection, dead)? {
        match StopReason::from_name(&name) {
            Some(reason) => drop(tally.dead.insert(reason.name(), count)),
            // A dead letter without a reason is found by the rule about ends, with its id.
            None if name.is_empty() => {}
            None => unknown("reason", &name, count),
        }
    }
    tally.attempts = connection.query_row("SELECT count(*) FROM attempt", [], |row| row.get(0))?;
    tally.oldest_waiting = oldest(
        connection,
        "SELECT min(accepted_at) FROM message NOT INDEXED WHERE state IN ('waiting', 'in_flight', 'held')",
    )?;
    tally.oldest_dead =
        oldest(connection, "SELECT min(ended_at) FROM message NOT INDEXED WHERE state = 'dead'")?;
    Ok(tally)
}

/// Names and how often each stands. What is no text, or no UTF-8, is shown as well as it can be: a spoiled name is
/// a finding, not the end of the audit.
fn groups(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<(String, u64)>> {
    let group = |row: &Row<'_>| {
        let name = match row.get_ref(0)? {
            ValueRef::Text(text) | ValueRef::Blob(text) => String::from_utf8_lossy(text).into_owned(),
            other => format!("{other:?}"),
        };
        Ok((name, row.get(1)?))
    };
    connection.prepare(sql)?.query_map([], group)?.collect()
}

fn oldest(connection: &Connection, sql: &str) -> rusqlite::Result<Option<relent_core::Timestamp>> {
    let nanos: Option<i64> = connection.query_row(sql, [], |row| row.get(0))?;
    Ok(nanos.map(timestamp))
}
