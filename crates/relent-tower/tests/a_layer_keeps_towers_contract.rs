//! What tower asks of a middleware, and what one-shot bodies, connections and callers that go ask of this one.

#[path = "support/inner.rs"]
mod inner;
#[path = "support/policy.rs"]
mod policy;

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::Full;
use relent::{Clock, Idempotency, ManualClock, Pipeline, Policy, StopReason, TokioClock};
use relent_tower::{PipelineFuture, PipelineLayer, PipelineService, ReplayBody, report};
use tower::{Service, ServiceBuilder, ServiceExt, buffer::Buffer, layer::Layer, limit::ConcurrencyLimit};

use self::{
    inner::{Act, Inner, answer},
    policy::SECOND,
};

fn policy() -> Policy {
    Policy { repeat: Idempotency::Safe, ..policy::policy() }
}

fn layer(clock: &ManualClock) -> PipelineLayer<ManualClock> {
    PipelineLayer::new(Pipeline::on(clock.clone(), policy()).unwrap()).unwrap()
}

fn get() -> Request<Full<Bytes>> {
    Request::new(Full::default())
}

#[test]
fn it_works_over_a_concurrency_limit() {
    let clock = ManualClock::new();
    let inner = Inner::new(&clock, [answer(503), answer(503), answer(200)]);
    let limited = ConcurrencyLimit::new(inner.clone(), 1);
    for _ in 0..3 {
        let response = clock.block_on(layer(&clock).layer(limited.clone()).oneshot(get())).unwrap();
        assert_eq!(response.status(), 200);
    }
    assert_eq!(inner.count(), 5);
}

#[tokio::test]
async fn it_works_over_a_buffer() {
    let clock = ManualClock::new();
    let inner = Inner::new(&clock, [answer(503), answer(503), answer(200)]);
    let buffered = Buffer::new(inner.clone(), 1);
    let mut service = layer(&clock).layer(buffered);
    for _ in 0..3 {
        let response = service.ready().await.unwrap().call(get());
        assert_eq!(clock.drive(response).await.unwrap().status(), 200);
    }
    assert_eq!(inner.count(), 5);
}

#[test]
fn it_works_under_and_over_other_layers() {
    let clock = ManualClock::new();
    let inner = Inner::new(&clock, [answer(503), answer(200)]);
    let stack = ServiceBuilder::new()
        .concurrency_limit(2)
        .layer(layer(&clock))
        .map_request(|request: Request<Full<Bytes>>| request)
        .concurrency_limit(2)
        .service(inner.clone());
    assert_eq!(clock.block_on(stack.oneshot(get())).unwrap().status(), 200);
}

#[test]
fn a_limit_that_is_full_holds_back_who_asks_whether_it_is_ready() {
    let clock = ManualClock::new();
    let inner = Inner::new(&clock, [Act::Hang]);
    let limited = ConcurrencyLimit::new(inner.clone(), 1);
    let mut first = layer(&clock).layer(limited);
    let mut second = first.clone();
    let waker = std::task::Waker::noop();
    let mut cx = Context::from_waker(waker);
    let ready = |service: &mut PipelineService<_, _>, cx: &mut Context<'_>| {
        Service::<Request<Full<Bytes>>>::poll_ready(service, cx).is_ready()
    };
    assert!(ready(&mut first, &mut cx));
    let mut call = Box::pin(first.call(get()));
    assert!(call.as_mut().poll(&mut cx).is_pending());
    assert!(!ready(&mut second, &mut cx), "the inner service's readiness is the layer's");
    drop(call);
    assert!(ready(&mut second, &mut cx), "a call that is dropped gives its place back");
}

/// A body that cannot be cloned, and counts how often it is read.
struct Once(Option<Bytes>);

impl Body for Once {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }
}

fn upload() -> Once {
    Once(Some(Bytes::from_static(b"hello world")))
}

#[test]
fn a_one_shot_body_means_one_attempt_and_says_why() {
    // RT-01
    let clock = ManualClock::new();
    for (status, told) in [(200, None), (503, Some((1, StopReason::NotReplayable)))] {
        let inner = Inner::new(&clock, [answer(status)]);
        let request = Request::new(ReplayBody::once(upload()));
        let response = clock.block_on(layer(&clock).layer(inner.clone()).oneshot(request)).unwrap();
        assert_eq!(response.status(), status);
        assert_eq!(report(&response).map(|report| (report.attempts, report.stop)), told);
        assert_eq!(inner.seen()[0].body, "hello world");
    }
    let inner = Inner::new(&clock, [Act::Fail(io::ErrorKind::ConnectionReset)]);
    let request = Request::new(ReplayBody::once(upload()));
    let error = clock.block_on(layer(&clock).layer(inner.clone()).oneshot(request)).unwrap_err();
    assert_eq!((error.stop(), inner.count()), (StopReason::NotReplayable, 1));
}

