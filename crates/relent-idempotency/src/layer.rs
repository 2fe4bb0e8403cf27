//! The layer: what is guarded, and on which terms.

mod guard;
mod perform;
mod shared;
mod surroundings;

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, request::Parts};
use http_body::Body;
use pin_project_lite::pin_project;
use relent::{Clock, Invalid, TokioClock};
use tower_layer::Layer;
use tower_service::Service;

use crate::{Callers, Key, KeyIs, Observe, Refusal, RequestBody, ResponseBody, Settings, Store};
use shared::Shared;

/// A tower layer that makes requests with an `Idempotency-Key` safe to repeat. Clones share the store and the runs.
///
/// See the [crate's front page](crate) for what it answers.
///
/// # Ordering
///
/// Put it next to the handler: inside of authentication (which the caller is read from), of rate limits and of whatever
/// else refuses without doing anything, or such a refusal is kept as *the* answer. `relent_tower::DeadlineLayer` is one of
/// these, and belongs outside: a request that comes too late then claims nothing, and the handler knows the deadline all
/// the same. (Inside, its refusals bear [`NoEffect`](crate::NoEffect) and are not kept either.) Time-outs that stop a
/// handler belong inside: one outside merely stops listening, while the handler runs on.
pub struct IdempotencyLayer<C = TokioClock> {
    shared: Arc<Shared<C>>,
}

impl IdempotencyLayer {
    /// A layer on that store, for the callers that `callers` tells apart.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the settings cannot be kept.
    pub fn new(store: impl Store, callers: impl Callers, settings: Settings) -> Result<Self, Invalid> {
        Self::on(TokioClock, store, callers, settings)
    }
}

impl<C: Clock> IdempotencyLayer<C> {
    /// The same under another clock, which times the layer's waits; the store has its own.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the settings cannot be kept.
    pub fn on(
        clock: C,
        store: impl Store,
        callers: impl Callers,
        settings: Settings,
    ) -> Result<Self, Invalid> {
        Ok(Self { shared: Arc::new(Shared::new(clock, Arc::new(store), Arc::new(callers), settings)?) })
    }

    /// The same on other terms, for a route that needs them. Store and runs are shared, so keys are one space.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the settings cannot be kept.
    pub fn with_settings(self, settings: Settings) -> Result<Self, Invalid> {
        settings.validate()?;
        let mut shared = Arc::unwrap_or_clone(self.shared);
        shared.set(settings)?;
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Tells what happens. Without it nobody hears of a store that fails after a handler ran.
    #[must_use]
    pub fn observed_by(self, observer: Arc<dyn Observe>) -> Self {
        self.change(|shared| shared.observer = Some(observer))
    }

    /// Names the resource of a request for its fingerprint, instead of its path with the query.
    ///
    /// # Choosing a value
    ///
    /// Where a router strips a prefix before it calls the layer (a nested router of axum does), two resources may look
    /// alike. Put the layer outside of it, or name the whole path: axum keeps it in the extensions, as `OriginalUri`.
    #[must_use]
    pub fn with_resource(self, resource: impl Fn(&Parts) -> String + Send + Sync + 'static) -> Self {
        self.change(|shared| shared.resource = Arc::new(resource))
    }

    /// Sends a `Link` to this page with each refusal: the draft wants the rules and how long keys live to be published.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if it cannot stand in a header.
    pub fn with_documentation(self, url: &str) -> Result<Self, Invalid> {
        let bad = |_| {
            Invalid::new(
                "documentation",
                format!("\"{url}\" cannot stand in a header: an absolute URL in ASCII"),
            )
        };
        let link = HeaderValue::from_str(&format!("<{url}>; rel=\"describedby\"; type=\"text/html\""))
            .map_err(bad)?;
        Ok(self.change(|shared| shared.documentation = Some(link)))
    }

    /// Waits until nothing runs any more, to be awaited at shutdown after the server has stopped: a handler whose client
    /// is gone runs to its end all the same.
    ///
    /// # Cancellation safety
    ///
    /// It does nothing but wait. A runtime that ends before leaves records of unknown outcome. While the store is down it
    /// may take a minute, for so long an answer is kept for it.
    pub async fn idle(&self) {
        self.shared.live.idle().await;
    }

    /// The store.
    pub fn store(&self) -> &dyn Store {
        self.shared.store.as_ref()
    }

    fn change(self, change: impl FnOnce(&mut Shared<C>)) -> Self {
        let mut shared = Arc::unwrap_or_clone(self.shared);
        change(&mut shared);
        Self { shared: Arc::new(shared) }
    }
}

impl<C> Clone for IdempotencyLayer<C> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<C> fmt::Debug for IdempotencyLayer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyLayer").field("settings", &self.shared.settings).finish_non_exhaustive()
    }
}

impl<S, C> Layer<S> for IdempotencyLayer<C> {
    type Service = Idempotency<S, C>;

    fn layer(&self, inner: S) -> Self::Service {
        Idempotency { inner, shared: Arc::clone(&self.shared) }
    }
}

/// A service behind an [`IdempotencyLayer`].
pub struct Idempotency<S, C = TokioClock> {
    inner: S,
    shared: Arc<Shared<C>>,
}

impl<S: Clone, C> Clone for Idempotency<S, C> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<S: fmt::Debug, C> fmt::Debug for Idempotency<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idempotency").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S, B, R, C> Service<Request<B>> for Idempotency<S, C>
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Send,
    C: Clock,
{
    type Response = Response<ResponseBody<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, R, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The service that was made ready is the one to call; its clone need not be.
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        let settings = &self.shared.settings;
        let key =
            if settings.methods.contains(request.method()) { Key::of(request.headers()) } else { Ok(None) };
        let key = match key {
            Ok(None) if settings.key == KeyIs::Optional || !settings.methods.contains(request.method()) => {
                let future = inner.call(request.map(RequestBody::passed));
                return ResponseFuture { kind: Answering::Passed { future } };
            }
            Ok(key) => key.ok_or(Refusal::KeyMissing),
            Err(bad) => Err(Refusal::KeyInvalid(bad)),
        };
        let shared = Arc::clone(&self.shared);
        let future = Box::pin(guard::guard(shared, inner, key, request));
        ResponseFuture { kind: Answering::Guarded { future } }
    }
}

pin_project! {
    /// The answer of an [`Idempotency`].
    ///
    /// # Cancellation safety
    ///
    /// Dropped before the handler began, nothing was done. Dropped later, the handler runs to its end all the same and
    /// its answer is kept for a repeat. An unguarded request is cancelled as ever.
    pub struct ResponseFuture<F, R, E>
    where
        R: Body,
    {
        #[pin]
        kind: Answering<F, R, E>,
    }
}

pin_project! {
    #[project = AnsweringProjection]
    enum Answering<F, R, E>
    where
        R: Body,
    {
        Passed { #[pin] future: F },
        Guarded { future: Guarded<R, E> },
    }
}

type Guarded<R, E> = Pin<Box<dyn Future<Output = Result<Response<ResponseBody<R>>, E>> + Send>>;

impl<F, R, E> Future for ResponseFuture<F, R, E>
where
    F: Future<Output = Result<Response<R>, E>>,
    R: Body,
{
    type Output = Result<Response<ResponseBody<R>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().kind.project() {
            AnsweringProjection::Passed { future } => {
                Poll::Ready(ready!(future.poll(cx)).map(|response| response.map(ResponseBody::passed)))
            }
            AnsweringProjection::Guarded { future } => future.as_mut().poll(cx),
        }
    }
}

impl<F, R: Body, E> fmt::Debug for ResponseFuture<F, R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
