//! What one call has been through so far, and how its attempts end: what every driver steps.
//!
//! It knows the pipeline by what is passed in, so that it is the same whatever the clock, the classifier and the
//! operation are, and a driver looks its pipeline up once and not at every step.

use std::time::Duration;

use relent_core::{
    Cause, Decision, Gate, History, Nesting, Neutral, Refusal, Route, Sent, StopReason, Timestamp, Verdict,
    Wait,
    breaker::{Phase, Ticket, Transition},
};

use super::Attempt;
use crate::{
    ambient,
    calls::Said,
    clock::Clock,
    event::Event,
    gates::{Held, InFlight, Pass},
    nesting::{self, Frame},
    overrun::{Overseen, Work},
    pipeline::{Parts, Pipeline},
    report::{Advice, Report, Stage},
    switch::Retries,
};

/// The state of a call.
#[derive(Debug)]
pub(crate) struct Course {
    pub(super) history: History,
    /// What stands on the thread's stack while an attempt of this call is under way.
    frame: Frame,
    pub(super) held: Held,
    pub(super) attempts: u32,
    waits: u32,
    waited: Duration,
    /// When the attempt in flight began.
    pub(super) running: Option<Timestamp>,
    /// Its work, where that may outlive it.
    pub(super) overseen: Option<Box<Overseen>>,
    pub(super) stage: Stage,
    pub(super) stopped: Option<StopReason>,
    refusal: Option<Refusal>,
    /// When the last attempt was concluded or refused.
    ended: Timestamp,
    repeatable: Repeatable,
}

/// An attempt that was given up before it was concluded.
struct Abandoned {
    began: Timestamp,
    runs_on: bool,
}

/// Whether what the call does could be done again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Repeatable {
    Yes,
    No,
}

impl Course {
    /// A call that begins at `now`, as if there were nothing around it. To be followed by [`Course::set_out`].
    #[inline]
    pub(crate) fn new(parts: &Parts, said: &Said, now: Timestamp) -> Self {
        Self::with(parts, said, now, Held::nothing())
    }

    /// A call with nothing around it that is in its first attempt already, with what it holds and its work.
    #[inline(never)]
    pub(super) fn take_over(
        course: &mut Option<Self>,
        parts: &Parts,
        said: &Said,
        attempt: Attempt,
        held: (Pass, Option<Phase>),
        overseen: Option<Box<Overseen>>,
    ) {
        let held = Held::of_first_attempt(held.0, held.1.map(Ticket::plain));
        let course = course.insert(Self::with(parts, said, attempt.began, held));
        course.history.idempotency = said.idempotency.unwrap_or(course.history.idempotency);
        course.attempts = attempt.number;
        course.running = Some(attempt.began);
        course.overseen = overseen;
        course.stage = Stage::Attempt;
    }

    /// (Always inlined: every field is written where it is to stand, and once.)
    #[inline(always)]
    fn with(parts: &Parts, said: &Said, now: Timestamp, held: Held) -> Self {
        let seed = said.seed.unwrap_or_else(|| parts.draw_seed());
        let policy = parts.policy();
        let deadlines = parts.pace().deadlines(now, said.upstream, None);
        Self {
            history: History::new(seed, now, policy.repeat, deadlines),
            frame: Frame::new(parts.identity(), policy.retry.max_attempts),
            held,
            attempts: 0,
            waits: 0,
            waited: Duration::ZERO,
            running: None,
            overseen: None,
            stage: Stage::Admission,
            stopped: None,
            refusal: None,
            ended: now,
            repeatable: Repeatable::Yes,
        }
    }

    /// Takes in what is around the call, and lets those know of it who count calls.
    pub(crate) fn set_out<C: Clock, K>(&mut self, pipeline: &Pipeline<C, K>, route: Route<'_>, said: &Said) {
        let parts = pipeline.parts();
        parts.policy().classify.apply_terms(route, said.idempotency, &mut self.history);
        if nesting::is_inside() || ambient::is_set() {
            self.look_around(pipeline);
        }
        parts.controls().begin(self.history.started);
        if parts.is_observed() {
            self.tell_began(parts);
        }
    }

    /// The call is part of another's attempt, or of work that a caller of this process is waiting for.
    #[cold]
    #[inline(never)]
    fn look_around<C: Clock, K>(&mut self, pipeline: &Pipeline<C, K>) {
        let (parts, now) = (pipeline.parts(), self.history.started);
        let (nesting, around) = nesting::here(parts.identity());
        self.history.nesting = nesting;
        let around = ambient::bound(&mut self.history, around, pipeline.clock(), now);
        let own = match self.history.nesting {
            Nesting::SameDependency => Some(1),
            _ => parts.policy().retry.max_attempts,
        };
        self.frame = Frame::within(around, parts.identity(), own);
    }

