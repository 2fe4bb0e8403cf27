//! One logical call, step by step: for loops of one's own, and what `run` is built on.
//!
//! The stepper asks the controls in their order and the core after every attempt, and has no opinion; it runs
//! nothing, and waits only where it is asked to.

mod pass;

use std::{
    panic::{self, AssertUnwindSafe},
    thread,
    time::Duration,
};

use relent_core::{
    Decision, Gate, History, Nesting, Neutral, Outcome, Refusal, StopReason, Timestamp, Verdict, Wait,
    breaker::Transition,
};

pub(crate) use self::pass::Begun;
use crate::{
    ambient,
    calls::{Calls, Routed},
    classify::{Classifier, Rulebook},
    clock::Clock,
    event::{Event, Observe, Scene},
    gates::{Controls, Held, InFlight},
    nesting::{self, Frame},
    overrun::{Overseen, Work},
    pipeline::Pipeline,
    reach::Reach,
    report::{Advice, Report, Stage},
    switch::Retries,
};

/// One physical try of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Attempt {
    /// Which, counted from 1.
    pub number: u32,
    /// When it began.
    pub began: Timestamp,
    /// When it must be given up: its own time-out, or the call's earliest deadline if that is sooner. Reckoned
    /// anew for each attempt, and what to pass on to the dependency as its deadline.
    pub give_up_at: Timestamp,
}

impl Attempt {
    /// How long it may take, from its beginning.
    pub fn allowed(&self) -> Duration {
        self.give_up_at.since(self.began)
    }

    /// How long it may still take at `now`.
    pub fn remaining(&self, now: Timestamp) -> Duration {
        self.give_up_at.since(now)
    }
}

/// One logical call: [`Call::admit`] (or [`Call::admitted`], which waits at the gates) before each attempt,
/// [`Call::conclude`] after it.
///
/// # Cancellation safety
///
/// Dropping it ends the call: places in flight, a probe, and a loan whose retry was not sent go back, and the
/// outcome of an attempt in flight is counted nowhere.
///
/// # Examples
///
/// A loop that lends its own buffer to every attempt:
///
/// ```
/// use relent::{Clock, Decision, ManualClock, Pipeline, Policy};
///
/// # async fn fetch(scratch: &mut Vec<u8>) -> std::io::Result<usize> {
/// #     scratch.push(0);
/// #     if scratch.len() < 2 { Err(std::io::ErrorKind::ConnectionRefused.into()) } else { Ok(scratch.len()) }
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = ManualClock::new();
/// let pipeline = Pipeline::on(clock.clone(), Policy::live())?;
/// let mut scratch = Vec::new();
/// let fetched = clock.block_on(async {
///     let mut call = pipeline.safe().call();
///     loop {
///         let attempt = call.admit()?;
///         let result = fetch(&mut scratch).await;
///         match call.conclude(&result) {
///             Decision::Retry(wait) => clock.sleep(wait.length).await,
///             Decision::Stop(reason) => {
///                 println!("{} after attempt {}", reason.name(), attempt.number);
///                 break Ok::<_, relent::Stopped>(result);
///             }
///         }
///     }
/// })??;
/// assert_eq!(fetched, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use]
pub struct Call<P: Reach, R = ()> {
    via: P,
    route: R,
    history: History,
    /// How many attempts one outermost call may come to around this one. `None`: without limit.
    around: Option<u32>,
    held: Held,
    attempts: u32,
    waits: u32,
    waited: Duration,
    /// When the attempt in flight began.
    running: Option<Timestamp>,
    /// Its work, where that may outlive it.
    overseen: Option<Box<Overseen>>,
    stage: Stage,
    stopped: Option<StopReason>,
    refusal: Option<Refusal>,
    /// When the last attempt was concluded or refused.
    ended: Timestamp,
    repeatable: Repeatable,
}

/// Whether what the call does could be done again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Repeatable {
    Yes,
    No,
}

