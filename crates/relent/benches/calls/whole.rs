//! Whole calls, everything on: ready at once, pending once, and two failures before a success.

use std::time::Duration;

use backon::{ConstantBuilder, Retryable};
use tokio::time::timeout;

use crate::{
    operation::{Operation, fails_twice, pending, ready},
    packed::{Packed, Rules},
    peers::{by_parts, resilience_stack, tower_stack},
    policy::{ATTEMPT, TOTAL, by_hand, failing, in_force, rules, standard},
    table::{Row, Table, Threads},
    work::{Work, calls, on_runtime},
};

pub(crate) fn tables() -> Vec<Table> {
    let table = |name, title, rows: &[Row]| Table { name, title, threads: Threads::One, rows: rows.to_vec() };
    vec![
        table("ready", "A whole call, ready at once", READY),
        table("pending", "A whole call, pending once", PENDING),
        table("failing", "A whole call, two failures and a success, no wait", FAILING),
    ]
}

const READY: &[Row] = &[
    ("the operation alone", || calls(ready, Result::is_ok)),
    ("by hand", || packed(ready)),
    ("relent", || relent(ready)),
    ("tokio timeout, no more", || one_timeout(ready)),
    ("semaphore, failsafe, backon, timeout", || by_parts(ready)),
    ("tower, stack of four", || tower_stack(ready)),
    ("tower-resilience, stack of four", || resilience_stack(ready)),
];

const PENDING: &[Row] = &[
    ("the operation alone", || calls(pending, Result::is_ok)),
    ("by hand", || packed(pending)),
    ("relent", || relent(pending)),
    ("tokio timeout, no more", || one_timeout(pending)),
    ("two tokio timeouts, no more", || two_timeouts(pending)),
    ("semaphore, failsafe, backon, timeout", || by_parts(pending)),
    ("tower, stack of four", || tower_stack(pending)),
    ("tower-resilience, stack of four", || resilience_stack(pending)),
];

const FAILING: &[Row] = &[
    ("three operations alone", || calls(three, Result::is_ok)),
    ("by hand", packed_failing),
    ("relent", relent_failing),
    ("semaphore, failsafe, backon, timeout", || by_parts(fails_twice)),
    ("tower, stack of four", || tower_stack(fails_twice)),
    ("tower-resilience, stack of four", || resilience_stack(fails_twice)),
    ("backon, no more", backon),
];

pub(crate) fn packed(operation: impl Operation) -> Work {
    let packed = by_hand(rules());
    calls(move || packed.run(move |_| operation.begin()), Result::is_ok)
}

/// Its budget holds no more than three thousand retries and its breaker opens at half, so both are made anew now and
/// then, and the breaker asks for more calls than there are.
fn packed_failing() -> Work {
    Box::new(|calls| {
        let mut left = calls;
        while left > 0 {
            let packed = Packed::new(Rules { least_calls: u64::MAX, most_tokens: 0x7fff, ..rules() });
            let now = left.min(1_000);
            on_runtime(async {
                for _ in 0..now {
                    assert!(packed.run(|_| fails_twice()).await.is_ok(), "two failures and a success");
                }
            });
            left -= now;
        }
    })
}

pub(crate) fn relent(operation: impl Operation) -> Work {
    let pipeline = in_force(standard());
    calls(move || pipeline.safe().run(move |_| operation.begin()), Result::is_ok)
}

fn relent_failing() -> Work {
    let pipeline = in_force(failing());
    calls(move || pipeline.safe().run(|_| fails_twice()), Result::is_ok)
}

fn one_timeout(operation: impl Operation) -> Work {
    calls(move || timeout(ATTEMPT, operation.begin()), Result::is_ok)
}

fn two_timeouts(operation: impl Operation) -> Work {
    calls(move || timeout(TOTAL, timeout(ATTEMPT, operation.begin())), Result::is_ok)
}

fn backon() -> Work {
    let backoff = ConstantBuilder::default().with_delay(Duration::ZERO).with_max_times(4);
    calls(move || fails_twice.retry(backoff), Result::is_ok)
}

async fn three() -> Result<u32, crate::operation::Busy> {
    let _failed = (fails_twice().await, fails_twice().await);
    fails_twice().await
}
