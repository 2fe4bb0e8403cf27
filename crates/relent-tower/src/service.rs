//! The service: one request in, one response out, and as many attempts between as the policy allows.

use std::{
    fmt, mem,
    sync::Arc,
    task::{Context, Poll, ready},
};

use http::{Method, Request, Response, uri::PathAndQuery};
use http_body::Body;
use relent::{Calls, Clock, Pipeline, Route, Routed, TokioClock, breaker::Mode};
use tower_service::Service;

use crate::{
    BoxError, CallTerms, Error, HttpClassifier, Replay, Wire,
    beneath::Doubt,
    exchange::{Exchange, Readiness},
    fault::Fault,
    future::PipelineFuture,
};

/// A service under a pipeline's policy: what [`PipelineLayer`](crate::PipelineLayer) makes.
///
/// It is ready when the inner service is, and calls the very service that it has polled ready. One that fails to
/// get ready fails the first attempt, as any failure may be followed by another. Where the breaker lets nothing
/// through it is ready at once, so that nobody waits for a service in trouble only to be refused.
pub struct PipelineService<S, C = TokioClock> {
    inner: S,
    readiness: Readiness,
    pipeline: Pipeline<C, HttpClassifier>,
    wire: Arc<Wire>,
    doubt: Doubt,
}

impl<S, C: Clock> PipelineService<S, C> {
    pub(crate) fn new(
        inner: S,
        pipeline: Pipeline<C, HttpClassifier>,
        wire: Arc<Wire>,
        doubt: Doubt,
    ) -> Self {
        Self { inner, readiness: Readiness::Unasked, pipeline, wire, doubt }
    }

    /// Whether the breaker would refuse an attempt now.
    fn is_shut(&self) -> bool {
        self.pipeline.breaker().is_some_and(|breaker| {
            breaker.status().mode != Mode::Closed && breaker.refusal(self.pipeline.clock().now()).is_some()
        })
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
        self.readiness = match self.is_shut() {
            true => Readiness::Unasked,
            false => match ready!(self.inner.poll_ready(cx)) {
                Ok(()) => Readiness::Ready,
                Err(error) => Readiness::Failed(Fault::of(error)),
            },
        };
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        self.doubt.tell(&self.pipeline);
        let clone = self.inner.clone();
        let mut service = mem::replace(&mut self.inner, clone);
        let readiness = mem::replace(&mut self.readiness, Readiness::Unasked);
        if matches!(readiness, Readiness::Unasked) {
            // Asked before the breaker opened, it may still stand in a line, where its clones would wait behind it.
            service = self.inner.clone();
        }
        let policy = self.pipeline.policy();
        let route = RequestRoute::of(&request, !policy.classify.routes.is_empty());
        let said = request.extensions().get::<CallTerms>().copied().unwrap_or_default();
        let calls = Calls::through(self.pipeline.clone());
        let calls = self.wire.terms(calls, policy, route.route(), &route.method, request.headers_mut(), said);
        let exchange = Exchange::new(service, readiness, request, Arc::clone(&self.wire));
        PipelineFuture::new(calls.routed_by(route), exchange)
    }
}

impl<S: Clone, C: Clock> Clone for PipelineService<S, C> {
    fn clone(&self) -> Self {
        let Self { inner, readiness: _, pipeline, wire, doubt } = self;
        Self::new(inner.clone(), pipeline.clone(), Arc::clone(wire), doubt.clone())
    }
}

impl<S: fmt::Debug, C: fmt::Debug> fmt::Debug for PipelineService<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { inner, pipeline, wire, .. } = self;
        f.debug_struct("PipelineService")
            .field("inner", inner)
            .field("pipeline", pipeline)
            .field("wire", wire)
            .finish_non_exhaustive()
    }
}

/// What the policy's routes are matched with, for as long as the call lasts.
#[derive(Clone, Debug)]
pub(crate) struct RequestRoute {
    method: Method,
    path: Option<PathAndQuery>,
}

impl RequestRoute {
    /// The path is kept only where somebody will look at it.
    fn of<B>(request: &Request<B>, needs_path: bool) -> Self {
        let path = request.uri().path_and_query().filter(|_| needs_path).cloned();
        Self { method: request.method().clone(), path }
    }
}

impl Routed for RequestRoute {
    #[inline]
    fn route(&self) -> Route<'_> {
        let path = self.path.as_ref().map_or("/", PathAndQuery::path);
        Route { method: self.method.as_str(), path }
    }
}
