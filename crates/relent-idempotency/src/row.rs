//! A record and its transitions: pure, told the time, and the same for every store.
//!
//! ```text
//!            claim                        answer, or too large to keep        life is over    forgotten
//!  (none) ─────────► running ───────────────────────────────► answered, ──────► expired ──────► (none)
//!    ▲                │  │ ▲ renew                            not kept
//!    │ no effect      │  └─┘                                     ▲
//!    ├────────────────┤                                          │ a late answer, or an operator's
//!    │                │ the lease ran out, or the run broke      │
//!    │                └─────────────────────────────► unknown ───┤
//!    └────────────────────────────────────────────────────┴──────┘ an operator: it was not done
//! ```
//!
//! Where the claim allowed it, a lease that ran out leads from running to running under the next claim.

use std::time::Duration;

use http::StatusCode;
use relent::Timestamp;

use crate::{
    Answer, Claim, ClaimId, Claimed, End, Error, Fingerprint, Finished, IfLost, Lease, Record, RecordId,
    Resolution, Resolved, State,
};

/// What a store keeps of a record, for those who write a store: load it, ask it, write down what it says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Row {
    /// Of which request.
    pub fingerprint: Fingerprint,
    /// Under which claim it was last begun.
    pub claim: ClaimId,
    /// How often it was begun.
    pub run: u32,
    /// What is done if the lease is lost.
    pub if_lost: IfLost,
    /// When it was last begun.
    pub claimed_at: Timestamp,
    /// When the lease ends.
    pub lease_until: Timestamp,
    /// When its life ends.
    pub expires_at: Timestamp,
    /// When it is forgotten.
    pub forget_at: Timestamp,
    /// How it stands.
    pub stage: Stage,
}

/// How a row stands, time apart.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Stage {
    /// The work is being done, as long as the lease lasts.
    Running,
    /// It is done and answered.
    Answered(Answer),
    /// It is done with this status; the answer was not kept.
    NotKept(StatusCode),
    /// Nobody knows how it ended.
    Unknown,
}

/// What a store writes down, and what it says.
#[derive(Clone, Debug, Eq, PartialEq)]
#[must_use]
pub struct Step<T> {
    /// What to do with the row.
    pub write: Write,
    /// What to say once that stands.
    pub say: T,
}

/// What to do with a row.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Write {
    /// Nothing.
    Leave,
    /// This takes its place.
    Put(Box<Row>),
    /// It goes.
    Remove,
}

impl<T> Step<T> {
    fn leave(say: T) -> Self {
        Self { write: Write::Leave, say }
    }

    fn put(row: Row, say: T) -> Self {
        Self { write: Write::Put(Box::new(row)), say }
    }

    fn remove(say: T) -> Self {
        Self { write: Write::Remove, say }
    }
}

impl Row {
    /// What a claim finds. `row` is the key's, if it has one.
    pub fn claim(row: Option<&Self>, claim: &Claim, now: Timestamp) -> Step<Claimed> {
        let Some(row) = row.filter(|row| !row.is_forgotten(now)) else { return Self::begin(claim, 1, now) };
        if row.fingerprint != claim.fingerprint {
            return Step::leave(Claimed::Mismatch);
        }
        match &row.stage {
            Stage::Running if now < row.lease_until => {
                Step::leave(Claimed::Running { left: row.lease_until.since(now) })
            }
            Stage::Running if row.if_lost == IfLost::RunAgain => {
                Self::begin(claim, row.run.saturating_add(1), now)
            }
            Stage::Running => Step::put(Self { stage: Stage::Unknown, ..row.clone() }, Claimed::Unknown),
            Stage::Unknown => Step::leave(Claimed::Unknown),
            _ if now >= row.expires_at => Step::leave(Claimed::Expired),
            Stage::Answered(answer) => Step::leave(Claimed::Answered(answer.clone())),
            Stage::NotKept(status) => Step::leave(Claimed::NotKept(*status)),
        }
    }

    fn begin(claim: &Claim, run: u32, now: Timestamp) -> Step<Claimed> {
        let expires_at = now.after(claim.lifetime);
        let row = Self {
            fingerprint: claim.fingerprint,
            claim: claim.id,
            run,
            if_lost: claim.if_lost,
            claimed_at: now,
            lease_until: now.after(claim.lease).min(expires_at),
            expires_at,
            forget_at: expires_at.after(claim.tombstone),
            stage: Stage::Running,
        };
        Step::put(row, Claimed::Mine(Lease { record: claim.record.clone(), claim: claim.id, run }))
    }

