//! The driver's tasks, what each of them holds, and when to claim next.

use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::Bytes;
use relent::{Clock, Settlement, StopReason, Timestamp};
use relent_ledger::{ClaimQuery, Claimed, Claims, Destination, Shelve, Ticket, Work};
use tokio::{
    sync::watch,
    task::{Id, JoinError, JoinSet},
};

use super::{
    RunReport, Shared,
    delivery::{Delivery, Done, Phase, Untold, said},
    ledger_pause,
    seats::Seats,
};
use crate::{Transport, plan};

pub(super) struct Crew<T, C> {
    shared: Arc<Shared<T, C>>,
    tasks: JoinSet<Done>,
    ended: Vec<Result<(Id, Done), JoinError>>,
    held: HashMap<Id, Held>,
    seats: Seats<(Ticket, Box<Work>)>,
    next: NextClaim,
    phase: watch::Sender<Phase>,
    report: RunReport,
}

/// What a task answers for: enough to put it back, should the task die.
struct Held {
    ticket: Ticket,
    destination: Option<Destination>,
    history: Option<Bytes>,
}

/// When to claim next.
struct NextClaim {
    /// When something is due, as far as is known. `None`: nothing is.
    due: Option<Timestamp>,
    /// Not before: the ledger failed.
    not_before: Timestamp,
    /// Failures of the ledger in a row.
    failures: u32,
    /// Left out of the last claim, so that more of theirs may be due.
    skipped: Vec<Destination>,
}

impl<T: Transport, C: Clock> Crew<T, C> {
    pub(super) fn new(shared: Arc<Shared<T, C>>) -> Self {
        Self {
            tasks: JoinSet::new(),
            ended: Vec::new(),
            held: HashMap::new(),
            seats: Seats::new(&shared.limits),
            next: NextClaim::at_once(),
            phase: watch::Sender::new(Phase::Running),
            report: RunReport::default(),
            shared,
        }
    }

    /// Something may be due that was not before.
    pub(super) fn look_at_once(&mut self) {
        self.next.due = Some(Timestamp::ZERO);
    }

    /// Claims, if something is due and there is room for it.
    ///
    /// # Cancellation safety
    ///
    /// Not to be dropped: the ledger may have handed out messages that nobody then holds.
    pub(super) async fn claim_if_due(&mut self) {
        let (now, limit) = (self.shared.clock.now(), self.seats.room());
        if limit == 0 || self.next.at().is_none_or(|at| at > now) {
            return;
        }
        let skip = self.seats.full();
        self.next.skipped.clone_from(&skip);
        match self.shared.ledger.claim(ClaimQuery { now, limit, skip }).await {
            Ok(claims) => {
                self.next.after(&claims, limit, now);
                claims.claimed.into_iter().for_each(|claimed| self.take(claimed, now));
            }
            Err(error) => {
                self.shared.observe.ledger_failed(&error);
                self.next.failed(self.shared.clock.now());
            }
        }
    }

    /// Waits until a task ends, or the next claim is due and has room.
    ///
    /// # Cancellation safety
    ///
    /// Nothing is lost: a task whose end was not taken stays in the set.
    pub(super) async fn rest(&mut self) {
        let next = if self.seats.room() > 0 { self.next.at() } else { None };
        let clock = self.shared.clock.clone();
        // An ended task stays in the set, and a sleep is only a sleep.
        tokio::select! {
            biased;
            Some(ended) = self.tasks.join_next_with_id() => self.ended.push(ended),
            () = clock.sleep_until(next.unwrap_or_default()), if next.is_some() => {}
            else => std::future::pending().await,
        }
    }

    /// Takes in all tasks that have ended, and gives their places on.
    pub(super) fn reap(&mut self) {
        while let Some(ended) = self.tasks.try_join_next_with_id() {
            self.ended.push(ended);
        }
        for ended in std::mem::take(&mut self.ended) {
            let id = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
            let Some(held) = self.held.remove(&id) else { continue };
            match ended {
                Ok((_, done)) => {
                    self.count(&done);
                    self.next.hear(done.due);
                }
                Err(error) => self.recover(&held, error),
            }
            if let Some(destination) = &held.destination {
                self.free(destination);
            }
        }
    }

