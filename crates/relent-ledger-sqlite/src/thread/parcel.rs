//! Claims on their way to a caller, who may be gone when they arrive.

use std::sync::{Arc, Mutex, PoisonError};

use relent_core::Timestamp;
use relent_ledger::{Claims, Ticket};
use tokio::sync::mpsc;

use super::{Job, Message, Ran};
use crate::{thread::Failure, write::Write};

/// A ticket that nobody took, and when its message was due.
pub(crate) type Returned = (Ticket, Timestamp);

/// Tickets that nobody took: the writer puts their messages back before its next batch.
#[derive(Clone)]
pub(crate) struct Returns {
    tickets: Arc<Mutex<Vec<Returned>>>,
    writer: mpsc::WeakSender<Message<Box<dyn Job>>>,
}

impl Returns {
    pub(crate) fn new(writer: &mpsc::Sender<Message<Box<dyn Job>>>) -> Self {
        Self { tickets: Arc::default(), writer: writer.downgrade() }
    }

    pub(super) fn take(&self) -> Vec<Returned> {
        std::mem::take(&mut *self.tickets.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn put(&self, returned: Vec<Returned>) {
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner).extend(returned);
    }

    /// Has the writer look. A full queue needs no nudge, and a writer that is gone leaves the messages in
    /// flight, which the next owner finds.
    fn nudge(&self) {
        if let Some(writer) = self.writer.upgrade() {
            drop(writer.try_send(Message::Job(Box::new(Nudge))));
        }
    }
}

/// What was claimed, until somebody has it. Dropped before that, the messages go back: a caller that was
/// cancelled while it waited must not keep them in flight for ever.
pub(crate) struct Parcel {
    claims: Option<Claims>,
    due: Vec<Returned>,
    returns: Returns,
}

impl Parcel {
    pub(crate) fn new(claims: Claims, due: Vec<Returned>, returns: Returns) -> Self {
        Self { claims: Some(claims), due, returns }
    }

    /// Takes the claims: from here on they are the caller's.
    pub(crate) fn open(mut self) -> Claims {
        self.claims.take().unwrap_or_default()
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        if self.claims.take().is_some() && !self.due.is_empty() {
            self.returns.put(std::mem::take(&mut self.due));
            self.returns.nudge();
        }
    }
}

/// A request for nothing, so that the writer begins a batch.
struct Nudge;

impl Job for Nudge {
    fn run(&mut self, _: &mut Write<'_>) -> Ran {
        Ran::Keep
    }

    fn answer(self: Box<Self>, _: Result<(), &Failure>) {}
}
