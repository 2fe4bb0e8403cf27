//! Events as tracing's: fields with the names that the rest of relent uses, seconds for durations.

use std::time::Duration;

use tracing::{debug, info, warn};

use super::{Event, Observe, Scene, words};
use crate::report::Report;

/// Tells [`tracing`] what happens, under the target `relent`, each event with its
/// [name](Event::name).
///
/// What somebody on call wants to see is a warning or an information: calls that failed, breakers and budgets
/// that changed, retries nested in retries, work that outlived its attempt. The rest, a line for each attempt,
/// wait and refusal, is for debugging. A call that succeeded after a retry is a success, and one whose caller gave
/// up is nobody's failure: neither has an `error.type`, and neither is a warning.
///
/// Fields have the words of the metrics that the feature `opentelemetry` makes, and seconds; only here is a call
/// told from others, by `call`.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use relent::{Pipeline, Policy, Tracing};
///
/// # #[cfg(feature = "tokio")] {
/// let users = Pipeline::new(Policy::live())?.named("users").observed_by(Arc::new(Tracing));
/// # }
/// # Ok::<_, relent::Invalid>(())
/// ```
///
/// A span for each physical attempt beneath the logical call's, where the client makes none of its own:
///
/// ```
/// # use relent::{Pipeline, Policy};
/// use tracing::{Instrument, info_span};
///
/// # async fn fetch_user(id: u64) -> std::io::Result<String> { Ok(format!("user {id}")) }
/// # #[cfg(feature = "tokio")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let users = Pipeline::new(Policy::live())?;
/// let user = users
///     .safe()
///     .run(|attempt| fetch_user(42).instrument(info_span!("attempt", number = attempt.number)))
///     .instrument(info_span!("fetch_user"))
///     .await?;
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "tokio"))]
/// # fn main() {}
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
                let (outcome, error, duration) =
                    (words::outcome(verdict), words::attempt_error(verdict), seconds(took));
                debug!(target: "relent", dependency, call, attempt = number, outcome, error.type = error, duration, "{name}");
            }
            Event::Waiting { next, after, wait } => {
                let (error, length, origin) =
                    (words::attempt_error(after), seconds(wait.length), wait.origin.name());
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
                info!(target: "relent", dependency, state = lending.name(), "{name}");
            }
            Event::Nested { nesting, attempts } => {
                warn!(target: "relent", dependency, call, nesting = nesting.name(), attempts, "{name}");
            }
            Event::MayRetryBeneath { what } => {
                warn!(target: "relent", dependency, what, "{name}");
            }
            Event::Overran { number } => {
                warn!(target: "relent", dependency, call, attempt = number, "{name}")
            }
            Event::CallEnded(report) => call_ended(scene, report),
        }
    }
}

fn call_ended(scene: Scene<'_>, report: &Report) {
    let Scene { dependency, call, alert, .. } = scene;
    let (reason, attempts) = (report.stop.name(), report.attempts);
    let (duration, waited) = (seconds(report.took), seconds(report.waited));
    match words::call_error(report) {
        None => {
            debug!(target: "relent", dependency, call, reason, attempts, duration, waited, "call_ended");
        }
        Some(error) => {
            warn!(target: "relent", dependency, call, reason, attempts, error.type = error, duration, waited, alert, "call_ended");
        }
    }
}

fn seconds(length: Duration) -> f64 {
    length.as_secs_f64()
}