    /// Takes in what an attempt came to, and decides. A call that has stopped takes in nothing more.
    pub(crate) fn conclude(&mut self, parts: &Parts, verdict: Verdict, now: Timestamp) -> Decision {
        if let Some(reason) = self.stopped {
            return Decision::Stop(reason);
        }
        let began = self.running.take().unwrap_or(now);
        self.ended = now;
        if let Some(overseen) = &mut self.overseen {
            overseen.attempt_has_ended();
        }
        let transition = self.held.conclude(parts.controls(), verdict, began, now);
        if parts.is_observed() {
            self.tell_attempt_ended(parts, verdict, transition, began, now);
        }
        match parts.policy().retry.conclude(&mut self.history, verdict, now) {
            Decision::Stop(reason) => self.end(parts, reason, now),
            Decision::Retry(_) if self.repeatable == Repeatable::No => {
                self.end(parts, StopReason::NotReplayable, now)
            }
            Decision::Retry(wait) => self.plan(parts, wait, verdict, now),
        }
    }

    /// The attempt in flight was never concluded, and another is to begin: nobody knows what became of it. So it may
    /// have been processed, and the next one is a retry like any other, but for its wait. `None`: it may begin.
    #[cold]
    #[inline(never)]
    pub(super) fn forget_attempt(&mut self, parts: &Parts, now: Timestamp) -> Option<StopReason> {
        let abandoned = self.abandon_attempt(parts);
        self.tell_abandoned(parts, abandoned, now);
        let decision = match parts.policy().retry.conclude(&mut self.history, UNKNOWN, now) {
            Decision::Stop(reason) => self.end(parts, reason, now),
            Decision::Retry(wait) => self.plan(parts, wait, UNKNOWN, now),
        };
        match decision {
            Decision::Stop(reason) => Some(reason),
            Decision::Retry(_) => None,
        }
    }

    /// Gives back what the attempt in flight holds, or a wait at a gate. What it was, to be told of when all has been
    /// given back: an observer may panic.
    fn abandon_attempt(&mut self, parts: &Parts) -> Option<Abandoned> {
        let began = self.running.take();
        let in_flight = if began.is_some() { InFlight::Attempt } else { InFlight::Nothing };
        self.held.give_up(parts.controls(), in_flight);
        let runs_on = self.overseen.as_mut().is_some_and(|overseen| overseen.give_up());
        began.map(|began| Abandoned { began, runs_on })
    }

    fn tell_abandoned(&self, parts: &Parts, abandoned: Option<Abandoned>, now: Timestamp) {
        let Some(Abandoned { began, runs_on }) = abandoned else { return };
        if runs_on {
            self.overran(parts, now);
        }
        let (number, verdict) = (self.attempts, Verdict::Neutral(Neutral::Cancelled));
        self.tell(parts, now, || Event::AttemptEnded { number, verdict, took: now.since(began) });
    }

    /// The core would try again after this wait: so it is, unless the switch, the budget or the breaker says no.
    #[inline(never)]
    fn plan(&mut self, parts: &Parts, wait: Wait, verdict: Verdict, now: Timestamp) -> Decision {
        self.stage = Stage::Retry;
        if parts.retries() == Retries::Off {
            return self.refuse(parts, SWITCHED_OFF, now);
        }
        let (lent, turned) = self.held.borrow(parts.controls(), verdict, now);
        if let Some(lending) = turned {
            self.tell(parts, now, || Event::BudgetChanged(lending));
        }
        if let Err(refusal) = lent {
            return self.refuse(parts, refusal, now);
        }
        if let Some(refusal) = parts.controls().is_open_at(now.after(wait.length)) {
            return self.refuse(parts, refusal, now);
        }
        if self.waits == 0 && self.history.nesting != Nesting::Outermost {
            self.tell_nested(parts, now);
        }
        self.waits = self.waits.saturating_add(1);
        self.waited = self.waited.saturating_add(wait.length);
        let next = self.attempts.saturating_add(1);
        self.tell(parts, now, || Event::Waiting { next, after: verdict, wait });
        Decision::Retry(wait)
    }

    pub(super) fn refuse(&mut self, parts: &Parts, refusal: Refusal, now: Timestamp) -> Decision {
        self.refusal = Some(refusal);
        self.tell(parts, now, || Event::Refused { stage: self.stage, refusal });
        self.end(parts, StopReason::Refused(refusal.by), now)
    }

