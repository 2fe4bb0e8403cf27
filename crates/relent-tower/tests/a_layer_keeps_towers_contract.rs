//! What tower asks of a middleware, and what one-shot bodies, connections and callers that go ask of this one.

#[path = "support/inner.rs"]
mod inner;
#[path = "support/policy.rs"]
mod policy;

use std::{
    future::{Future, Ready},
    io,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::Full;
use relent::{
    BreakerPolicy, Clock, Gate, Idempotency, ManualClock, Pipeline, Policy, StopReason, Timestamp, TokioClock,
};
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
    let mut cx = Context::from_waker(Waker::noop());
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

/// Never ready, and counts how often it is asked.
#[derive(Clone, Default)]
struct Ill(Arc<AtomicUsize>);

impl Service<Request<Full<Bytes>>> for Ill {
    type Response = Response<Full<Bytes>>;
    type Error = io::Error;
    type Future = Ready<io::Result<Response<Full<Bytes>>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Poll::Pending
    }

    fn call(&mut self, _: Request<Full<Bytes>>) -> Self::Future {
        unreachable!("it is never ready")
    }
}

/// A layer whose breaker is open for 30 s.
fn open_layer(clock: &ManualClock) -> PipelineLayer<ManualClock> {
    let policy = Policy { breaker: Some(BreakerPolicy::default()), ..policy() };
    let pipeline = Pipeline::on(clock.clone(), policy).unwrap();
    assert!(pipeline.breaker().unwrap().force_open(clock.now().after(30 * SECOND)).is_some());
    PipelineLayer::new(pipeline).unwrap()
}

#[test]
fn an_open_breaker_refuses_without_asking_whether_the_service_is_ready() {
    // CB-11
    let clock = ManualClock::new();
    let ill = Ill::default();
    let service = open_layer(&clock).layer(ill.clone());
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..100 {
        let Poll::Ready(refused) = pin!(service.clone().oneshot(get())).poll(&mut cx) else {
            panic!("it waits for a service that is never ready")
        };
        assert_eq!(refused.unwrap_err().stop(), StopReason::Refused(Gate::Breaker));
    }
    assert_eq!((ill.0.load(Ordering::SeqCst), clock.now()), (0, Timestamp::ZERO));
    clock.advance(30 * SECOND);
    assert!(pin!(service.oneshot(get())).poll(&mut cx).is_pending(), "a probe waits for it");
    assert_eq!(ill.0.load(Ordering::SeqCst), 1);
}

#[test]
fn a_place_in_line_that_an_open_breaker_made_pointless_holds_nobody_up() {
    let clock = ManualClock::new();
    let inner = Inner::new(&clock, [answer(200)]);
    let limited = ConcurrencyLimit::new(inner.clone(), 1);
    let mut holder = limited.clone();
    let policy = Policy { breaker: Some(BreakerPolicy::default()), ..policy() };
    let pipeline = Pipeline::on(clock.clone(), policy).unwrap();
    let breaker = pipeline.breaker().unwrap().clone();
    let mut service = PipelineLayer::new(pipeline).unwrap().layer(limited);
    let mut cx = Context::from_waker(Waker::noop());
    let ready = |service: &mut PipelineService<_, _>, cx: &mut Context<'_>| {
        Service::<Request<Full<Bytes>>>::poll_ready(service, cx).is_ready()
    };
    assert!(Service::<Request<Full<Bytes>>>::poll_ready(&mut holder, &mut cx).is_ready());
    assert!(!ready(&mut service, &mut cx), "it stands in line");
    assert!(breaker.force_open(clock.now().after(SECOND)).is_some());
    assert!(ready(&mut service, &mut cx));
    clock.advance(SECOND);
    let mut call = Box::pin(service.call(get()));
    assert!(call.as_mut().poll(&mut cx).is_pending(), "the one place is taken");
    drop(holder);
    let Poll::Ready(answered) = call.as_mut().poll(&mut cx) else { panic!("it waits behind itself") };
    assert_eq!(answered.unwrap().status(), 200);
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
    let waker = Waker::noop();
    let ready = Service::<Request<Full<Bytes>>>::poll_ready(&mut service, &mut Context::from_waker(waker));
    assert!(ready.is_ready());
    sent(named(&mut service, get()));
    fn shared<T: Send + Sync + Clone + 'static>() {}
    shared::<PipelineLayer<TokioClock>>();
    shared::<PipelineService<Inner, ManualClock>>();
}
