//! The server's side: how long its caller waits, and whether the caller tries again.
//!
//! A caller that has gone cannot use an answer, and the calls made to work one out load whoever they are made to.
//! So the time that the caller gives is the ceiling of every pipeline below, and work that is too late already is
//! refused before it begins.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderValue, Request, Response, StatusCode, header::CONTENT_TYPE};
use pin_project_lite::pin_project;
use relent::{Ambient, Clock, InAmbient, NoEffect, Timestamp, TokioClock};
use tower_layer::Layer;
use tower_service::Service;

use crate::http::deadline::{TimeLeft, attempt};

/// Reads how much time a request has, refuses the one that has none with a 504, and makes it the deadline of every
/// call that is made to answer it. In front of a router or of any tower server; see [`Ambient`] for what counts as
/// below.
///
/// A request of gRPC is refused in gRPC's words: status 4, `DEADLINE_EXCEEDED`. A refusal bears [`NoEffect`] in its
/// extensions.
///
/// # Ordering
///
/// Outside of a layer that keeps answers and gives them again, such as `relent_idempotency::IdempotencyLayer`: what
/// comes too late then claims no key, and the handler within knows the deadline all the same.
///
/// Whoever may set the header says how long calls below may take. An attempt that its caller's deadline cuts off counts
/// as a time-out at the breaker and the budget that all callers share, as it must: else a dependency that hangs would
/// never open a breaker beneath impatient callers. So one that asks often and gives less time than a healthy answer takes
/// shuts the breaker's door to everybody. Where callers are not all your own, set a floor:
/// [`refusing_under`](Self::refusing_under).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use axum::{Router, routing::get};
/// use relent_tower::DeadlineLayer;
///
/// # async fn stock() -> &'static str { "7" }
/// // Below 200 ms no answer was ever worked out: such a request is refused, and no call is made for it.
/// let deadlines = DeadlineLayer::new().refusing_under(Duration::from_millis(200));
/// let app: Router = Router::new().route("/stock", get(stock)).layer(deadlines);
/// ```
#[derive(Clone, Debug)]
pub struct DeadlineLayer<C = TokioClock> {
    clock: C,
    terms: Arc<Terms>,
}

#[derive(Clone, Debug)]
struct Terms {
    headers: Vec<TimeLeft>,
    least: Duration,
    below_retries: BelowRetries,
}

/// What calls do that are made for a caller's retry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum BelowRetries {
    AsTheirPolicySays,
    Once,
}

/// What a request's caller said, found in the request's extensions by whoever answers it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Incoming {
    /// When the answer stops being of use, on the layer's clock.
    pub deadline: Option<Timestamp>,
    /// Which attempt of the caller this is, from 1. More than 1: a retry. `None`: the caller does not say.
    pub attempt: Option<u32>,
}

impl DeadlineLayer {
    /// A layer on [`TokioClock`], as the pipelines below are. It reads `x-request-timeout-ms` and `grpc-timeout`;
    /// of both the shorter counts.
    pub fn new() -> Self {
        Self::on(TokioClock)
    }
}

impl Default for DeadlineLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: Clock> DeadlineLayer<C> {
    /// A layer on another clock.
    pub fn on(clock: C) -> Self {
        let headers = vec![TimeLeft::REQUEST_TIMEOUT_MS, TimeLeft::GRPC];
        let terms = Terms { headers, least: Duration::ZERO, below_retries: BelowRetries::AsTheirPolicySays };
        Self { clock, terms: Arc::new(terms) }
    }

    /// Reads this header too.
    #[must_use]
    pub fn reading(self, header: TimeLeft) -> Self {
        self.with(|terms| terms.headers.push(header))
    }

    /// Refuses requests that have less time than this, before anything is done for them. Zero, unless this is called:
    /// only what has none left.
    ///
    /// It is also what keeps a hurried caller from opening a breaker for everybody: see [`DeadlineLayer`].
    ///
    /// # Choosing a value
    ///
    /// Where all callers are your own: the least time in which an answer was ever worked out. Where they are not: the
    /// time in which nearly every healthy answer is, the slowest dependency's 99th percentile and your own work.
    #[must_use]
    pub fn refusing_under(self, least: Duration) -> Self {
        self.with(|terms| terms.least = least)
    }

    /// Lets calls make one attempt where they are made for a caller's retry: the caller tries again by itself, and
    /// its attempts times theirs would reach whoever is already in trouble. First tries go as their policy says.
    #[must_use]
    pub fn once_below_retries(self) -> Self {
        self.with(|terms| terms.below_retries = BelowRetries::Once)
    }

    fn with(mut self, change: impl FnOnce(&mut Terms)) -> Self {
        change(Arc::make_mut(&mut self.terms));
        self
    }
}

