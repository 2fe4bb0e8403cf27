//! The instruments: their names, units and buckets.

use opentelemetry::metrics::{Counter, Histogram, Meter, UpDownCounter};

/// What is measured as it happens.
#[derive(Debug)]
pub(super) struct Instruments {
    pub(super) call_duration: Histogram<f64>,
    pub(super) call_attempts: Histogram<u64>,
    pub(super) call_active: UpDownCounter<i64>,
    pub(super) attempt_duration: Histogram<f64>,
    pub(super) attempt_overruns: Counter<u64>,
    pub(super) retry_delay: Histogram<f64>,
    pub(super) gate_wait: Histogram<f64>,
    pub(super) gate_refusals: Counter<u64>,
    pub(super) breaker_transitions: Counter<u64>,
    pub(super) budget_transitions: Counter<u64>,
    pub(super) nested_calls: Counter<u64>,
}

impl Instruments {
    pub(super) fn of(meter: &Meter) -> Self {
        let seconds = |name, what| {
            let histogram = meter.f64_histogram(name).with_unit("s").with_description(what);
            histogram.with_boundaries(SECONDS.to_vec()).build()
        };
        let count = |name, unit, what| meter.u64_counter(name).with_unit(unit).with_description(what).build();
        Self {
            call_duration: seconds("relent.call.duration", "How long logical calls took, waits included."),
            call_attempts: meter
                .u64_histogram("relent.call.attempts")
                .with_unit("{attempt}")
                .with_description("How many attempts a logical call came to.")
                .with_boundaries(ATTEMPTS.to_vec())
                .build(),
            call_active: meter
                .i64_up_down_counter("relent.call.active")
                .with_unit("{call}")
                .with_description("Logical calls that have begun and not ended.")
                .build(),
            attempt_duration: seconds("relent.attempt.duration", "How long physical attempts took."),
            attempt_overruns: count(
                "relent.attempt.overruns",
                "{attempt}",
                "Attempts that were given up while their work ran on.",
            ),
            retry_delay: seconds("relent.retry.delay", "How long calls wait before they try again."),
            gate_wait: seconds("relent.gate.wait", "How long calls waited at a gate that let them through."),
            gate_refusals: count("relent.gate.refusals", "{refusal}", "Calls that a gate ended."),
            breaker_transitions: count(
                "relent.breaker.transitions",
                "{transition}",
                "How often calls made a breaker change its state.",
            ),
            budget_transitions: count(
                "relent.budget.transitions",
                "{transition}",
                "How often a retry budget began to refuse, or to lend again.",
            ),
            nested_calls: count(
                "relent.nested.calls",
                "{call}",
                "Calls inside an attempt of another pipeline that would try again themselves.",
            ),
        }
    }
}

/// Those that OpenTelemetry advises for the durations of HTTP requests, and two more, for calls that wait.
const SECONDS: [f64; 16] =
    [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 30.0, 60.0];

/// None at all, each number that policies for callers who wait have, and what is too many.
const ATTEMPTS: [f64; 8] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 8.0, 16.0];
