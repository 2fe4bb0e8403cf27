//! The straight way through, which most calls take: nothing holds the call up, nobody listens, and its first attempt
//! succeeds.
//!
//! Such a call needs no history and no report, so it is made with as little as it must give back. So is one whose first
//! attempt succeeds later. Where anything else comes of it, a [`Course`] takes over at the point that was reached, as if
//! it had come all the way.

use std::{mem::ManuallyDrop, sync::Arc};

use relent_core::{Refusal, Timestamp, breaker::Phase, concurrency};

use super::{Attempt, Course};
use crate::{
    ambient,
    calls::Said,
    clock::Clock,
    control::{Breaker, Concurrency},
    gates::{Held, Pass},
    nesting::{self, Frame},
    overrun::{Overseen, Work},
    pipeline::{Parts, Pipeline},
    report::{Report, Stage},
};

/// A call in its first attempt: what the way through needs to know, in registers.
#[derive(Clone, Copy)]
pub(crate) struct Straight<'p> {
    parts: &'p Parts,
    attempt: Attempt,
    /// The breaker, if there is one, and where it stood.
    breaker: Option<(&'p Breaker, Phase)>,
}

/// What it must give back: dropped, it does. (Apart from the rest, and read once: what a panic may have to find stands
/// in memory.)
pub(crate) struct Holding<'p> {
    parts: &'p Parts,
    /// The limit in which it has a place.
    limit: Option<&'p Concurrency>,
    /// The attempt's work, where that may outlive it.
    overseen: Option<Box<Overseen>>,
}

/// Why a call cannot go straight to its attempt.
#[derive(Clone, Copy)]
pub(crate) enum InTheWay {
    /// The breaker is not closed, and nothing else was in the way so far.
    Breaker,
    /// The breaker is closed, and the limit on calls is full.
    Limit,
    /// It has yet to be found out.
    Anything,
}

/// Both between two polls, apart from the pipeline that they are of.
pub(crate) struct Parked {
    attempt: Attempt,
    phase: Option<Phase>,
    has_place: bool,
    overseen: Option<Box<Overseen>>,
}

impl<'p> Straight<'p> {
    /// A call that begins at `now` and goes straight to its attempt, unless something is in its way: all that may be is
    /// looked at before the first thing is taken.
    #[inline(always)]
    pub(crate) fn begin<C: Clock, K>(
        pipeline: &'p Pipeline<C, K>,
        said: &mut Said,
        now: Timestamp,
    ) -> Result<(Self, Holding<'p>), InTheWay> {
        let parts = pipeline.parts();
        let give_up_at = plainly(pipeline, said, now).ok_or(InTheWay::Anything)?;
        let controls = parts.controls();
        let breaker = match &controls.breaker {
            Some(breaker) => Some((breaker, breaker.closed().ok_or(InTheWay::Breaker)?)),
            None => None,
        };
        let limit = controls.admission.concurrency.as_ref();
        if let Some(limit) = limit {
            limit.enter().map_err(|_full| InTheWay::Limit)?;
        }
        controls.begin(now);
        let attempt = Attempt { number: 1, began: now, give_up_at };
        Ok((Self { parts, attempt, breaker }, Holding { parts, limit, overseen: None }))
    }

    /// Where a call that begins at `now` is refused without a history of it, and how. `None`: it is not, or there is more
    /// to look at.
    ///
    /// It counts as a call and takes no place: of the limit before the breaker it is only seen that there is room.
    #[inline(always)]
    pub(crate) fn refused(parts: &Parts, by: InTheWay, now: Timestamp) -> Option<(Stage, Refusal)> {
        let controls = parts.controls();
        let limit = controls.admission.concurrency.as_ref();
        let refused = match by {
            InTheWay::Breaker if limit.is_none_or(Concurrency::has_room) => {
                (Stage::Gates, controls.breaker.as_ref()?.refusal(now)?)
            }
            InTheWay::Limit if limit?.is_queue_full() => (Stage::Admission, concurrency::REFUSAL),
            InTheWay::Breaker | InTheWay::Limit | InTheWay::Anything => return None,
        };
        controls.begin(now);
        if let Some(purse) = &controls.budget {
            purse.budget.end();
        }
        Some(refused)
    }

    #[inline]
    pub(crate) const fn attempt(self) -> Attempt {
        self.attempt
    }

    /// Begins the attempt's work. Calls that begin there see whose attempt they are part of.
    #[inline(always)]
    pub(crate) fn around<R>(self, work: impl FnOnce() -> R) -> R {
        self.frame().around_outermost(work)
    }

