//! The counts, counted anew. No index is trusted: one that has lost an entry would hide what is missing.

use relent_core::StopReason;
use relent_ledger::{Finding, Rule, State, Tally};
use rusqlite::Connection;

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

fn groups(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<(String, u64)>> {
    connection.prepare(sql)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

fn oldest(connection: &Connection, sql: &str) -> rusqlite::Result<Option<relent_core::Timestamp>> {
    let nanos: Option<i64> = connection.query_row(sql, [], |row| row.get(0))?;
    Ok(nanos.map(timestamp))
}
