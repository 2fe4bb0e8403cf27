//! What happened, and what it means: [`Outcome`] is the driver's word, [`Verdict`] the classifier's.

use core::time::Duration;

/// How one attempt ended, as the driver saw it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome<'a, T: ?Sized, E: ?Sized> {
    /// The operation returned a value (which may still be a failure by contract, such as a 503).
    Ok(&'a T),
    /// The operation returned an error.
    Err(&'a E),
    /// The attempt's time-out ended it. What it did by then is not known.
    TimedOut,
    /// The operation panicked.
    Panicked,
    /// The worker that ran the attempt died; nobody knows how the attempt ended.
    Lost,
    /// The caller gave up.
    Cancelled,
}

impl<T: ?Sized, E: ?Sized> Clone for Outcome<'_, T, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized, E: ?Sized> Copy for Outcome<'_, T, E> {}

impl<'a, T, E> From<&'a Result<T, E>> for Outcome<'a, T, E> {
    #[inline]
    fn from(result: &'a Result<T, E>) -> Self {
        match result {
            Ok(value) => Self::Ok(value),
            Err(error) => Self::Err(error),
        }
    }
}

/// What an outcome means for the next step.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[must_use]
pub enum Verdict {
    /// Done.
    Success,
    /// "No": another attempt would get the same answer at the same cost.
    Permanent,
    /// Says nothing about the dependency; no control counts it and it is not an attempt.
    Neutral(Neutral),
    /// "Not now": another attempt may succeed.
    Failure {
        /// What kind of failure; budgets charge by it.
        cause: Cause,
        /// Whether the dependency may have acted on the attempt.
        sent: Sent,
        /// How long the dependency asked to be left alone, if it said.
        server_wait: Option<Duration>,
    },
}

impl Verdict {
    /// The verdict on an attempt whose worker died: nobody knows what it did.
    pub const LOST: Self = Self::Failure { cause: Cause::Lost, sent: Sent::Maybe, server_wait: None };
    /// The verdict on an attempt that our time-out ended: it may have been processed.
    pub const TIMED_OUT: Self = Self::Failure { cause: Cause::Timeout, sent: Sent::Maybe, server_wait: None };
}

/// Why a verdict is neutral.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Neutral {
    /// The caller gave up.
    Cancelled,
    /// Something on our own side failed (the local resolver, an egress proxy, our own shutdown).
    OwnFault,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Cause {
    /// The dependency answered "not now", or the connection to it failed.
    Error,
    /// Our time-out ended the attempt.
    Timeout,
    /// The dependency said that we ask too often.
    Throttled,
    /// The worker that ran the attempt died.
    Lost,
}

/// Whether the dependency may have acted on an attempt that failed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Sent {
    /// The request never left us.
    No,
    /// The request may have been processed.
    Maybe,
    /// The dependency said that it refused the request before processing it.
    RefusedBefore,
}
