//! Events as OpenTelemetry's metrics: logical calls apart from physical attempts, in seconds, with few labels.
//!
//! OpenTelemetry has no convention for retries. The names follow its rules for names and units, and its nearest
//! convention, gRPC's calls and attempts.

mod instruments;
mod state;

use std::time::Duration;

use opentelemetry::{
    InstrumentationScope, KeyValue,
    metrics::{Meter, MeterProvider},
};

use self::{instruments::Instruments, state::Watched};
use super::{Event, Observe, Scene, words};
use crate::{clock::Clock, pipeline::Pipeline, report::Report};

/// Measures what happens with [OpenTelemetry](https://opentelemetry.io)'s metrics. One observer serves all
/// pipelines.
///
/// | instrument | kind, unit | what | attributes |
/// |---|---|---|---|
/// | `relent.call.duration` | histogram, s | logical calls, waits included | `relent.call.reason`, `relent.retry`, `error.type` |
/// | `relent.call.attempts` | histogram, {attempt} | attempts of a call; 0: it was refused before the first | `relent.call.reason`, `error.type` |
/// | `relent.call.active` | up-down counter, {call} | calls that have begun and not ended | |
/// | `relent.attempt.duration` | histogram, s | physical attempts | `relent.attempt.outcome`, `relent.retry`, `error.type` |
/// | `relent.attempt.overruns` | counter, {attempt} | given up, and their work ran on | |
/// | `relent.retry.delay` | histogram, s | waits before a retry, as decided | `relent.wait.origin`, `error.type` |
/// | `relent.gate.wait` | histogram, s | waits at a gate that then let the call through | `relent.gate`, `relent.stage` |
/// | `relent.gate.refusals` | counter, {refusal} | calls that a gate ended | `relent.gate`, `relent.stage` |
/// | `relent.breaker.transitions` | counter, {transition} | changes of a breaker's state by calls | `relent.breaker.from`, `relent.breaker.to`, `relent.breaker.trip` |
/// | `relent.budget.transitions` | counter, {transition} | a budget begins to refuse, or to lend again | `relent.budget.state` |
/// | `relent.nested.calls` | counter, {call} | retries within another pipeline's attempt | `relent.nesting` |
///
/// And of pipelines that are [watched](OpenTelemetry::watch), at each collection:
///
/// | instrument | kind, unit | what | attributes |
/// |---|---|---|---|
/// | `relent.breaker.state` | up-down counter, {breaker} | 1 for the state that the breaker is in, 0 for the others | `relent.breaker.state` |
/// | `relent.budget.tokens` | gauge, {token} | what is left, of budgets that have tokens | |
/// | `relent.limit.usage` | up-down counter, {permit} | in flight at a concurrency limit | `relent.stage` |
/// | `relent.limit.max` | up-down counter, {permit} | the limit | `relent.stage` |
/// | `relent.attempt.overrunning` | up-down counter, {attempt} | work that runs on after its attempt was given up | |
///
/// Every instrument also has `relent.dependency`, the pipeline's name, if it has one.
///
/// | attribute | values |
/// |---|---|
/// | `relent.dependency` | [`Pipeline::named`](crate::Pipeline::named) |
/// | `relent.call.reason` | [`StopReason::name`](crate::StopReason::name): `succeeded`, `attempts_exhausted`, `total_timeout`, `refused_budget`, `cancelled`, … |
/// | `relent.retry` | of a call: whether it made more than one attempt; of an attempt: whether it is not the first |
/// | `relent.attempt.outcome` | `success`, `permanent`, `unavailable`, `timeout`, `throttled`, `lost`, `own_fault`, `cancelled` |
/// | `error.type` | the outcome of the attempt (of a call: of its last; of a delay: of the one before it). Absent where nothing failed: on success and where the caller gave up. Of a call without an attempt, its reason |
/// | `relent.wait.origin` | [`WaitOrigin::name`](crate::WaitOrigin::name): `backoff`, `server`, `own_fault` |
/// | `relent.gate` | [`Gate::name`](crate::Gate::name): `concurrency`, `rate`, `budget`, `breaker`, `switch` |
/// | `relent.stage` | [`Stage::name`](crate::Stage::name): `admission`, `retry`, `gates` |
/// | `relent.breaker.from`, `relent.breaker.to`, `relent.breaker.state` | [`Mode::name`](crate::breaker::Mode::name): `closed`, `open`, `half_open`, … |
/// | `relent.breaker.trip` | [`Trip::name`](crate::breaker::Trip::name), where the breaker tripped: `failure_rate`, `slow_rate`, `consecutive`, `probes` |
/// | `relent.budget.state` | [`Lending::name`](crate::Lending::name): `lends`, `refuses` |
/// | `relent.nesting` | [`Nesting::name`](crate::Nesting::name): `within`, `same_dependency` |
///
/// All of these are closed lists but the dependency's name: no id, no URL, no message of an error. Name a
/// pipeline after what it calls (`inventory`), never after whom or what for.
///
/// # What to look at
///
/// | question | answer |
/// |---|---|
/// | Do calls fail? | `relent.call.duration` with an `error.type`, by count, against all. A recovered retry is not among them |
/// | What did retries bring? | `relent.call.duration` by `relent.retry` and the presence of `error.type`: good at once, rescued, failed at once, failed all the same |
/// | How much do they add? | the count of `relent.attempt.duration` over that of `relent.call.duration` |
/// | Who is out of patience? | `relent.call.reason`: `attempts_exhausted`, `total_timeout`, `upstream_deadline`; who gave up: `cancelled` |
/// | Do attempts time out? | `relent.attempt.outcome` is `timeout` |
/// | What holds calls back? | `relent.gate.refusals` and `relent.gate.wait` by `relent.gate` |
///
/// # Choosing a value
///
/// A measurement costs what the provider's does, and a copy of the dependency's name. Spans are not made here: the
/// HTTP client makes one for each attempt, beneath the caller's, and [`Attempt::number`](crate::Attempt::number)
/// less one is its `http.request.resend_count`.
///
/// # Examples
///
/// Give it the provider of the process, once that is set:
///
/// ```
/// use std::sync::Arc;
/// use relent::{OpenTelemetry, Pipeline, Policy};
///
/// # let provider = opentelemetry_sdk::metrics::SdkMeterProvider::default();
/// opentelemetry::global::set_meter_provider(provider.clone());
/// // …
/// let telemetry = Arc::new(OpenTelemetry::new(&*opentelemetry::global::meter_provider()));
/// # #[cfg(feature = "tokio")] {
/// let users = Pipeline::new(Policy::live())?.named("users").observed_by(telemetry.clone());
/// let stock = Pipeline::new(Policy::live())?.named("stock").observed_by(telemetry.clone());
/// telemetry.watch(&users);
/// telemetry.watch(&stock);
/// # }
/// # Ok::<_, relent::Invalid>(())
/// ```
#[derive(Debug)]
pub struct OpenTelemetry {
    instruments: Instruments,
    watched: Watched,
}

