//! The controls of a pipeline, to share, to look at, and to move by hand.

use std::sync::Arc;

use super::Pipeline;
use crate::{
    clock::Clock,
    control::{Breaker, Budget, Concurrency},
    gates::{Controls, Purse},
    overrun::Overruns,
    switch::Retries,
};

impl<C: Clock, K> Pipeline<C, K> {
    /// Draws its retries from this budget instead of one of its own, so that several pipelines share it: one
    /// dependency may be called under several policies. Clones made before keep theirs.
    ///
    /// It keeps times of its pipelines' clock: whoever shares it must have a clock with the same origin (clones of one
    /// clock, or several [`TokioClock`](crate::TokioClock)s), or it lends without measure.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use relent::{BudgetPolicy, Pipeline, Policy, control::Budget};
    ///
    /// let budget = Arc::new(Budget::new(&BudgetPolicy::default())?);
    /// # #[cfg(feature = "tokio")] {
    /// let reads = Pipeline::new(Policy::live())?.named("users").sharing_budget(&budget);
    /// let writes = Pipeline::new(Policy::live())?.named("users").sharing_budget(&budget);
    /// # }
    /// # Ok::<_, relent::Invalid>(())
    /// ```
    #[must_use]
    pub fn sharing_budget(mut self, budget: &Arc<Budget>) -> Self {
        self.controls_mut().budget = Some(Purse::of(Arc::clone(budget)));
        self
    }

    /// Asks this breaker instead of one of its own: one that several pipelines share, or that is moved by hand.
    /// Clones made before keep theirs.
    ///
    /// It keeps times of its pipelines' clock: whoever shares it must have a clock with the same origin, or its breaks
    /// last for years or not at all.
    ///
    /// # Examples
    ///
    /// ```
    /// use relent::{BreakerPolicy, Pipeline, Policy, control::Breaker};
    ///
    /// let breaker = Breaker::new(&BreakerPolicy::default())?;
    /// # #[cfg(feature = "tokio")] {
    /// let reads = Pipeline::new(Policy::live())?.named("users").with_breaker(&breaker);
    /// let writes = Pipeline::new(Policy::live())?.named("users").with_breaker(&breaker);
    /// # }
    /// # Ok::<_, relent::Invalid>(())
    /// ```
    #[must_use]
    pub fn with_breaker(mut self, breaker: &Breaker) -> Self {
        self.controls_mut().breaker = Some(breaker.clone());
        self
    }

    /// Switches the retries of this pipeline and its clones off, now, or on again. First attempts go on. See
    /// [`retries_off`](crate::retries_off) for the switch of the process.
    ///
    /// A call that waits for its next attempt ends when its wait is over.
    pub fn retries(&self, retries: Retries) {
        self.parts.shared.retries.set(retries);
    }

    /// What the two switches say together.
    pub fn retries_now(&self) -> Retries {
        self.parts.retries()
    }

    /// The breaker in force, to look at or to move by hand.
    pub fn breaker(&self) -> Option<&Breaker> {
        self.parts.controls.breaker.as_ref()
    }

    /// The budget in force.
    pub fn budget(&self) -> Option<&Arc<Budget>> {
        self.parts.controls.budget.as_ref().map(|purse| &purse.budget)
    }

    /// The limit on calls in flight, to look at or to change.
    pub fn call_limit(&self) -> Option<&Concurrency> {
        self.parts.controls.admission.concurrency.as_ref()
    }

    /// The limit on attempts in flight, to look at or to change.
    pub fn attempt_limit(&self) -> Option<&Concurrency> {
        self.parts.controls.attempt.concurrency.as_ref()
    }

    /// Work that ran on after its attempt was given up.
    pub fn overruns(&self) -> Overruns {
        self.parts.shared.overruns.read()
    }

    fn controls_mut(&mut self) -> &mut Controls {
        Arc::make_mut(&mut Arc::make_mut(&mut self.parts).controls)
    }
}
