//! What became of a call, in numbers.

use std::{fmt, sync::Arc, time::Duration};

use relent_core::{Brief, Cause, Gate, Refusal, StopReason, Timestamp, Verdict};

/// What became of a call, whether it succeeded or not.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The name of the pipeline's dependency, if it has one.
    pub dependency: Option<Arc<str>>,
    /// Why there was no further attempt.
    pub stop: StopReason,
    /// Where in the call that came about.
    pub stage: Stage,
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
    pub(crate) advice: Advice,
}

/// A refusal without its gate, which stands in `stop`, in few bytes: an error must stay small enough to return.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) struct Advice {
    /// The end of time: no moment is known.
    until: Timestamp,
    /// In nanoseconds.
    advised: u64,
}

impl Advice {
    #[inline]
    pub(crate) fn of(refusal: Option<Refusal>) -> Self {
        let until = refusal.and_then(|refusal| refusal.until).unwrap_or(Timestamp::MAX);
        let advised = refusal.map_or(Duration::ZERO, |refusal| refusal.advised);
        Self { until, advised: u64::try_from(advised.as_nanos()).unwrap_or(u64::MAX) }
    }

    fn refusal(self, by: Gate) -> Refusal {
        Refusal { by, until: self.until(), advised: Duration::from_nanos(self.advised) }
    }

    fn until(self) -> Option<Timestamp> {
        (self.until < Timestamp::MAX).then_some(self.until)
    }
}

/// What it says, not how it is kept: a program that returns its error from `main` shows this to a person.
impl fmt::Debug for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let advised = Duration::from_nanos(self.advised);
        f.debug_struct("Advice").field("until", &self.until()).field("advised", &advised).finish()
    }
}

/// Where in a call something happens: the pipeline's layers, from the outermost.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Stage {
    /// At the gates that a call passes once, before its first attempt.
    Admission,
    /// Between two attempts: the budget, the switch, and a breaker that is sure to be open still.
    Retry,
    /// At the gates that each attempt passes, the breaker last.
    Gates,
    /// In an attempt, or by its outcome.
    Attempt,
}

impl Stage {
    /// The one name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admission => "admission",
            Self::Retry => "retry",
            Self::Gates => "gates",
            Self::Attempt => "attempt",
        }
    }
}

impl Report {
    /// Of a call that was refused as it began.
    #[inline(always)]
    pub(crate) fn of_refused(dependency: Option<&Arc<str>>, stage: Stage, refusal: Refusal) -> Self {
        Self {
            dependency: dependency.cloned(),
            stop: StopReason::Refused(refusal.by),
            stage,
            attempts: 0,
            waits: 0,
            waited: Duration::ZERO,
            took: Duration::ZERO,
            last_verdict: None,
            advice: Advice::of(Some(refusal)),
        }
    }

    /// Of a call whose first attempt succeeded.
    pub(crate) fn of_first_success(dependency: Option<&Arc<str>>, took: Duration) -> Self {
        Self {
            dependency: dependency.cloned(),
            stop: StopReason::Succeeded,
            stage: Stage::Attempt,
            attempts: 1,
            waits: 0,
            waited: Duration::ZERO,
            took,
            last_verdict: Some(Verdict::Success),
            advice: Advice::of(None),
        }
    }

    /// The kind of the last failure, if the call ended on one.
    pub fn cause(&self) -> Option<Cause> {
        match self.last_verdict {
            Some(Verdict::Failure { cause, .. }) => Some(cause),
            _ => None,
        }
    }

    /// The gate that ended the call, and when to come back, if one did.
    pub fn refusal(&self) -> Option<Refusal> {
        match self.stop {
            StopReason::Refused(by) => Some(self.advice.refusal(by)),
            _ => None,
        }
    }

    /// `inventory: gave up after 3 attempts: attempts_exhausted`.
    pub(crate) fn sentence(&self, f: &mut fmt::Formatter<'_>, what: &str) -> fmt::Result {
        if let Some(dependency) = &self.dependency {
            write!(f, "{dependency}: ")?;
        }
        match self.attempts {
            0 => f.write_str("not tried")?,
            1 => write!(f, "{what} after 1 attempt")?,
            many => write!(f, "{what} after {many} attempts")?,
        }
        write!(f, ": {}", self.stop.name())?;
        match self.refusal() {
            Some(Refusal { by: Gate::Budget, .. }) => f.write_str(", no retries until calls succeed again"),
            Some(refusal) => write!(f, ", worth trying again in {}", Brief(refusal.advised)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_debug_form_of_an_advice_has_no_end_of_time_in_it() {
        assert_eq!(format!("{:?}", Advice::of(None)), "Advice { until: None, advised: 0ns }");
        let until = Some(Timestamp::ZERO.after(Duration::from_secs(1)));
        let refusal = Refusal { by: Gate::Breaker, until, advised: Duration::from_secs(2) };
        let told = format!("{:?}", Advice::of(Some(refusal)));
        assert!(told.contains("Some(") && told.ends_with("advised: 2s }"), "{told}");
    }
}
