//! What a store must do. Each bullet is a rule with a test in the suite.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use relent::Timestamp;

use crate::{Answer, Caller, Error, Fingerprint, Key};

/// A store of records: what became of each request with a key.
///
/// Every method is atomic by itself and, in a durable store, durable when it returns. A store has its own clock (a
/// database's, where several machines share it) and is told lengths of time, so that machines need not agree on the
/// time. The decisions are not the store's: [`Row`](crate::Row) makes them, the same for every store.
///
/// # Cancellation safety
///
/// A call that is dropped may or may not have been carried out, but never in part.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Takes the record of a key for one run of the handler, or tells what is known of it.
    ///
    /// - The first claim of a key is given the lease; another while it runs is told that it runs.
    /// - Of many claims at once one is given the lease, whichever process they come from.
    /// - The same key of another caller is another record.
    /// - Another request under the key is a mismatch, whatever state the record is in, and changes nothing.
    /// - An answer is given back as it was until its life ends; then the key is expired until it is forgotten, and
    ///   then anew.
    /// - A lease that ran out is an unknown outcome and never given again, unless its claim allowed it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Full`](crate::ErrorKind::Full) if there is no room. After an error it is not known whether the
    /// claim was given; [`End::NoEffect`] under the claim's id takes it back.
    async fn claim(&self, claim: &Claim) -> Result<Claimed, Error>;

    /// Prolongs a lease: it ends `length` from now, and never after its record's life.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Stale`](crate::ErrorKind::Stale) if the lease is lost: somebody was told that the outcome is
    /// unknown, has the record now, or has resolved it; or its life is over.
    async fn renew(&self, lease: &Lease, length: Duration) -> Result<(), Error>;

    /// Ends a run.
    ///
    /// - An end may be told twice, and what was answered stays answered whatever is told later under the same claim.
    /// - A run without effect leaves no record.
    /// - A late answer settles an unknown outcome: the run knows what others could not.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Stale`](crate::ErrorKind::Stale) if another run has the record, if it was resolved, or if its life
    /// is over. Nothing is written.
    async fn finish(&self, lease: &Lease, end: End) -> Result<Finished, Error>;

    /// A record as it stands; `None` if there is none, or it is forgotten.
    async fn read(&self, id: &RecordId) -> Result<Option<Record>, Error>;

    /// Up to `limit` records whose outcome is unknown, the longest known first: an operator's list.
    async fn unknown(&self, limit: usize) -> Result<Vec<Record>, Error>;

    /// An operator's or a status check's word on an unknown outcome.
    ///
    /// - Only an unknown outcome is resolved; whoever still runs has lost the lease then.
    async fn resolve(&self, id: &RecordId, resolution: Resolution) -> Result<Resolved, Error>;

    /// Removes up to `limit` records that are forgotten; how many. What runs or is unknown is never removed. A store
    /// does so by itself, a few with each claim; this is for catching up.
    async fn purge(&self, limit: usize) -> Result<u64, Error>;
}

/// The name of a record.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RecordId {
    /// Whose key it is.
    pub caller: Caller,
    /// The key.
    pub key: Key,
}

/// What a claim asks for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Claim {
    /// Which record.
    pub record: RecordId,
    /// Of which request.
    pub fingerprint: Fingerprint,
    /// The claim's own name, drawn by chance, by which the run is known from now on.
    pub id: ClaimId,
    /// How long the lease is.
    pub lease: Duration,
    /// How long the record lives from now on.
    pub lifetime: Duration,
    /// How long it is remembered after that.
    pub tombstone: Duration,
    /// What is done if the lease is lost.
    pub if_lost: IfLost,
}

/// A claim's own name: the fencing token. Only who knows it can renew the lease and end the run.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct ClaimId(pub [u8; 16]);

impl ClaimId {
    /// A new one, by chance.
    ///
    /// # Errors
    ///
    /// If the operating system gives no chance.
    pub fn draw() -> Result<Self, Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| {
            Error::new(crate::ErrorKind::Unavailable, "no chance from the operating system")
                .with_source(error)
        })?;
        Ok(Self(bytes))
    }
}

impl fmt::Debug for ClaimId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClaimId({:032x})", u128::from_be_bytes(self.0))
    }
}

/// What is done with a record whose lease ran out. Said by the claim, and kept with the record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum IfLost {
    /// The outcome is unknown, and the work is never done again by itself.
    Unknown,
    /// The next claim does the work again: it is in a transaction with the record, or does no harm twice.
    RunAgain,
}

/// What became of a claim.
#[derive(Clone, Debug, Eq, PartialEq)]
#[must_use]
pub enum Claimed {
    /// The work is the claimant's to do.
    Mine(Lease),
    /// Another run does it now; its lease is as long as this.
    Running {
        /// How long its lease still is.
        left: Duration,
    },
    /// It was done, and this was answered.
    Answered(Answer),
    /// It was done with this status, and the answer was not kept.
    NotKept(http::StatusCode),
    /// It was begun, and nobody knows how it ended.
    Unknown,
    /// It was done, longer ago than answers are kept.
    Expired,
    /// The key belongs to another request.
    Mismatch,
}

impl Claimed {
    /// Whether the claim made a record: the first of its key, or the first since it was forgotten.
    pub fn is_new(&self) -> bool {
        matches!(self, Self::Mine(lease) if lease.run == 1)
    }
}

/// The right to do the work and to say how it ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Lease {
    /// Of which record.
    pub record: RecordId,
    /// Under which claim.
    pub claim: ClaimId,
    /// Which run of the work this is: 1 for the first, more after lost leases.
    pub run: u32,
}

/// How a run ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum End {
    /// With this answer.
    Answered(Answer),
    /// With this status; the answer is not kept.
    NotKept(http::StatusCode),
    /// Nobody knows how.
    Unknown,
    /// Without having done anything.
    NoEffect,
}

/// What became of an end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub enum Finished {
    /// It stands as told.
    Done,
    /// The run had ended before, with what stands there.
    Already,
}

/// A record as an operator sees it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Record {
    /// Its name.
    pub id: RecordId,
    /// How it stands.
    pub state: State,
    /// How often the work was begun.
    pub run: u32,
    /// When it was last begun, by the store's clock.
    pub claimed_at: Timestamp,
    /// When its life ends. An unknown outcome stays beyond that, until it is resolved.
    pub expires_at: Timestamp,
}

/// How a record stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum State {
    /// The work is being done.
    Running,
    /// It is done and answered.
    Answered,
    /// It is done; the answer was not kept.
    NotKept,
    /// It was begun, and nobody knows how it ended.
    Unknown,
    /// Its life is over, and it is not forgotten yet.
    Expired,
}

/// What an operator knows of an unknown outcome.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Resolution {
    /// It was done; this is answered from now on, for as long as the record was to live.
    Answer(Answer),
    /// It was not done: the record is removed, and the next request does the work.
    RunAgain,
}

/// What became of a resolution.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub enum Resolved {
    /// It stands.
    Done,
    /// The outcome is not unknown; nothing was changed.
    NotUnknown,
    /// There is no such record.
    NotFound,
}
