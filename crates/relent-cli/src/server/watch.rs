//! What the driver tells, as log lines and metrics.

use relent::{Brief, Wait};
use relent_deliver::{AttemptEnded, Ended, Observe, UnknownPolicy};
use relent_ledger::{MessageId, State};
use tracing::{debug, error, info, warn};

use super::metrics::Metrics;
use crate::wire::took;

/// Logs and counts.
pub(super) struct Watch {
    /// The counts.
    pub(super) metrics: Metrics,
}

impl Watch {
    /// With all counts at zero.
    pub(super) fn new() -> Self {
        Self { metrics: Metrics::new() }
    }
}

impl Observe for Watch {
    fn attempt_ended(&self, attempt: &AttemptEnded<'_>) {
        let took = took(attempt.observed, attempt.took);
        self.metrics.attempt(attempt.observed, took);
        debug!(
            target: "relent::attempt",
            id = %attempt.id,
            attempt = attempt.number,
            outcome = %attempt.observed,
            took_s = took.map(|took| took.as_secs_f64()),
            destination = %attempt.destination,
            detail = attempt.detail,
            then = ?attempt.settlement,
            "attempt ended"
        );
    }

    fn message_ended(&self, message: &Ended<'_>) {
        match message.state {
            State::Delivered => self.metrics.delivered(),
            _ => self.metrics.dead(message.reason),
        }
        let outcome = message.observed.map(|observed| observed.to_string());
        info!(
            target: "relent::message",
            id = %message.id,
            state = message.state.name(),
            reason = message.reason.name(),
            outcome = outcome.as_deref(),
            attempts = message.attempts,
            destination = %message.destination,
            age_s = message.age.as_secs_f64(),
            alert = message.alert,
            "message ended"
        );
    }

    fn deferred(&self, id: MessageId, wait: &Wait) {
        self.metrics.deferred(wait.origin);
        debug!(target: "relent::message", %id, origin = wait.origin.name(), wait = %Brief(wait.length), "put off");
    }

    fn ledger_failed(&self, failure: &relent_ledger::Error) {
        self.metrics.ledger_failed();
        let source = std::error::Error::source(failure).map(ToString::to_string);
        error!(target: "relent::ledger", error = %failure, cause = source.as_deref(), "the ledger failed");
    }

    fn policy_missing(&self, id: MessageId, policy: &UnknownPolicy) {
        warn!(target: "relent::message", %id, "waits for its policy: {policy}");
    }

    fn ticket_stale(&self, id: MessageId) {
        warn!(target: "relent::message", %id, "its ticket was over before its work was settled");
    }

    fn task_panicked(&self, id: MessageId, said: &str) {
        error!(target: "relent::message", %id, said, "its task panicked; the message goes back");
    }
}
