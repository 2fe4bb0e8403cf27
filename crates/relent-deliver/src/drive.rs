//! The driver: claims what is due, records each attempt before it is sent, and settles its end.
//!
//! It owns time and tasks and has no opinion: what to do with a message is [`plan`](crate::plan)'s to say. What
//! it promises is that nothing it claimed is forgotten: a failing ledger, a panic, a stale ticket and a shutdown
//! each have their path back to the ledger.

mod crew;
mod delivery;
mod seats;

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use relent::{Backoff, Clock};
use relent_ledger::Ledger;
use tokio::sync::Notify;

use crate::{Observe, Policies, Transport};
use crew::Crew;

/// How much is done at the same time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Attempts in flight, to all destinations. 256. Zero is read as one.
    pub in_flight: usize,
    /// Attempts in flight to one destination: what hangs there leaves the others' places free. 32. Zero is read
    /// as one.
    pub per_destination: usize,
    /// How long attempts in flight may go on after the shutdown. 10 s.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { in_flight: 256, per_destination: 32, drain: Duration::from_secs(10) }
    }
}

/// Delivers the messages of a ledger. Clones are the same one.
///
/// Two that [run](Deliverer::run) on one ledger are kept apart by their tickets, but each has the whole
/// [`Limits`] for itself.
pub struct Deliverer<T, C> {
    shared: Arc<Shared<T, C>>,
}

/// What the driver and its tasks have in common.
struct Shared<T, C> {
    ledger: Arc<dyn Ledger>,
    transport: T,
    clock: C,
    policies: Policies,
    limits: Limits,
    observe: Arc<dyn Observe>,
    wake: Notify,
}

/// What a run has done, counted when it was durable.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RunReport {
    /// Attempts begun.
    pub attempts: u64,
    /// Messages delivered.
    pub delivered: u64,
    /// Messages given to the dead letters.
    pub dead: u64,
    /// Messages put off after a counted attempt.
    pub retried: u64,
    /// Messages put off uncounted.
    pub deferred: u64,
    /// Messages put back as they were.
    pub left: u64,
    /// Tickets that were over before their work was settled.
    pub stale: u64,
    /// Messages whose end the ledger would not take before the shutdown was over; their attempts are `unknown`.
    pub unsettled: u64,
}

impl<T: Transport, C: Clock> Deliverer<T, C> {
    /// A driver that does nothing yet.
    pub fn new(
        ledger: Arc<dyn Ledger>,
        transport: T,
        clock: C,
        policies: Policies,
        limits: Limits,
        observe: Arc<dyn Observe>,
    ) -> Self {
        let wake = Notify::new();
        Self { shared: Arc::new(Shared { ledger, transport, clock, policies, limits, observe, wake }) }
    }

    /// Says that something may be due that was not before: call it after each acceptance and each redrive.
    pub fn wake(&self) {
        self.shared.wake.notify_one();
    }

    /// Delivers until `shutdown` is ready, then drains, and returns when every task has ended.
    ///
    /// The drain takes nothing new and puts back what was claimed and not begun. Attempts in flight have
    /// [`Limits::drain`] to end; what is left is cut off, recorded as `unknown` and put back uncounted, or, where
    /// it is not safe to repeat, given to the dead letters as `ambiguous`.
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future aborts the tasks: what was in flight stays so in the ledger until its next owner
    /// finds it as lost.
    pub async fn run(&self, shutdown: impl Future<Output = ()>) -> RunReport {
        let mut shutdown = pin!(shutdown);
        let mut crew = Crew::new(Arc::clone(&self.shared));
        loop {
            crew.claim_if_due().await;
            // Each arm may be dropped: a rest loses nothing, and a wake-up that is not taken leaves its permit.
            // The claim stands outside, for a dropped claim may have taken messages.
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                () = self.shared.wake.notified() => crew.look_at_once(),
                () = crew.rest() => {}
            }
            crew.reap();
        }
        crew.drain().await
    }
}

impl<T, C> Clone for Deliverer<T, C> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

/// The pause after the `failures`-th failure of the ledger in a row: 100 ms doubling to 5 s. No jitter: there
/// is one driver to one ledger.
fn ledger_pause(failures: u32) -> Duration {
    let (base, max) = (Duration::from_millis(100), Duration::from_secs(5));
    Backoff::Exponential { base, factor_milli: 2000, max }.ceiling(failures)
}