impl<S, C: Clock> Layer<S> for DeadlineLayer<C> {
    type Service = DeadlineService<S, C>;

    fn layer(&self, inner: S) -> Self::Service {
        DeadlineService { inner, clock: self.clock.clone(), terms: Arc::clone(&self.terms) }
    }
}

/// A service that knows how long its callers wait: what [`DeadlineLayer`] makes.
#[derive(Clone, Debug)]
pub struct DeadlineService<S, C = TokioClock> {
    inner: S,
    clock: C,
    terms: Arc<Terms>,
}

impl<S, C: Clock> DeadlineService<S, C> {
    /// What the request's caller said.
    fn read<B>(&self, request: &Request<B>) -> Result<Incoming, TooLate> {
        let left = self.terms.headers.iter().filter_map(|header| header.read(request.headers())).min();
        if left.is_some_and(|left| left.is_zero() || left < self.terms.least) {
            return Err(TooLate);
        }
        let deadline = left.map(|left| self.clock.now().after(left));
        Ok(Incoming { deadline, attempt: attempt(request.headers()) })
    }

    fn ambient(&self, incoming: Incoming) -> Option<Ambient<C>> {
        let mut ambient = Ambient::on(self.clock.clone());
        if let Some(at) = incoming.deadline {
            ambient = ambient.until(at);
        }
        if let Some(number) = incoming.attempt {
            ambient = ambient.in_attempt(number);
            if number > 1 && self.terms.below_retries == BelowRetries::Once {
                ambient = ambient.without_retries();
            }
        }
        (incoming != Incoming::default()).then_some(ambient)
    }
}

struct TooLate;

impl<S, B, ResB, C> Service<Request<B>> for DeadlineService<S, C>
where
    S: Service<Request<B>, Response = Response<ResB>>,
    ResB: Default,
    C: Clock,
{
    type Response = Response<ResB>;
    type Error = S::Error;
    type Future = DeadlineFuture<S::Future, ResB, C>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let incoming = match self.read(&request) {
            Ok(incoming) => incoming,
            Err(TooLate) => return Step::TooLate { response: Some(too_late(&request)) }.into(),
        };
        match self.ambient(incoming) {
            None => Step::Unbounded { work: self.inner.call(request) }.into(),
            Some(ambient) => {
                request.extensions_mut().insert(incoming);
                let work = ambient.around(|| self.inner.call(request));
                Step::Bounded { work: ambient.scope(work) }.into()
            }
        }
    }
}

pin_project! {
    /// The future of [`DeadlineService`].
    ///
    /// # Cancellation safety
    ///
    /// As the inner service's.
    #[must_use = "a request is answered only while this is polled"]
    pub struct DeadlineFuture<F, ResB, C = TokioClock> {
        #[pin]
        step: Step<F, ResB, C>,
    }
}

pin_project! {
    #[project = StepNow]
    enum Step<F, ResB, C> {
        // The caller has no time left.
        TooLate { response: Option<Response<ResB>> },
        // The caller said nothing.
        Unbounded { #[pin] work: F },
        // The caller said how long it waits, or which attempt this is.
        Bounded { #[pin] work: InAmbient<F, C> },
    }
}

impl<F, ResB, C> From<Step<F, ResB, C>> for DeadlineFuture<F, ResB, C> {
    fn from(step: Step<F, ResB, C>) -> Self {
        Self { step }
    }
}

impl<F, ResB, E, C> Future for DeadlineFuture<F, ResB, C>
where
    F: Future<Output = Result<Response<ResB>, E>>,
    C: Clock,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match self.project().step.project() {
            StepNow::Unbounded { work } => work.poll(cx),
            StepNow::Bounded { work } => work.poll(cx),
            StepNow::TooLate { response } => match response.take() {
                Some(response) => Poll::Ready(Ok(response)),
                None => panic!("polled after it has given its output"),
            },
        }
    }
}

impl<F, ResB, C> fmt::Debug for DeadlineFuture<F, ResB, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadlineFuture").finish_non_exhaustive()
    }
}

/// What a caller is told that has no time left.
fn too_late<B, ResB: Default>(request: &Request<B>) -> Response<ResB> {
    let mut response = Response::new(ResB::default());
    response.extensions_mut().insert(NoEffect);
    let kind = request.headers().get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    if kind.starts_with(GRPC) {
        // gRPC has its status in the headers of a response without a body, under HTTP's 200.
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert("grpc-status", HeaderValue::from_static("4"));
        headers.insert("grpc-message", HeaderValue::from_static("no time was left when the request came"));
    } else {
        *response.status_mut() = StatusCode::GATEWAY_TIMEOUT;
    }
    response
}

const GRPC: &[u8] = b"application/grpc";
