//! A policy's controls in force, in the pipeline's one order, and what a call holds of them.
//!
//! Whoever is refused gives back what was taken before; the breaker is asked last, because its probe is a side
//! effect. What a call holds goes back when it is dropped, so a caller who gives up leaves nothing behind.

mod limits;
mod queue;

use std::{
    mem,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};

use relent_core::{
    Invalid, Policy, Refusal, Timestamp, Verdict,
    breaker::{Mode, Ticket, Transition},
};

pub(crate) use self::{
    limits::{Limits, Pass},
    queue::{Halt, Queue, Queued},
};
use crate::{
    clock::{BlockingClock, Clock, Timer},
    control::{Breaker, Budget, budget::Lent, concurrency::OwnedPermit},
    event::Lending,
};

/// What a pipeline's calls pass through, from the outermost control to the innermost.
#[derive(Clone, Debug)]
pub(crate) struct Controls {
    pub(crate) admission: Limits,
    pub(crate) budget: Option<Purse>,
    pub(crate) attempt: Limits,
    pub(crate) breaker: Option<Breaker>,
}

/// A budget, and whether it refused last.
#[derive(Clone, Debug)]
pub(crate) struct Purse {
    pub(crate) budget: Arc<Budget>,
    refuses: Arc<AtomicBool>,
}

/// What one call holds: plain data, which goes back through the controls it came from.
#[derive(Debug)]
pub(crate) struct Held {
    /// The gates of the call, once it has passed them.
    admission: Option<Pass>,
    /// For the retry to come, or for the one in flight.
    loan: Option<Lent>,
    /// Those of the attempt in flight.
    attempt: Pass,
    ticket: Option<Ticket>,
    /// A wait at a gate.
    queue: Option<Queue>,
}

impl Controls {
    pub(crate) fn new(policy: &Policy) -> Result<Self, Invalid> {
        Ok(Self {
            admission: Limits::new(&policy.admission)?,
            budget: policy.budget.as_ref().map(Budget::new).transpose()?.map(|own| Purse::of(Arc::new(own))),
            attempt: Limits::new(&policy.attempt)?,
            breaker: policy.breaker.as_ref().map(Breaker::new).transpose()?,
        })
    }

    /// Whether a call passes its gates without reckoning: no rate, and no limit on attempts.
    pub(crate) const fn are_plain(&self) -> bool {
        self.admission.rate.is_none() && self.attempt.is_absent()
    }

    /// A call begins, and goes on until [`Held::leave`].
    #[inline(always)]
    pub(crate) fn begin(&self, now: Timestamp) {
        if let Some(purse) = &self.budget {
            purse.budget.begin(now);
        }
    }

    /// What the breaker would say at `at`, where it is open and only time (or a hand) can change that.
    pub(crate) fn is_open_at(&self, at: Timestamp) -> Option<Refusal> {
        let breaker = self.breaker.as_ref()?;
        matches!(breaker.status().mode, Mode::Open | Mode::Isolated).then(|| breaker.refusal(at))?
    }
}

impl Purse {
    pub(crate) fn of(budget: Arc<Budget>) -> Self {
        Self { budget, refuses: Arc::new(AtomicBool::new(false)) }
    }

    /// What has changed, if the budget's last answer was another. Of calls that are answered at the same moment
    /// exactly one is told. The lending side costs a load.
    fn turned(&self, lending: Lending) -> Option<Lending> {
        let refuses = lending == Lending::Refuses;
        let changed = self.refuses.load(Ordering::Relaxed) != refuses
            && self.refuses.swap(refuses, Ordering::Relaxed) != refuses;
        changed.then_some(lending)
    }
}

impl Held {
    /// Nothing yet. (A function and not a constant, which would be copied as a whole where this sets six words.)
    #[inline(always)]
    pub(crate) const fn nothing() -> Self {
        Self { admission: None, loan: None, attempt: Pass::NONE, ticket: None, queue: None }
    }

    /// What a call holds whose first attempt was sent and has no gates of its own but the breaker.
    #[inline(always)]
    pub(crate) const fn of_first_attempt(admission: Pass, ticket: Option<Ticket>) -> Self {
        Self { admission: Some(admission), loan: None, attempt: Pass::NONE, ticket, queue: None }
    }

    pub(crate) const fn is_admitted(&self) -> bool {
        self.admission.is_some()
    }

    #[inline]
    pub(crate) fn admitted(&mut self, pass: Pass) {
        self.admission = Some(pass);
    }

    /// The attempt to come has passed its gates.
    pub(crate) const fn passed(&mut self, pass: Pass) {
        self.attempt = pass;
    }

    /// What [`Held::passed`] put there.
    pub(crate) const fn take_pass(&mut self) -> Pass {
        mem::replace(&mut self.attempt, Pass::NONE)
    }

    /// The attempt has passed its gates and asks the breaker. If it says yes, what follows is sent.
    pub(crate) fn enter(
        &mut self,
        controls: &Controls,
        mut pass: Pass,
        now: Timestamp,
    ) -> Result<Option<Transition>, Refusal> {
        let ticket = match controls.breaker.as_ref().map(|breaker| breaker.enter(now)) {
            Some(Err(refusal)) => {
                pass.give_back(&controls.attempt);
                return Err(refusal);
            }
            Some(Ok(ticket)) => Some(ticket),
            None => None,
        };
        self.ticket = ticket;
        self.send(pass);
        Ok(ticket.as_ref().and_then(Ticket::transition))
    }

    fn send(&mut self, mut pass: Pass) {
        pass.spend();
        self.attempt = pass;
        if let Some(admission) = &mut self.admission {
            admission.spend();
        }
    }

