//! Events as tracing's: fields with the names that the rest of relent uses, seconds for durations.

use std::time::Duration;

use relent_core::{StopReason, Verdict};
use tracing::{debug, info, warn};

use super::{Event, Lending, Observe, Scene};
use crate::report::Report;

/// Tells [`tracing`] what happens, under the target `relent`.
///
/// What somebody on call wants to see is a warning or an information: calls that failed, breakers and budgets
/// that changed, retries nested in retries. The rest, a line for each attempt and wait, is for debugging.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use relent::{Pipeline, Policy, Tracing};
///
/// let users = Pipeline::new(Policy::live())?.named("users").observed_by(Arc::new(Tracing));
/// # Ok::<_, relent::Invalid>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Tracing;

impl Observe for Tracing {
    fn observe(&self, scene: Scene<'_>, event: &Event<'_>) {
        let Scene { dependency, call, .. } = scene;
        let name = event.name();
        match *event {
            Event::CallBegan { nesting } => {
                debug!(target: "relent", dependency, call, nesting = nesting.name(), "{name}");
            }
            Event::Queued { stage, gate, waited } => {
                let (stage, gate, wait) = (stage.name(), gate.name(), seconds(waited));
                debug!(target: "relent", dependency, call, stage, gate, wait, "{name}");
            }
            Event::AttemptBegan(attempt) => {
                let (number, timeout) = (attempt.number, seconds(attempt.allowed()));
                debug!(target: "relent", dependency, call, attempt = number, timeout, "{name}");
            }
            Event::AttemptEnded { number, verdict, took } => {
                let (error, duration) = (error_type(verdict), seconds(took));
                debug!(target: "relent", dependency, call, attempt = number, error.type = error, duration, "{name}");
            }
            Event::Waiting { next, after, wait } => {
                let (error, length, origin) = (error_type(after), seconds(wait.length), wait.origin.name());
                debug!(target: "relent", dependency, call, attempt = next, error.type = error, wait = length, origin, "{name}");
            }
            Event::Refused { stage, refusal } => {
                let (stage, gate, advised) = (stage.name(), refusal.by.name(), seconds(refusal.advised));
                debug!(target: "relent", dependency, call, stage, gate, advised, "{name}");
            }
            Event::BreakerChanged(change) => {
                let (from, to, why) =
                    (change.from.name(), change.to.name(), change.trip.map(|trip| trip.name()));
                info!(target: "relent", dependency, from, to, why, "{name}");
            }
            Event::BudgetChanged(lending) => {
                info!(target: "relent", dependency, lends = lending == Lending::Lends, "{name}");
            }
            Event::Nested { nesting, attempts } => {
                warn!(target: "relent", dependency, call, nesting = nesting.name(), attempts, "{name}");
            }
            Event::Overran { number } => {
                warn!(target: "relent", dependency, call, attempt = number, "{name}")
            }
            Event::CallEnded(report) => call_ended(scene, report),
        }
    }
}

/// A call that succeeded after a retry is a success; one whose caller gave up is nobody's failure.
fn call_ended(scene: Scene<'_>, report: &Report) {
    let Scene { dependency, call, .. } = scene;
    let (reason, attempts) = (report.stop.name(), report.attempts);
    let (duration, waited) = (seconds(report.took), seconds(report.waited));
    match report.stop {
        StopReason::Succeeded | StopReason::Cancelled => {
            debug!(target: "relent", dependency, call, reason, attempts, duration, waited, "call_ended");
        }
        _ => {
            let error = report.last_verdict.and_then(error_type);
            warn!(target: "relent", dependency, call, reason, attempts, error.type = error, duration, waited, "call_ended");
        }
    }
}

/// OpenTelemetry's `error.type`: one of few words, and absent where there was no error.
const fn error_type(verdict: Verdict) -> Option<&'static str> {
    use relent_core::{Cause, Neutral};
    match verdict {
        Verdict::Success => None,
        Verdict::Permanent => Some("permanent"),
        Verdict::Neutral(Neutral::Cancelled) => Some("cancelled"),
        Verdict::Neutral(Neutral::OwnFault) => Some("own_fault"),
        Verdict::Failure { cause: Cause::Error, .. } => Some("unavailable"),
        Verdict::Failure { cause: Cause::Timeout, .. } => Some("timeout"),
        Verdict::Failure { cause: Cause::Throttled, .. } => Some("throttled"),
        Verdict::Failure { cause: Cause::Lost, .. } => Some("lost"),
    }
}

fn seconds(length: Duration) -> f64 {
    length.as_secs_f64()
}
