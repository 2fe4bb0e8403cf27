//! What changes the rows.

use std::time::Duration;

use relent_core::{Settlement, Timestamp, Wait, WaitOrigin};

use super::row::{Row, Rows};
use crate::{
    Accepted, Attempt, AttemptEnd, AttemptRecord, ClaimQuery, Claimed, Claims, Discard, Error, ErrorKind,
    Finish, MessageId, NewMessage, Redrive, Settled, Shelve, State, Ticket, WaitRecord, Work,
};

impl Rows {
    pub(super) fn accept(&mut self, message: NewMessage) -> Result<Accepted, Error> {
        if let Some(known) = message.key.as_ref().and_then(|key| self.known(key, message.fingerprint)) {
            return Ok(known);
        }
        if self.find(message.id).is_some() {
            return Err(misuse("there is a message with this id"));
        }
        let mut row = Row::new(message);
        if let Some(not_before) = row.sent.not_before {
            let length = not_before.since(row.sent.accepted_at);
            row.record_wait(row.sent.accepted_at, Wait::exactly(length, WaitOrigin::NotBefore));
        }
        self.0.push(row);
        Ok(Accepted::New)
    }

    pub(super) fn known(&self, key: &str, fingerprint: [u8; 32]) -> Option<Accepted> {
        let known = self.0.iter().find(|row| row.sent.key.as_deref() == Some(key))?;
        let (id, same) = (known.sent.id, known.sent.fingerprint == fingerprint);
        Some(if same { Accepted::Replayed(id) } else { Accepted::Conflict(id) })
    }

    pub(super) fn claim(&mut self, query: &ClaimQuery) -> Claims {
        let mut waiting: Vec<&mut Row> = self
            .0
            .iter_mut()
            .filter(|row| row.state == State::Waiting && !query.skip.contains(&row.sent.destination))
            .collect();
        waiting.sort_by_key(|row| row.due_at);
        let due = waiting.iter().take(query.limit).take_while(|row| row.due_at <= Some(query.now)).count();
        let next_due = waiting.get(due).and_then(|row| row.due_at);
        Claims { claimed: waiting.into_iter().take(due).map(Row::take).collect(), next_due }
    }

    pub(super) fn begin_attempt(&mut self, ticket: &Ticket, at: Timestamp) -> Result<u32, Error> {
        let row = self.in_flight(ticket)?;
        if row.open_attempt.is_some() {
            return Err(misuse("an attempt is begun and not finished"));
        }
        let number = row.begun() + 1;
        row.attempts.push(Attempt { number, cycle: row.cycle, began_at: at, end: None });
        row.open_attempt = Some(number);
        Ok(number)
    }

    pub(super) fn finish(&mut self, ticket: &Ticket, finish: Finish) -> Result<(), Error> {
        let row = self.in_flight(ticket)?;
        if let Some(end) = finish.attempt {
            row.end_attempt(end)?;
        }
        row.history = finish.history;
        match finish.settlement {
            Settlement::Ack => row.end(State::Delivered, finish.at),
            Settlement::Retry { wait } | Settlement::Defer { wait } => {
                row.record_wait(finish.at, wait);
                row.wait_until(finish.at.after(wait.length));
            }
            Settlement::Leave => row.wait_until(finish.at),
            Settlement::DeadLetter { reason } => {
                row.reason = Some(reason);
                row.end(State::Dead, finish.at);
            }
        }
        Ok(())
    }

    pub(super) fn shelve(&mut self, ticket: &Ticket, shelve: Shelve) -> Result<(), Error> {
        let row = self.in_flight(ticket)?;
        row.reason = Some(shelve.reason);
        row.last_detail = shelve.detail;
        row.end(State::Dead, shelve.at);
        Ok(())
    }

    pub(super) fn redrive(&mut self, id: MessageId, redrive: Redrive) -> Settled {
        self.wish(
            id,
            |row| row.state == State::Dead && row.cycle == redrive.seen_cycle,
            |row| {
                row.record_wait(redrive.at, Wait::exactly(Duration::ZERO, WaitOrigin::Redrive));
                row.wait_until(redrive.at);
                row.cycle += 1;
                row.open_attempt = None;
                row.deadline = redrive.deadline;
                row.ended_at = None;
                row.reason = None;
                row.history = redrive.history;
            },
        )
    }

    pub(super) fn discard(&mut self, id: MessageId, discard: Discard) -> Settled {
        let seen = |row: &Row| discard.seen_cycle.is_none_or(|cycle| cycle == row.cycle);
        let allowed = |row: &Row| row.state == State::Dead && seen(row);
        self.wish(id, allowed, |row| row.end(State::Discarded, discard.at))
    }

    pub(super) fn cancel(&mut self, id: MessageId, at: Timestamp) -> Settled {
        let allowed = |row: &Row| matches!(row.state, State::Waiting | State::Held);
        self.wish(id, allowed, |row| row.end(State::Cancelled, at))
    }

    fn wish(&mut self, id: MessageId, allowed: impl Fn(&Row) -> bool, act: impl FnOnce(&mut Row)) -> Settled {
        match self.find(id) {
            None => Settled::NotFound,
            Some(row) if !allowed(row) => Settled::Refused(row.state),
            Some(row) => {
                act(row);
                Settled::Done
            }
        }
    }
}

impl Row {
    fn take(&mut self) -> Claimed {
        self.state = State::InFlight;
        self.due_at = None;
        self.epoch += 1;
        let ticket = Ticket { id: self.sent.id, epoch: self.epoch };
        if let Some(plant) = self.spoiled {
            return Claimed::Unreadable(ticket, format!("{plant:?} is spoiled"));
        }
        let sent = &self.sent;
        let work = Work {
            request: sent.request.clone(),
            destination: sent.destination.clone(),
            key: sent.key.clone(),
            policy: sent.policy.clone(),
            labels: sent.labels.clone(),
            accepted_at: sent.accepted_at,
            history: self.history.clone(),
            cycle: self.cycle,
            attempts: self.begun(),
            interrupted: self.open_attempt,
        };
        Claimed::Work(ticket, Box::new(work))
    }

    fn record_wait(&mut self, decided_at: Timestamp, wait: Wait) {
        self.waits.push(WaitRecord { decided_at, after_attempt: self.begun(), wait });
    }

    fn end_attempt(&mut self, end: AttemptEnd) -> Result<(), Error> {
        let open = self.open_attempt.filter(|open| *open == end.number);
        let attempt = self.attempts.iter_mut().find(|attempt| Some(attempt.number) == open);
        let attempt = attempt.ok_or_else(|| misuse("the attempt is not under way"))?;
        self.open_attempt = None;
        self.last_observed = Some(end.observed);
        self.last_detail.clone_from(&end.detail);
        let AttemptEnd { took, observed, detail, response, truncated, .. } = end;
        attempt.end = Some(AttemptRecord { took, observed, detail, response, truncated });
        Ok(())
    }
}

fn misuse(what: &str) -> Error {
    Error::new(ErrorKind::Misuse, what)
}
