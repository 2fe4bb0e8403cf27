//! Requests, a handler that counts its runs, and a store that fails when told to.

use std::{
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header::AUTHORIZATION};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use relent::{Clock, TokioClock};
use relent_idempotency::{
    ByHeader, Claim, Claimed, End, Error, ErrorKind, Event, Finished, IdempotencyLayer, Lease, Observe,
    Record, RecordId, RequestBody, Resolution, Resolved, Settings, Store, UnsharedMemory,
};
use tower::{Layer, Service, ServiceExt, service_fn};

/// What a client was answered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.header("idempotency-replayed") == Some("true")
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The last part of the problem's type.
    pub(crate) fn problem(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(problem["status"], self.status);
        problem["type"].as_str().unwrap().strip_prefix("urn:relent:problem:idempotency:").unwrap().to_owned()
    }

    /// The status and the problem's name.
    pub(crate) fn refusal(&self) -> (u16, String) {
        (self.status, self.problem())
    }
}

/// A request of one caller.
pub(crate) fn post(path: &str, key: &str, body: &str) -> Request<Full<Bytes>> {
    request(Method::POST, path, Some(key), body)
}

pub(crate) fn request(method: Method, path: &str, key: Option<&str>, body: &str) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(method).uri(path).header(AUTHORIZATION, "Bearer one");
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    request.body(Full::from(body.to_owned())).unwrap()
}

/// Sends a request and reads the answer.
pub(crate) async fn send<S, R>(service: &S, request: Request<Full<Bytes>>) -> Reply
where
    S: Service<Request<Full<Bytes>>, Response = Response<R>, Error = Infallible> + Clone,
    R: Body<Data = Bytes>,
    R::Error: std::fmt::Debug,
{
    let Ok(response) = service.clone().oneshot(request).await;
    let (parts, body) = response.into_parts();
    let body = body.collect().await.expect("a whole body").to_bytes();
    Reply { status: parts.status.as_u16(), headers: parts.headers, body }
}

/// How often a handler ran.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs(Arc<AtomicUsize>);

impl Runs {
    /// One more; its number.
    pub(crate) fn count(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

pub(crate) type Handled = Response<Full<Bytes>>;

pub(crate) fn answer(status: u16, body: impl Into<Bytes>) -> Handled {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

/// A handler behind a layer.
pub(crate) fn behind<H, F, R, C: Clock>(
    layer: &IdempotencyLayer<C>,
    handler: H,
) -> impl Service<
    Request<Full<Bytes>>,
    Response = Response<relent_idempotency::ResponseBody<R>>,
    Error = Infallible,
    Future: Send,
>
+ Clone
+ Send
+ 'static
+ use<H, F, R, C>
where
    H: Fn(Request<RequestBody<Full<Bytes>>>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<R>> + Send + 'static,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Send,
{
    layer.layer(service_fn(move |request| {
        let handled = handler(request);
        async move { Ok::<_, Infallible>(handled.await) }
    }))
}

/// A handler that works so long and answers 201 with the number of its run.
pub(crate) fn counting<C: Clock>(
    layer: &IdempotencyLayer<C>,
    runs: &Runs,
    works: Duration,
) -> impl Service<
    Request<Full<Bytes>>,
    Response = Response<relent_idempotency::ResponseBody<Full<Bytes>>>,
    Error = Infallible,
    Future: Send,
>
+ Clone
+ Send
+ 'static
+ use<C> {
    let runs = runs.clone();
    behind(layer, move |_| {
        let runs = runs.clone();
        async move {
            let run = runs.count();
            TokioClock.sleep(works).await;
            answer(201, format!("run {run}"))
        }
    })
}

pub(crate) fn memory() -> UnsharedMemory {
    UnsharedMemory::new(TokioClock)
}

pub(crate) fn layer(store: impl Store, settings: Settings) -> IdempotencyLayer {
    IdempotencyLayer::new(store, ByHeader(AUTHORIZATION), settings).unwrap()
}

pub(crate) fn usual() -> IdempotencyLayer {
    layer(memory(), Settings::default())
}

pub(crate) async fn sleep(length: Duration) {
    TokioClock.sleep(length).await;
}

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Writes down the names of events, with what tells them apart.
#[derive(Debug, Default)]
pub(crate) struct Diary(Mutex<Vec<String>>);

impl Diary {
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Observe for Diary {
    fn observe(&self, event: &Event<'_>) {
        let line = match event {
            Event::Ran { ended, .. } => format!("ran {}", ended.name()),
            Event::Refused { refusal, .. } => format!("refused {}", refusal.name()),
            Event::StoreFailed { asked, .. } => format!("store_failed {}", asked.name()),
            other => other.name().to_owned(),
        };
        self.0.lock().unwrap().push(line);
    }
}

/// What a store does wrong.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mood {
    Works,
    Fails(ErrorKind),
    /// Carries out what it is asked, and never answers.
    Hangs,
}

/// A store whose moods are set by kind of question.
#[derive(Clone, Debug)]
pub(crate) struct Moody {
    pub(crate) sound: UnsharedMemory,
    claim: Arc<Mutex<Mood>>,
    renew: Arc<Mutex<Mood>>,
    finish: Arc<Mutex<Mood>>,
}

impl Moody {
    pub(crate) fn new() -> Self {
        let works = || Arc::new(Mutex::new(Mood::Works));
        Self { sound: memory(), claim: works(), renew: works(), finish: works() }
    }

    pub(crate) fn claims(&self, mood: Mood) {
        *self.claim.lock().unwrap() = mood;
    }

    pub(crate) fn renewals(&self, mood: Mood) {
        *self.renew.lock().unwrap() = mood;
    }

    pub(crate) fn ends(&self, mood: Mood) {
        *self.finish.lock().unwrap() = mood;
    }

    async fn in_mood<T>(
        mood: &Mutex<Mood>,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let mood = *mood.lock().unwrap();
        match mood {
            Mood::Works => work.await,
            Mood::Fails(kind) => Err(Error::new(kind, "the store is in a bad mood")),
            Mood::Hangs => {
                drop(work.await);
                std::future::pending().await
            }
        }
    }
}

#[async_trait]
impl Store for Moody {
    async fn claim(&self, claim: &Claim) -> Result<Claimed, Error> {
        Self::in_mood(&self.claim, self.sound.claim(claim)).await
    }

    async fn renew(&self, lease: &Lease, length: Duration) -> Result<(), Error> {
        Self::in_mood(&self.renew, self.sound.renew(lease, length)).await
    }

    async fn finish(&self, lease: &Lease, end: End) -> Result<Finished, Error> {
        Self::in_mood(&self.finish, self.sound.finish(lease, end)).await
    }

    async fn read(&self, id: &RecordId) -> Result<Option<Record>, Error> {
        self.sound.read(id).await
    }

    async fn unknown(&self, limit: usize) -> Result<Vec<Record>, Error> {
        self.sound.unknown(limit).await
    }

    async fn resolve(&self, id: &RecordId, resolution: Resolution) -> Result<Resolved, Error> {
        self.sound.resolve(id, resolution).await
    }

    async fn purge(&self, limit: usize) -> Result<u64, Error> {
        self.sound.purge(limit).await
    }
}
