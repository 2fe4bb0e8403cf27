//! The layer: a pipeline, and how requests are sent under it.

use std::{error::Error, sync::Arc};

use relent::{Clock, ErrorClass, Invalid, Pipeline, TokioClock};
use tower_layer::Layer;

use crate::{HttpClassifier, Wire, beneath::Doubt, refuse_hours, service::PipelineService};

/// Puts a service under a pipeline's policy. See the [crate](crate) for what that means, and for examples.
#[derive(Clone, Debug)]
pub struct PipelineLayer<C = TokioClock> {
    pipeline: Pipeline<C, HttpClassifier>,
    classifier: HttpClassifier,
    wire: Arc<Wire>,
    doubt: Doubt,
}

impl<C: Clock> PipelineLayer<C> {
    /// A layer for this pipeline. Whatever classifier the pipeline had, HTTP's takes its place.
    ///
    /// # Errors
    ///
    /// The policy lets a call take more than an hour. A call that waits that long in memory is lost with its
    /// process; it is work for the durable server, to which the refusal points.
    pub fn new<K>(pipeline: Pipeline<C, K>) -> Result<Self, Invalid> {
        refuse_hours(pipeline.policy())?;
        let classifier = HttpClassifier::default();
        let pipeline = pipeline.classified_by(classifier.clone());
        Ok(Self { pipeline, classifier, wire: Arc::default(), doubt: Doubt::new() })
    }

    /// Sends requests in this way: with other headers, other reports.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use relent::{Pipeline, Policy};
    /// use relent_tower::{PipelineLayer, Wire, http::deadline::TimeLeft};
    ///
    /// let wire = Wire::new().passing_time_left(TimeLeft::REQUEST_TIMEOUT_MS, Duration::from_millis(10));
    /// let stock = PipelineLayer::new(Pipeline::new(Policy::live())?.named("stock"))?.with_wire(wire);
    /// # Ok::<_, relent::Invalid>(())
    /// ```
    #[must_use]
    pub fn with_wire(self, wire: Wire) -> Self {
        Self { wire: Arc::new(wire), ..self }
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

    /// Every client beneath was built with its own retries off, or it is known what they do: there is nothing to be
    /// told.
    ///
    /// Otherwise the first request that goes to hyper-util's client (by itself or in a stack; one in a box is not
    /// seen) tells the pipeline's observer [`Event::MayRetryBeneath`](relent::Event::MayRetryBeneath).
    #[must_use]
    pub fn trusting_clients(self) -> Self {
        Self { doubt: Doubt::none(), ..self }
    }

    /// The pipeline.
    pub fn pipeline(&self) -> &Pipeline<C, HttpClassifier> {
        &self.pipeline
    }

    fn classified(self, change: impl FnOnce(HttpClassifier) -> HttpClassifier) -> Self {
        let Self { pipeline, classifier, wire, doubt } = self;
        let classifier = change(classifier);
        let pipeline = pipeline.classified_by(classifier.clone());
        Self { pipeline, classifier, wire, doubt }
    }
}

impl<S, C: Clock> Layer<S> for PipelineLayer<C> {
    type Service = PipelineService<S, C>;

    fn layer(&self, inner: S) -> Self::Service {
        PipelineService::new(inner, self.pipeline.clone(), Arc::clone(&self.wire), self.doubt.about::<S>())
    }
}
