//! What a store must do. Each bullet under *Ordering* or *Errors* is a rule with a test in the suite.

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use relent_core::{Idempotency, Observed, Settlement, StopReason, Timestamp};

use crate::{
    Audit, Destination, Error, ListQuery, Message, MessageId, Page, Request, State, Stretch, Summary, Tally,
};

/// A durable store of messages.
///
/// Every method is atomic by itself and durable when it returns: what it answered survives the death of the
/// process and the loss of power. A store may commit many calls together.
///
/// # Cancellation safety
///
/// A call that is dropped may or may not have been carried out, but never in part.
#[async_trait]
pub trait Ledger: Send + Sync + 'static {
    /// Takes in a message, with its idempotency record in the same commit.
    ///
    /// - The same key with the same fingerprint is a replay: the first message's id, and nothing is stored.
    /// - The same key with another fingerprint is a conflict, and nothing is stored.
    /// - The message is due at `not_before`, otherwise at once; a `not_before` is recorded as a wait.
    /// - A second message with the same id is refused.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) if there is a message with that id;
    /// [`ErrorKind::Full`](crate::ErrorKind::Full) if there is no room.
    async fn accept(&self, message: NewMessage) -> Result<Accepted, Error>;

    /// What [`Ledger::accept`] would answer to this key: for a sender who repeats what would now be refused.
    ///
    /// - The same as `accept`, a replay or a conflict; `None` where no message has the key. Nothing is stored.
    async fn replay(&self, key: &str, fingerprint: [u8; 32]) -> Result<Option<Accepted>, Error>;

    /// Takes up to `limit` messages that are due at `now`, the longest due first, and marks them in flight under
    /// fresh tickets. Messages for a destination in `skip` are left.
    ///
    /// - A message is never given to two claims at the same time.
    /// - A message whose last attempt was begun and never finished comes with that attempt in
    ///   [`Work::interrupted`]; it is due at once after its owner died.
    /// - A row that cannot be read comes as [`Claimed::Unreadable`], and the others come all the same.
    ///
    /// # Cancellation safety
    ///
    /// What a dropped call claimed is put back, due when it was.
    async fn claim(&self, query: ClaimQuery) -> Result<Claims, Error>;

    /// Records that an attempt begins, before anything is sent, and returns its number: 1 for the first, and
    /// on through all cycles.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Stale`](crate::ErrorKind::Stale) if the ticket is over;
    /// [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) while another attempt is begun and not finished.
    async fn begin_attempt(&self, ticket: &Ticket, at: Timestamp) -> Result<u32, Error>;

    /// Ends the work under a ticket: the attempt's outcome (if there was one), the settlement and the new
    /// history in one commit.
    ///
    /// - `Ack`: delivered. `Retry` and `Defer`: waiting, due at `at` + the wait, which is recorded; in flight no
    ///   more. `DeadLetter`: dead, with the reason. `Leave`: waiting and due at once, and an attempt that was
    ///   begun stays open.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Stale`](crate::ErrorKind::Stale) if the ticket is over;
    /// [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) if the attempt is not under way. Nothing is written.
    async fn finish(&self, ticket: &Ticket, finish: Finish) -> Result<(), Error>;

    /// Gives a message in flight to the dead letters as it is: for rows of which no history can be made.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Stale`](crate::ErrorKind::Stale) if the ticket is over; nothing is written.
    async fn shelve(&self, ticket: &Ticket, shelve: Shelve) -> Result<(), Error>;

    /// Sends a dead letter again: waiting, due at once, in a new cycle, which is recorded as a wait of no length.
    /// Its id, key, content and attempt log stay.
    ///
    /// - An attempt that the dead letter left open is nobody's to conclude any more: it stays in the log as it
    ///   is and is not handed out as interrupted.
    /// - Of two redrives of the same dead letter one is carried out; the other is told that it is not dead.
    async fn redrive(&self, id: MessageId, redrive: Redrive) -> Result<Settled, Error>;

    /// Takes a dead letter off the list. It stays readable.
    ///
    /// - One that was redriven since the caller saw it, and is dead anew, is left: it may be for another reason.
    async fn discard(&self, id: MessageId, discard: Discard) -> Result<Settled, Error>;

    /// Stops a message that is waiting or held. One in flight is not stopped.
    async fn cancel(&self, id: MessageId, at: Timestamp) -> Result<Settled, Error>;

    /// A message with a stretch of its attempts and waits.
    ///
    /// - Of the log it reads no more than the stretch says, the newest first, and says whether there is more.
    async fn message(&self, id: MessageId, log: Stretch) -> Result<Option<Message>, Error>;

    /// A page of messages, newest first, stable while others come and go.
    ///
    /// - Only those in the states, with the reasons and for the destinations that are asked for. A page is full
    ///   as long as there are more of them, however many others lie between.
    async fn list(&self, query: ListQuery) -> Result<Page<Summary>, Error>;

    /// Whether a small message could be accepted now: its way to the disk, with nothing left behind.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Full`](crate::ErrorKind::Full) if there is no room, and whatever else
    /// [`Ledger::accept`] would fail with.
    async fn room(&self) -> Result<(), Error>;

    /// Counts, kept as the store goes: reading them costs the same at any size.
    async fn tally(&self) -> Result<Tally, Error>;

    /// Checks the store against its own rules, reading everything.
    async fn audit(&self) -> Result<Audit, Error>;
}

