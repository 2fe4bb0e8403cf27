//! The metrics. No label has a value that a sender can choose: ten thousand URLs add no series.
//!
//! What the ledger counts (accepted, messages by state, ages, amplification) is read from it at each scrape and
//! survives a restart; what the driver does is counted here and begins at zero with the process.

use std::{fmt, time::Duration};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, text},
    metrics::{
        counter::{ConstCounter, Counter},
        family::Family,
        gauge::{ConstGauge, Gauge},
        histogram::Histogram,
        info::Info,
    },
    registry::Registry,
};
use relent::{Observed, StopReason, Timestamp, WaitOrigin};
use relent_ledger::{State, Tally};

/// One label with a value from a closed list.
type Label = [(&'static str, &'static str); 1];

/// What the process counts.
pub(super) struct Metrics {
    attempts: Family<Label, Counter>,
    durations: Histogram,
    delivered: Counter,
    dead: Family<Label, Counter>,
    replayed: Counter,
    deferred: Family<Label, Counter>,
    ledger_errors: Counter,
    registry: Registry,
}

impl Metrics {
    /// Counters at zero.
    pub(super) fn new() -> Self {
        let mut registry = Registry::with_prefix(PREFIX);
        let metrics = Self {
            attempts: Family::default(),
            durations: Histogram::new(DURATIONS),
            delivered: Counter::default(),
            dead: Family::default(),
            replayed: Counter::default(),
            deferred: Family::default(),
            ledger_errors: Counter::default(),
            registry: Registry::default(),
        };
        registry.register("attempts", "Attempts that ended, by outcome", metrics.attempts.clone());
        registry.register(
            "attempt_duration_seconds",
            "How long attempts took whose end was seen",
            metrics.durations.clone(),
        );
        registry.register("delivered", "Messages that their receivers took", metrics.delivered.clone());
        registry.register("dead", "Messages given up, by reason", metrics.dead.clone());
        registry.register(
            "replayed",
            "Submissions answered with an earlier message",
            metrics.replayed.clone(),
        );
        registry.register(
            "deferred",
            "Messages put off without a counted attempt, by origin",
            metrics.deferred.clone(),
        );
        registry.register("ledger_errors", "Failures of the ledger", metrics.ledger_errors.clone());
        registry.register(
            "build",
            "The running version",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        Self { registry, ..metrics }
    }

    /// An attempt ended; `took` is `None` where nobody saw its end.
    pub(super) fn attempt(&self, observed: Observed, took: Option<Duration>) {
        self.attempts.get_or_create(&[("outcome", observed.label())]).inc();
        if let Some(took) = took {
            self.durations.observe(took.as_secs_f64());
        }
    }

    /// A message was delivered.
    pub(super) fn delivered(&self) {
        self.delivered.inc();
    }

    /// A message was given up.
    pub(super) fn dead(&self, reason: StopReason) {
        self.dead.get_or_create(&[("reason", reason.name())]).inc();
    }

    /// A submission was a replay.
    pub(super) fn replayed(&self) {
        self.replayed.inc();
    }

    /// A message was put off.
    pub(super) fn deferred(&self, origin: WaitOrigin) {
        self.deferred.get_or_create(&[("origin", origin.name())]).inc();
    }

    /// The ledger failed.
    pub(super) fn ledger_failed(&self) {
        self.ledger_errors.inc();
    }

    /// All metrics in the OpenMetrics text format, with what the ledger counts at `now`.
    pub(super) fn encode(&self, tally: Tally, now: Timestamp) -> Result<String, fmt::Error> {
        let mut counted = Registry::with_prefix(PREFIX);
        counted.register_collector(Box::new(Counted { tally, now }));
        let mut text = String::with_capacity(4096);
        text::encode_registry(&mut text, &counted)?;
        text::encode_registry(&mut text, &self.registry)?;
        text::encode_eof(&mut text)?;
        Ok(text)
    }
}

/// What the ledger counts, at an instant.
#[derive(Debug)]
struct Counted {
    tally: Tally,
    now: Timestamp,
}

impl Collector for Counted {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Self { tally, now } = self;
        let mut one = |name, help, metric: &dyn EncodeOnce| metric.encode_once(&mut encoder, name, help);
        one("accepted", "Messages ever accepted", &ConstCounter::new(tally.accepted))?;
        one("messages", "Messages by state", &by_state(tally))?;
        let age =
            |since: Option<Timestamp>| ConstGauge::new(since.map_or(0.0, |at| now.since(at).as_secs_f64()));
        let help = "Age of the oldest message that has not ended; 0 if there is none";
        one("oldest_waiting_age_seconds", help, &age(tally.oldest_waiting))?;
        let help = "How long the oldest dead letter has been dead; 0 if there is none";
        one("oldest_dead_age_seconds", help, &age(tally.oldest_dead))?;
        let help = "Attempts ever begun for each message ever accepted";
        one("amplification", help, &ConstGauge::new(amplification(tally)))
    }
}

