//! The rules, each as the question that finds what breaks it.

use std::collections::BTreeSet;

use relent_ledger::{Finding, MessageId, Rule, Tally};
use rusqlite::{Connection, Row};

use crate::{
    open::SCHEMA,
    read::kept,
    row::{Stored, verify_history},
};

/// What SQLite itself finds wrong with the file, and what of the schema is not there.
pub(super) fn integrity(connection: &Connection) -> rusqlite::Result<Vec<Finding>> {
    let mut statement = connection.prepare("PRAGMA integrity_check")?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
    let faults = lines.filter(|line| !matches!(line, Ok(line) if line == "ok"));
    let there = schema(connection)?;
    let missing = schema(&whole()?)?.into_iter().filter(|wanted| !there.contains(wanted));
    faults
        .chain(missing.map(|what| Ok(format!("the {what} is missing"))))
        .map(|line| Ok(Finding { rule: Rule::Integrity, id: None, detail: line? }))
        .collect()
}

/// A store with nothing in it.
fn whole() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(SCHEMA)?;
    Ok(connection)
}

/// The tables and indexes that there are, by kind and name.
fn schema(connection: &Connection) -> rusqlite::Result<BTreeSet<String>> {
    let mut statement = connection.prepare("SELECT type || ' ' || name FROM sqlite_schema")?;
    statement.query_map([], |row| row.get(0))?.collect()
}

/// Everything else.
pub(super) fn check(
    connection: &Connection,
    counted: &Tally,
    findings: &mut Vec<Finding>,
) -> rusqlite::Result<()> {
    let kept = kept(connection)?;
    sums(counted, &kept, findings);
    for question in QUESTIONS {
        ask(connection, question, |_| Ok(true), findings)?;
    }
    sums_of_content(connection, findings)
}

/// Kept against counted.
fn sums(counted: &Tally, kept: &Tally, findings: &mut Vec<Finding>) {
    let mut differ = |rule, what: &str, kept: u64, counted: u64| {
        if kept != counted {
            let detail = format!("{what}: {kept} by the count kept, {counted} by the rows");
            findings.push(Finding { rule, id: None, detail });
        }
    };
    differ(Rule::Sum, "accepted", kept.accepted, counted.accepted);
    differ(
        Rule::Sum,
        "accepted against the sum of the states kept",
        kept.accepted,
        kept.states.values().sum(),
    );
    differ(Rule::Counts, "attempts", kept.attempts, counted.attempts);
    for state in relent_ledger::State::ALL {
        differ(Rule::Counts, state.name(), kept.count(state), counted.count(state));
    }
    for reason in relent_core::StopReason::ALL {
        let count = |tally: &Tally| tally.dead.get(reason.name()).copied().unwrap_or_default();
        differ(Rule::Counts, &format!("dead of {}", reason.name()), count(kept), count(counted));
    }
}

/// A rule, what is wrong in words, and the query for what breaks it: the id, if one can be told, and a number
/// that helps to find the row.
pub(super) struct Question {
    pub(super) rule: Rule,
    pub(super) wrong: &'static str,
    pub(super) sql: &'static str,
}

