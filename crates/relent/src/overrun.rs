//! Work that runs on after its attempt was given up.
//!
//! A future ends when it is dropped; a blocking call, or a thread that an attempt has started, does not. It is
//! counted, keeps its places in the concurrency limits until it ends, and what it brings home late changes no
//! state: the attempt was a time-out when it was given up.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use crate::control::concurrency::OwnedPermit;

/// How much work ran on after its attempt was given up.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Overruns {
    /// Since the pipeline was made.
    pub total: u64,
    /// How much of it runs still, as far as it holds a [`Work`]: what blocks its caller is seen when it ends.
    pub running: u64,
}

/// The work of one attempt, where dropping a future does not end it. Give it to the thread that does the work;
/// the work lasts until the last clone is dropped, and keeps its places in the concurrency limits so long.
///
/// See [`Calls::run_with_work`](crate::Calls::run_with_work).
#[derive(Clone, Debug)]
#[must_use = "the work ends when it is dropped"]
pub struct Work {
    shared: Arc<Shared>,
}

/// What the work and its attempt share; it goes when both have ended.
#[derive(Debug)]
struct Shared {
    _places: [Option<Arc<OwnedPermit>>; 2],
    tally: Arc<Tally>,
    was_given_up: AtomicBool,
}

/// A call's end of the work that its attempts do.
#[derive(Debug, Default)]
pub(crate) struct Overseen {
    attempt: Option<Arc<Shared>>,
    /// The call's own place, which all its work keeps.
    admission: Option<Arc<OwnedPermit>>,
}

impl Work {
    /// Whether its attempt was given up: nobody waits for the result any more.
    pub fn was_given_up(&self) -> bool {
        self.shared.was_given_up.load(Ordering::Acquire)
    }
}

impl Overseen {
    /// The work of an attempt, and the places that it keeps: the call's, if it has not kept that before, and the
    /// attempt's.
    pub(crate) fn begin(
        &mut self,
        [admission, own]: [Option<Arc<OwnedPermit>>; 2],
        tally: &Arc<Tally>,
    ) -> Work {
        if admission.is_some() {
            self.admission = admission;
        }
        let places = [self.admission.clone(), own];
        let was_given_up = AtomicBool::new(false);
        let shared = Arc::new(Shared { _places: places, tally: Arc::clone(tally), was_given_up });
        self.attempt = Some(Arc::clone(&shared));
        Work { shared }
    }

    pub(crate) fn attempt_has_ended(&mut self) {
        self.attempt = None;
    }

    /// The attempt is given up. Whether its work runs on.
    pub(crate) fn give_up(&mut self) -> bool {
        let Some(shared) = self.attempt.take() else { return false };
        let runs_on = Arc::strong_count(&shared) > 1;
        if runs_on {
            shared.tally.running.fetch_add(1, Ordering::Relaxed);
            shared.was_given_up.store(true, Ordering::Release);
        }
        runs_on
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if *self.was_given_up.get_mut() {
            self.tally.running.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The counters.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    total: AtomicU64,
    running: AtomicU64,
}

impl Tally {
    pub(crate) fn count(&self) {
        self.total.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Overruns {
        Overruns { total: self.total.load(Ordering::Relaxed), running: self.running.load(Ordering::Relaxed) }
    }
}
