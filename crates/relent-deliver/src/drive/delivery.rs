//! One message from its claim to its settlement.

use std::{
    any::Any,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use relent::{Clock, Decision, Settlement, StopReason, Timestamp};
use relent_ledger::{
    AttemptEnd, Destination, Error, ErrorKind, Finish, MessageId, Shelve, State, Ticket, Work,
};
use tokio::sync::watch;

use super::{Shared, ledger_pause};
use crate::{
    Answered, AttemptEnded, Ended, Transport,
    plan::{self, Next, Planned},
};

/// How far the driver is on its way out.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Phase {
    /// Not on its way out.
    Running,
    /// Nothing new is begun.
    Draining,
    /// What is in flight is cut off.
    Cut,
}

/// What became of a claimed message.
#[derive(Debug)]
pub(super) struct Done {
    /// Whether an attempt was begun.
    pub begun: bool,
    /// What the ledger was told; `None`: it was not told.
    pub end: Result<Settlement, Untold>,
    /// When the message is due again.
    pub due: Option<Timestamp>,
}

/// Why the ledger does not know of an end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Untold {
    /// The ticket was over.
    Stale,
    /// The ledger failed until the shutdown was over.
    Unsettled,
}

/// What the ledger is told at the end.
enum Word {
    Finish(Finish),
    Shelve(Shelve),
}

/// A claimed message in work.
pub(super) struct Delivery<T, C> {
    pub shared: Arc<Shared<T, C>>,
    pub ticket: Ticket,
    pub phase: watch::Receiver<Phase>,
}

impl<T: Transport, C: Clock> Delivery<T, C> {
    /// Does what the plan says, and tells the ledger and the observer.
    ///
    /// # Cancellation safety
    ///
    /// Dropped, the message stays in flight in the ledger; its next owner finds an attempt that was begun as
    /// lost.
    pub(super) async fn run(self, work: Box<Work>) -> Done {
        let shared = Arc::clone(&self.shared);
        let now = shared.clock.now();
        if *self.phase.borrow() != Phase::Running {
            return self.settle(&work, plan::leave(work.history.clone(), now)).await;
        }
        let planned = match plan::before(self.ticket.id, &work, &shared.policies, now) {
            Next::Send(planned) => planned,
            Next::Settle(finish) => return self.settle(&work, finish).await,
            Next::AwaitPolicy(finish, unknown) => {
                shared.observe.policy_missing(self.ticket.id, &unknown);
                return self.settle(&work, finish).await;
            }
            Next::Shelve(why) => return self.shelve(why, Some(&work)).await,
        };
        match shared.ledger.begin_attempt(&self.ticket, now).await {
            Ok(number) => self.attempt(&work, *planned, number).await,
            Err(error) if error.kind() == ErrorKind::Stale => self.stale(),
            Err(error) => {
                shared.observe.ledger_failed(&error);
                self.settle(&work, plan::put_off(work.history.clone(), shared.clock.now())).await
            }
        }
    }

    /// Gives a row that cannot be read to the dead letters.
    pub(super) async fn shelve(mut self, why: Shelve, work: Option<&Work>) -> Done {
        let (at, reason) = (why.at, why.reason);
        if let Err(untold) = self.tell(Word::Shelve(why)).await {
            return self.untold(untold);
        }
        let unreadable = Destination::new("unreadable");
        self.shared.observe.message_ended(&Ended {
            id: self.ticket.id,
            destination: work.map_or(&unreadable, |work| &work.destination),
            state: State::Dead,
            reason,
            observed: None,
            attempts: work.map_or(0, |work| work.attempts),
            age: work.map_or(Duration::ZERO, |work| at.since(work.accepted_at)),
            alert: work.and_then(|work| self.shared.policies.alert(&work.policy)),
        });
        Done { begun: false, end: Ok(Settlement::of(Ok(Decision::Stop(reason)), at)), due: None }
    }

    /// Puts a message off whose task died.
    pub(super) async fn put_off(mut self, finish: Finish) -> Done {
        let (settlement, due) = (finish.settlement, due(&finish));
        match self.tell(Word::Finish(finish)).await {
            Ok(()) => Done { begun: false, end: Ok(settlement), due },
            Err(untold) => self.untold(untold),
        }
    }

