//! A breaker whose window holds more and more calls: what each costs must not change.

use std::time::Duration;

use relent::Window;

use crate::{
    controls::breakers::full,
    table::{Row, Table, Threads},
};

pub(crate) fn tables() -> Vec<Table> {
    let table = |name, title, rows: &[Row]| Table { name, title, threads: Threads::One, rows: rows.to_vec() };
    vec![
        table("last-calls", "A breaker that looks at the last calls, so many", LAST_CALLS),
        table("last-seconds", "A breaker that looks at the last 10 s, so many calls in them", LAST_SECONDS),
    ]
}

const LAST_CALLS: &[Row] = &[
    ("10", || full(Window::Count(10), 10)),
    ("100", || full(Window::Count(100), 100)),
    ("1,000", || full(Window::Count(1_000), 1_000)),
    ("10,000", || full(Window::Count(10_000), 10_000)),
    ("100,000", || full(Window::Count(100_000), 100_000)),
    ("1,000,000", || full(Window::Count(1_000_000), 1_000_000)),
];

const LAST_SECONDS: &[Row] = &[
    ("10", || full(Window::Time(TEN), 10)),
    ("100", || full(Window::Time(TEN), 100)),
    ("1,000", || full(Window::Time(TEN), 1_000)),
    ("10,000", || full(Window::Time(TEN), 10_000)),
    ("100,000", || full(Window::Time(TEN), 100_000)),
    ("1,000,000", || full(Window::Time(TEN), 1_000_000)),
];

const TEN: Duration = Duration::from_secs(10);