#[test]
fn every_attempt_sends_the_whole_body() {
    let clock = ManualClock::new();
    let bodies: [fn() -> ReplayBody<Once>; 3] = [
        || ReplayBody::bytes("hello world"),
        || ReplayBody::made_by(upload),
        || ReplayBody::recorded(upload(), 11),
    ];
    for body in bodies {
        let inner = Inner::new(&clock, [answer(503), answer(503), answer(200)]);
        let response =
            clock.block_on(layer(&clock).layer(inner.clone()).oneshot(Request::new(body()))).unwrap();
        assert_eq!(response.status(), 200);
        assert!(inner.seen().iter().all(|seen| seen.body == "hello world") && inner.count() == 3);
    }
    let inner = Inner::new(&clock, [answer(503)]);
    let long = Request::new(ReplayBody::recorded(upload(), 10));
    let response = clock.block_on(layer(&clock).layer(inner.clone()).oneshot(long)).unwrap();
    assert_eq!(report(&response).unwrap().stop, StopReason::NotReplayable);
    assert_eq!((inner.count(), &*inner.seen()[0].body), (1, &b"hello world"[..]));
}

#[test]
fn a_body_that_cannot_be_made_again_is_no_reason_where_nothing_would_be_repeated() {
    let clock = ManualClock::new();
    for (status, reason) in [(404, StopReason::Permanent), (401, StopReason::Permanent)] {
        let inner = Inner::new(&clock, [answer(status)]);
        let request = Request::new(ReplayBody::once(upload()));
        let response = clock.block_on(layer(&clock).layer(inner).oneshot(request)).unwrap();
        assert_eq!(report(&response).unwrap().stop, reason);
    }
}

/// A response's body that counts what is read of it, and when it goes.
struct Counted {
    left: usize,
    read: Arc<AtomicUsize>,
    alive: Arc<AtomicUsize>,
}

impl Body for Counted {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.left == usize::MAX {
            return Poll::Pending; // it never comes
        }
        let some = self.left.min(1024);
        self.left -= some;
        self.read.fetch_add(some, Ordering::SeqCst);
        Poll::Ready((some > 0).then(|| Ok(Frame::data(Bytes::from(vec![0; some])))))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn a_response_that_is_not_wanted_is_read_to_its_end_or_dropped() {
    // RT-05
    for (length, read) in [(1024, 1024), (64 * 1024, 64 * 1024), (10_000_000, 65 * 1024), (usize::MAX, 0)] {
        let clock = ManualClock::new();
        let counts = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (reading, living) = counts.clone();
        let times = Arc::new(AtomicUsize::new(0));
        let inner = tower::service_fn(move |_: Request<Full<Bytes>>| {
            let attempt = times.fetch_add(1, Ordering::SeqCst);
            assert_eq!(living.load(Ordering::SeqCst), 0, "the one before is gone");
            living.fetch_add(1, Ordering::SeqCst);
            let left = if attempt == 0 { length } else { 0 };
            let body = Counted { left, read: Arc::clone(&reading), alive: Arc::clone(&living) };
            let status = if attempt == 0 { 503 } else { 200 };
            async move { Ok::<_, io::Error>(Response::builder().status(status).body(body).unwrap()) }
        });
        let response = clock.block_on(layer(&clock).layer(inner).oneshot(get())).unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(counts.0.load(Ordering::SeqCst), read, "of {length}");
    }
}

#[tokio::test]
async fn a_caller_that_goes_leaves_nothing_behind() {
    // RT-23: during the wait, and during an attempt.
    let clock = ManualClock::new();
    for act in [answer(503), Act::Hang] {
        let inner = Inner::new(&clock, [act]);
        let call = tokio::spawn(layer(&clock).layer(inner.clone()).oneshot(get()));
        clock.until_asleep(1).await;
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
        assert_eq!(clock.sleepers(), 0);
        clock.advance(60 * SECOND);
        tokio::task::yield_now().await;
        assert_eq!(inner.count(), 1, "and no attempt follows");
    }
}

#[test]
fn the_future_has_a_name_and_may_go_to_another_thread() {
    fn named<S, B, ResB, C>(
        service: &mut PipelineService<S, C>,
        request: Request<B>,
    ) -> PipelineFuture<S, B, ResB, C>
    where
        S: Service<Request<B>, Response = Response<ResB>> + Clone,
        S::Error: Into<relent_tower::BoxError>,
        B: relent_tower::Replay,
        ResB: Body,
        C: Clock,
    {
        service.call(request)
    }
    fn sent<T: Send + 'static>(_: T) {}
    let clock = ManualClock::new();
    let inner = Inner::new(&clock, [answer(200)]);
    let mut service = layer(&clock).layer(inner);
    let waker = std::task::Waker::noop();
    let ready = Service::<Request<Full<Bytes>>>::poll_ready(&mut service, &mut Context::from_waker(waker));
    assert!(ready.is_ready());
    sent(named(&mut service, get()));
    fn shared<T: Send + Sync + Clone + 'static>() {}
    shared::<PipelineLayer<TokioClock>>();
    shared::<PipelineService<Inner, ManualClock>>();
}
