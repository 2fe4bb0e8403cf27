//! How a pipeline's controls stand, to be read again and again without keeping the pipeline alive.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use relent_core::{Timestamp, breaker::Mode};

use super::{Pipeline, Shared};
use crate::{clock::Clock, control::Concurrency, gates::Controls, report::Stage};

/// Reads a pipeline's state as long as there is one.
pub(crate) struct Vitals {
    dependency: Option<Arc<str>>,
    controls: Weak<Controls>,
    shared: Weak<Shared>,
    now: Box<dyn Fn() -> Timestamp + Send + Sync>,
}

/// How its controls stand.
pub(crate) struct State {
    pub(crate) dependency: Option<Arc<str>>,
    pub(crate) breaker: Option<Reading<Mode>>,
    /// In thousandths, of the kinds that have tokens.
    pub(crate) budget_tokens: Option<Reading<u32>>,
    /// Where there is a concurrency limit, how many are in flight, and how many may be.
    pub(crate) limits: Vec<(Stage, Reading<(u32, u32)>)>,
    /// Work that runs on after its attempt was given up.
    pub(crate) overrunning: Reading<u64>,
}

/// What was read, and of which control: several pipelines may share one.
#[derive(Clone, Copy)]
pub(crate) struct Reading<T> {
    pub(crate) of: usize,
    pub(crate) value: T,
}

impl<C: Clock, K> Pipeline<C, K> {
    pub(crate) fn vitals(&self) -> Vitals {
        let clock = self.clock.clone();
        Vitals {
            dependency: self.parts.dependency.clone(),
            controls: Arc::downgrade(&self.parts.controls),
            shared: Arc::downgrade(&self.parts.shared),
            now: Box::new(move || clock.now()),
        }
    }
}

impl Vitals {
    pub(crate) fn has_a_pipeline(&self) -> bool {
        self.shared.strong_count() > 0
    }

    /// The present state. `None`: the last clone of the pipeline is gone.
    pub(crate) fn read(&self) -> Option<State> {
        let (controls, shared) = (self.controls.upgrade()?, self.shared.upgrade()?);
        let places = [(Stage::Admission, &controls.admission), (Stage::Gates, &controls.attempt)];
        let usage =
            |limit: &Concurrency| Reading { of: limit.address(), value: (limit.in_flight(), limit.limit()) };
        Some(State {
            dependency: self.dependency.clone(),
            breaker: controls
                .breaker
                .as_ref()
                .map(|breaker| Reading { of: breaker.address(), value: breaker.status().mode }),
            budget_tokens: controls.budget.as_ref().and_then(|purse| {
                let value = purse.budget.tokens_milli((self.now)())?;
                Some(Reading { of: Arc::as_ptr(&purse.budget).addr(), value })
            }),
            limits: places
                .into_iter()
                .filter_map(|(stage, limits)| Some((stage, usage(limits.concurrency.as_ref()?))))
                .collect(),
            overrunning: Reading { of: Arc::as_ptr(&shared).addr(), value: shared.overruns.read().running },
        })
    }
}

impl fmt::Debug for Vitals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vitals").field("dependency", &self.dependency).finish_non_exhaustive()
    }
}
