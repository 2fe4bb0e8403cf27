//! Events as tracing's: fields with the names that the rest of relent uses, seconds for durations.

use tracing::{debug, info, warn};

use super::{Ended, Event, Observe};
use crate::{RecordId, Refusal};

/// Tells [`tracing`] what happens, under the target `relent`.
///
/// What somebody on call wants to see is a warning: a store that fails, a lost lease, an outcome that nobody knows, a
/// handler outside its transaction. The rest is for debugging. Keys are shown, callers are not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tracing;

impl Observe for Tracing {
    fn observe(&self, event: &Event<'_>) {
        let name = event.name();
        match *event {
            Event::Ran { lease, ended: Ended::Unknown, took } => {
                let (key, run, duration) = (key(&lease.record), lease.run, took.as_secs_f64());
                warn!(target: "relent", key, run, ended = "unknown", duration, "{name}");
            }
            Event::Ran { lease, ended, took } => {
                let (key, run, duration) = (key(&lease.record), lease.run, took.as_secs_f64());
                debug!(target: "relent", key, run, ended = ended.name(), duration, "{name}");
            }
            Event::Replayed(record) => debug!(target: "relent", key = key(record), "{name}"),
            Event::Refused { refusal: refusal @ Refusal::OutcomeUnknown, record } => {
                info!(target: "relent", key = record.map(key), reason = refusal.name(), "{name}");
            }
            Event::Refused { refusal, record } => {
                debug!(target: "relent", key = record.map(key), reason = refusal.name(), "{name}");
            }
            Event::LeaseLost(lease) => {
                warn!(target: "relent", key = key(&lease.record), run = lease.run, "{name}");
            }
            Event::StoreFailed { asked, record, error } => {
                let (key, asked, kind) = (key(record), asked.name(), error.kind());
                warn!(target: "relent", key, asked, ?kind, error = %error, "{name}");
            }
            Event::RanUnguarded(record) => warn!(target: "relent", key = key(record), "{name}"),
            Event::NotInTransaction(lease) => {
                warn!(target: "relent", key = key(&lease.record), run = lease.run, "{name}");
            }
        }
    }
}

fn key(record: &RecordId) -> &str {
    record.key.as_str()
}
