//! The real store behind a door that can be shut.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use relent::Timestamp;
use relent_ledger::{
    Accepted, Audit, ClaimQuery, Claims, Discard, Error, ErrorKind, Finish, Ledger, ListQuery, Message,
    MessageId, NewMessage, Page, Redrive, Settled, Shelve, Stretch, Summary, Tally, Ticket,
};

/// What the driver asks of a store.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Op {
    Claim,
    Begin,
    Finish,
    Shelve,
}

/// A store that fails when it is told to, and counts what it was asked.
pub struct Faulty {
    inner: Arc<dyn Ledger>,
    down: Mutex<HashSet<Op>>,
    asked: Mutex<HashMap<Op, usize>>,
    thefts: Mutex<HashMap<Op, Finish>>,
}

impl Faulty {
    pub fn new(inner: Arc<dyn Ledger>) -> Self {
        Self { inner, down: Mutex::default(), asked: Mutex::default(), thefts: Mutex::default() }
    }

    pub fn shut(&self, op: Op) {
        self.down.lock().unwrap().insert(op);
    }

    pub fn open(&self, op: Op) {
        self.down.lock().unwrap().remove(&op);
    }

    pub fn asked(&self, op: Op) -> usize {
        self.asked.lock().unwrap().get(&op).copied().unwrap_or_default()
    }

    /// Ends the work under the next ticket that asks for this, just before it does: somebody else has taken it.
    pub fn steal_before(&self, op: Op, end: Finish) {
        self.thefts.lock().unwrap().insert(op, end);
    }

    async fn rob(&self, op: Op, ticket: &Ticket) -> Result<(), Error> {
        let theft = self.thefts.lock().unwrap().remove(&op);
        match theft {
            Some(end) => self.inner.finish(ticket, end).await,
            None => Ok(()),
        }
    }

    fn pass(&self, op: Op) -> Result<(), Error> {
        *self.asked.lock().unwrap().entry(op).or_default() += 1;
        if self.down.lock().unwrap().contains(&op) {
            return Err(Error::new(ErrorKind::Unavailable, "the test has shut the store"));
        }
        Ok(())
    }
}

#[async_trait]
impl Ledger for Faulty {
    async fn accept(&self, message: NewMessage) -> Result<Accepted, Error> {
        self.inner.accept(message).await
    }

    async fn replay(&self, key: &str, fingerprint: [u8; 32]) -> Result<Option<Accepted>, Error> {
        self.inner.replay(key, fingerprint).await
    }

    async fn claim(&self, query: ClaimQuery) -> Result<Claims, Error> {
        self.pass(Op::Claim)?;
        self.inner.claim(query).await
    }

    async fn begin_attempt(&self, ticket: &Ticket, at: Timestamp) -> Result<u32, Error> {
        self.pass(Op::Begin)?;
        self.rob(Op::Begin, ticket).await?;
        self.inner.begin_attempt(ticket, at).await
    }

    async fn finish(&self, ticket: &Ticket, finish: Finish) -> Result<(), Error> {
        self.pass(Op::Finish)?;
        self.rob(Op::Finish, ticket).await?;
        self.inner.finish(ticket, finish).await
    }

    async fn shelve(&self, ticket: &Ticket, shelve: Shelve) -> Result<(), Error> {
        self.pass(Op::Shelve)?;
        self.inner.shelve(ticket, shelve).await
    }

    async fn redrive(&self, id: MessageId, redrive: Redrive) -> Result<Settled, Error> {
        self.inner.redrive(id, redrive).await
    }

    async fn discard(&self, id: MessageId, discard: Discard) -> Result<Settled, Error> {
        self.inner.discard(id, discard).await
    }

    async fn cancel(&self, id: MessageId, at: Timestamp) -> Result<Settled, Error> {
        self.inner.cancel(id, at).await
    }

    async fn message(&self, id: MessageId, log: Stretch) -> Result<Option<Message>, Error> {
        self.inner.message(id, log).await
    }

    async fn list(&self, query: ListQuery) -> Result<Page<Summary>, Error> {
        self.inner.list(query).await
    }

    async fn room(&self) -> Result<(), Error> {
        self.inner.room().await
    }

    async fn tally(&self) -> Result<Tally, Error> {
        self.inner.tally().await
    }

    async fn audit(&self) -> Result<Audit, Error> {
        self.inner.audit().await
    }
}
