//! From "another attempt" to its beginning: the deadline, the switch, and the gates in their order.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use relent_core::{Refusal, StopReason, Timestamp};

use super::{
    Attempt,
    course::{Course, SWITCHED_OFF},
};
use crate::{
    clock::{BlockingClock, Clock, Timer},
    event::Event,
    gates::{Halt, Pass, Queue, Queued},
    pipeline::{Parts, Pipeline},
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

impl Course {
    /// Begins an attempt, if nothing stands in its way now. Gates that it has passed stay passed.
    pub(crate) fn try_begin(&mut self, parts: &Parts, now: Timestamp) -> Begun {
        if let Some(reason) = self.may_not_go_on(parts, now) {
            return Begun::Stopped(reason);
        }
        let controls = parts.controls();
        if !self.held.is_admitted() {
            match controls.admission.try_pass(now) {
                Ok(pass) => self.held.admitted(pass),
                Err(refusal) => return Begun::Shut(refusal),
            }
        }
        self.stage = Stage::Gates;
        match controls.attempt.try_pass(now) {
            Ok(pass) => match self.enter(parts, pass, now) {
                Ok(attempt) => Begun::Attempt(attempt),
                Err(reason) => Begun::Stopped(reason),
            },
            Err(refusal) => Begun::Shut(refusal),
        }
    }

    /// Begins to wait at the gate that is shut, after [`Begun::Shut`]. Nobody queues for a dependency whose breaker
    /// is open.
    #[cold]
    #[inline(never)]
    pub(crate) fn join_queue(&mut self, parts: &Parts, now: Timestamp) -> Result<(), StopReason> {
        if let Some(refusal) = parts.controls().is_open_at(now) {
            return Err(self.refused(parts, refusal, now));
        }
        let retry = &parts.policy().retry;
        let deadline = self.history.deadlines.earliest();
        let cut = deadline.map(|(at, _)| at.before(retry.reserve).before(retry.min_attempt));
        self.held.join_queue(Queue::new(now, cut));
        Ok(())
    }

    /// Gives up the wait at a gate.
    pub(crate) fn leave_queue(&mut self, parts: &Parts) {
        self.held.leave_queue(parts.controls());
    }

    /// Begins an attempt as soon as the gates let it, after [`Course::join_queue`].
    #[cold]
    #[inline(never)]
    pub(crate) fn poll_queue<C: Clock, K>(
        &mut self,
        pipeline: &Pipeline<C, K>,
        mut timer: Pin<&mut Timer<C::Sleep>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Attempt, StopReason>> {
        let controls = pipeline.parts().controls();
        loop {
            let queued = ready!(self.held.poll_queue(controls, pipeline.clock(), timer.as_mut(), cx));
            if let Some(begun) = self.queued(pipeline, queued) {
                return Poll::Ready(begun);
            }
        }
    }

    /// Begins an attempt, waiting on this thread.
    pub(crate) fn begin_blocking<C: BlockingClock, K>(
        &mut self,
        pipeline: &Pipeline<C, K>,
        now: Timestamp,
    ) -> Result<Attempt, StopReason> {
        match self.try_begin(pipeline.parts(), now) {
            Begun::Attempt(attempt) => return Ok(attempt),
            Begun::Stopped(reason) => return Err(reason),
            Begun::Shut(_) => self.join_queue(pipeline.parts(), now)?,
        }
        loop {
            let queued = self.held.block_queue(pipeline.parts().controls(), pipeline.clock());
            if let Some(begun) = self.queued(pipeline, queued) {
                return begun;
            }
        }
    }

    /// What a wait came to. `None`: the call is admitted, the gates of the attempt are shut, and it waits there.
    fn queued<C: Clock, K>(
        &mut self,
        pipeline: &Pipeline<C, K>,
        queued: Result<Queued, Halt>,
    ) -> Option<Result<Attempt, StopReason>> {
        let parts = pipeline.parts();
        let queued = match queued {
            Ok(queued) => queued,
            Err(halt) => return Some(Err(self.halted(pipeline, halt))),
        };
        let (now, is_admitted) = (queued.now, self.held.is_admitted());
        // Held before anybody is told: an observer may panic.
        match is_admitted {
            true => self.held.passed(queued.pass),
            false => self.held.admitted(queued.pass),
        }
        for (gate, waited) in queued.waits() {
            self.tell(parts, now, || Event::Queued { stage: self.stage, gate, waited });
        }
        if is_admitted {
            let pass = self.held.take_pass();
            return Some(self.enter(parts, pass, now));
        }
        self.stage = Stage::Gates;
        match parts.controls().attempt.try_pass(now) {
            Ok(pass) => Some(self.enter(parts, pass, now)),
            Err(_) => self.join_queue(parts, now).err().map(Err),
        }
    }

    /// Why nobody was let through at a gate.
    fn halted<C: Clock, K>(&mut self, pipeline: &Pipeline<C, K>, halt: Halt) -> StopReason {
        let parts = pipeline.parts();
        match halt {
            Halt::Refused(refusal, now) => self.refused(parts, refusal, now),
            Halt::TooLate => {
                let earliest = self.history.deadlines.earliest();
                let reason = earliest.map_or(StopReason::TotalTimeout, |(_, why)| why);
                self.stopped_for(parts, reason, pipeline.clock().now())
            }
        }
    }

    /// The innermost gate, and the attempt.
    fn enter(&mut self, parts: &Parts, pass: Pass, now: Timestamp) -> Result<Attempt, StopReason> {
        match self.held.enter(parts.controls(), pass, now) {
            Ok(None) => {}
            Ok(Some(transition)) => self.tell(parts, now, || Event::BreakerChanged(transition)),
            Err(refusal) => return Err(self.refused(parts, refusal, now)),
        }
        self.attempts = self.attempts.saturating_add(1);
        self.running = Some(now);
        self.stage = Stage::Attempt;
        let give_up_at = parts.pace().give_up_at(&self.history, now);
        let attempt = Attempt { number: self.attempts, began: now, give_up_at };
        self.tell(parts, now, || Event::AttemptBegan(attempt));
        Ok(attempt)
    }

    /// Why there is no time for an attempt, or no leave from the switch.
    fn may_not_go_on(&mut self, parts: &Parts, now: Timestamp) -> Option<StopReason> {
        if self.stopped.is_some() {
            return self.stopped;
        }
        if self.running.is_some()
            && let Some(reason) = self.forget_attempt(parts, now)
        {
            return Some(reason);
        }
        if let Err(reason) = parts.pace().room(&self.history, now) {
            return Some(self.stopped_for(parts, reason, now));
        }
        if self.attempts > 0 && parts.retries() == Retries::Off {
            return Some(self.refused(parts, SWITCHED_OFF, now));
        }
        None
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn refused(&mut self, parts: &Parts, refusal: Refusal, now: Timestamp) -> StopReason {
        let _stopped = self.refuse(parts, refusal, now);
        StopReason::Refused(refusal.by)
    }

    #[cold]
    #[inline(never)]
    fn stopped_for(&mut self, parts: &Parts, reason: StopReason, now: Timestamp) -> StopReason {
        let _stopped = self.end(parts, reason, now);
        reason
    }
}
