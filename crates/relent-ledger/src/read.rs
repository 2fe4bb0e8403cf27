//! What a store shows.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use relent_core::{Idempotency, Observed, StopReason, Timestamp, Wait};

use crate::{Destination, MessageId, Request, State, contract::Truncated};

/// One line about a message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Summary {
    /// Its name.
    pub id: MessageId,
    /// Where it stands.
    pub state: State,
    /// The HTTP method.
    pub method: String,
    /// The absolute URL.
    pub url: String,
    /// Where it goes.
    pub destination: Destination,
    /// The name of its policy.
    pub policy: String,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// When it is due, while it waits.
    pub due_at: Option<Timestamp>,
    /// Why it waits: the last recorded wait, while it waits.
    pub wait: Option<Wait>,
    /// Of no use after.
    pub deadline: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Why it is dead.
    pub reason: Option<StopReason>,
    /// Attempts begun, in all cycles.
    pub attempts: u32,
    /// How often it was redriven.
    pub cycle: u32,
    /// How the last finished attempt ended.
    pub last_observed: Option<Observed>,
    /// That, or what is wrong with the row, in words.
    pub last_detail: String,
}

/// All about a message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Message {
    /// One line about it.
    pub summary: Summary,
    /// What is sent.
    pub request: Request,
    /// The sender's idempotency key.
    pub key: Option<String>,
    /// Whether it is safe to repeat.
    pub repeat: Idempotency,
    /// The sender's own labels.
    pub labels: BTreeMap<String, String>,
    /// The decision state, as bytes.
    pub history: Bytes,
    /// Attempts, in order, across all cycles: as many as were asked for.
    pub attempts: Vec<Attempt>,
    /// The waits among and after those attempts, in order. Before the first attempt belong those that came before
    /// it.
    pub waits: Vec<WaitRecord>,
    /// Whether anything older stands in the log than what is shown.
    pub older: Older,
}

/// Which part of a message's log is to be read. A message that is tried for days under a patient policy has
/// thousands of attempts with an answer each; nobody who wants to know its state should read them all.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stretch {
    /// Attempts with a number below this; the newest if `None`.
    pub before: Option<u32>,
    /// No more attempts than this, and no more than [`Stretch::WAITS`] waits for each and for what came before
    /// the first: the newest.
    pub limit: u32,
}

/// Whether a log goes further back.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Older {
    /// There are older attempts or waits.
    More,
    /// What is shown begins with the message.
    Nothing,
}

impl Stretch {
    /// The whole log.
    pub const ALL: Self = Self { before: None, limit: u32::MAX };

    /// Nothing of the log.
    pub const NONE: Self = Self { before: None, limit: 0 };

    /// How many waits may be shown for each attempt: one follows it, and a shut gate adds its own.
    pub const WAITS: u32 = 8;

    /// The newest attempts.
    pub const fn newest(limit: u32) -> Self {
        Self { before: None, limit }
    }

    /// No more waits than this.
    pub const fn most_waits(self) -> u32 {
        match self.limit {
            0 => 0,
            limit => limit.saturating_add(1).saturating_mul(Self::WAITS),
        }
    }
}

/// One attempt in a message's log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Attempt {
    /// Its number, from 1, on through all cycles.
    pub number: u32,
    /// The cycle it belongs to.
    pub cycle: u32,
    /// When it began.
    pub began_at: Timestamp,
    /// How it ended. `None`: it is under way, or was begun and never finished.
    pub end: Option<AttemptRecord>,
}

/// How an attempt ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AttemptRecord {
    /// How long it took.
    pub took: Duration,
    /// What was seen.
    pub observed: Observed,
    /// The error in words, or nothing.
    pub detail: String,
    /// The start of the response's body.
    pub response: Bytes,
    /// Whether the response was longer.
    pub truncated: Truncated,
}

/// One wait of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WaitRecord {
    /// When it was decided on.
    pub decided_at: Timestamp,
    /// The attempt before it; 0 if there was none.
    pub after_attempt: u32,
    /// How long, who asked, and the draw.
    pub wait: Wait,
}

/// What to list: what fits every one of its lists.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListQuery {
    /// Only these states; all if empty.
    pub states: Vec<State>,
    /// Only what was given up for one of these reasons; if empty, everything, whether it has a reason or not.
    pub reasons: Vec<StopReason>,
    /// Only for these destinations; for all if empty.
    pub destinations: Vec<Destination>,
    /// Go on from here.
    pub after: Option<Cursor>,
    /// No more than this.
    pub limit: usize,
}

impl ListQuery {
    /// The newest of all messages.
    pub const fn newest(limit: usize) -> Self {
        Self { states: Vec::new(), reasons: Vec::new(), destinations: Vec::new(), after: None, limit }
    }
}

/// A place in a list. Opaque outside the store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cursor(pub u64);

/// A page of a list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where to go on; `None` at the end.
    pub next: Option<Cursor>,
}

/// Counts of everything.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    /// Messages ever accepted.
    pub accepted: u64,
    /// Attempts ever begun.
    pub attempts: u64,
    /// Messages by state; a state without messages may be missing.
    pub states: BTreeMap<State, u64>,
    /// Dead letters by reason.
    pub dead: BTreeMap<&'static str, u64>,
    /// When the oldest message that still waits, is held or is in flight was accepted.
    pub oldest_waiting: Option<Timestamp>,
    /// When the oldest dead letter died.
    pub oldest_dead: Option<Timestamp>,
}

impl Tally {
    /// Messages in a state.
    pub fn count(&self, state: State) -> u64 {
        self.states.get(&state).copied().unwrap_or_default()
    }
}
