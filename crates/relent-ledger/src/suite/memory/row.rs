//! The rows, and how they are found.

use bytes::Bytes;
use relent_core::{Observed, StopReason, Timestamp};

use crate::{Attempt, Error, ErrorKind, MessageId, NewMessage, State, Ticket, WaitRecord, suite::Plant};

/// Every message, in the order of acceptance.
#[derive(Debug, Default)]
pub(super) struct Rows(pub(super) Vec<Row>);

#[derive(Debug)]
pub(super) struct Row {
    pub(super) sent: NewMessage,
    pub(super) state: State,
    pub(super) due_at: Option<Timestamp>,
    pub(super) epoch: u64,
    pub(super) cycle: u32,
    pub(super) open_attempt: Option<u32>,
    pub(super) deadline: Option<Timestamp>,
    pub(super) ended_at: Option<Timestamp>,
    pub(super) reason: Option<StopReason>,
    pub(super) last_observed: Option<Observed>,
    pub(super) last_detail: String,
    pub(super) history: Bytes,
    pub(super) attempts: Vec<Attempt>,
    pub(super) waits: Vec<WaitRecord>,
    pub(super) spoiled: Option<Plant>,
}

impl Row {
    pub(super) fn new(sent: NewMessage) -> Self {
        Self {
            state: State::Waiting,
            due_at: Some(sent.not_before.unwrap_or(sent.accepted_at)),
            epoch: 0,
            cycle: 0,
            open_attempt: None,
            deadline: sent.deadline,
            ended_at: None,
            reason: None,
            last_observed: None,
            last_detail: String::new(),
            history: sent.history.clone(),
            attempts: Vec::new(),
            waits: Vec::new(),
            spoiled: None,
            sent,
        }
    }

    /// Attempts begun so far.
    pub(super) fn begun(&self) -> u32 {
        self.attempts.last().map_or(0, |attempt| attempt.number)
    }

    pub(super) fn wait_until(&mut self, due_at: Timestamp) {
        self.state = State::Waiting;
        self.due_at = Some(due_at);
    }

    pub(super) fn end(&mut self, state: State, at: Timestamp) {
        self.state = state;
        self.due_at = None;
        self.ended_at = Some(at);
    }
}

impl Rows {
    pub(super) fn find(&mut self, id: MessageId) -> Option<&mut Row> {
        self.0.iter_mut().find(|row| row.sent.id == id)
    }

    pub(super) fn in_flight(&mut self, ticket: &Ticket) -> Result<&mut Row, Error> {
        let stale = || Error::new(ErrorKind::Stale, format!("the ticket for {} is over", ticket.id));
        let row = self.find(ticket.id).ok_or_else(stale)?;
        if row.state == State::InFlight && row.epoch == ticket.epoch { Ok(row) } else { Err(stale()) }
    }

    pub(super) fn recover(&mut self, now: Timestamp) {
        for row in self.0.iter_mut().filter(|row| row.state == State::InFlight) {
            row.wait_until(now);
        }
    }

    pub(super) fn spoil(&mut self, plant: Plant, id: MessageId) -> bool {
        self.find(id).map(|row| row.spoiled = Some(plant)).is_some()
    }
}
