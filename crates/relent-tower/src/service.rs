//! The service: one request in, one response out, and as many attempts between as the policy allows.

use std::{
    fmt, mem,
    sync::Arc,
    task::{Context, Poll, ready},
};

use http::{Method, Request, Response, uri::PathAndQuery};
use http_body::Body;
use relent::{Calls, Clock, Idempotency, Pipeline, Policy, Route, Routed, TokioClock};
use tower_service::Service;

use crate::{
    BoxError, CallTerms, Error, HttpClassifier, Replay,
    exchange::Exchange,
    fault::Fault,
    future::PipelineFuture,
    http::idempotency::{IDEMPOTENCY_KEY, IdempotencyKey, of_method},
    settings::Settings,
};

/// A service under a pipeline's policy: what [`PipelineLayer`](crate::PipelineLayer) makes.
///
/// It is ready when the inner service is, and calls the very service that it has polled ready. One that fails to
/// get ready fails the first attempt, as any failure may be followed by another.
pub struct PipelineService<S, C = TokioClock> {
    inner: S,
    /// What the inner service said when it was last asked whether it is ready, if it never will be.
    failed: Option<Fault>,
    pipeline: Pipeline<C, HttpClassifier>,
    settings: Arc<Settings>,
}

impl<S, C: Clock> PipelineService<S, C> {
    pub(crate) fn new(inner: S, pipeline: Pipeline<C, HttpClassifier>, settings: Arc<Settings>) -> Self {
        Self { inner, failed: None, pipeline, settings }
    }

    /// The pipeline.
    pub fn pipeline(&self) -> &Pipeline<C, HttpClassifier> {
        &self.pipeline
    }

    /// The inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }
}

impl<S, B, ResB, C> Service<Request<B>> for PipelineService<S, C>
where
    S: Service<Request<B>, Response = Response<ResB>> + Clone,
    S::Error: Into<BoxError>,
    B: Replay,
    ResB: Body,
    C: Clock,
{
    type Response = Response<ResB>;
    type Error = Error;
    type Future = PipelineFuture<S, B, ResB, C>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.failed = ready!(self.inner.poll_ready(cx)).err().map(Fault::of);
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let clone = self.inner.clone();
        let service = mem::replace(&mut self.inner, clone);
        let policy = self.pipeline.policy();
        let route = RequestRoute::of(&request);
        let terms = request.extensions().get::<CallTerms>().copied().unwrap_or_default();
        let repeat = terms.repeat.unwrap_or_else(|| repeat(policy, &route, &request));
        if repeat == Idempotency::Keyed && !request.headers().contains_key(IDEMPOTENCY_KEY) {
            let key = IdempotencyKey::generate().value(self.settings.key_form);
            request.headers_mut().insert(IDEMPOTENCY_KEY, key);
        }
        let mut calls = Calls::through(self.pipeline.clone()).with_idempotency(repeat);
        if let Some(at) = terms.deadline {
            calls = calls.with_deadline(at);
        }
        if let Some(seed) = terms.seed {
            calls = calls.with_seed(seed);
        }
        if let Some((header, _)) = &self.settings.time_left
            && let Some(left) = header.read(request.headers())
        {
            calls = calls.with_deadline_in(left);
        }
        let exchange = Exchange::new(service, self.failed.take(), request, Arc::clone(&self.settings));
        PipelineFuture::new(calls.routed_by(route), exchange, self.settings.reports)
    }
}

impl<S: Clone, C: Clock> Clone for PipelineService<S, C> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), self.pipeline.clone(), Arc::clone(&self.settings))
    }
}

impl<S: fmt::Debug, C: fmt::Debug> fmt::Debug for PipelineService<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { inner, pipeline, settings, .. } = self;
        f.debug_struct("PipelineService")
            .field("inner", inner)
            .field("pipeline", pipeline)
            .field("settings", settings)
            .finish_non_exhaustive()
    }
}

/// Whether a request may be repeated about which its caller says nothing: as its route says, or the whole policy;
/// else by its method, and by the key that it carries.
fn repeat<B>(policy: &Policy, route: &RequestRoute, request: &Request<B>) -> Idempotency {
    let by_itself = match of_method(request.method()) {
        Idempotency::Unsafe if request.headers().contains_key(IDEMPOTENCY_KEY) => Idempotency::Keyed,
        other => other,
    };
    match (policy.classify.terms(route.route()).repeat, policy.repeat) {
        // What needs no key is not given one.
        (Some(Idempotency::Keyed), _) | (None, Idempotency::Keyed) if by_itself == Idempotency::Safe => {
            by_itself
        }
        (Some(said), _) => said,
        // The policy's default: nobody has said anything.
        (None, Idempotency::Unsafe) => by_itself,
        (None, said) => said,
    }
}

/// What the policy's routes are matched with, for as long as the call lasts.
#[derive(Clone, Debug)]
pub(crate) struct RequestRoute {
    method: Method,
    path: Option<PathAndQuery>,
}

impl RequestRoute {
    fn of<B>(request: &Request<B>) -> Self {
        Self { method: request.method().clone(), path: request.uri().path_and_query().cloned() }
    }
}

impl Routed for RequestRoute {
    fn route(&self) -> Route<'_> {
        let path = self.path.as_ref().map_or("/", PathAndQuery::path);
        Route { method: self.method.as_str(), path }
    }
}