    /// Puts back what is not begun, gives attempts in flight their time, cuts off the rest, and waits for
    /// every task.
    pub(super) async fn drain(mut self) -> RunReport {
        self.phase.send_replace(Phase::Draining);
        for (ticket, work) in self.seats.take_parked() {
            self.deliver(ticket, work);
        }
        let clock = self.shared.clock.clone();
        let until = clock.now().after(self.shared.limits.drain);
        loop {
            // An ended task stays in the set, and a sleep is only a sleep.
            tokio::select! {
                biased;
                ended = self.tasks.join_next_with_id() => match ended {
                    Some(ended) => self.ended.push(ended),
                    None => break,
                },
                () = clock.sleep_until(until) => break,
            }
            self.reap();
        }
        self.phase.send_replace(Phase::Cut);
        while let Some(ended) = self.tasks.join_next_with_id().await {
            self.ended.push(ended);
            self.reap();
        }
        self.report
    }

    fn take(&mut self, claimed: Claimed, now: Timestamp) {
        match claimed {
            Claimed::Work(ticket, work) => {
                let destination = work.destination.clone();
                if let Some((ticket, work)) = self.seats.take(&destination, (ticket, work)) {
                    self.deliver(ticket, work);
                }
            }
            Claimed::Unreadable(ticket, detail) => {
                let why = Shelve { at: now, reason: StopReason::Unreadable, detail };
                let task = self.tasks.spawn(self.delivery(ticket).shelve(why, None));
                self.held.insert(task.id(), Held { ticket, destination: None, history: None });
            }
        }
    }

    fn deliver(&mut self, ticket: Ticket, work: Box<Work>) {
        let destination = Some(work.destination.clone());
        let history = Some(work.history.clone());
        let task = self.tasks.spawn(self.delivery(ticket).run(work));
        self.held.insert(task.id(), Held { ticket, destination, history });
    }

    fn delivery(&self, ticket: Ticket) -> Delivery<T, C> {
        Delivery { shared: Arc::clone(&self.shared), ticket, phase: self.phase.subscribe() }
    }

    fn free(&mut self, destination: &Destination) {
        if self.next.skipped.contains(destination) {
            self.look_at_once();
        }
        if let Some((ticket, work)) = self.seats.give_back(destination) {
            self.deliver(ticket, work);
        }
    }

    /// A task died, which no message may suffer from: it is put off, once. Whoever claims it next finds what
    /// was begun as lost, so that a message that kills its task every time ends as poison.
    fn recover(&mut self, held: &Held, error: JoinError) {
        let panic = match error.try_into_panic() {
            Ok(panic) => panic,
            Err(cancelled) => Box::new(cancelled.to_string()),
        };
        self.shared.observe.task_panicked(held.ticket.id, said(&*panic));
        let Some(history) = &held.history else {
            self.report.unsettled += 1;
            return;
        };
        let finish = plan::put_off(history.clone(), self.shared.clock.now());
        let task = self.tasks.spawn(self.delivery(held.ticket).put_off(finish));
        self.held.insert(task.id(), Held { ticket: held.ticket, destination: None, history: None });
    }

    fn count(&mut self, done: &Done) {
        let report = &mut self.report;
        report.attempts += u64::from(done.begun);
        *match done.end {
            Ok(Settlement::Ack) => &mut report.delivered,
            Ok(Settlement::DeadLetter { .. }) => &mut report.dead,
            Ok(Settlement::Retry { .. }) => &mut report.retried,
            Ok(Settlement::Defer { .. }) => &mut report.deferred,
            Ok(Settlement::Leave) => &mut report.left,
            Err(Untold::Stale) => &mut report.stale,
            Err(Untold::Unsettled) => &mut report.unsettled,
        } += 1;
    }
}

impl NextClaim {
    fn at_once() -> Self {
        Self { due: Some(Timestamp::ZERO), not_before: Timestamp::ZERO, failures: 0, skipped: Vec::new() }
    }

    fn at(&self) -> Option<Timestamp> {
        self.due.map(|due| due.max(self.not_before))
    }

    /// A message will be due then.
    fn hear(&mut self, due: Option<Timestamp>) {
        self.due = [self.due, due].into_iter().flatten().min();
    }

    fn after(&mut self, claims: &Claims, limit: usize, now: Timestamp) {
        self.failures = 0;
        self.due = claims.next_due;
        if claims.claimed.len() >= limit {
            self.hear(Some(now));
        } else if claims.next_due.is_some_and(|due| due <= now) {
            // The ledger says that there is more and does not give it. Asking at once would spin.
            self.not_before = now.after(ODD_PAUSE);
        }
    }

    fn failed(&mut self, now: Timestamp) {
        self.failures = self.failures.saturating_add(1);
        self.not_before = now.after(ledger_pause(self.failures));
    }
}

/// The pause after a claim whose answer contradicts itself.
const ODD_PAUSE: Duration = Duration::from_millis(100);
