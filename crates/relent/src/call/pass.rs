//! From "another attempt" to its beginning: the deadline, the switch, and the gates in their order.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll, ready},
    time::Duration,
};

use relent_core::{Decision, Refusal, StopReason, Timestamp};

use super::{Attempt, Call, SWITCHED_OFF};
use crate::{
    clock::{BlockingClock, Clock, Timer},
    error::Stopped,
    event::Event,
    gates::{Halt, InFlight, Pass, Queue, Queued},
    reach::Reach,
    report::Stage,
    switch::Retries,
};

/// What came of trying to begin an attempt at once.
pub(crate) enum Begun {
    Attempt(Attempt),
    /// A gate that could be waited for is shut.
    Shut(Refusal),
    Stopped(StopReason),
}

impl<P: Reach, R> Call<P, R> {
    /// Begins an attempt, unless the call has stopped, its deadline leaves no room, or a gate refuses. It does
    /// not wait: where [`Call::admitted`] would queue, this is refused.
    ///
    /// The room is judged by the core when the call begins and with each wait; before a later attempt this only
    /// sees to it that the deadline did not pass during a wait that took longer than it should.
    ///
    /// # Errors
    ///
    /// [`Stopped`] names the reason; the call has ended, and a further attempt is refused for the same reason.
    pub fn admit(&mut self) -> Result<Attempt, Stopped> {
        let now = self.pipeline().clock().now();
        let begun = match self.try_begin(now) {
            Begun::Attempt(attempt) => Ok(attempt),
            Begun::Shut(refusal) => Err(self.refused(refusal, now)),
            Begun::Stopped(reason) => Err(reason),
        };
        self.or_stopped(begun)
    }

    /// Begins an attempt as soon as the gates let it through: a concurrency limit whose queue has room, and a
    /// rate whose next moment leaves time enough, are waited for. The wait is part of the call's total time-out
    /// and not of the attempt's, and ends where less than the policy's `min_attempt` would be left.
    ///
    /// Nobody queues before a breaker that is open.
    ///
    /// # Errors
    ///
    /// As [`Call::admit`].
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future leaves the queues, and the call is as it was before.
    pub async fn admitted(&mut self) -> Result<Attempt, Stopped> {
        let now = self.pipeline().clock().now();
        let begun = match self.try_begin(now) {
            Begun::Attempt(attempt) => Ok(attempt),
            Begun::Shut(_) => self.queue(now).await,
            Begun::Stopped(reason) => Err(reason),
        };
        self.or_stopped(begun)
    }

    /// [`Call::admitted`], on this thread.
    ///
    /// # Errors
    ///
    /// As [`Call::admit`].
    pub fn admitted_blocking(&mut self) -> Result<Attempt, Stopped>
    where
        P::Clock: BlockingClock,
    {
        let now = self.pipeline().clock().now();
        let begun = self.begin_blocking(now);
        self.or_stopped(begun)
    }

    /// Begins an attempt, if nothing stands in its way now. Gates that it has passed stay passed.
    #[inline(always)]
    pub(crate) fn try_begin(&mut self, now: Timestamp) -> Begun {
        if let Some(reason) = self.may_not_go_on(now) {
            return Begun::Stopped(reason);
        }
        let controls = self.via.pipeline().controls();
        if !self.held.is_admitted() {
            match controls.admission.try_pass(now) {
                Ok(pass) => self.held.admitted(pass),
                Err(refusal) => return Begun::Shut(refusal),
            }
        }
        self.stage = Stage::Gates;
        match controls.attempt.try_pass(now) {
            Ok(pass) => match self.enter(pass, now) {
                Ok(attempt) => Begun::Attempt(attempt),
                Err(reason) => Begun::Stopped(reason),
            },
            Err(refusal) => Begun::Shut(refusal),
        }
    }

    /// Begins an attempt as soon as the gates let it, after [`Begun::Shut`]. Dropped, it leaves the queues.
    async fn queue(&mut self, now: Timestamp) -> Result<Attempt, StopReason> {
        self.join_queue(now)?;
        let in_line = InLine(self);
        let mut timer = pin!(Timer::new());
        poll_fn(|cx| in_line.0.poll_queue(timer.as_mut(), cx)).await
    }

    /// Begins to wait at the gate that is shut, after [`Begun::Shut`]. Nobody queues for a dependency whose breaker
    /// is open.
    #[cold]
    #[inline(never)]
    pub(crate) fn join_queue(&mut self, now: Timestamp) -> Result<(), StopReason> {
        if let Some(refusal) = self.controls().is_open_at(now) {
            return Err(self.refused(refusal, now));
        }
        let reserve = self.pipeline().policy().retry.reserve;
        let min_attempt = self.pipeline().policy().retry.min_attempt;
        let deadline = self.history.deadlines.earliest();
        let cut = deadline.map(|(at, _)| at.before(reserve).before(min_attempt));
        self.held.join_queue(Queue::new(now, cut));
        Ok(())
    }