    /// What a renewal finds.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Stale`](crate::ErrorKind::Stale).
    pub fn renew(
        row: Option<&Self>,
        claim: ClaimId,
        length: Duration,
        now: Timestamp,
    ) -> Result<Step<()>, Error> {
        let row = row.filter(|row| row.claim == claim && row.stage == Stage::Running && now < row.expires_at);
        let row = row.ok_or_else(Error::stale)?;
        let lease_until = now.after(length).min(row.expires_at);
        Ok(Step::put(Self { lease_until, ..row.clone() }, ()))
    }

    /// What the end of a run finds.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Stale`](crate::ErrorKind::Stale).
    pub fn finish(
        row: Option<&Self>,
        claim: ClaimId,
        end: End,
        now: Timestamp,
    ) -> Result<Step<Finished>, Error> {
        let Some(row) = row.filter(|row| !row.is_forgotten(now)) else {
            // A run without effect may have been taken back before.
            return if end == End::NoEffect {
                Ok(Step::leave(Finished::Already))
            } else {
                Err(Error::stale())
            };
        };
        if row.claim != claim {
            return Err(Error::stale());
        }
        let stage = match (&row.stage, end) {
            (Stage::Answered(_) | Stage::NotKept(_), _) | (Stage::Unknown, End::Unknown) => {
                return Ok(Step::leave(Finished::Already));
            }
            (Stage::Running | Stage::Unknown, End::NoEffect) => return Ok(Step::remove(Finished::Done)),
            (Stage::Running, End::Unknown) => Stage::Unknown,
            _ if now >= row.expires_at => return Err(Error::stale()),
            (Stage::Running | Stage::Unknown, End::Answered(answer)) => Stage::Answered(answer),
            (Stage::Running | Stage::Unknown, End::NotKept(status)) => Stage::NotKept(status),
        };
        Ok(Step::put(Self { stage, ..row.clone() }, Finished::Done))
    }

    /// What a resolution finds.
    pub fn resolve(row: Option<&Self>, resolution: Resolution, now: Timestamp) -> Step<Resolved> {
        let Some(row) = row.filter(|row| !row.is_forgotten(now)) else {
            return Step::leave(Resolved::NotFound);
        };
        if row.state(now) != State::Unknown {
            return Step::leave(Resolved::NotUnknown);
        }
        let answer = match resolution {
            Resolution::RunAgain => return Step::remove(Resolved::Done),
            Resolution::Answer(answer) => answer,
        };
        let expires_at = now.after(row.expires_at.since(row.claimed_at));
        let forget_at = expires_at.after(row.forget_at.since(row.expires_at));
        // Whoever still runs is not to put another answer in this one's place.
        let claim = ClaimId([0; 16]);
        Step::put(
            Self { claim, stage: Stage::Answered(answer), expires_at, forget_at, ..row.clone() },
            Resolved::Done,
        )
    }

    /// How it stands at this moment. A lost lease that nobody has noticed is an unknown outcome all the same.
    pub fn state(&self, now: Timestamp) -> State {
        match &self.stage {
            Stage::Running if now >= self.lease_until && self.if_lost == IfLost::Unknown => State::Unknown,
            Stage::Running => State::Running,
            Stage::Unknown => State::Unknown,
            _ if now >= self.expires_at => State::Expired,
            Stage::Answered(_) => State::Answered,
            Stage::NotKept(_) => State::NotKept,
        }
    }

    /// Whether it may be removed: done, and past the time for which it is remembered. What runs or is unknown never is.
    pub fn is_forgotten(&self, now: Timestamp) -> bool {
        now >= self.forget_at && self.is_done()
    }

    /// Whether the work is known to be done.
    pub fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Answered(_) | Stage::NotKept(_))
    }

    /// What an operator sees; `None` if it is forgotten.
    pub fn record(&self, id: &RecordId, now: Timestamp) -> Option<Record> {
        let (run, claimed_at, expires_at) = (self.run, self.claimed_at, self.expires_at);
        let state = self.state(now);
        (!self.is_forgotten(now)).then(|| Record { id: id.clone(), state, run, claimed_at, expires_at })
    }
}