impl OpenTelemetry {
    /// Makes the instruments, in the scope `relent` with this crate's version.
    pub fn new(provider: &dyn MeterProvider) -> Self {
        let scope = InstrumentationScope::builder("relent").with_version(env!("CARGO_PKG_VERSION")).build();
        let meter: Meter = provider.meter_with_scope(scope);
        Self { instruments: Instruments::of(&meter), watched: Watched::by(&meter) }
    }

    /// Reads how the pipeline's controls stand whenever metrics are collected: also what is moved by hand, or by
    /// calls that nobody observes. It sees the controls that the pipeline has now; give it others before.
    ///
    /// The pipeline is not kept alive: when its last clone is gone, its series end. Pipelines of one name add up.
    pub fn watch<C: Clock, K>(&self, pipeline: &Pipeline<C, K>) {
        self.watched.watch(pipeline.vitals());
    }

    fn call_ended(&self, scene: Scene<'_>, report: &Report) {
        let to = &self.instruments;
        let reason = KeyValue::new(CALL_REASON, report.stop.name());
        let error = error(words::call_error(report));
        let retried = KeyValue::new(RETRY, report.attempts > 1);
        to.call_active.add(-1, &labels(scene, []));
        to.call_attempts
            .record(u64::from(report.attempts), &labels(scene, [Some(reason.clone()), error.clone()]));
        to.call_duration.record(seconds(report.took), &labels(scene, [Some(reason), Some(retried), error]));
    }
}