impl<P: Reach, R> Call<P, R> {
    #[inline(always)]
    pub(crate) fn begin(calls: Calls<P, R>) -> Self
    where
        R: Routed,
    {
        let Calls { via, idempotency, upstream, seed, route } = calls;
        let pipeline = via.pipeline();
        let seed = seed.unwrap_or_else(|| pipeline.draw_seed());
        let now = pipeline.clock().now();
        let mut history = pipeline.policy().begin(seed, now, upstream, None);
        pipeline.policy().classify.terms(route.route()).apply(idempotency, &mut history);
        let (nesting, around) = nesting::here(pipeline.identity());
        history.nesting = nesting;
        let around = ambient::bound(&mut history, around, pipeline.clock(), now);
        if pipeline.observer().is_some() {
            tell_began(pipeline, seed, now, history.nesting);
        }
        let held = Held::begin(pipeline.controls(), now);
        Self {
            via,
            route,
            history,
            around,
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

    /// The pipeline that it goes through.
    #[inline]
    pub(crate) fn pipeline(&self) -> &Pipeline<P::Clock, P::Classifier> {
        self.via.pipeline()
    }

    #[inline]
    fn controls(&self) -> &Controls {
        self.pipeline().controls()
    }

    /// Takes in what the operation returned, and decides.
    ///
    /// Where the core would retry, the budget is asked at once, before the wait: a refusal is a
    /// [`Decision::Stop`], and so is a breaker that is sure to be open still when the wait is over.
    #[inline]
    pub fn conclude<T, E>(&mut self, result: &Result<T, E>) -> Decision
    where
        P::Classifier: Classifier<T, E>,
        R: Routed,
    {
        self.conclude_outcome(result.into())
    }

    /// Takes in how the attempt ended, where that is more than a result (such as [`Outcome::TimedOut`]), and
    /// decides.
    #[inline]
    pub fn conclude_outcome<T, E>(&mut self, outcome: Outcome<'_, T, E>) -> Decision
    where
        P::Classifier: Classifier<T, E>,
        R: Routed,
    {
        let now = self.pipeline().clock().now();
        self.conclude_outcome_at(outcome, now)
    }

    #[inline(always)]
    pub(crate) fn conclude_outcome_at<T, E>(&mut self, outcome: Outcome<'_, T, E>, now: Timestamp) -> Decision
    where
        P::Classifier: Classifier<T, E>,
        R: Routed,
    {
        let rules =
            Rulebook { classification: &self.pipeline().policy().classify, route: self.route.route() };
        let verdict = self.pipeline().classifier().verdict(outcome, rules);
        self.conclude_at(verdict, now)
    }

    /// Takes in what the outcome meant, where the caller is its own classifier, and decides.
    pub fn conclude_verdict(&mut self, verdict: Verdict) -> Decision {
        let now = self.pipeline().clock().now();
        self.conclude_at(verdict, now)
    }

    /// Most calls succeed: for them there is a way of their own on which the compiler knows the verdict.
    #[inline(always)]
    fn conclude_at(&mut self, verdict: Verdict, now: Timestamp) -> Decision {
        match verdict {
            Verdict::Success => self.take_in(|| Verdict::Success, now),
            other => self.take_in_other(other, now),
        }
    }

    #[inline(never)]
    fn take_in_other(&mut self, verdict: Verdict, now: Timestamp) -> Decision {
        self.take_in(|| verdict, now)
    }

    #[inline(always)]
    fn take_in(&mut self, verdict: impl Fn() -> Verdict, now: Timestamp) -> Decision {
        let began = self.running.take().unwrap_or(now);
        self.ended = now;
        if let Some(overseen) = &mut self.overseen {
            overseen.attempt_has_ended();
        }
        let controls = self.via.pipeline().controls();
        let transition = self.held.conclude(controls, verdict(), began, now);
        if self.pipeline().observer().is_some() {
            self.tell_attempt_ended(verdict(), transition, began, now);
        }
        match self.via.pipeline().policy().retry.conclude(&mut self.history, verdict(), now) {
            Decision::Stop(reason) => self.ended_by(reason, now),
            Decision::Retry(_) if self.repeatable == Repeatable::No => {
                self.stop(StopReason::NotReplayable, now)
            }
            Decision::Retry(wait) => self.plan(wait, verdict(), now),
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_attempt_ended(
        &self,
        verdict: Verdict,
        transition: Option<Transition>,
        began: Timestamp,
        now: Timestamp,
    ) {
        let (number, took) = (self.attempts, now.since(began));
        self.tell(now, || Event::AttemptEnded { number, verdict, took });
        if let Some(transition) = transition {
            self.tell(now, || Event::BreakerChanged(transition));
        }
    }

    /// The attempt in flight has come to its end without a result.
    pub(crate) fn time_out<T, E>(&mut self) -> Decision
    where
        P::Classifier: Classifier<T, E>,
        R: Routed,
    {
        let now = self.pipeline().clock().now();
        self.give_up(now);
        self.conclude_outcome_at(Outcome::<T, E>::TimedOut, now)
    }

    /// The work of the attempt in flight, for who does it on a thread of its own.
    pub(crate) fn work(&mut self) -> Work {
        let pipeline = self.via.pipeline();
        let places = self.held.keep_places(pipeline.controls());
        self.overseen.get_or_insert_default().begin(places, pipeline.tally())
    }

    /// The attempt in flight is given up. If its work runs on, that is counted.
    pub(crate) fn give_up(&mut self, now: Timestamp) {
        if self.overseen.as_mut().is_some_and(|overseen| overseen.give_up()) {
            self.overran(now);
        }
    }

    /// The attempt in flight was given up, and its work ran on.
    pub(crate) fn overran(&self, now: Timestamp) {
        self.pipeline().tally().count();
        self.tell(now, || Event::Overran { number: self.attempts });
    }

    /// When the last attempt was concluded; a wait counts from here.
    pub(crate) fn ended(&self) -> Timestamp {
        self.ended
    }

    /// What stands on the thread's stack while an attempt of this call is under way.
    pub(crate) fn frame(&self) -> Frame {
        let own = match self.history.nesting {
            Nesting::SameDependency => Some(1),
            _ => self.pipeline().policy().retry.max_attempts,
        };
        Frame::new(self.pipeline().identity(), own, self.around)
    }

    /// What the call does cannot be done again: where the policy would, it stops with
    /// [`NotReplayable`](StopReason::NotReplayable). To be said before an attempt is concluded.
    pub fn forbid_retries(&mut self) {
        self.repeatable = Repeatable::No;
    }

    /// The decision state: all that the policy knows of this call.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// What became of the call. `None`: it has not stopped yet.
    pub fn report(&self) -> Option<Report> {
        self.stopped.map(|reason| self.report_for(reason))
    }

    pub(crate) fn report_for(&self, stop: StopReason) -> Report {
        Report {
            dependency: self.pipeline().dependency().cloned(),
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

    /// The core would try again after this wait: so it is, unless the switch, the budget or the breaker says no.
    #[inline(never)]
    fn plan(&mut self, wait: Wait, verdict: Verdict, now: Timestamp) -> Decision {
        self.stage = Stage::Retry;
        if self.pipeline().retries_now() == Retries::Off {
            return self.refuse(SWITCHED_OFF, now);
        }
        let (lent, turned) = self.held.borrow(self.via.pipeline().controls(), verdict, now);
        if let Some(lending) = turned {
            self.tell(now, || Event::BudgetChanged(lending));
        }
        if let Err(refusal) = lent {
            return self.refuse(refusal, now);
        }
        if let Some(refusal) = self.controls().is_open_at(now.after(wait.length)) {
            return self.refuse(refusal, now);
        }
        if self.waits == 0 && self.history.nesting != Nesting::Outermost {
            self.tell_nested(self.pipeline().policy().retry.max_attempts, now);
        }
        self.waits = self.waits.saturating_add(1);
        self.waited = self.waited.saturating_add(wait.length);
        self.tell(now, || Event::Waiting { next: self.attempts.saturating_add(1), after: verdict, wait });
        Decision::Retry(wait)
    }

    fn refuse(&mut self, refusal: Refusal, now: Timestamp) -> Decision {
        self.refusal = Some(refusal);
        self.tell(now, || Event::Refused { stage: self.stage, refusal });
        self.stop(StopReason::Refused(refusal.by), now)
    }

    fn stop(&mut self, reason: StopReason, now: Timestamp) -> Decision {
        self.ended_by(reason, now)
    }

    /// The call has ended. What it held is free before anybody is told.
    #[inline(always)]
    fn ended_by(&mut self, reason: StopReason, now: Timestamp) -> Decision {
        if self.stopped.replace(reason).is_none() {
            self.held.leave(self.via.pipeline().controls());
        }
        self.ended = now;
        if self.overseen.is_some() {
            self.overseen = None;
        }
        if reason == StopReason::Nested {
            self.tell_nested(Some(1), now);
        }
        if self.pipeline().observer().is_some() {
            self.tell_ended(reason, now);
        }
        Decision::Stop(reason)
    }

    #[cold]
    #[inline(never)]
    fn tell_ended(&self, reason: StopReason, now: Timestamp) {
        let report = self.report_for(reason);
        self.tell(now, || Event::CallEnded(&report));
    }

    fn tell_nested(&self, own: Option<u32>, now: Timestamp) {
        let nesting = self.history.nesting;
        self.tell(now, || Event::Nested { nesting, attempts: nesting::product(own, self.around) });
    }

    /// Tells the observer, if there is one; otherwise the event is not even put together.
    #[inline]
    pub(crate) fn tell<'e>(&self, at: Timestamp, event: impl FnOnce() -> Event<'e>) {
        tell(self.pipeline(), self.history.seed, at, event);
    }

    /// The caller gave up before the call had stopped.
    #[cold]
    #[inline(never)]
    fn cancel(&mut self) {
        let now = self.pipeline().clock().now();
        let began = self.running.take();
        if began.is_some() {
            self.give_up(now);
        }
        let in_flight = if began.is_some() { InFlight::Attempt } else { InFlight::Nothing };
        self.held.give_up(self.via.pipeline().controls(), in_flight);
        if let Some(began) = began {
            let (number, verdict) = (self.attempts, Verdict::Neutral(Neutral::Cancelled));
            self.tell(now, || Event::AttemptEnded { number, verdict, took: now.since(began) });
        }
        let _stopped = self.stop(StopReason::Cancelled, now);
    }
}

impl<P: Reach, R> Drop for Call<P, R> {
    fn drop(&mut self) {
        if self.stopped.is_none() {
            self.cancel();
        }
    }
}

#[cold]
#[inline(never)]
fn tell_began<C: Clock, K>(pipeline: &Pipeline<C, K>, call: u64, at: Timestamp, nesting: Nesting) {
    tell(pipeline, call, at, || Event::CallBegan { nesting });
}

#[inline]
fn tell<'e, C: Clock, K>(
    pipeline: &Pipeline<C, K>,
    call: u64,
    at: Timestamp,
    event: impl FnOnce() -> Event<'e>,
) {
    if let Some(observer) = pipeline.observer() {
        tell_observer(pipeline, observer, call, at, event);
    }
}

/// Out of line, so that calls which nobody listens to do not carry it along.
#[cold]
#[inline(never)]
fn tell_observer<'e, C: Clock, K>(
    pipeline: &Pipeline<C, K>,
    observer: &dyn Observe,
    call: u64,
    at: Timestamp,
    event: impl FnOnce() -> Event<'e>,
) {
    let alert = pipeline.policy().alert.as_deref();
    let tell = || observer.observe(Scene { dependency: pipeline.name(), call, at, alert }, &event());
    // A call that a panic drops tells of its end; another panic then would end the process.
    match thread::panicking() {
        false => tell(),
        true => drop(panic::catch_unwind(AssertUnwindSafe(tell))),
    }
}

/// No moment is known at which a person turns the switch back.
const SWITCHED_OFF: Refusal = Refusal { by: Gate::Switch, until: None, advised: Duration::from_secs(1) };
