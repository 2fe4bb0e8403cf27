//! Work that runs on after its attempt was given up.
//!
//! A future ends when it is dropped; a blocking call, or a thread that an attempt has started, does not. It is
//! counted, keeps its places in the concurrency limits until it ends, and what it brings home late changes no
//! state: the attempt was a time-out when it was given up.

use std::sync::atomic::{AtomicU64, Ordering};

/// How much work ran on after its attempt was given up.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Overruns {
    /// Since the pipeline was made.
    pub total: u64,
}

/// The counters.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    total: AtomicU64,
}

impl Tally {
    pub(crate) fn count(&self) {
        self.total.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Overruns {
        Overruns { total: self.total.load(Ordering::Relaxed) }
    }
}
