//! How a call fails: with the operation's own last error wherever there is one, and why it was the last.

use std::{error, fmt};

use relent_core::{Cause, Refusal, Sent, StopReason, Verdict};

use crate::{classify::Classify, report::Report};

/// Why a call gave no value.
///
/// The error names the reason and the attempts; the operation's own error is its
/// [`source`](error::Error::source).
#[derive(Debug)]
#[non_exhaustive]
pub enum Error<E> {
    /// The operation's last error. Where the attempt after it timed out, it is still the last that the
    /// operation said.
    Failed {
        /// What the operation returned.
        error: E,
        /// What became of the call.
        report: Report,
    },
    /// The last attempt was ended by its time-out or by a deadline, and no attempt returned an error.
    TimedOut {
        /// What became of the call.
        report: Report,
    },
    /// An attempt was not allowed to begin, and no error of the operation is at hand. If a gate did not allow
    /// it, [`Error::refusal`] says when to come back.
    Stopped {
        /// What became of the call.
        report: Report,
    },
}

impl<E> Error<E> {
    /// Why there was no further attempt.
    pub fn stop(&self) -> StopReason {
        self.report().stop
    }

    /// What became of the call.
    pub fn report(&self) -> &Report {
        match self {
            Self::Failed { report, .. } | Self::TimedOut { report } | Self::Stopped { report } => report,
        }
    }

    /// The gate that ended the call, and when to come back, if one did.
    pub fn refusal(&self) -> Option<Refusal> {
        self.report().refusal()
    }

    /// The operation's own error, if there is one.
    pub fn inner(&self) -> Option<&E> {
        match self {
            Self::Failed { error, .. } => Some(error),
            Self::TimedOut { .. } | Self::Stopped { .. } => None,
        }
    }

    /// The operation's own error, if there is one, without the report.
    pub fn into_inner(self) -> Option<E> {
        match self {
            Self::Failed { error, .. } => Some(error),
            Self::TimedOut { .. } | Self::Stopped { .. } => None,
        }
    }
}

impl<E> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed { report, .. } => report.sentence(f, "gave up"),
            Self::TimedOut { report } => report.sentence(f, "timed out"),
            Self::Stopped { report } => report.sentence(f, "stopped"),
        }
    }
}

impl<E: error::Error + 'static> error::Error for Error<E> {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.inner().map(|error| error as _)
    }
}

/// What a call's failure means to a call around it: what its last attempt meant. One that was not tried was not
/// sent, and asks for the wait that its refusal advises.
impl<E> Classify for Error<E> {
    fn classify(&self) -> Verdict {
        let report = self.report();
        report.last_verdict.unwrap_or(Verdict::Failure {
            cause: if report.refusal().is_some() { Cause::Error } else { Cause::Timeout },
            sent: Sent::No,
            server_wait: report.refusal().map(|refusal| refusal.advised),
        })
    }
}

/// No further attempt may begin: the answer of [`Call::admit`](crate::Call::admit).
#[derive(Clone, Debug)]
pub struct Stopped {
    report: Report,
}

impl Stopped {
    pub(crate) fn new(report: Report) -> Self {
        Self { report }
    }

    /// Why.
    pub fn stop(&self) -> StopReason {
        self.report.stop
    }

    /// The gate that ended the call, and when to come back, if one did.
    pub fn refusal(&self) -> Option<Refusal> {
        self.report.refusal()
    }

    /// What became of the call.
    pub fn report(&self) -> &Report {
        &self.report
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.report.sentence(f, "stopped")
    }
}

impl error::Error for Stopped {}

impl<E> From<Stopped> for Error<E> {
    fn from(stopped: Stopped) -> Self {
        Self::Stopped { report: stopped.report }
    }
}
