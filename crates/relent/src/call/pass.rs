//! From "another attempt" to its beginning: the deadline, the switch, and the gates in their order.

use std::time::Duration;

use relent_core::{Decision, Refusal, StopReason, Timestamp};

use super::{Attempt, Call, SWITCHED_OFF};
use crate::{
    clock::{BlockingClock, Clock},
    error::Stopped,
    event::Event,
    gates::{Halt, Limits, Pass, Queued},
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

impl<'a, C: Clock, K> Call<'a, C, K> {
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
        let now = self.calls.pipeline().clock().now();
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
        let now = self.calls.pipeline().clock().now();
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
        C: BlockingClock,
    {
        let now = self.calls.pipeline().clock().now();
        let begun = self.begin_blocking(now);
        self.or_stopped(begun)
    }

    /// Begins an attempt, if nothing stands in its way now. Gates that it has passed stay passed.
    #[inline]
    pub(crate) fn try_begin(&mut self, now: Timestamp) -> Begun {
        if let Some(reason) = self.may_not_go_on(now) {
            return Begun::Stopped(reason);
        }
        let controls = self.held.controls();
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

    /// Begins an attempt as soon as the gates let it, after [`Begun::Shut`].
    pub(crate) async fn queue(&mut self, mut now: Timestamp) -> Result<Attempt, StopReason> {
        loop {
            let (limits, cut) = self.may_queue(now)?;
            let queued = limits.pass(self.calls.pipeline().clock(), now, cut).await;
            if let Some(begun) = self.queued(queued, &mut now) {
                return begun;
            }
        }
    }

    /// Begins an attempt, waiting on this thread.
    pub(crate) fn begin_blocking(&mut self, mut now: Timestamp) -> Result<Attempt, StopReason>
    where
        C: BlockingClock,
    {
        match self.try_begin(now) {
            Begun::Attempt(attempt) => return Ok(attempt),
            Begun::Stopped(reason) => return Err(reason),
            Begun::Shut(_) => {}
        }
        loop {
            let (limits, cut) = self.may_queue(now)?;
            let queued = limits.pass_blocking(self.calls.pipeline().clock(), now, cut);
            if let Some(begun) = self.queued(queued, &mut now) {
                return begun;
            }
        }
    }

    /// The gates that are shut, and until when a wait may last. Nobody queues for a dependency whose breaker is
    /// open.
    fn may_queue(&mut self, now: Timestamp) -> Result<(&'a Limits, Option<Timestamp>), StopReason> {
        let controls = self.held.controls();
        if let Some(refusal) = controls.is_open_at(now) {
            return Err(self.refused(refusal, now));
        }
        let retry = &self.calls.pipeline().policy().retry;
        let deadline = self.history.deadlines.earliest();
        let cut = deadline.map(|(at, _)| at.before(retry.reserve).before(retry.min_attempt));
        Ok((if self.held.is_admitted() { &controls.attempt } else { &controls.admission }, cut))
    }

    /// What a wait came to. `None`: the call is admitted, and the gates of the attempt are shut.
    fn queued(
        &mut self,
        queued: Result<Queued<'a>, Halt>,
        now: &mut Timestamp,
    ) -> Option<Result<Attempt, StopReason>> {
        let queued = match queued {
            Ok(queued) => queued,
            Err(Halt::Refused(refusal)) => return Some(Err(self.refused(refusal, *now))),
            Err(Halt::TooLate) => {
                let at = self.calls.pipeline().clock().now();
                let reason =
                    self.history.deadlines.earliest().map_or(StopReason::TotalTimeout, |(_, why)| why);
                return Some(Err(self.stopped_for(reason, at)));
            }
        };
        *now = queued.now;
        for (gate, waited) in queued.waits() {
            self.tell(*now, || Event::Queued { stage: self.stage, gate, waited });
        }
        if self.held.is_admitted() {
            return Some(self.enter(queued.pass, *now));
        }
        self.held.admitted(queued.pass);
        self.stage = Stage::Gates;
        let pass = self.held.controls().attempt.try_pass(*now).ok()?;
        Some(self.enter(pass, *now))
    }

    /// The innermost gate, and the attempt.
    #[inline]
    fn enter(&mut self, pass: Pass<'a>, now: Timestamp) -> Result<Attempt, StopReason> {
        match self.held.enter(pass, now) {
            Ok(Some(transition)) => self.tell(now, || Event::BreakerChanged(transition)),
            Ok(None) => {}
            Err(refusal) => return Err(self.refused(refusal, now)),
        }
        self.attempts = self.attempts.saturating_add(1);
        self.running = Some(now);
        self.stage = Stage::Attempt;
        let give_up_at = self.calls.pipeline().policy().give_up_at(&self.history, now);
        let attempt = Attempt { number: self.attempts, began: now, give_up_at };
        self.tell(now, || Event::AttemptBegan(attempt));
        Ok(attempt)
    }

    /// Why there is no time for an attempt, or no leave from the switch.
    #[inline]
    fn may_not_go_on(&mut self, now: Timestamp) -> Option<StopReason> {
        if self.stopped.is_some() {
            return self.stopped;
        }
        if let Some(reason) = self.out_of_time(now) {
            return Some(self.stopped_for(reason, now));
        }
        if self.attempts > 0 && self.calls.pipeline().retries_now() == Retries::Off {
            return Some(self.refused(SWITCHED_OFF, now));
        }
        None
    }

    #[inline]
    fn out_of_time(&self, now: Timestamp) -> Option<StopReason> {
        let retry = &self.calls.pipeline().policy().retry;
        if self.history.last_verdict.is_some() {
            return self.history.deadlines.too_late(now, Duration::ZERO, retry.reserve);
        }
        match retry.decide(&self.history, now) {
            Decision::Stop(reason) => Some(reason),
            Decision::Retry(_) => None,
        }
    }

    fn or_stopped(&self, begun: Result<Attempt, StopReason>) -> Result<Attempt, Stopped> {
        begun.map_err(|reason| Stopped::new(self.report_for(reason)))
    }

    #[cold]
    fn refused(&mut self, refusal: Refusal, now: Timestamp) -> StopReason {
        let _stopped = self.refuse(refusal, now);
        StopReason::Refused(refusal.by)
    }

    #[cold]
    fn stopped_for(&mut self, reason: StopReason, now: Timestamp) -> StopReason {
        let _stopped = self.stop(reason, now);
        reason
    }
}
