//! One logical call, step by step: for loops of one's own, and what `run` is built on.
//!
//! The stepper asks the core after every attempt and has no opinion; it neither sleeps nor runs anything.

use std::time::Duration;

use relent_core::{Decision, History, Outcome, StopReason, Timestamp, Verdict};

use crate::{calls::Calls, classify::Classifier, clock::Clock, error::Stopped, report::Report};

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

/// One logical call: [`Call::admit`] before each attempt, [`Call::conclude`] after it.
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
/// #     if scratch.len() < 3 { Err(std::io::ErrorKind::ConnectionRefused.into()) } else { Ok(scratch.len()) }
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
/// assert_eq!(fetched, 3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use]
pub struct Call<'a, C, K> {
    calls: Calls<'a, C, K>,
    history: History,
    attempts: u32,
    waits: u32,
    waited: Duration,
    stopped: Option<StopReason>,
    /// When the last attempt was concluded or refused.
    ended: Timestamp,
}

impl<'a, C: Clock, K> Call<'a, C, K> {
    pub(crate) fn begin(calls: Calls<'a, C, K>) -> Self {
        let history = calls.history();
        Self {
            calls,
            history,
            attempts: 0,
            waits: 0,
            waited: Duration::ZERO,
            stopped: None,
            ended: history.started,
        }
    }

    /// Begins an attempt, unless the call has stopped or its deadline leaves no room.
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

    pub(crate) fn admit_at(&mut self, now: Timestamp) -> Result<Attempt, Stopped> {
        if self.stopped.is_none()
            && let Some(reason) = self.out_of_time(now)
        {
            self.stopped = Some(reason);
            self.ended = now;
        }
        if let Some(reason) = self.stopped {
            return Err(Stopped::new(self.report_for(reason)));
        }
        self.attempts = self.attempts.saturating_add(1);
        let give_up_at = self.calls.pipeline().policy().give_up_at(&self.history, now);
        Ok(Attempt { number: self.attempts, began: now, give_up_at })
    }

    /// Takes in what the operation returned, and decides.
    pub fn conclude<T, E>(&mut self, result: &Result<T, E>) -> Decision
    where
        K: Classifier<T, E>,
    {
        self.conclude_outcome(match result {
            Ok(value) => Outcome::Ok(value),
            Err(error) => Outcome::Err(error),
        })
    }

    /// Takes in how the attempt ended, where that is more than a result (such as [`Outcome::TimedOut`]), and
    /// decides.
    pub fn conclude_outcome<T, E>(&mut self, outcome: Outcome<'_, T, E>) -> Decision
    where
        K: Classifier<T, E>,
    {
        let verdict = self.calls.pipeline().classifier().verdict(outcome, self.calls.rules());
        self.conclude_verdict(verdict)
    }

    /// Takes in what the outcome meant, where the caller is its own classifier, and decides.
    pub fn conclude_verdict(&mut self, verdict: Verdict) -> Decision {
        self.ended = self.calls.pipeline().clock().now();
        let decision = self.calls.pipeline().policy().retry.conclude(&mut self.history, verdict, self.ended);
        match decision {
            Decision::Retry(wait) => {
                self.waits = self.waits.saturating_add(1);
                self.waited = self.waited.saturating_add(wait.length);
            }
            Decision::Stop(reason) => self.stopped = Some(reason),
        }
        decision
    }

    /// When the last attempt was concluded; a wait counts from here.
    pub(crate) fn ended(&self) -> Timestamp {
        self.ended
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
            dependency: self.calls.pipeline().dependency().cloned(),
            stop,
            attempts: self.attempts,
            waits: self.waits,
            waited: self.waited,
            took: self.ended.since(self.history.started),
            last_verdict: self.history.last_verdict,
        }
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
}
