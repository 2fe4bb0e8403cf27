//! What is read when metrics are collected: how the controls of the watched pipelines stand.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use opentelemetry::{
    KeyValue,
    metrics::{AsyncInstrument, Meter},
};
use relent_core::breaker::Mode;

use super::{BREAKER_STATE, DEPENDENCY, STAGE};
use crate::pipeline::{Reading, State, Vitals};

/// The watched pipelines. None is kept alive, and those that are gone are forgotten.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched(Arc<Mutex<Vec<Vitals>>>);

/// By dependency and word, if there is one. Pipelines of one name add up; a control that they share counts once.
type Sums = BTreeMap<Series, i64>;

type Series = (Option<Arc<str>>, &'static str);

impl Watched {
    /// Makes the instruments; they read whatever is watched at the time.
    pub(super) fn by(meter: &Meter) -> Self {
        let watched = Self::default();
        let up_and_down = |name, unit, what, attribute: Option<&'static str>, read: Read| {
            let watched = watched.clone();
            let tell = move |to: &dyn AsyncInstrument<i64>| {
                for ((dependency, word), sum) in watched.sums(read) {
                    to.observe(sum, &labels(dependency, attribute, word));
                }
            };
            let instrument = meter.i64_observable_up_down_counter(name).with_unit(unit);
            instrument.with_description(what).with_callback(tell).build();
        };
        up_and_down(
            "relent.breaker.state",
            "{breaker}",
            "Breakers by the state that they are in.",
            Some(BREAKER_STATE),
            breakers,
        );
        up_and_down(
            "relent.limit.usage",
            "{permit}",
            "What is in flight at a limit.",
            Some(STAGE),
            in_flight,
        );
        up_and_down(
            "relent.limit.max",
            "{permit}",
            "What may be in flight at a limit.",
            Some(STAGE),
            at_most,
        );
        up_and_down(
            "relent.attempt.overrunning",
            "{attempt}",
            "Work that runs on after its attempt was given up.",
            None,
            overrunning,
        );
        let of_budgets = watched.clone();
        meter
            .f64_observable_gauge("relent.budget.tokens")
            .with_unit("{token}")
            .with_description("What is left in retry budgets.")
            .with_callback(move |to| {
                for ((dependency, word), milli) in of_budgets.sums(tokens) {
                    #[expect(clippy::cast_precision_loss, reason = "a u32 or a few of them")]
                    to.observe(milli as f64 / 1_000.0, &labels(dependency, None, word));
                }
            })
            .build();
        watched
    }

    pub(super) fn watch(&self, vitals: Vitals) {
        let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watched.retain(Vitals::has_a_pipeline); // in case that nobody collects
        watched.push(vitals);
    }

    /// What is read, added up; the exporter is told when the lock is free again.
    fn sums(&self, read: Read) -> Sums {
        let (mut sums, mut seen) = (Sums::new(), BTreeSet::new());
        let mut add = |vitals: &Vitals| {
            let Some(state) = vitals.read() else { return false };
            read(&state, &mut |word, Reading { of, value }| {
                let series: Series = (state.dependency.clone(), word);
                if seen.insert((series.clone(), of)) {
                    *sums.entry(series).or_insert(0) += value;
                }
            });
            true
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|vitals| add(vitals));
        sums
    }
}

/// Reads a state and gives each value with its word.
type Read = fn(&State, Give<'_>);
type Give<'g> = &'g mut dyn FnMut(&'static str, Reading<i64>);

fn breakers(state: &State, give: Give<'_>) {
    if let Some(Reading { of, value }) = state.breaker {
        for mode in Mode::ALL {
            give(mode.name(), Reading { of, value: i64::from(*mode == value) });
        }
    }
}

fn in_flight(state: &State, give: Give<'_>) {
    for (stage, Reading { of, value: (in_flight, _) }) in &state.limits {
        give(stage.name(), Reading { of: *of, value: i64::from(*in_flight) });
    }
}

fn at_most(state: &State, give: Give<'_>) {
    for (stage, Reading { of, value: (_, limit) }) in &state.limits {
        give(stage.name(), Reading { of: *of, value: i64::from(*limit) });
    }
}

fn overrunning(state: &State, give: Give<'_>) {
    let Reading { of, value } = state.overrunning;
    give("", Reading { of, value: i64::try_from(value).unwrap_or(i64::MAX) });
}

fn tokens(state: &State, give: Give<'_>) {
    if let Some(Reading { of, value }) = state.budget_tokens {
        give("", Reading { of, value: i64::from(value) });
    }
}

fn labels(
    dependency: Option<Arc<str>>,
    attribute: Option<&'static str>,
    word: &'static str,
) -> Vec<KeyValue> {
    let dependency = dependency.map(|name| KeyValue::new(DEPENDENCY, name));
    dependency.into_iter().chain(attribute.map(|attribute| KeyValue::new(attribute, word))).collect()
}