    /// The attempt has ended: the breaker and the budget are told, and its places are free.
    ///
    /// An attempt that never reached the dependency keeps its loan for the next.
    pub(crate) fn conclude(
        &mut self,
        controls: &Controls,
        verdict: Verdict,
        began: Timestamp,
        now: Timestamp,
    ) -> Option<Transition> {
        let transition = match (self.ticket.take(), &controls.breaker) {
            (Some(ticket), Some(breaker)) => breaker.record(ticket, verdict, began, now),
            _ => None,
        };
        self.attempt.give_back(&controls.attempt);
        if let Some(purse) = &controls.budget {
            self.settle(&purse.budget, verdict, now);
        }
        transition
    }

    fn settle(&mut self, budget: &Budget, verdict: Verdict, now: Timestamp) {
        match verdict {
            Verdict::Neutral(_) => {}
            Verdict::Success => match self.loan.take() {
                Some(lent) => budget.repay(lent, now),
                None => budget.on_first_success(now),
            },
            Verdict::Permanent => self.keep_loan(budget),
            Verdict::Failure { cause, .. } => {
                self.keep_loan(budget);
                budget.on_failure(cause);
            }
        }
    }

    fn keep_loan(&mut self, budget: &Budget) {
        if let Some(lent) = self.loan.take() {
            budget.keep(lent);
        }
    }

    /// Asks the budget for another attempt after that verdict. One that was lent for an attempt which never
    /// reached the dependency is still there.
    ///
    /// Beside the answer, what changed with it.
    pub(crate) fn borrow(
        &mut self,
        controls: &Controls,
        verdict: Verdict,
        now: Timestamp,
    ) -> (Result<(), Refusal>, Option<Lending>) {
        let (Some(purse), Verdict::Failure { cause, .. }) = (&controls.budget, verdict) else {
            return (Ok(()), None);
        };
        match purse.budget.lend(cause, now) {
            Ok(lent) => {
                if let Some(unsent) = self.loan.replace(lent) {
                    purse.budget.give_back(unsent);
                }
                (Ok(()), purse.turned(Lending::Lends))
            }
            Err(refusal) => (Err(refusal), purse.turned(Lending::Refuses)),
        }
    }

    /// The places in flight that the attempt's work is to keep until it ends: those of the call that it was not
    /// given before, and those of the attempt.
    pub(crate) fn keep_places(&mut self, controls: &Controls) -> [Option<Arc<OwnedPermit>>; 2] {
        let admission = self.admission.as_mut().and_then(|pass| pass.keep(&controls.admission));
        [admission, self.attempt.keep(&controls.attempt)]
    }

    /// Begins to wait at the gate that is shut.
    pub(crate) fn join_queue(&mut self, queue: Queue) {
        self.queue = Some(queue);
    }

    /// The limits that the call is to pass next.
    pub(crate) const fn next_limits<'c>(&self, controls: &'c Controls) -> &'c Limits {
        if self.is_admitted() { &controls.attempt } else { &controls.admission }
    }

    /// What the wait at the gate has come to.
    pub(crate) fn poll_queue<C: Clock>(
        &mut self,
        controls: &Controls,
        clock: &C,
        timer: Pin<&mut Timer<C::Sleep>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Queued, Halt>> {
        let limits = self.next_limits(controls);
        let Some(queue) = &mut self.queue else { return Poll::Ready(Err(Halt::TooLate)) };
        let come = ready!(queue.poll(limits, clock, timer, cx));
        self.queue = None;
        Poll::Ready(come)
    }

    /// [`Held::poll_queue`], on this thread.
    pub(crate) fn block_queue<C: BlockingClock>(
        &mut self,
        controls: &Controls,
        clock: &C,
    ) -> Result<Queued, Halt> {
        let limits = self.next_limits(controls);
        let come = self.queue.as_mut().map_or(Err(Halt::TooLate), |queue| queue.block(limits, clock));
        self.queue = None;
        come
    }

    /// Gives up the wait at a gate.
    pub(crate) fn leave_queue(&mut self, controls: &Controls) {
        if let Some(mut queue) = self.queue.take() {
            queue.give_up(self.next_limits(controls));
        }
    }

    /// The caller gives up: an attempt in flight, or a wait at a gate. A retry that was sent keeps its charge.
    pub(crate) fn give_up(&mut self, controls: &Controls, in_flight: InFlight) {
        if let (InFlight::Attempt, Some(purse)) = (in_flight, &controls.budget) {
            self.keep_loan(&purse.budget);
        }
        if let (Some(ticket), Some(breaker)) = (self.ticket.take(), &controls.breaker) {
            breaker.give_back(ticket);
        }
        self.leave_queue(controls);
        self.attempt.give_back(&controls.attempt);
    }

    /// The caller gives up, and the call has ended.
    pub(crate) fn abandon(&mut self, controls: &Controls) {
        self.give_up(controls, InFlight::Attempt);
        self.leave(controls);
    }

    /// The call has ended: what is left goes back. A loan whose retry was not sent is lent to others again. To be
    /// called once, with no attempt in flight and no wait at a gate.
    pub(crate) fn leave(&mut self, controls: &Controls) {
        if let (Some(lent), Some(purse)) = (self.loan.take(), &controls.budget) {
            purse.budget.give_back(lent);
        }
        if let Some(admission) = &mut self.admission {
            admission.give_back(&controls.admission);
        }
        if let Some(purse) = &controls.budget {
            purse.budget.end();
        }
    }
}

/// Whether something is being tried.
#[derive(Clone, Copy)]
pub(crate) enum InFlight {
    Attempt,
    Nothing,
}