/// A message to take in.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewMessage {
    /// Its name, made by the caller.
    pub id: MessageId,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// Where it goes.
    pub destination: Destination,
    /// What is sent.
    pub request: Request,
    /// The sender's idempotency key.
    pub key: Option<String>,
    /// A digest of everything the sender said, by which a replay is told from a conflict.
    pub fingerprint: [u8; 32],
    /// The name of its policy.
    pub policy: String,
    /// Whether it is safe to repeat.
    pub repeat: Idempotency,
    /// The sender's own labels.
    pub labels: BTreeMap<String, String>,
    /// Not to be sent before.
    pub not_before: Option<Timestamp>,
    /// Of no use after.
    pub deadline: Option<Timestamp>,
    /// The decision state, as bytes.
    pub history: Bytes,
}

/// What became of an acceptance.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub enum Accepted {
    /// Stored under its own id.
    New,
    /// The same was accepted before, under this id.
    Replayed(MessageId),
    /// The key belongs to another message, with this id.
    Conflict(MessageId),
}

/// What to claim.
#[derive(Clone, Debug)]
pub struct ClaimQuery {
    /// What is due by now.
    pub now: Timestamp,
    /// No more than this.
    pub limit: usize,
    /// Not for these.
    pub skip: Vec<Destination>,
}

/// What was claimed.
#[derive(Debug, Default)]
pub struct Claims {
    /// The messages.
    pub claimed: Vec<Claimed>,
    /// When the next message that is not skipped is due, if this claim did not take it. May be past when the
    /// limit cut the claim.
    pub next_due: Option<Timestamp>,
}

/// The right to settle a message: over once it is settled. It fences off whoever comes late.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Ticket {
    /// The message.
    pub id: MessageId,
    /// Which claim of it this is.
    pub epoch: u64,
}

/// One claimed row.
#[derive(Debug)]
pub enum Claimed {
    /// A message to work on.
    Work(Ticket, Box<Work>),
    /// A row that cannot be read, and what is wrong with it.
    Unreadable(Ticket, String),
}

/// A message in the hands of a worker.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Work {
    /// What is sent.
    pub request: Request,
    /// Where it goes.
    pub destination: Destination,
    /// The sender's idempotency key.
    pub key: Option<String>,
    /// The name of its policy.
    pub policy: String,
    /// The sender's own labels.
    pub labels: BTreeMap<String, String>,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// The decision state, as bytes.
    pub history: Bytes,
    /// How often it was redriven.
    pub cycle: u32,
    /// Attempts begun so far, in all cycles.
    pub attempts: u32,
    /// An attempt that was begun and never finished.
    pub interrupted: Option<u32>,
}

/// How the work under a ticket ends.
#[derive(Clone, Debug)]
pub struct Finish {
    /// When.
    pub at: Timestamp,
    /// The attempt that ended, if there was one: the one begun under this ticket, or an interrupted one.
    pub attempt: Option<AttemptEnd>,
    /// What becomes of the message.
    pub settlement: Settlement,
    /// The new decision state.
    pub history: Bytes,
}

/// How an attempt ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AttemptEnd {
    /// Which.
    pub number: u32,
    /// How long it took; zero where nobody knows.
    pub took: Duration,
    /// What was seen. An attempt whose end nobody saw is `unknown`.
    pub observed: Observed,
    /// The error in words, or nothing.
    pub detail: String,
    /// The start of the response's body.
    pub response: Bytes,
    /// Whether the response was longer.
    pub truncated: Truncated,
}

/// Whether something was cut off.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Truncated {
    /// All of it is here.
    No,
    /// There was more.
    Yes,
}

/// Why a message is shelved as it is.
#[derive(Clone, Debug)]
pub struct Shelve {
    /// When.
    pub at: Timestamp,
    /// The reason.
    pub reason: StopReason,
    /// In words.
    pub detail: String,
}

/// How a dead letter is sent again.
#[derive(Clone, Debug)]
pub struct Redrive {
    /// When.
    pub at: Timestamp,
    /// The cycle that the caller saw; if the message is in another by now, nothing is done.
    pub seen_cycle: u32,
    /// The new decision state.
    pub history: Bytes,
    /// The new cycle's deadline.
    pub deadline: Option<Timestamp>,
}

/// How a dead letter is taken off the list.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Discard {
    /// When.
    pub at: Timestamp,
    /// The cycle that the caller saw; if the message is in another by now, nothing is done. `None`: whichever.
    pub seen_cycle: Option<u32>,
}

/// What became of a person's wish.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub enum Settled {
    /// Done.
    Done,
    /// There is no such message.
    NotFound,
    /// The message is in another state, which does not allow it.
    Refused(State),
}
