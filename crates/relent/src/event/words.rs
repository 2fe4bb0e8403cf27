//! The words that all observers use for the same things: few of them, so that they may label a metric.

use relent_core::{Cause, Neutral, StopReason, Verdict};

use crate::report::Report;

/// What an attempt came to.
pub(super) const fn outcome(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Success => "success",
        Verdict::Permanent => "permanent",
        Verdict::Neutral(Neutral::Cancelled) => "cancelled",
        Verdict::Neutral(Neutral::OwnFault) => "own_fault",
        Verdict::Failure { cause: Cause::Error, .. } => "unavailable",
        Verdict::Failure { cause: Cause::Timeout, .. } => "timeout",
        Verdict::Failure { cause: Cause::Throttled, .. } => "throttled",
        Verdict::Failure { cause: Cause::Lost, .. } => "lost",
    }
}

/// OpenTelemetry's `error.type` of an attempt: absent where nothing failed, on success and where the caller gave
/// up.
pub(super) const fn attempt_error(verdict: Verdict) -> Option<&'static str> {
    match verdict {
        Verdict::Success | Verdict::Neutral(Neutral::Cancelled) => None,
        failed => Some(outcome(failed)),
    }
}

/// `error.type` of a call: what its last attempt failed of; where there was none, why. A call that succeeded after
/// a retry is a success, and one whose caller gave up is nobody's failure.
pub(super) fn call_error(report: &Report) -> Option<&'static str> {
    match report.stop {
        StopReason::Succeeded | StopReason::Cancelled => None,
        reason => Some(report.last_verdict.and_then(attempt_error).unwrap_or(reason.name())),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use relent_core::Gate;

    use super::*;
    use crate::report::{Advice, Stage};

    fn report(stop: StopReason, last_verdict: Option<Verdict>) -> Report {
        Report {
            dependency: None,
            stop,
            stage: Stage::Attempt,
            attempts: 0,
            waits: 0,
            waited: Duration::ZERO,
            took: Duration::ZERO,
            last_verdict,
            advice: Advice::of(None),
        }
    }

    #[test]
    fn only_what_failed_has_an_error_type() {
        let (dry, shut) = (StopReason::Refused(Gate::Budget), StopReason::Refused(Gate::Concurrency));
        for (stop, last, error) in [
            (StopReason::Succeeded, Some(Verdict::Success), None),
            (StopReason::Cancelled, Some(Verdict::TIMED_OUT), None),
            (StopReason::Cancelled, None, None),
            (StopReason::AttemptsExhausted, Some(Verdict::TIMED_OUT), Some("timeout")),
            (StopReason::Permanent, Some(Verdict::Permanent), Some("permanent")),
            (dry, Some(Verdict::LOST), Some("lost")),
            (shut, None, Some("refused_concurrency")),
            (StopReason::UpstreamDeadline, None, Some("upstream_deadline")),
        ] {
            assert_eq!(call_error(&report(stop, last)), error, "{stop:?} after {last:?}");
        }
        assert_eq!(attempt_error(Verdict::Success), None);
        assert_eq!(attempt_error(Verdict::Neutral(Neutral::Cancelled)), None);
        assert_eq!(attempt_error(Verdict::Neutral(Neutral::OwnFault)), Some("own_fault"));
    }
}