/// Reports the rows of the answer that are `wrong`, the first of them one by one.
pub(super) fn ask(
    connection: &Connection,
    question: &Question,
    wrong: impl Fn(&Row<'_>) -> rusqlite::Result<bool>,
    findings: &mut Vec<Finding>,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(question.sql)?;
    let mut rows = statement.query([])?;
    let mut found = 0_u64;
    while let Some(row) = rows.next()? {
        if !wrong(row)? {
            continue;
        }
        found += 1;
        if found > SHOWN {
            continue;
        }
        let id = row.get::<_, Option<[u8; 16]>>(0).ok().flatten().map(MessageId::from_bytes);
        let number: i64 = row.get(1)?;
        let detail = format!("{} ({number})", question.wrong);
        findings.push(Finding { rule: question.rule, id, detail });
    }
    if found > SHOWN {
        let detail = format!("{}: {} more", question.wrong, found - SHOWN);
        findings.push(Finding { rule: question.rule, id: None, detail });
    }
    Ok(())
}

/// Whether all content and every history is what was written.
fn sums_of_content(connection: &Connection, findings: &mut Vec<Finding>) -> rusqlite::Result<()> {
    let columns = Stored::COLUMNS;
    let mut statement = connection.prepare(&format!(
        "SELECT {columns}, message.history, message.history_sum FROM message NOT INDEXED \
         JOIN content ON content.seq = message.seq JOIN destination ON destination.id = message.destination"
    ))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let read = Stored::read(row).map_err(|error| error.to_string());
        let checked = read.and_then(|stored| {
            let history: Vec<u8> = row.get(Stored::WIDTH).map_err(|error| error.to_string())?;
            let sum = row.get(Stored::WIDTH + 1).map_err(|error| error.to_string())?;
            stored
                .verify()
                .and_then(|()| verify_history(&history, sum))
                .and_then(|()| stored.decode().map(drop))
        });
        if let Err(detail) = checked {
            let id = row.get::<_, [u8; 16]>(0).ok().map(MessageId::from_bytes);
            findings.push(Finding { rule: Rule::Content, id, detail });
        }
    }
    Ok(())
}

/// How many findings of one kind are listed one by one.
const SHOWN: u64 = 100;

