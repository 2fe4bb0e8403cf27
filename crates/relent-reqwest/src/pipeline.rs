//! A pipeline for the requests of reqwest's clients.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use http::Method;
use relent::{Calls, Clock, Invalid, Pipeline, Route, Routed, TokioClock};
use relent_tower::{CallTerms, HttpClassifier, Wire, refuse_hours};
use reqwest::{Client, Request};

use crate::{classifier::ReqwestClassifier, exchange::Exchange, future::Sending};

/// A pipeline through which requests of reqwest's go: [`SendThrough::send_through`](crate::SendThrough).
///
/// Make one for each dependency and keep it; clones share its state. One client may send through many.
#[derive(Clone, Debug)]
pub struct HttpPipeline<C = TokioClock> {
    pipeline: Pipeline<C, ReqwestClassifier>,
    classifier: ReqwestClassifier,
    wire: Arc<Wire>,
    /// Whether it is still to be told that a client may retry by itself.
    doubtful: Arc<AtomicBool>,
}

impl<C: Clock> HttpPipeline<C> {
    /// Requests under this pipeline's policy. Whatever classifier the pipeline had, HTTP's takes its place.
    ///
    /// # Errors
    ///
    /// The policy lets a call take more than an hour: see [`refuse_hours`].
    pub fn new<K>(pipeline: Pipeline<C, K>) -> Result<Self, Invalid> {
        refuse_hours(pipeline.policy())?;
        let classifier = ReqwestClassifier::default();
        let pipeline = pipeline.classified_by(classifier.clone());
        let doubtful = Arc::new(AtomicBool::new(true));
        Ok(Self { pipeline, classifier, wire: Arc::default(), doubtful })
    }

    /// Sends requests in this way: with other headers, other reports.
    #[must_use]
    pub fn with_wire(self, wire: Wire) -> Self {
        Self { wire: Arc::new(wire), ..self }
    }

    /// Reads the time of day from this clock, which counts from the Unix epoch: for a `Retry-After` that names a
    /// date, in a response that does not say what the time is.
    #[must_use]
    pub fn with_wall_clock(self, clock: impl Clock) -> Self {
        self.classifying(|classifier| classifier.with_http(HttpClassifier::default().with_wall_clock(clock)))
    }

    /// Every client that sends through this one was built with [`client_builder`](crate::client_builder), or has
    /// its own retries *and its redirects* off in another way: there is nothing to be told, and where such a client
    /// says that nothing was sent, nothing was.
    ///
    /// Without this a command that has no key is not repeated even where no connection came about: the client may
    /// have followed a redirect, after the first request was carried out.
    #[must_use]
    pub fn trusting_clients(self) -> Self {
        let doubtful = Arc::new(AtomicBool::new(false));
        Self { doubtful, ..self.classifying(ReqwestClassifier::trusting_clients) }
    }

    fn classifying(self, change: impl FnOnce(ReqwestClassifier) -> ReqwestClassifier) -> Self {
        let classifier = change(self.classifier);
        Self { pipeline: self.pipeline.classified_by(classifier.clone()), classifier, ..self }
    }

    /// The pipeline.
    pub fn pipeline(&self) -> &Pipeline<C, ReqwestClassifier> {
        &self.pipeline
    }

    /// Sends a request through this client.
    ///
    /// # Errors
    ///
    /// As [`Calls::run`].
    pub fn execute(&self, client: &Client, request: Request, terms: CallTerms) -> Sending<C> {
        self.send(client.clone(), Ok(request), terms)
    }

    pub(crate) fn send(
        &self,
        client: Client,
        request: reqwest::Result<Request>,
        said: CallTerms,
    ) -> Sending<C> {
        self.doubt();
        let mut exchange = Exchange::new(client, request, Arc::clone(&self.wire));
        let calls = Calls::through(self.pipeline.clone());
        let (calls, route) = match exchange.request_mut() {
            Some(request) => self.terms(calls, request, said),
            None => (calls, RequestRoute::default()),
        };
        Sending::new(calls.routed_by(route), exchange)
    }

    pub(crate) fn terms(
        &self,
        calls: Calls<Pipeline<C, ReqwestClassifier>>,
        request: &mut Request,
        said: CallTerms,
    ) -> (Calls<Pipeline<C, ReqwestClassifier>>, RequestRoute) {
        let policy = self.pipeline.policy();
        let route = RequestRoute::of(request, !policy.classify.routes.is_empty());
        let calls = self.wire.terms(calls, policy, route.route(), &route.method, request.headers_mut(), said);
        (calls, route)
    }

    #[cfg(feature = "middleware")]
    pub(crate) fn wire(&self) -> &Arc<Wire> {
        &self.wire
    }

    /// Tells once that a client's own retries cannot be known.
    pub(crate) fn doubt(&self) {
        if self.doubtful.load(Ordering::Relaxed) && self.doubtful.swap(false, Ordering::Relaxed) {
            self.pipeline.tell_of_retries_beneath("reqwest");
        }
    }
}

/// What the policy's routes are matched with.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestRoute {
    method: Method,
    path: Option<String>,
}

impl RequestRoute {
    /// The path is copied only where somebody will look at it.
    fn of(request: &Request, needs_path: bool) -> Self {
        let path = needs_path.then(|| request.url().path().to_owned());
        Self { method: request.method().clone(), path }
    }
}

impl Routed for RequestRoute {
    #[inline]
    fn route(&self) -> Route<'_> {
        Route { method: self.method.as_str(), path: self.path.as_deref().unwrap_or("/") }
    }
}
