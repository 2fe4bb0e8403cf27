//! The terms on which calls are made: said by the caller, at the place of the call.

use std::{fmt, time::Duration};

use relent_core::{History, Idempotency, Route, Timestamp};

use crate::{call::Call, classify::Rulebook, clock::Clock, nesting, pipeline::Pipeline};

/// A view of a pipeline with the terms of the calls made through it. It borrows and is [`Copy`]: make one for
/// each call.
#[must_use]
pub struct Calls<'a, C, K> {
    pipeline: &'a Pipeline<C, K>,
    idempotency: Option<Idempotency>,
    upstream: Option<Timestamp>,
    seed: Option<u64>,
    route: Route<'a>,
}

impl<'a, C: Clock, K> Calls<'a, C, K> {
    /// Repeating them changes nothing.
    pub fn safe(self) -> Self {
        self.with_idempotency(Idempotency::Safe)
    }

    /// Their receiver honours a key that every attempt carries.
    pub fn keyed(self) -> Self {
        self.with_idempotency(Idempotency::Keyed)
    }

    /// Repeating them may do their work twice: an attempt that may have been processed is the last.
    pub fn unsafe_to_repeat(self) -> Self {
        self.with_idempotency(Idempotency::Unsafe)
    }

    /// Whether they may be repeated, in place of what the policy says; a route's `repeat = "never"` stands.
    pub fn with_idempotency(self, idempotency: Idempotency) -> Self {
        Self { idempotency: Some(idempotency), ..self }
    }

    /// They are of no use to the caller after `at`, on the pipeline's clock: nothing is begun that could not
    /// end before, and what is running then is given up. Of two deadlines the earlier counts.
    pub fn with_deadline(self, at: Timestamp) -> Self {
        Self { upstream: Some(self.upstream.map_or(at, |known| known.min(at))), ..self }
    }

    /// [`Calls::with_deadline`], from now.
    pub fn with_deadline_in(self, length: Duration) -> Self {
        self.with_deadline(self.pipeline.clock().now().after(length))
    }

    /// What is called, for rules of the policy that hold on some routes only.
    pub fn on_route(self, method: &'a str, path: &'a str) -> Self {
        Self { route: Route { method, path }, ..self }
    }

    /// Draws from this seed instead of a fresh one: the waits of a test repeat. Calls that share a seed draw
    /// the same waits, so leave it to tests.
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// A call for a loop of one's own. It begins now: its total time-out counts from here.
    pub fn call(self) -> Call<'a, C, K> {
        Call::begin(self)
    }

    pub(crate) fn of(pipeline: &'a Pipeline<C, K>) -> Self {
        Self { pipeline, idempotency: None, upstream: None, seed: None, route: Route::default() }
    }

    pub(crate) fn pipeline(&self) -> &'a Pipeline<C, K> {
        self.pipeline
    }

    /// What the policy says of outcomes, where these calls go.
    pub(crate) fn rules(&self) -> Rulebook<'a> {
        Rulebook { classification: &self.pipeline.policy().classify, route: self.route }
    }

    /// The history of a call that begins now, and how many attempts one outermost call may come to around it.
    #[inline]
    pub(crate) fn history(&self) -> (History, Option<u32>) {
        let seed = self.seed.unwrap_or_else(|| self.pipeline.draw_seed());
        let mut history =
            self.pipeline.policy().begin(seed, self.pipeline.clock().now(), self.upstream, None);
        self.pipeline.policy().classify.terms(self.route).apply(self.idempotency, &mut history);
        let (nesting, around) = nesting::here(self.pipeline.identity());
        history.nesting = nesting;
        (history, around)
    }
}

impl<C, K> Clone for Calls<'_, C, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C, K> Copy for Calls<'_, C, K> {}

impl<C: fmt::Debug, K: fmt::Debug> fmt::Debug for Calls<'_, C, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calls")
            .field("pipeline", self.pipeline)
            .field("idempotency", &self.idempotency)
            .field("upstream", &self.upstream)
            .field("seed", &self.seed)
            .field("route", &self.route)
            .finish()
    }
}