const QUESTIONS: &[Question] = &[
    Question {
        rule: Rule::UniqueIds,
        wrong: "messages share this id",
        sql: "SELECT id, count(*) FROM message NOT INDEXED GROUP BY id HAVING count(*) > 1",
    },
    Question {
        rule: Rule::Content,
        wrong: "the message has no content",
        sql: "SELECT id, seq FROM message NOT INDEXED WHERE seq NOT IN (SELECT seq FROM content NOT INDEXED)",
    },
    Question {
        rule: Rule::Content,
        wrong: "content without a message",
        sql: "SELECT NULL, seq FROM content NOT INDEXED WHERE seq NOT IN (SELECT seq FROM message NOT INDEXED)",
    },
    Question {
        rule: Rule::Content,
        wrong: "the message's destination is unknown",
        sql: "SELECT id, seq FROM message NOT INDEXED \
              WHERE destination NOT IN (SELECT id FROM destination NOT INDEXED)",
    },
    Question {
        rule: Rule::Attempts,
        wrong: "attempt without a message",
        sql: "SELECT NULL, seq FROM attempt WHERE seq NOT IN (SELECT seq FROM message NOT INDEXED)",
    },
    Question {
        rule: Rule::Attempts,
        wrong: "the attempts are not numbered from 1 without a gap, or their number is not the message's",
        sql: "SELECT message.id, message.attempts FROM message NOT INDEXED \
              LEFT JOIN (SELECT seq, count(*) AS count, max(number) AS last, min(number) AS first \
                         FROM attempt GROUP BY seq) AS log ON log.seq = message.seq \
              WHERE message.attempts <> coalesce(log.count, 0) OR log.first <> 1 OR log.last <> log.count",
    },
    Question {
        rule: Rule::Attempts,
        wrong: "the attempt said to be under way is not in the log, or is finished",
        sql: "SELECT message.id, message.open_attempt FROM message NOT INDEXED \
              LEFT JOIN attempt ON attempt.seq = message.seq AND attempt.number = message.open_attempt \
              WHERE message.open_attempt IS NOT NULL \
                AND (attempt.number IS NULL OR attempt.observed IS NOT NULL)",
    },
    Question {
        rule: Rule::Attempts,
        wrong: "the attempt belongs to a cycle that the message has not reached",
        sql: "SELECT message.id, attempt.number FROM attempt JOIN message NOT INDEXED \
              ON message.seq = attempt.seq WHERE attempt.cycle > message.cycle",
    },
    Question {
        rule: Rule::Attempts,
        wrong: "the message's attempts or cycles are no count",
        sql: "SELECT id, seq FROM message NOT INDEXED \
              WHERE attempts NOT BETWEEN 0 AND 4294967295 OR cycle NOT BETWEEN 0 AND 4294967295",
    },
    Question {
        rule: Rule::Attempts,
        wrong: "the attempt's cycle is no count",
        sql: "SELECT message.id, attempt.number FROM attempt LEFT JOIN message NOT INDEXED \
              ON message.seq = attempt.seq WHERE attempt.cycle NOT BETWEEN 0 AND 4294967295",
    },
    Question {
        rule: Rule::Waits,
        wrong: "the wait does not follow any count of attempts",
        sql: "SELECT message.id, wait.ordinal FROM wait LEFT JOIN message NOT INDEXED \
              ON message.seq = wait.seq WHERE wait.after_attempt NOT BETWEEN 0 AND 4294967295",
    },
    Question {
        rule: Rule::Waits,
        wrong: "wait without a message",
        sql: "SELECT NULL, seq FROM wait WHERE seq NOT IN (SELECT seq FROM message NOT INDEXED)",
    },
    Question {
        rule: Rule::Waits,
        wrong: "the message waits and is never due",
        sql: "SELECT id, seq FROM message NOT INDEXED WHERE state = 'waiting' AND due_at IS NULL",
    },
    Question {
        rule: Rule::Waits,
        wrong: "the message does not wait and is due",
        sql: "SELECT id, seq FROM message NOT INDEXED \
              WHERE state NOT IN ('waiting', 'held') AND due_at IS NOT NULL",
    },
    Question {
        rule: Rule::Keys,
        wrong: "an idempotency record names a message that does not carry its key",
        sql: "SELECT message.id, idempotency.seq FROM idempotency \
              LEFT JOIN message NOT INDEXED ON message.seq = idempotency.seq \
              LEFT JOIN content NOT INDEXED ON content.seq = idempotency.seq \
              WHERE message.seq IS NULL OR content.key IS NULL OR content.key <> idempotency.key \
                 OR content.fingerprint <> idempotency.fingerprint",
    },
    Question {
        rule: Rule::Keys,
        wrong: "the message's key has no idempotency record",
        sql: "SELECT message.id, content.seq FROM content NOT INDEXED \
              LEFT JOIN message NOT INDEXED ON message.seq = content.seq \
              LEFT JOIN idempotency ON idempotency.key = content.key \
              WHERE content.key IS NOT NULL AND idempotency.key IS NULL",
    },
    Question {
        rule: Rule::Ends,
        wrong: "the dead letter has no reason",
        sql: "SELECT id, seq FROM message NOT INDEXED WHERE state = 'dead' AND reason IS NULL",
    },
    Question {
        rule: Rule::Ends,
        wrong: "the message ended and does not say when",
        sql: "SELECT id, seq FROM message NOT INDEXED \
              WHERE state IN ('delivered', 'dead', 'discarded', 'cancelled') AND ended_at IS NULL",
    },
    Question {
        rule: Rule::Ends,
        wrong: "the message says when it ended and did not end",
        sql: "SELECT id, seq FROM message NOT INDEXED \
              WHERE state IN ('waiting', 'in_flight', 'held') AND (ended_at IS NOT NULL OR reason IS NOT NULL)",
    },
    Question {
        rule: Rule::Ends,
        wrong: "the message is in flight without a ticket",
        sql: "SELECT id, seq FROM message NOT INDEXED WHERE state = 'in_flight' AND epoch < 1",
    },
    Question {
        rule: Rule::Ends,
        wrong: "the message's epoch is below zero or at its end, so that it can have no ticket",
        sql: "SELECT id, seq FROM message NOT INDEXED WHERE epoch < 0 OR epoch = 9223372036854775807",
    },
];
