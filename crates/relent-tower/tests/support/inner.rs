//! A service in memory that does what a test says, and minds that it was polled ready before it is called.

#![allow(dead_code, reason = "no test uses all of it")]

use std::{
    collections::VecDeque,
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use relent::{Clock, ManualClock, Timestamp};
use tower_service::Service;

/// What the service does with one request; the last counts for all that follow.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Answer { status: u16, headers: Vec<(&'static str, &'static str)>, body: &'static str, after: Duration },
    Fail(io::ErrorKind),
    Hang,
}

pub(crate) fn answer(status: u16) -> Act {
    Act::Answer { status, headers: Vec::new(), body: "", after: Duration::ZERO }
}

pub(crate) fn saying(status: u16, headers: &[(&'static str, &'static str)]) -> Act {
    Act::Answer { status, headers: headers.to_vec(), body: "", after: Duration::ZERO }
}

/// One request as the service saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) at: Timestamp,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("text"))
    }
}

pub(crate) struct Inner {
    shared: Arc<Shared>,
    ready: bool,
}

struct Shared {
    clock: ManualClock,
    script: Mutex<VecDeque<Act>>,
    seen: Mutex<Vec<Seen>>,
    unready: AtomicUsize,
}

impl Inner {
    pub(crate) fn new(clock: &ManualClock, script: impl IntoIterator<Item = Act>) -> Self {
        let shared = Shared {
            clock: clock.clone(),
            script: Mutex::new(script.into_iter().collect()),
            seen: Mutex::default(),
            unready: AtomicUsize::new(0),
        };
        Self { shared: Arc::new(shared), ready: false }
    }

    /// The next so many times that it is asked, it says that it will never be ready.
    pub(crate) fn failing_to_get_ready(self, times: usize) -> Self {
        self.shared.unready.store(times, Ordering::SeqCst);
        self
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.seen().len()
    }

    /// The values of that header, one for each request.
    pub(crate) fn values(&self, name: &str) -> Vec<Option<String>> {
        self.seen().iter().map(|seen| seen.header(name).map(str::to_owned)).collect()
    }

    /// When each request came, in milliseconds.
    pub(crate) fn times(&self) -> Vec<u64> {
        self.seen().iter().map(|seen| seen.at.as_nanos() / 1_000_000).collect()
    }
}

/// A clone is not ready, whatever its original is.
impl Clone for Inner {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), ready: false }
    }
}

impl<B> Service<Request<B>> for Inner
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: std::fmt::Debug,
{
    type Response = Response<Full<Bytes>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let failing = &self.shared.unready;
        if failing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |times| times.checked_sub(1)).is_ok() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionRefused.into()));
        }
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        assert!(std::mem::replace(&mut self.ready, false), "called without having been polled ready");
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let at = shared.clock.now();
            let (head, body) = request.into_parts();
            let body = body.collect().await.expect("the tests' bodies do not fail").to_bytes();
            shared.seen.lock().unwrap().push(Seen { at, headers: head.headers, body });
            let act = {
                let mut script = shared.script.lock().unwrap();
                let last = script.len() == 1;
                let act = script.front().expect("an act").clone();
                if !last {
                    script.pop_front();
                }
                act
            };
            match act {
                Act::Hang => std::future::pending().await,
                Act::Fail(kind) => Err(kind.into()),
                Act::Answer { status, headers, body, after } => {
                    if !after.is_zero() {
                        shared.clock.sleep(after).await;
                    }
                    let mut response = Response::new(Full::from(body));
                    *response.status_mut() = StatusCode::from_u16(status).expect("a status");
                    for (name, value) in headers {
                        let name = HeaderName::from_static(name);
                        response.headers_mut().append(name, HeaderValue::from_static(value));
                    }
                    Ok(response)
                }
            }
        })
    }
}
