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
        self.admit_at(now)
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
        self.admitted_at(now).await
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
        self.admitted_blocking_at(now)
    }

    fn admit_at(&mut self, now: Timestamp) -> Result<Attempt, Stopped> {
        self.may_go_on(now)?;
        let controls = self.held.controls();
        if !self.held.is_admitted() {
            let pass = self.or_refused(controls.admission.try_pass(now), now)?;
            self.held.admitted(pass);
        }
        self.stage = Stage::Gates;
        let pass = self.or_refused(controls.attempt.try_pass(now), now)?;
        self.enter(pass, now)
    }

    pub(crate) async fn admitted_at(&mut self, mut now: Timestamp) -> Result<Attempt, Stopped> {
        self.may_go_on(now)?;
        let controls = self.held.controls();
        if !self.held.is_admitted() {
            let pass = match controls.admission.try_pass(now) {
                Ok(pass) => pass,
                Err(_) => self.queue(&controls.admission, &mut now).await?,
            };
            self.held.admitted(pass);
        }
        self.stage = Stage::Gates;
        let pass = match controls.attempt.try_pass(now) {
            Ok(pass) => pass,
            Err(_) => self.queue(&controls.attempt, &mut now).await?,
        };
        self.enter(pass, now)
    }

    pub(crate) fn admitted_blocking_at(&mut self, mut now: Timestamp) -> Result<Attempt, Stopped>
    where
        C: BlockingClock,
    {
        self.may_go_on(now)?;
        let controls = self.held.controls();
        if !self.held.is_admitted() {
            let pass = match controls.admission.try_pass(now) {
                Ok(pass) => pass,
                Err(_) => self.queue_blocking(&controls.admission, &mut now)?,
            };
            self.held.admitted(pass);
        }
        self.stage = Stage::Gates;
        let pass = match controls.attempt.try_pass(now) {
            Ok(pass) => pass,
            Err(_) => self.queue_blocking(&controls.attempt, &mut now)?,
        };
        self.enter(pass, now)
    }

    async fn queue(&mut self, limits: &'a Limits, now: &mut Timestamp) -> Result<Pass<'a>, Stopped> {
        let cut = self.may_queue(*now)?;
        let queued = limits.pass(self.calls.pipeline().clock(), *now, cut).await;
        self.queued(queued, now)
    }

    fn queue_blocking(&mut self, limits: &'a Limits, now: &mut Timestamp) -> Result<Pass<'a>, Stopped>
    where
        C: BlockingClock,
    {
        let cut = self.may_queue(*now)?;
        let queued = limits.pass_blocking(self.calls.pipeline().clock(), *now, cut);
        self.queued(queued, now)
    }

    /// Until when a wait may last. Nobody queues for a dependency whose breaker is open.
    fn may_queue(&mut self, now: Timestamp) -> Result<Option<Timestamp>, Stopped> {
        if let Some(refusal) = self.held.controls().is_open_at(now) {
            return Err(self.refused(refusal, now));
        }
        let retry = &self.calls.pipeline().policy().retry;
        let deadline = self.history.deadlines.earliest();
        Ok(deadline.map(|(at, _)| at.before(retry.reserve).before(retry.min_attempt)))
    }

    fn queued(&mut self, queued: Result<Queued<'a>, Halt>, now: &mut Timestamp) -> Result<Pass<'a>, Stopped> {
        match queued {
            Ok(queued) => {
                *now = queued.now;
                for (gate, waited) in queued.waits() {
                    self.tell(*now, || Event::Queued { stage: self.stage, gate, waited });
                }
                Ok(queued.pass)
            }
            Err(Halt::Refused(refusal)) => Err(self.refused(refusal, *now)),
            Err(Halt::TooLate) => {
                let at = self.calls.pipeline().clock().now();
                let reason =
                    self.history.deadlines.earliest().map_or(StopReason::TotalTimeout, |(_, why)| why);
                Err(self.stopped_for(reason, at))
            }
        }
    }

    /// The innermost gate, and the attempt.
    #[inline]
    fn enter(&mut self, pass: Pass<'a>, now: Timestamp) -> Result<Attempt, Stopped> {
        let entered = self.held.enter(pass, now);
        let transition = self.or_refused(entered, now)?;
        if let Some(transition) = transition {
            self.tell(now, || Event::BreakerChanged(transition));
        }
        self.attempts = self.attempts.saturating_add(1);
        self.running = Some(now);
        self.stage = Stage::Attempt;
        let give_up_at = self.calls.pipeline().policy().give_up_at(&self.history, now);
        let attempt = Attempt { number: self.attempts, began: now, give_up_at };
        self.tell(now, || Event::AttemptBegan(attempt));
        Ok(attempt)
    }

    /// Whether there is time for an attempt, and the switch allows it.
    #[inline]
    fn may_go_on(&mut self, now: Timestamp) -> Result<(), Stopped> {
        if let Some(reason) = self.stopped {
            return Err(Stopped::new(self.report_for(reason)));
        }
        if let Some(reason) = self.out_of_time(now) {
            return Err(self.stopped_for(reason, now));
        }
        if self.attempts > 0 && self.calls.pipeline().retries_now() == Retries::Off {
            return Err(self.refused(SWITCHED_OFF, now));
        }
        Ok(())
    }

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

    fn or_refused<T>(&mut self, answer: Result<T, Refusal>, now: Timestamp) -> Result<T, Stopped> {
        answer.map_err(|refusal| self.refused(refusal, now))
    }

    #[cold]
    fn refused(&mut self, refusal: Refusal, now: Timestamp) -> Stopped {
        let _stopped = self.refuse(refusal, now);
        Stopped::new(self.report_for(StopReason::Refused(refusal.by)))
    }

    #[cold]
    fn stopped_for(&mut self, reason: StopReason, now: Timestamp) -> Stopped {
        let _stopped = self.stop(reason, now);
        Stopped::new(self.report_for(reason))
    }
}
