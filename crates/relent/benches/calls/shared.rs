//! What two threads share: a control by itself, and a whole call.

use crate::{
    controls::{breakers, budgets, limits, rates},
    operation::ready,
    peers::{resilience_stack, tower_stack},
    table::{Row, Table, Threads},
    whole::{packed, relent},
};

pub(crate) fn tables() -> Vec<Table> {
    let rows = ROWS.to_vec();
    vec![Table { name: "shared", title: "Shared by two threads", threads: Threads::Two, rows }]
}

const ROWS: &[Row] = &[
    ("breaker: relent, the last 100 calls", breakers::last_calls),
    ("breaker: relent, the last 10 s, told the time", breakers::last_seconds_told),
    ("breaker: relent, the last 10 s, reading the clock once", breakers::last_seconds),
    ("breaker: recloser, the last 100 calls", breakers::recloser),
    ("breaker: failsafe, default", breakers::failsafe),
    ("breaker: relent, failures in a row", breakers::in_a_row),
    ("breaker: failsafe, failures in a row", breakers::failsafe_in_a_row),
    ("limit: relent", limits::relent),
    ("limit: tokio try_acquire", limits::tokio),
    ("rate: relent, reading the clock", rates::relent_with_clock),
    ("rate: governor", rates::governor),
    ("budget: relent, told the time", budgets::loan),
    ("budget: tower TpsBudget, deposit", budgets::tower),
    ("whole call: by hand", || packed(ready)),
    ("whole call: relent", || relent(ready)),
    ("whole call: tower, stack of four", || tower_stack(ready)),
    ("whole call: tower-resilience, stack of four", || resilience_stack(ready)),
];