    /// Begins an attempt as soon as the gates let it, after [`Call::join_queue`].
    #[cold]
    #[inline(never)]
    pub(crate) fn poll_queue(
        &mut self,
        mut timer: Pin<&mut Timer<<P::Clock as Clock>::Sleep>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Attempt, StopReason>> {
        loop {
            let pipeline = self.via.pipeline();
            let queued =
                ready!(self.held.poll_queue(pipeline.controls(), pipeline.clock(), timer.as_mut(), cx));
            if let Some(begun) = self.queued(queued) {
                return Poll::Ready(begun);
            }
        }
    }

    /// Begins an attempt, waiting on this thread.
    pub(crate) fn begin_blocking(&mut self, now: Timestamp) -> Result<Attempt, StopReason>
    where
        P::Clock: BlockingClock,
    {
        match self.try_begin(now) {
            Begun::Attempt(attempt) => return Ok(attempt),
            Begun::Stopped(reason) => return Err(reason),
            Begun::Shut(_) => self.join_queue(now)?,
        }
        loop {
            let pipeline = self.via.pipeline();
            let queued = self.held.block_queue(pipeline.controls(), pipeline.clock());
            if let Some(begun) = self.queued(queued) {
                return begun;
            }
        }
    }

    /// What a wait came to. `None`: the call is admitted, the gates of the attempt are shut, and it waits there.
    fn queued(&mut self, queued: Result<Queued, Halt>) -> Option<Result<Attempt, StopReason>> {
        let queued = match queued {
            Ok(queued) => queued,
            Err(halt) => return Some(Err(self.halted(halt))),
        };
        let now = queued.now;
        for (gate, waited) in queued.waits() {
            self.tell(now, || Event::Queued { stage: self.stage, gate, waited });
        }
        if self.held.is_admitted() {
            return Some(self.enter(queued.pass, now));
        }
        self.held.admitted(queued.pass);
        self.stage = Stage::Gates;
        match self.controls().attempt.try_pass(now) {
            Ok(pass) => Some(self.enter(pass, now)),
            Err(_) => self.join_queue(now).err().map(Err),
        }
    }

    /// Why nobody was let through at a gate.
    fn halted(&mut self, halt: Halt) -> StopReason {
        match halt {
            Halt::Refused(refusal, now) => self.refused(refusal, now),
            Halt::TooLate => {
                let now = self.pipeline().clock().now();
                let earliest = self.history.deadlines.earliest();
                self.stopped_for(earliest.map_or(StopReason::TotalTimeout, |(_, why)| why), now)
            }
        }
    }

    /// The innermost gate, and the attempt.
    #[inline(always)]
    fn enter(&mut self, pass: Pass, now: Timestamp) -> Result<Attempt, StopReason> {
        if !self.held.enter_closed(self.via.pipeline().controls(), pass) {
            self.enter_unclosed(pass, now)?;
        }
        self.attempts = self.attempts.saturating_add(1);
        self.running = Some(now);
        self.stage = Stage::Attempt;
        let give_up_at = self.pipeline().policy().give_up_at(&self.history, now);
        let attempt = Attempt { number: self.attempts, began: now, give_up_at };
        if self.pipeline().observer().is_some() {
            self.tell_attempt_began(attempt);
        }
        Ok(attempt)
    }

    #[inline(never)]
    fn enter_unclosed(&mut self, pass: Pass, now: Timestamp) -> Result<(), StopReason> {
        match self.held.enter(self.via.pipeline().controls(), pass, now) {
            Ok(transition) => {
                if let Some(transition) = transition {
                    self.tell(now, || Event::BreakerChanged(transition));
                }
                Ok(())
            }
            Err(refusal) => Err(self.refused(refusal, now)),
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_attempt_began(&self, attempt: Attempt) {
        self.tell(attempt.began, || Event::AttemptBegan(attempt));
    }

    /// Why there is no time for an attempt, or no leave from the switch.
    #[inline(always)]
    fn may_not_go_on(&mut self, now: Timestamp) -> Option<StopReason> {
        if self.stopped.is_some() {
            return self.stopped;
        }
        if self.running.is_some() {
            self.forget_attempt();
        }
        if let Some(reason) = self.out_of_time(now) {
            return Some(self.stopped_for(reason, now));
        }
        if self.attempts > 0 && self.pipeline().retries_now() == Retries::Off {
            return Some(self.refused(SWITCHED_OFF, now));
        }
        None
    }

    #[inline(always)]
    fn out_of_time(&self, now: Timestamp) -> Option<StopReason> {
        let retry = &self.pipeline().policy().retry;
        if self.history.last_verdict.is_some() {
            return self.history.deadlines.too_late(now, Duration::ZERO, retry.reserve);
        }
        match retry.decide(&self.history, now) {
            Decision::Stop(reason) => Some(reason),
            Decision::Retry(_) => None,
        }
    }

    /// The attempt in flight was never concluded, and another is to begin: it counts nowhere.
    #[cold]
    #[inline(never)]
    fn forget_attempt(&mut self) {
        self.running = None;
        self.overseen = None;
        self.held.give_up(self.via.pipeline().controls(), InFlight::Nothing);
    }

    fn or_stopped(&self, begun: Result<Attempt, StopReason>) -> Result<Attempt, Stopped> {
        begun.map_err(|reason| Stopped::new(self.report_for(reason)))
    }

    #[cold]
    #[inline(never)]
    fn refused(&mut self, refusal: Refusal, now: Timestamp) -> StopReason {
        let _stopped = self.refuse(refusal, now);
        StopReason::Refused(refusal.by)
    }

    #[cold]
    #[inline(never)]
    fn stopped_for(&mut self, reason: StopReason, now: Timestamp) -> StopReason {
        let _stopped = self.stop(reason, now);
        reason
    }
}

/// A call that waits at a gate. Dropped, it waits there no more.
struct InLine<'c, P: Reach, R>(&'c mut Call<P, R>);

impl<P: Reach, R> Drop for InLine<'_, P, R> {
    fn drop(&mut self) {
        let call = &mut *self.0;
        call.held.leave_queue(call.via.pipeline().controls());
    }
}
