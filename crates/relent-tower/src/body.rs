//! Time-outs of a response's body.
//!
//! An attempt's time-out ends with the response's head; who reads the body waits by itself, for ever if the server
//! falls silent. Whoever wants that bounded puts [`BodyTimeoutLayer`] around the client, beneath the pipeline.

mod timed;

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use http::{Request, Response};
use pin_project_lite::pin_project;
use relent::{Clock, TokioClock};
use tower_layer::Layer;
use tower_service::Service;

pub use self::timed::{BodyError, TimedBody};

/// How long a response's body may take.
///
/// Nothing, unless it is said.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[must_use]
pub struct BodyTimeouts {
    pub(crate) idle: Option<Duration>,
    pub(crate) total: Option<Duration>,
}

impl BodyTimeouts {
    /// No time-out yet.
    pub const fn new() -> Self {
        Self { idle: None, total: None }
    }

    /// The longest that a reader waits for the next part. A reader that does not ask for it does not wait.
    ///
    /// # Choosing a value
    ///
    /// The longest pause that a server in good health was seen to make, and half as much again.
    pub const fn with_idle(self, length: Duration) -> Self {
        Self { idle: Some(length), ..self }
    }

    /// The longest that the whole body may take, from the response's head on, its reader's pauses included.
    pub const fn with_total(self, length: Duration) -> Self {
        Self { total: Some(length), ..self }
    }
}

/// Bounds the bodies of the responses that a client gives: `layer.layer(BodyTimeoutLayer::new(..).layer(http))`.
///
/// A body that takes too long ends with [`BodyError::Silent`] or [`BodyError::TooLong`], and its connection is
/// closed. The response's head has long been the caller's by then, so nothing is sent again. What is read of a
/// response that another attempt follows is bounded as well.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use bytes::Bytes;
/// use http_body_util::Empty;
/// use hyper_util::{client::legacy::{Client, connect::HttpConnector}, rt::TokioExecutor};
/// use relent::{Pipeline, Policy};
/// use relent_tower::{BodyTimeoutLayer, BodyTimeouts, PipelineLayer};
/// use tower::layer::Layer;
///
/// let http: Client<HttpConnector, Empty<Bytes>> =
///     Client::builder(TokioExecutor::new()).retry_canceled_requests(false).build_http();
/// let bodies = BodyTimeoutLayer::new(BodyTimeouts::new().with_idle(Duration::from_secs(2)));
/// let stock = PipelineLayer::new(Pipeline::new(Policy::live())?)?.layer(bodies.layer(http));
/// # Ok::<_, relent::Invalid>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BodyTimeoutLayer<C = TokioClock> {
    timeouts: BodyTimeouts,
    clock: C,
}

impl BodyTimeoutLayer {
    /// A layer on [`TokioClock`].
    pub const fn new(timeouts: BodyTimeouts) -> Self {
        Self::on(TokioClock, timeouts)
    }
}

impl<C> BodyTimeoutLayer<C> {
    /// A layer on another clock.
    pub const fn on(clock: C, timeouts: BodyTimeouts) -> Self {
        Self { timeouts, clock }
    }
}

impl<S, C: Clock> Layer<S> for BodyTimeoutLayer<C> {
    type Service = BodyTimeoutService<S, C>;

    fn layer(&self, inner: S) -> Self::Service {
        BodyTimeoutService { inner, timeouts: self.timeouts, clock: self.clock.clone() }
    }
}

/// A client whose responses' bodies end in time: what [`BodyTimeoutLayer`] makes.
#[derive(Clone, Debug)]
pub struct BodyTimeoutService<S, C = TokioClock> {
    inner: S,
    timeouts: BodyTimeouts,
    clock: C,
}

impl<S, B, ResB, C> Service<Request<B>> for BodyTimeoutService<S, C>
where
    S: Service<Request<B>, Response = Response<ResB>>,
    C: Clock,
{
    type Response = Response<TimedBody<ResB, C>>;
    type Error = S::Error;
    type Future = BodyTimeoutFuture<S::Future, C>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        BodyTimeoutFuture {
            response: self.inner.call(request),
            timeouts: self.timeouts,
            clock: self.clock.clone(),
        }
    }
}

pin_project! {
    /// The future of [`BodyTimeoutService`].
    ///
    /// # Cancellation safety
    ///
    /// As the inner service's.
    #[must_use = "a request is sent only while this is polled"]
    pub struct BodyTimeoutFuture<F, C = TokioClock> {
        #[pin]
        response: F,
        timeouts: BodyTimeouts,
        clock: C,
    }
}

impl<F, ResB, E, C> Future for BodyTimeoutFuture<F, C>
where
    F: Future<Output = Result<Response<ResB>, E>>,
    C: Clock,
{
    type Output = Result<Response<TimedBody<ResB, C>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = ready!(this.response.poll(cx))?;
        Poll::Ready(Ok(response.map(|body| TimedBody::on(this.clock.clone(), body, *this.timeouts))))
    }
}

impl<F, C> fmt::Debug for BodyTimeoutFuture<F, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyTimeoutFuture").field("timeouts", &self.timeouts).finish_non_exhaustive()
    }
}
