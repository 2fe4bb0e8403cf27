//! What became of a call, in numbers.

use std::{fmt, sync::Arc, time::Duration};

use relent_core::{Cause, StopReason, Verdict};

/// What became of a call, whether it succeeded or not.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The name of the pipeline's dependency, if it has one.
    pub dependency: Option<Arc<str>>,
    /// Why there was no further attempt.
    pub stop: StopReason,
    /// How many attempts were begun, those included that count for nothing.
    pub attempts: u32,
    /// How many waits were decided on.
    pub waits: u32,
    /// How long they were together.
    pub waited: Duration,
    /// From the call's beginning to the end of its last attempt (or to its refusal).
    pub took: Duration,
    /// What the last attempt's outcome meant. `None`: there was no attempt.
    pub last_verdict: Option<Verdict>,
}

impl Report {
    /// The kind of the last failure, if the call ended on one.
    pub fn cause(&self) -> Option<Cause> {
        match self.last_verdict {
            Some(Verdict::Failure { cause, .. }) => Some(cause),
            _ => None,
        }
    }

    /// `inventory: gave up after 3 attempts: attempts_exhausted`.
    pub(crate) fn sentence(&self, f: &mut fmt::Formatter<'_>, what: &str) -> fmt::Result {
        if let Some(dependency) = &self.dependency {
            write!(f, "{dependency}: ")?;
        }
        match self.attempts {
            0 => write!(f, "not tried: {}", self.stop.name()),
            1 => write!(f, "{what} after 1 attempt: {}", self.stop.name()),
            many => write!(f, "{what} after {many} attempts: {}", self.stop.name()),
        }
    }
}