impl Observe for OpenTelemetry {
    fn observe(&self, scene: Scene<'_>, event: &Event<'_>) {
        let to = &self.instruments;
        match *event {
            Event::CallBegan { .. } => to.call_active.add(1, &labels(scene, [])),
            Event::AttemptBegan(_) => {} // measured when it ends
            Event::Queued { stage, gate, waited } => {
                let [gate, stage] = [(GATE, gate.name()), (STAGE, stage.name())].map(word);
                to.gate_wait.record(seconds(waited), &labels(scene, [gate, stage]));
            }
            Event::AttemptEnded { number, verdict, took } => {
                let outcome = word((ATTEMPT_OUTCOME, words::outcome(verdict)));
                let retry = Some(KeyValue::new(RETRY, number > 1));
                let attributes = labels(scene, [outcome, retry, error(words::attempt_error(verdict))]);
                to.attempt_duration.record(seconds(took), &attributes);
            }
            Event::Waiting { after, wait, .. } => {
                let origin = word((WAIT_ORIGIN, wait.origin.name()));
                let attributes = labels(scene, [origin, error(words::attempt_error(after))]);
                to.retry_delay.record(seconds(wait.length), &attributes);
            }
            Event::Refused { stage, refusal } => {
                let [gate, stage] = [(GATE, refusal.by.name()), (STAGE, stage.name())].map(word);
                to.gate_refusals.add(1, &labels(scene, [gate, stage]));
            }
            Event::BreakerChanged(change) => {
                let [from, to_] =
                    [(BREAKER_FROM, change.from.name()), (BREAKER_TO, change.to.name())].map(word);
                let trip = change.trip.map(|trip| KeyValue::new(BREAKER_TRIP, trip.name()));
                to.breaker_transitions.add(1, &labels(scene, [from, to_, trip]));
            }
            Event::BudgetChanged(lending) => {
                to.budget_transitions.add(1, &labels(scene, [word((BUDGET_STATE, lending.name()))]));
            }
            Event::Nested { nesting, .. } => {
                to.nested_calls.add(1, &labels(scene, [word((NESTING, nesting.name()))]));
            }
            // A doubt about the set-up, told once: nothing to count.
            Event::MayRetryBeneath { .. } => {}
            Event::Overran { .. } => to.attempt_overruns.add(1, &labels(scene, [])),
            Event::CallEnded(report) => self.call_ended(scene, report),
        }
    }
}

/// The attributes of a measurement: the dependency, if it has a name, and those that are there.
fn labels<const N: usize>(scene: Scene<'_>, others: [Option<KeyValue>; N]) -> Vec<KeyValue> {
    let dependency = scene.dependency.map(|name| KeyValue::new(DEPENDENCY, name.to_owned()));
    dependency.into_iter().chain(others.into_iter().flatten()).collect()
}

fn word((name, value): (&'static str, &'static str)) -> Option<KeyValue> {
    Some(KeyValue::new(name, value))
}

fn error(error: Option<&'static str>) -> Option<KeyValue> {
    error.map(|error| KeyValue::new(ERROR_TYPE, error))
}

fn seconds(length: Duration) -> f64 {
    length.as_secs_f64()
}

const DEPENDENCY: &str = "relent.dependency";
const ERROR_TYPE: &str = "error.type";
const CALL_REASON: &str = "relent.call.reason";
const RETRY: &str = "relent.retry";
const ATTEMPT_OUTCOME: &str = "relent.attempt.outcome";
const WAIT_ORIGIN: &str = "relent.wait.origin";
const GATE: &str = "relent.gate";
const STAGE: &str = "relent.stage";
const BREAKER_FROM: &str = "relent.breaker.from";
const BREAKER_TO: &str = "relent.breaker.to";
const BREAKER_STATE: &str = "relent.breaker.state";
const BREAKER_TRIP: &str = "relent.breaker.trip";
const BUDGET_STATE: &str = "relent.budget.state";
const NESTING: &str = "relent.nesting";