    async fn attempt(mut self, work: &Work, planned: Planned<'_>, number: u32) -> Done {
        let Shared { transport, clock, .. } = &*self.shared;
        let began = clock.now();
        let limit = planned.limit(began);
        let request = planned.outbound(number, began);
        // An answer that is there wins over the cut. Dropping the sending closes its connection, which is what
        // a cut means; waiting for the phase leaves nothing behind.
        let answered = if limit.is_zero() {
            Some(plan::not_sent())
        } else {
            tokio::select! {
                biased;
                answered = caught(async { transport.send(request, limit).await }) => Some(answered),
                _ = self.phase.wait_for(|phase| *phase == Phase::Cut) => None,
            }
        };
        let now = clock.now();
        let finish = match answered {
            Some(answered) => planned.after(number, began, answered, now),
            None => planned.cut(number, began, now),
        };
        Done { begun: true, ..self.settle(work, finish).await }
    }

    async fn settle(mut self, work: &Work, finish: Finish) -> Done {
        if let Err(untold) = self.tell(Word::Finish(finish.clone())).await {
            return self.untold(untold);
        }
        self.observe(work, &finish);
        Done { begun: false, end: Ok(finish.settlement), due: due(&finish) }
    }

    /// Tells the ledger until it has taken it: the work is done, and doing it again would be worse than any
    /// wait. After the cut it is told once more and then not again.
    async fn tell(&mut self, word: Word) -> Result<(), Untold> {
        let mut failures = 0;
        loop {
            let last = *self.phase.borrow() == Phase::Cut;
            let Err(error) = self.say(&word).await else { return Ok(()) };
            if error.kind() == ErrorKind::Stale {
                return Err(Untold::Stale);
            }
            self.shared.observe.ledger_failed(&error);
            if last {
                return Err(Untold::Unsettled);
            }
            failures += 1;
            // Both arms only wait.
            tokio::select! {
                () = self.shared.clock.sleep(ledger_pause(failures)) => {}
                _ = self.phase.wait_for(|phase| *phase == Phase::Cut) => {}
            }
        }
    }

    async fn say(&self, word: &Word) -> Result<(), Error> {
        match word {
            Word::Finish(finish) => self.shared.ledger.finish(&self.ticket, finish.clone()).await,
            Word::Shelve(why) => self.shared.ledger.shelve(&self.ticket, why.clone()).await,
        }
    }

    fn untold(self, untold: Untold) -> Done {
        match untold {
            Untold::Stale => self.stale(),
            Untold::Unsettled => Done { begun: false, end: Err(untold), due: None },
        }
    }

    fn stale(self) -> Done {
        self.shared.observe.ticket_stale(self.ticket.id);
        Done { begun: false, end: Err(Untold::Stale), due: None }
    }

    fn observe(&self, work: &Work, finish: &Finish) {
        let Shared { observe, .. } = &*self.shared;
        let (id, settlement) = (self.ticket.id, finish.settlement);
        match (&finish.attempt, &settlement) {
            (Some(attempt), _) => observe.attempt_ended(&attempt_ended(id, work, attempt, settlement)),
            (None, Settlement::Defer { wait }) => observe.deferred(id, wait),
            (None, _) => {}
        }
        let (state, reason) = match settlement {
            Settlement::Ack => (State::Delivered, StopReason::Succeeded),
            Settlement::DeadLetter { reason } => (State::Dead, reason),
            Settlement::Retry { .. } | Settlement::Defer { .. } | Settlement::Leave => return,
        };
        observe.message_ended(&Ended {
            id,
            destination: &work.destination,
            state,
            reason,
            observed: finish.attempt.as_ref().map(|attempt| attempt.observed),
            attempts: finish.attempt.as_ref().map_or(work.attempts, |attempt| attempt.number),
            age: finish.at.since(work.accepted_at),
            alert: self.shared.policies.alert(&work.policy).filter(|_| state == State::Dead),
        });
    }
}

/// When a message is due again.
fn due(finish: &Finish) -> Option<Timestamp> {
    match finish.settlement {
        Settlement::Retry { wait } | Settlement::Defer { wait } => Some(finish.at.after(wait.length)),
        Settlement::Leave => Some(finish.at),
        Settlement::Ack | Settlement::DeadLetter { .. } => None,
    }
}

fn attempt_ended<'a>(
    id: MessageId,
    work: &'a Work,
    attempt: &'a AttemptEnd,
    settlement: Settlement,
) -> AttemptEnded<'a> {
    let AttemptEnd { number, took, observed, .. } = *attempt;
    AttemptEnded {
        id,
        destination: &work.destination,
        number,
        observed,
        detail: &attempt.detail,
        took,
        settlement,
    }
}

/// A panic of the transport is an observation like any other.
async fn caught(sending: impl Future<Output = Answered>) -> Answered {
    let mut sending = pin!(sending);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| sending.as_mut().poll(cx))) {
        Ok(poll) => poll,
        Err(panic) => Poll::Ready(plan::panicked(said(&*panic))),
    })
    .await
}

/// What a panic said, where it said it in words.
pub(super) fn said(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "something that is not text",
    }
}
