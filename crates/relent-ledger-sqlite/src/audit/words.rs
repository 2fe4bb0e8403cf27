//! The words in the rows, which SQL alone cannot judge: a word that nobody knows, or that is not UTF-8, makes its
//! row unreadable.

use relent_core::{Observed, WaitOrigin};
use relent_ledger::{Finding, Rule};
use rusqlite::{Connection, Row, types::ValueRef};

use super::rules::{Question, ask};

/// A question whose rows are wrong only if the text in their third column is.
struct Words {
    question: Question,
    known: fn(&str) -> bool,
}

/// Finds the words that cannot be read.
pub(super) fn check(connection: &Connection, findings: &mut Vec<Finding>) -> rusqlite::Result<()> {
    WORDS
        .iter()
        .try_for_each(|words| ask(connection, &words.question, |row| is_spoiled(row, words.known), findings))
}

fn is_spoiled(row: &Row<'_>, known: fn(&str) -> bool) -> rusqlite::Result<bool> {
    Ok(match row.get_ref(2)? {
        ValueRef::Null => false,
        ValueRef::Text(bytes) => !str::from_utf8(bytes).is_ok_and(known),
        _ => true,
    })
}

fn is_observed(word: &str) -> bool {
    Observed::from_name(word).is_some()
}

fn is_origin(word: &str) -> bool {
    WaitOrigin::from_name(word).is_some()
}

const WORDS: &[Words] = &[
    Words {
        question: Question {
            rule: Rule::Attempts,
            wrong: "what the message's last attempt saw is no observation",
            sql: "SELECT id, seq, last_observed FROM message NOT INDEXED",
        },
        known: is_observed,
    },
    Words {
        question: Question {
            rule: Rule::Attempts,
            wrong: "the message's last detail is not UTF-8",
            sql: "SELECT id, seq, last_detail FROM message NOT INDEXED",
        },
        known: |_| true,
    },
    Words {
        question: Question {
            rule: Rule::Attempts,
            wrong: "what the attempt saw is no observation",
            sql: "SELECT message.id, attempt.number, attempt.observed FROM attempt \
                  LEFT JOIN message NOT INDEXED ON message.seq = attempt.seq",
        },
        known: is_observed,
    },
    Words {
        question: Question {
            rule: Rule::Attempts,
            wrong: "the attempt's detail is not UTF-8",
            sql: "SELECT message.id, attempt.number, attempt.detail FROM attempt \
                  LEFT JOIN message NOT INDEXED ON message.seq = attempt.seq",
        },
        known: |_| true,
    },
    Words {
        question: Question {
            rule: Rule::Waits,
            wrong: "nobody is known from whom the wait came",
            sql: "SELECT message.id, wait.ordinal, wait.origin FROM wait \
                  LEFT JOIN message NOT INDEXED ON message.seq = wait.seq",
        },
        known: is_origin,
    },
];
