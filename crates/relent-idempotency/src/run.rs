//! What a handler may know of its own run.

use std::sync::Arc;

use tokio::sync::watch;

use crate::Lease;

/// One run of a handler under a key. It stands in the extensions of every guarded request that reaches the handler.
///
/// A handler needs it to end the run in its own transaction, and may use it to stop work that is no longer its own.
#[derive(Clone, Debug)]
pub struct Run {
    lease: Arc<Lease>,
    lost: watch::Receiver<Lost>,
}

/// Whether a lease is lost. It never comes back.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Lost {
    No,
    Yes,
}

impl Run {
    /// A run, and where to say that its lease is lost.
    pub(crate) fn new(lease: Arc<Lease>) -> (Self, watch::Sender<Lost>) {
        let (say, lost) = watch::channel(Lost::No);
        (Self { lease, lost }, say)
    }

    /// The lease: of which record, under which claim, the how-many-eth run.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Whether the lease is known to be lost: another may do the work, or an operator has settled it. What a
    /// transaction with the record would write is refused then.
    pub fn is_lost(&self) -> bool {
        *self.lost.borrow() == Lost::Yes
    }

    /// Waits until the lease is lost. Never ends if the run ends first.
    ///
    /// # Cancellation safety
    ///
    /// It does nothing but wait.
    pub async fn lost(&mut self) {
        if self.lost.wait_for(|lost| *lost == Lost::Yes).await.is_err() {
            std::future::pending().await
        }
    }
}