    /// [`Straight::around`], for more of the work: who polls it now may do so inside of another attempt.
    #[inline(always)]
    pub(crate) fn around_again<R>(self, work: impl FnOnce() -> R) -> R {
        self.frame().around(work)
    }

    #[inline(always)]
    fn frame(self) -> Frame {
        Frame::new(self.parts.identity(), self.parts.policy().retry.max_attempts)
    }

    /// The attempt has succeeded, and with it the call. (Nobody listens: a breaker that this call opens because it was
    /// slow need not be told of.)
    #[inline(always)]
    pub(crate) fn succeed(self, holding: &mut Holding<'_>, now: Timestamp) {
        if let Some((breaker, phase)) = self.breaker {
            let _transition = breaker.succeeded(phase, self.attempt.began, now);
        }
        if let Some(purse) = &self.parts.controls().budget {
            purse.budget.on_only_success(now);
        }
        if let Some(limit) = holding.limit.take() {
            limit.leave();
        }
    }

    /// What became of the call, which has [succeeded](Straight::succeed).
    pub(crate) fn report(self, now: Timestamp) -> Report {
        Report::of_first_success(self.parts.dependency(), now.since(self.attempt.began))
    }

    /// The attempt is not ready: until it is polled again.
    #[inline(always)]
    pub(crate) fn park(self, holding: Holding<'_>) -> Parked {
        let mut holding = ManuallyDrop::new(holding); // what it holds is parked
        Parked {
            attempt: self.attempt,
            phase: self.breaker.map(|(_, phase)| phase),
            has_place: holding.limit.is_some(),
            overseen: holding.overseen.take(),
        }
    }

    /// The call from here on, in its attempt.
    #[inline(always)]
    pub(crate) fn turn_aside(self, holding: Holding<'_>, course: &mut Option<Course>, said: &Said) {
        let mut holding = ManuallyDrop::new(holding); // what it holds goes over to the course
        let held = (Pass::of(holding.limit), self.breaker.map(|(_, phase)| phase));
        Course::take_over(course, self.parts, said, self.attempt, held, holding.overseen.take());
    }
}

impl Parked {
    pub(crate) const fn attempt(&self) -> Attempt {
        self.attempt
    }

    /// Goes on with the pipeline that it was parked beside.
    #[inline(always)]
    pub(crate) fn resume(self, parts: &Parts) -> (Straight<'_>, Holding<'_>) {
        let controls = parts.controls();
        let breaker = controls.breaker.as_ref().zip(self.phase);
        let limit = controls.admission.concurrency.as_ref().filter(|_| self.has_place);
        (
            Straight { parts, attempt: self.attempt, breaker },
            Holding { parts, limit, overseen: self.overseen },
        )
    }
}

/// When the first attempt must be given up of a call with which nothing is special: nobody listens, and nothing is around
/// it but a deadline of its caller's.
#[inline(always)]
fn plainly<C: Clock, K>(pipeline: &Pipeline<C, K>, said: &mut Said, now: Timestamp) -> Option<Timestamp> {
    let parts = pipeline.parts();
    let most = parts.straight_for()?;
    if parts.is_observed() || nesting::is_inside() {
        return None;
    }
    match said.upstream.is_none() && !ambient::is_set() {
        true => Some(Timestamp::from_nanos(now.as_nanos().saturating_add(most))),
        false => until_the_callers_deadline(pipeline, said, now),
    }
}

/// The same, where the caller has a deadline: what it [said around](crate::Ambient) the call is as if it had said it of
/// the call.
#[inline(never)]
fn until_the_callers_deadline<C: Clock, K>(
    pipeline: &Pipeline<C, K>,
    said: &mut Said,
    now: Timestamp,
) -> Option<Timestamp> {
    if ambient::is_set() {
        let around = ambient::deadline_alone(pipeline.clock(), now)?;
        said.upstream = Some(said.upstream.map_or(around, |known| known.min(around)));
    }
    pipeline.parts().pace().first_until(now, said.upstream?)
}

impl Holding<'_> {
    /// As [`Course::work`].
    pub(crate) fn work(&mut self) -> Work {
        let place = self.limit.take().map(|limit| Arc::new(limit.keep()));
        self.overseen.get_or_insert_default().begin([place, None], self.parts.tally())
    }

    /// The call is over, and has given back its place.
    #[inline(always)]
    pub(crate) fn end(self) {
        let mut held = ManuallyDrop::new(self);
        if let Some(overseen) = held.overseen.take() {
            drop(overseen);
        }
    }
}

impl Drop for Holding<'_> {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        Held::of_first_attempt(Pass::of(self.limit), None).abandon(self.parts.controls());
        if self.overseen.as_mut().is_some_and(|overseen| overseen.give_up()) {
            self.parts.tally().count();
        }
    }
}