    /// The call has ended. What it held is free before anybody is told.
    pub(super) fn end(&mut self, parts: &Parts, reason: StopReason, now: Timestamp) -> Decision {
        self.close(parts, reason, now);
        if reason == StopReason::Nested {
            self.tell_nested(parts, now);
        }
        if parts.is_observed() {
            self.tell_ended(parts, reason, now);
        }
        Decision::Stop(reason)
    }

    fn close(&mut self, parts: &Parts, reason: StopReason, now: Timestamp) {
        if self.stopped.replace(reason).is_none() {
            self.held.leave(parts.controls());
        }
        self.ended = now;
        self.overseen = None;
    }

    /// The caller gave up before the call had stopped.
    #[cold]
    #[inline(never)]
    pub(crate) fn cancel<C: Clock, K>(&mut self, pipeline: &Pipeline<C, K>) {
        let (parts, now) = (pipeline.parts(), pipeline.clock().now());
        let abandoned = self.abandon_attempt(parts);
        self.close(parts, StopReason::Cancelled, now);
        self.tell_abandoned(parts, abandoned, now);
        if parts.is_observed() {
            self.tell_ended(parts, StopReason::Cancelled, now);
        }
    }

    /// The work of the attempt in flight, for who does it on a thread of its own.
    pub(crate) fn work(&mut self, parts: &Parts) -> Work {
        let places = self.held.keep_places(parts.controls());
        self.overseen.get_or_insert_default().begin(places, parts.tally())
    }

    /// The attempt in flight is given up. If its work runs on, that is counted.
    pub(crate) fn give_up(&mut self, parts: &Parts, now: Timestamp) {
        if self.overseen.as_mut().is_some_and(|overseen| overseen.give_up()) {
            self.overran(parts, now);
        }
    }

    /// The attempt in flight was given up, and its work ran on.
    pub(crate) fn overran(&self, parts: &Parts, now: Timestamp) {
        parts.tally().count();
        self.tell(parts, now, || Event::Overran { number: self.attempts });
    }

    pub(crate) const fn stopped(&self) -> Option<StopReason> {
        self.stopped
    }

    pub(crate) const fn frame(&self) -> Frame {
        self.frame
    }

    pub(crate) const fn history(&self) -> &History {
        &self.history
    }

    pub(crate) const fn forbid_retries(&mut self) {
        self.repeatable = Repeatable::No;
    }

    pub(crate) fn report(&self, parts: &Parts, stop: StopReason) -> Report {
        Report {
            dependency: parts.dependency().cloned(),
            stop,
            stage: self.stage,
            attempts: self.attempts,
            waits: self.waits,
            waited: self.waited,
            took: self.ended.since(self.history.started),
            last_verdict: self.history.last_verdict,
            advice: Advice::of(self.refusal),
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_began(&self, parts: &Parts) {
        let nesting = self.history.nesting;
        self.tell(parts, self.history.started, || Event::CallBegan { nesting });
    }

    #[cold]
    #[inline(never)]
    fn tell_attempt_ended(
        &self,
        parts: &Parts,
        verdict: Verdict,
        transition: Option<Transition>,
        began: Timestamp,
        now: Timestamp,
    ) {
        let (number, took) = (self.attempts, now.since(began));
        self.tell(parts, now, || Event::AttemptEnded { number, verdict, took });
        if let Some(transition) = transition {
            self.tell(parts, now, || Event::BreakerChanged(transition));
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_ended(&self, parts: &Parts, reason: StopReason, now: Timestamp) {
        let report = self.report(parts, reason);
        self.tell(parts, now, || Event::CallEnded(&report));
    }

    #[cold]
    #[inline(never)]
    fn tell_nested(&self, parts: &Parts, now: Timestamp) {
        let (nesting, attempts) = (self.history.nesting, self.frame.attempts());
        self.tell(parts, now, || Event::Nested { nesting, attempts });
    }

    /// Tells the observer, if there is one; otherwise the event is not even put together.
    #[inline]
    pub(super) fn tell<'e>(&self, parts: &Parts, at: Timestamp, event: impl FnOnce() -> Event<'e>) {
        parts.tell(self.history.seed, at, event);
    }
}

/// What is to be thought of an attempt whose end nobody told: it may have been processed.
const UNKNOWN: Verdict = Verdict::Failure { cause: Cause::Error, sent: Sent::Maybe, server_wait: None };

/// No moment is known at which a person turns the switch back.
pub(super) const SWITCHED_OFF: Refusal =
    Refusal { by: Gate::Switch, until: None, advised: Duration::from_secs(1) };
