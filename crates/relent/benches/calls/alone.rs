//! Each policy by itself, with nothing to do: what one pays for having it.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use backon::{ConstantBuilder, Retryable};
use tokio::time::timeout;
use tower::{ServiceBuilder, retry::RetryLayer, service_fn, timeout::TimeoutLayer};
use tower_resilience::{circuitbreaker::CircuitBreakerLayer, retry::RetryLayer as ResilientRetryLayer};

use crate::{
    controls::{breakers, budgets, limits, rates},
    operation::{Busy, ready},
    peers::{AtOnce, plenty},
    policy::{ATTEMPT, in_force, only_retries, only_timeout},
    table::{Row, Table, Threads},
    work::{Work, calls, services, steps},
};

pub(crate) fn tables() -> Vec<Table> {
    let table = |name, title, rows: &[Row]| Table { name, title, threads: Threads::One, rows: rows.to_vec() };
    vec![
        table("retry", "Retries alone, ready at once", RETRY),
        table("timeout", "A time-out alone, ready at once", TIMEOUT),
        table("breaker", "A breaker alone, closed", BREAKER),
        table("limit", "A concurrency limit alone, in and out", LIMIT),
        table("rate", "A rate limit alone, let through", RATE),
        table("budget", "A budget alone, a call that succeeds at once", BUDGET),
    ]
}

const RETRY: &[Row] = &[
    ("the clock, read once", clock),
    ("relent", relent_retries),
    ("backon", backon),
    ("tower retry", tower_retry),
    ("tower-resilience retry", resilience_retry),
];

const TIMEOUT: &[Row] = &[
    ("relent", relent_timeout),
    ("tokio timeout", || calls(|| timeout(ATTEMPT, ready()), Result::is_ok)),
    ("tower timeout", tower_timeout),
];

const BREAKER: &[Row] = &[
    ("relent, the last 100 calls", breakers::last_calls),
    ("relent, the last 10 s, reading the clock once", breakers::last_seconds),
    ("relent, the last 10 s and slow calls, reading it twice", breakers::slow_calls),
    ("relent, failures in a row", breakers::in_a_row),
    ("recloser, the last 100 calls", breakers::recloser),
    ("failsafe, default", breakers::failsafe),
    ("failsafe, failures in a row", breakers::failsafe_in_a_row),
    ("tower-resilience, the last 100 calls", resilience_breaker),
];

const LIMIT: &[Row] = &[
    ("relent", limits::relent),
    ("tokio try_acquire", limits::tokio),
    ("tokio acquire", limits::tokio_acquire),
];

const RATE: &[Row] = &[
    ("relent, told the time", rates::relent),
    ("relent, reading the clock", rates::relent_with_clock),
    ("governor", rates::governor),
];

const BUDGET: &[Row] = &[
    ("relent, told the time", budgets::loan),
    ("relent, reading the clock", budgets::loan_with_clock),
    ("tower TpsBudget, deposit", budgets::tower),
];

fn clock() -> Work {
    let origin = Instant::now();
    steps(move || {
        black_box(origin.elapsed());
    })
}

fn relent_retries() -> Work {
    let pipeline = in_force(only_retries());
    calls(move || pipeline.safe().run(|_| ready()), Result::is_ok)
}

fn relent_timeout() -> Work {
    let pipeline = in_force(only_timeout());
    calls(move || pipeline.safe().run(|_| ready()), Result::is_ok)
}

fn backon() -> Work {
    let backoff = ConstantBuilder::default().with_delay(Duration::ZERO).with_max_times(4);
    calls(move || ready.retry(backoff), Result::is_ok)
}

fn tower_retry() -> Work {
    let retry = RetryLayer::new(AtOnce::with(plenty()));
    services(ServiceBuilder::new().layer(retry).service(service_fn(|()| ready())), Result::is_ok)
}

fn tower_timeout() -> Work {
    let timeout = TimeoutLayer::new(ATTEMPT);
    services(ServiceBuilder::new().layer(timeout).service(service_fn(|()| ready())), Result::is_ok)
}

fn resilience_retry() -> Work {
    let retry = ResilientRetryLayer::<(), u32, Busy>::builder().fixed_backoff(Duration::ZERO).build();
    services(ServiceBuilder::new().layer(retry).service(service_fn(|()| ready())), Result::is_ok)
}

fn resilience_breaker() -> Work {
    let breaker = CircuitBreakerLayer::builder().build().expect("a breaker");
    services(ServiceBuilder::new().layer(breaker).service(service_fn(|()| ready())), Result::is_ok)
}
