//! What becomes of requests with a key, told as it happens.
//!
//! An observer sees everything and changes nothing. It is called with no lock held. It matters more here than
//! elsewhere: a store that fails after the handler ran is seen by nobody else.

#[cfg(feature = "tracing")]
mod tracing;

use std::time::Duration;

#[cfg(feature = "tracing")]
pub use self::tracing::Tracing;
use crate::{Error, Lease, RecordId, Refusal};

/// Is told what becomes of requests with a key. See
/// [`IdempotencyLayer::observed_by`](crate::IdempotencyLayer::observed_by).
///
/// # Choosing a value
///
/// `Tracing` (with the feature of that name), or one that counts [`Event::name`]. It runs in the middle of requests: let
/// it count, or pass on and return.
pub trait Observe: Send + Sync {
    /// Takes in what happened.
    fn observe(&self, event: &Event<'_>);
}

/// What happened.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A handler ran, and its end is recorded.
    Ran {
        /// Under which lease.
        lease: &'a Lease,
        /// What the record says of it.
        ended: Ended,
        /// From the claim until the record.
        took: Duration,
    },
    /// A stored answer was given again.
    Replayed(&'a RecordId),
    /// The layer answered instead of the handler. `record` is `None` where the request named none.
    Refused {
        /// Why.
        refusal: Refusal,
        /// Which record the request named.
        record: Option<&'a RecordId>,
    },
    /// A run lost its lease: another may have its record, and what it does may be done twice where that is allowed.
    LeaseLost(&'a Lease),
    /// The store failed.
    StoreFailed {
        /// What it was asked.
        asked: Asked,
        /// About which record.
        record: &'a RecordId,
        /// How it failed.
        error: &'a Error,
    },
    /// The store does not answer, and by the layer's settings the handler runs without a guard.
    RanUnguarded(&'a RecordId),
    /// A handler that promised to end its run in its own transaction answered with success outside of one: had the
    /// process died in between, the work would be done twice.
    NotInTransaction(&'a Lease),
}

/// What a record says of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ended {
    /// It was answered.
    Answered,
    /// It was answered, too large to keep.
    NotKept,
    /// Nobody knows how it ended.
    Unknown,
    /// It did nothing; there is no record.
    NoEffect,
}

/// What a store was asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Asked {
    /// To give a record.
    Claim,
    /// To prolong a lease.
    Renew,
    /// To record the end of a run. Until that stands, repeats are told that it runs, and later that nobody knows.
    Finish,
    /// To take back a claim of which nobody knows whether it was given.
    TakeBack,
}

impl Event<'_> {
    /// Its name, the same for ever: one of few, fit for a metric's label.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ran { .. } => "ran",
            Self::Replayed(_) => "replayed",
            Self::Refused { .. } => "refused",
            Self::LeaseLost(_) => "lease_lost",
            Self::StoreFailed { .. } => "store_failed",
            Self::RanUnguarded(_) => "ran_unguarded",
            Self::NotInTransaction(_) => "not_in_transaction",
        }
    }
}

impl Ended {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::NotKept => "not_kept",
            Self::Unknown => "unknown",
            Self::NoEffect => "no_effect",
        }
    }
}

impl Asked {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Renew => "renew",
            Self::Finish => "finish",
            Self::TakeBack => "take_back",
        }
    }
}
