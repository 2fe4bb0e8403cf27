//! Concurrency limits with room.

use std::hint::black_box;

use relent::{ConcurrencyPolicy, control::Concurrency};
use tokio::sync::Semaphore;

use crate::work::{Work, calls, kept, steps};

pub(crate) fn relent() -> Work {
    let limit = Concurrency::new(&ConcurrencyPolicy { limit: 1_000, queue: 100 }).expect("a limit");
    steps(move || drop(black_box(limit.try_acquire().expect("there is room"))))
}

pub(crate) fn tokio() -> Work {
    let semaphore = Semaphore::new(1_000);
    steps(move || drop(black_box(semaphore.try_acquire().expect("there is room"))))
}

pub(crate) fn tokio_acquire() -> Work {
    let semaphore = kept(Semaphore::new(1_000));
    calls(|| semaphore.acquire(), Result::is_ok)
}
