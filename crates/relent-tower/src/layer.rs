//! The layer: a pipeline, and how requests are sent under it.

use std::{error::Error, sync::Arc, time::Duration};

use relent::{Clock, ErrorClass, Invalid, Pipeline, TokioClock};
use tower_layer::Layer;

use crate::{
    HttpClassifier,
    http::{deadline::TimeLeft, idempotency::KeyForm},
    patience,
    service::PipelineService,
    settings::{Reports, Settings},
};

/// Puts a service under a pipeline's policy. See the [crate](crate) for what that means, and for examples.
#[derive(Clone, Debug)]
pub struct PipelineLayer<C = TokioClock> {
    pipeline: Pipeline<C, HttpClassifier>,
    classifier: HttpClassifier,
    settings: Arc<Settings>,
}

impl<C: Clock> PipelineLayer<C> {
    /// A layer for this pipeline. Whatever classifier the pipeline had, HTTP's takes its place.
    ///
    /// # Errors
    ///
    /// The policy lets a call take more than an hour. A call that waits that long in memory is lost with its
    /// process; it is work for the durable server, to which the refusal points.
    pub fn new<K>(pipeline: Pipeline<C, K>) -> Result<Self, Invalid> {
        patience::check(pipeline.policy())?;
        let classifier = HttpClassifier::default();
        let pipeline = pipeline.classified_by(classifier.clone());
        Ok(Self { pipeline, classifier, settings: Arc::default() })
    }

    /// Passes the time that is left for each attempt on to the receiver in this header, less `margin`: the answer
    /// must have time to come back. A request that has the header already is bounded by what it says.
    ///
    /// # Choosing a value
    ///
    /// The margin is a round trip, and some: 10 ms inside a data centre, 100 ms between continents.
    #[must_use]
    pub fn passing_time_left(self, header: TimeLeft, margin: Duration) -> Self {
        self.with(|settings| settings.time_left = Some((header, margin)))
    }

    /// Sends no `x-relent-attempt`. Unless this is called each attempt carries its number, from 1, so that the
    /// receiver can tell a retry from a first try.
    #[must_use]
    pub fn without_attempt_header(self) -> Self {
        self.with(|settings| settings.attempt_header = false)
    }

    /// How keys are written that this layer makes. Bare, unless this is called.
    #[must_use]
    pub fn with_key_form(self, form: KeyForm) -> Self {
        self.with(|settings| settings.key_form = form)
    }

    /// Puts a [`Report`](relent::Report) into the extensions of every response, also of those that came of a
    /// first attempt that succeeded: one allocation each.
    #[must_use]
    pub fn reporting_all(self) -> Self {
        self.with(|settings| settings.reports = Reports::All)
    }

    /// Asks this function first what class an error of the service is of. `None`: as
    /// [`failure`](crate::http::failure::failure) says.
    ///
    /// # Examples
    ///
    /// A load shedder below the layer, which refuses before anything is sent:
    ///
    /// ```
    /// use relent::{ErrorClass, Pipeline, Policy};
    /// use relent_tower::PipelineLayer;
    /// use tower::load_shed::error::Overloaded;
    ///
    /// let layer = PipelineLayer::new(Pipeline::new(Policy::live())?)?
    ///     .naming_failures(|error| error.is::<Overloaded>().then_some(ErrorClass::NotSent));
    /// # Ok::<_, relent::Invalid>(())
    /// ```
    #[must_use]
    pub fn naming_failures(self, name: fn(&(dyn Error + 'static)) -> Option<ErrorClass>) -> Self {
        self.classified(|classifier| classifier.naming_failures(name))
    }

    /// Reads the time of day from this clock, which counts from the Unix epoch: for a `Retry-After` that names a
    /// date, in a response that does not say what the time is.
    #[must_use]
    pub fn with_wall_clock(self, clock: impl Clock) -> Self {
        self.classified(|classifier| classifier.with_wall_clock(clock))
    }

    /// The pipeline.
    pub fn pipeline(&self) -> &Pipeline<C, HttpClassifier> {
        &self.pipeline
    }

    fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }

    fn classified(self, change: impl FnOnce(HttpClassifier) -> HttpClassifier) -> Self {
        let classifier = change(self.classifier);
        let pipeline = self.pipeline.classified_by(classifier.clone());
        Self { pipeline, classifier, settings: self.settings }
    }
}

impl<S, C: Clock> Layer<S> for PipelineLayer<C> {
    type Service = PipelineService<S, C>;

    fn layer(&self, inner: S) -> Self::Service {
        PipelineService::new(inner, self.pipeline.clone(), Arc::clone(&self.settings))
    }
}
