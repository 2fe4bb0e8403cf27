//! The contract in its plainest form: a list in memory under a lock. What it keeps, it keeps until it is
//! dropped; it is here to compare stores with, and for tests that need a ledger and no disk.

mod act;
mod row;
mod show;

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use relent_core::Timestamp;

use row::Rows;

use super::{Fixture, Plant, Planted};
use crate::{
    Accepted, Audit, ClaimQuery, Claims, Discard, Error, Finish, Ledger, ListQuery, Message, MessageId,
    NewMessage, Page, Redrive, Settled, Shelve, Stretch, Summary, Tally, Ticket,
};

/// A ledger in memory.
#[derive(Debug, Default)]
pub struct MemoryLedger {
    rows: Mutex<Rows>,
}

impl MemoryLedger {
    /// What opening a store after its owner died does: what was in flight waits, due at `now`.
    pub fn recover(&self, now: Timestamp) {
        self.rows().recover(now);
    }

    /// Spoils what is kept of a message; whether it is there.
    pub fn spoil(&self, plant: Plant, id: MessageId) -> bool {
        self.rows().spoil(plant, id)
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Ledger for MemoryLedger {
    async fn accept(&self, message: NewMessage) -> Result<Accepted, Error> {
        self.rows().accept(message)
    }

    async fn replay(&self, key: &str, fingerprint: [u8; 32]) -> Result<Option<Accepted>, Error> {
        Ok(self.rows().known(key, fingerprint))
    }

    async fn claim(&self, query: ClaimQuery) -> Result<Claims, Error> {
        Ok(self.rows().claim(&query))
    }

    async fn begin_attempt(&self, ticket: &Ticket, at: Timestamp) -> Result<u32, Error> {
        self.rows().begin_attempt(ticket, at)
    }

    async fn finish(&self, ticket: &Ticket, finish: Finish) -> Result<(), Error> {
        self.rows().finish(ticket, finish)
    }

    async fn shelve(&self, ticket: &Ticket, shelve: Shelve) -> Result<(), Error> {
        self.rows().shelve(ticket, shelve)
    }

    async fn redrive(&self, id: MessageId, redrive: Redrive) -> Result<Settled, Error> {
        Ok(self.rows().redrive(id, redrive))
    }

    async fn discard(&self, id: MessageId, discard: Discard) -> Result<Settled, Error> {
        Ok(self.rows().discard(id, discard))
    }

    async fn cancel(&self, id: MessageId, at: Timestamp) -> Result<Settled, Error> {
        Ok(self.rows().cancel(id, at))
    }

    async fn message(&self, id: MessageId, log: Stretch) -> Result<Option<Message>, Error> {
        Ok(self.rows().message(id, log))
    }

    async fn list(&self, query: ListQuery) -> Result<Page<Summary>, Error> {
        Ok(self.rows().list(&query))
    }

    async fn room(&self) -> Result<(), Error> {
        Ok(())
    }

    async fn tally(&self) -> Result<Tally, Error> {
        Ok(self.rows().tally())
    }

    async fn audit(&self) -> Result<Audit, Error> {
        Ok(Audit { counted: self.rows().tally(), findings: Vec::new() })
    }
}

/// A fixture of a ledger in memory, which outlives its "crashes".
#[derive(Debug, Default)]
pub struct MemoryFixture {
    ledger: MemoryLedger,
}

#[async_trait]
impl Fixture for MemoryFixture {
    type Ledger = MemoryLedger;

    fn ledger(&self) -> &MemoryLedger {
        &self.ledger
    }

    async fn crash(&mut self, now: Timestamp) {
        self.ledger.recover(now);
    }

    async fn plant(&mut self, plant: Plant, id: MessageId) -> Planted {
        if self.ledger.spoil(plant, id) { Planted::Done } else { Planted::Unable }
    }
}
