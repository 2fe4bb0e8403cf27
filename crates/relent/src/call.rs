//! One logical call, step by step: for loops of one's own.
//!
//! The stepper asks the controls in their order and the core after every attempt, and has no opinion; it runs
//! nothing, and waits only where it is asked to.

mod course;
mod pass;
mod straight;
mod within;

use std::{future::poll_fn, pin::pin, time::Duration};

use relent_core::{Decision, History, Outcome, StopReason, Timestamp, Verdict};

pub use self::within::InAttempt;
pub(crate) use self::{
    course::Course,
    pass::Begun,
    straight::{InTheWay, Parked, Straight},
};
use crate::{
    calls::{Calls, Routed},
    classify::Classifier,
    clock::{BlockingClock, Clock, Timer},
    error::Stopped,
    pipeline::{Parts, Pipeline},
    reach::Reach,
    report::Report,
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
/// [`Call::conclude`] after it, and [`Call::scope`] around what it does where that makes calls of its own.
///
/// An attempt that is followed by another without having been concluded is taken for one of which nobody knows what it
/// did: it counts, the next is a retry that a budget must lend, and for what is unsafe to repeat there is none. A call
/// that has stopped takes in nothing more.
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
///         let result = call.scope(fetch(&mut scratch)).await;
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
    course: Course,
}

impl<P: Reach, R> Call<P, R> {
    pub(crate) fn begin(calls: Calls<P, R>) -> Self
    where
        R: Routed,
    {
        let Calls { via, said, route } = calls;
        let pipeline = via.pipeline();
        let course = Course::new(pipeline.parts(), &said, pipeline.clock().now());
        let mut call = Self { via, route, course };
        call.course.set_out(call.via.pipeline(), call.route.route(), &said);
        call
    }

    /// The pipeline that it goes through.
    pub(crate) fn pipeline(&self) -> &Pipeline<P::Clock, P::Classifier> {
        self.via.pipeline()
    }

    pub(crate) const fn course(&self) -> &Course {
        &self.course
    }

    fn now(&self) -> Timestamp {
        self.pipeline().clock().now()
    }

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
        let now = self.now();
        let (course, parts) = self.apart();
        let begun = match course.try_begin(parts, now) {
            Begun::Attempt(attempt) => Ok(attempt),
            Begun::Shut(refusal) => Err(course.refused(parts, refusal, now)),
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
        let now = self.now();
        let (course, parts) = self.apart();
        let begun = match course.try_begin(parts, now) {
            Begun::Attempt(attempt) => Ok(attempt),
            Begun::Shut(_) => match course.join_queue(parts, now) {
                Ok(()) => self.queued().await,
                Err(reason) => Err(reason),
            },
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
        let begun = self.begin_blocking(self.now());
        self.or_stopped(begun)
    }

    pub(crate) fn begin_blocking(&mut self, now: Timestamp) -> Result<Attempt, StopReason>
    where
        P::Clock: BlockingClock,
    {
        self.course.begin_blocking(self.via.pipeline(), now)
    }

    /// Begins an attempt as soon as the gates let it. Dropped, it leaves the queues.
    async fn queued(&mut self) -> Result<Attempt, StopReason> {
        let in_line = InLine(self);
        let mut timer = pin!(Timer::new());
        poll_fn(|cx| in_line.0.course.poll_queue(in_line.0.via.pipeline(), timer.as_mut(), cx)).await
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
        self.conclude_outcome_at(outcome, self.now())
    }

    pub(crate) fn conclude_outcome_at<T, E>(&mut self, outcome: Outcome<'_, T, E>, now: Timestamp) -> Decision
    where
        P::Classifier: Classifier<T, E>,
        R: Routed,
    {
        let verdict = self.pipeline().verdict(outcome, self.route.route());
        let (course, parts) = self.apart();
        course.conclude(parts, verdict, now)
    }

    /// Takes in what the outcome meant, where the caller is its own classifier, and decides.
    pub fn conclude_verdict(&mut self, verdict: Verdict) -> Decision {
        let now = self.now();
        let (course, parts) = self.apart();
        course.conclude(parts, verdict, now)
    }

    /// What the call does cannot be done again: where the policy would, it stops with
    /// [`NotReplayable`](StopReason::NotReplayable). To be said before an attempt is concluded.
    pub fn forbid_retries(&mut self) {
        self.course.forbid_retries();
    }

    /// The decision state: all that the policy knows of this call.
    pub fn history(&self) -> &History {
        self.course.history()
    }

    /// What became of the call. `None`: it has not stopped yet.
    pub fn report(&self) -> Option<Report> {
        self.course.stopped().map(|reason| self.report_for(reason))
    }

    pub(crate) fn report_for(&self, stop: StopReason) -> Report {
        self.course.report(self.pipeline().parts(), stop)
    }

    fn or_stopped(&self, begun: Result<Attempt, StopReason>) -> Result<Attempt, Stopped> {
        begun.map_err(|reason| Stopped::new(self.report_for(reason)))
    }

    fn apart(&mut self) -> (&mut Course, &Parts) {
        (&mut self.course, self.via.pipeline().parts())
    }
}

impl<P: Reach, R> Drop for Call<P, R> {
    fn drop(&mut self) {
        if self.course.stopped().is_none() {
            self.course.cancel(self.via.pipeline());
        }
    }
}

/// A call that waits at a gate. Dropped, it waits there no more.
struct InLine<'c, P: Reach, R>(&'c mut Call<P, R>);

impl<P: Reach, R> Drop for InLine<'_, P, R> {
    fn drop(&mut self) {
        let (course, parts) = self.0.apart();
        course.leave_queue(parts);
    }
}