/// Attempts ÷ accepted messages; 0 before the first.
#[expect(clippy::cast_precision_loss, reason = "a ratio for people: counts beyond 2^53 may lose a digit")]
pub(super) fn amplification(tally: &Tally) -> f64 {
    if tally.accepted == 0 { 0.0 } else { tally.attempts as f64 / tally.accepted as f64 }
}

fn by_state(tally: &Tally) -> Family<Label, Gauge> {
    let family = Family::<Label, Gauge>::default();
    for state in State::ALL {
        let count = i64::try_from(tally.count(state)).unwrap_or(i64::MAX);
        family.get_or_create(&[("state", state.name())]).set(count);
    }
    family
}

/// A metric under a name of its own.
trait EncodeOnce {
    fn encode_once(&self, encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str) -> fmt::Result;
}

impl<M: EncodeMetric> EncodeOnce for M {
    fn encode_once(&self, encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str) -> fmt::Result {
        self.encode(encoder.encode_descriptor(name, help, None, self.metric_type())?)
    }
}

const PREFIX: &str = "relent";

/// Seconds: from a quick neighbour to beyond the default attempt time-out of 15 s.
const DURATIONS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use relent::ErrorClass;

    use super::*;

    #[test]
    fn the_ledgers_counts_and_our_own_stand_under_their_names() {
        let metrics = Metrics::new();
        metrics.attempt(Observed::Status(503), Some(Duration::from_millis(30)));
        metrics.attempt(Observed::Error(ErrorClass::Lost), None);
        metrics.dead(StopReason::Permanent);
        metrics.deferred(WaitOrigin::Shutdown);
        let states = BTreeMap::from([(State::Waiting, 3), (State::Dead, 1)]);
        let oldest_waiting = Some(Timestamp::from_secs(10));
        let tally = Tally { accepted: 4, attempts: 6, states, oldest_waiting, ..Tally::default() };
        let text = metrics.encode(tally, Timestamp::from_secs(12)).unwrap();
        for line in [
            "relent_accepted_total 4",
            "relent_amplification 1.5",
            "relent_messages{state=\"waiting\"} 3",
            "relent_messages{state=\"delivered\"} 0",
            "relent_oldest_waiting_age_seconds 2.0",
            "relent_oldest_dead_age_seconds 0.0",
            "relent_attempts_total{outcome=\"5xx\"} 1",
            "relent_attempts_total{outcome=\"unknown\"} 1",
            "relent_attempt_duration_seconds_bucket{le=\"0.05\"} 1",
            "relent_attempt_duration_seconds_count 1",
            "relent_dead_total{reason=\"permanent\"} 1",
            "relent_deferred_total{origin=\"shutdown\"} 1",
            "relent_delivered_total 0",
            "relent_replayed_total 0",
            "relent_ledger_errors_total 0",
            concat!("relent_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn before_the_first_message_nothing_is_divided_by_zero() {
        assert!(amplification(&Tally::default()).abs() < f64::EPSILON);
    }
}
