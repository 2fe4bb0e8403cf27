//! The server's side: a deadline and an attempt's number from the caller, and the calls that answer it.

#[path = "support/inner.rs"]
mod inner;

use std::{
    convert::Infallible,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, Request, Response, StatusCode};
use http_body_util::Full;
use relent::{
    Ambient, Backoff, BreakerPolicy, Clock, Idempotency, Jitter, ManualClock, NoEffect, Pipeline, Policy,
    StopReason,
};
use relent_tower::{
    BoxError, DeadlineLayer, Incoming, PipelineLayer, Wire, http::deadline::TimeLeft, report,
};
use tower::{ServiceExt, layer::Layer, service_fn};

use self::inner::{Inner, answer};

const SECOND: Duration = Duration::from_secs(1);

/// A call that fails at once, again and again, one second apart within ten.
fn stock(clock: &ManualClock) -> PipelineLayer<ManualClock> {
    let mut policy = Policy {
        budget: None,
        total_timeout: Some(10 * SECOND),
        repeat: Idempotency::Safe,
        ..Policy::live()
    };
    policy.retry.backoff = Backoff::Constant(SECOND);
    policy.retry.jitter = Jitter::None;
    policy.retry.max_attempts = Some(20);
    PipelineLayer::new(Pipeline::on(clock.clone(), policy).unwrap().named("stock")).unwrap()
}

/// A server whose handler makes one call, with the response's status and why the call ended.
fn serve(
    clock: &ManualClock,
    layer: &DeadlineLayer<ManualClock>,
    inner: &Inner,
    request: Request<()>,
) -> (Response<String>, Option<Incoming>) {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(None));
    let (heard, calls) = (seen.clone(), stock(clock).layer(inner.clone()));
    let handler = service_fn(move |request: Request<()>| {
        *heard.lock().unwrap() = request.extensions().get::<Incoming>().copied();
        let calls = calls.clone();
        async move {
            let response = calls.oneshot(Request::new(Full::<Bytes>::default())).await;
            let why = match response {
                Ok(response) => report(&response).map_or("succeeded", |report| report.stop.name()),
                Err(error) => error.stop().name(),
            };
            Ok::<_, Infallible>(Response::new(why.to_owned()))
        }
    });
    let response = clock.block_on(layer.layer(handler).oneshot(request)).unwrap();
    let seen = *seen.lock().unwrap();
    (response, seen)
}

fn request(headers: &[(&'static str, &str)]) -> Request<()> {
    let mut request = Request::new(());
    for (name, value) in headers {
        request.headers_mut().append(HeaderName::from_static(name), value.parse().unwrap());
    }
    request
}

#[test]
fn the_callers_time_is_the_ceiling_of_the_calls_below() {
    // TO-14
    for headers in [
        &[("x-request-timeout-ms", "4000")][..],
        &[("grpc-timeout", "4S")],
        &[("x-request-timeout-ms", "9000"), ("grpc-timeout", "4000m")],
    ] {
        let clock = ManualClock::new();
        let inner = Inner::new(&clock, [answer(503)]);
        let (response, incoming) = serve(&clock, &DeadlineLayer::on(clock.clone()), &inner, request(headers));
        assert_eq!(response.body(), StopReason::UpstreamDeadline.name(), "{headers:?}");
        assert_eq!(inner.times(), [0, 1000, 2000, 3000]);
        assert_eq!(incoming.unwrap().deadline, Some(relent::Timestamp::from_secs(4)));
    }
    let clock = ManualClock::new();
    let inner = Inner::new(&clock, [answer(503)]);
    let (response, incoming) = serve(&clock, &DeadlineLayer::on(clock.clone()), &inner, request(&[]));
    assert_eq!((response.body().as_str(), incoming), (StopReason::TotalTimeout.name(), None));
}

#[test]
fn what_is_too_late_is_refused_before_it_begins() {
    let clock = ManualClock::new();
    let layer = DeadlineLayer::on(clock.clone()).refusing_under(Duration::from_millis(500));
    for (headers, begins) in [
        (&[("x-request-timeout-ms", "0")][..], false),
        (&[("x-request-timeout-ms", "499")], false),
        (&[("grpc-timeout", "0n")], false),
        (&[("x-request-timeout-ms", "9000"), ("grpc-timeout", "1m")], false),
        (&[("x-request-timeout-ms", "500")], true),
        (&[("x-request-timeout-ms", "soon")], true),
    ] {
        let inner = Inner::new(&clock, [answer(200)]);
        let (response, _) = serve(&clock, &layer, &inner, request(headers));
        let status = if begins { StatusCode::OK } else { StatusCode::GATEWAY_TIMEOUT };
        assert_eq!((response.status(), inner.count() > 0), (status, begins), "{headers:?}");
        assert_eq!(response.body().is_empty(), !begins);
        assert_eq!(response.extensions().get().is_some_and(|NoEffect| true), !begins, "{headers:?}");
    }
}

/// Forty callers give less time than a healthy answer takes; then one comes who has it.
fn after_hurried_callers(layer: &DeadlineLayer<ManualClock>, clock: &ManualClock) -> (u32, &'static str) {
    let policy = Policy { breaker: Some(BreakerPolicy::default()), budget: None, ..Policy::live() };
    let calls = AtomicU32::new(0);
    let healthy = service_fn(|_: Request<Full<Bytes>>| {
        calls.fetch_add(1, Ordering::SeqCst);
        let answered = clock.sleep(Duration::from_millis(250));
        async move {
            answered.await;
            Ok::<_, BoxError>(Response::new(Full::<Bytes>::default()))
        }
    });
    let pipeline = Pipeline::on(clock.clone(), policy).unwrap();
    let stock = PipelineLayer::new(pipeline).unwrap().layer(healthy);
    let app = layer.layer(service_fn(|_: Request<()>| {
        let stock = stock.clone();
        async move {
            let ended = stock.oneshot(Request::new(Full::<Bytes>::default())).await;
            let why = ended.map_or_else(|error| error.stop().name(), |_| "succeeded");
            Ok::<_, Infallible>(Response::new(why))
        }
    }));
    let ask = |headers| *clock.block_on(app.clone().oneshot(request(headers))).unwrap().body();
    for _ in 0..40 {
        ask(&[("x-request-timeout-ms", "180")]);
    }
    let hurried = calls.load(Ordering::SeqCst);
    (hurried, ask(&[]))
}

#[test]
fn a_floor_keeps_hurried_callers_from_opening_the_breaker_for_everybody() {
    let clock = ManualClock::new();
    let layer = DeadlineLayer::on(clock.clone());
    assert_eq!(after_hurried_callers(&layer, &clock), (20, "refused_breaker"), "without one they do");
    let layer = layer.refusing_under(Duration::from_millis(250));
    assert_eq!(after_hurried_callers(&layer, &clock), (0, "succeeded"));
}

#[test]
fn grpc_is_refused_in_its_own_words() {
    let clock = ManualClock::new();
    let inner = Inner::new(&clock, [answer(200)]);
    let late = request(&[("content-type", "application/grpc+proto"), ("grpc-timeout", "0n")]);
    let (response, _) = serve(&clock, &DeadlineLayer::on(clock.clone()), &inner, late);
    assert_eq!(
        (response.status(), &response.headers()["grpc-status"]),
        (StatusCode::OK, &"4".parse().unwrap())
    );
    assert_eq!(inner.count(), 0);
}

#[test]
fn a_header_of_choice_is_read_as_well() {
    let clock = ManualClock::new();
    let header = TimeLeft::in_millis(HeaderName::from_static("x-envoy-expected-rq-timeout-ms"));
    let layer = DeadlineLayer::on(clock.clone()).reading(header);
    let inner = Inner::new(&clock, [answer(503)]);
    let (response, _) = serve(&clock, &layer, &inner, request(&[("x-envoy-expected-rq-timeout-ms", "2500")]));
    assert_eq!((response.body().as_str(), inner.count()), (StopReason::UpstreamDeadline.name(), 3));
}

#[test]
fn a_callers_retry_is_told_from_its_first_try() {
    // RT-21, across processes: the product of attempts is theirs times ours, unless one of us leaves it.
    let clock = ManualClock::new();
    for (attempt, layer, sends) in [
        ("1", DeadlineLayer::on(clock.clone()), 10),
        ("2", DeadlineLayer::on(clock.clone()), 10),
        ("1", DeadlineLayer::on(clock.clone()).once_below_retries(), 10),
        ("2", DeadlineLayer::on(clock.clone()).once_below_retries(), 1),
    ] {
        let inner = Inner::new(&clock, [answer(503)]);
        let (response, incoming) = serve(&clock, &layer, &inner, request(&[("x-relent-attempt", attempt)]));
        assert_eq!(incoming.unwrap().attempt, attempt.parse().ok());
        assert_eq!(inner.count(), sends, "attempt {attempt}");
        let expected = if sends == 1 { StopReason::Nested } else { StopReason::TotalTimeout };
        assert_eq!(response.body(), expected.name());
    }
}

#[test]
fn the_ceiling_goes_from_hop_to_hop() {
    // What one server is told, less its margin, is what it tells the next.
    let clock = ManualClock::new();
    let inner = Inner::new(&clock, [answer(200)]);
    let calls = stock(&clock)
        .with_wire(Wire::new().passing_time_left(TimeLeft::REQUEST_TIMEOUT_MS, Duration::from_millis(100)));
    let calls = calls.layer(inner.clone());
    let handler = service_fn(move |_: Request<()>| {
        let calls = calls.clone();
        async move { calls.oneshot(Request::new(Full::<Bytes>::default())).await }
    });
    let server = DeadlineLayer::on(clock.clone()).layer(handler);
    clock.block_on(server.oneshot(request(&[("x-request-timeout-ms", "1500")]))).unwrap();
    assert_eq!(inner.values("x-request-timeout-ms"), [Some("1400".to_owned())]);
}

#[test]
fn a_handlers_own_tasks_can_take_it_along() {
    let clock = ManualClock::new();
    let here = clock.clone();
    let handler = service_fn(move |_: Request<()>| {
        let ambient = Ambient::here(here.clone());
        async move { Ok::<_, Infallible>(Response::new(ambient.and_then(|ambient| ambient.deadline()))) }
    });
    let server = DeadlineLayer::on(clock.clone()).layer(handler);
    let response = clock.block_on(server.oneshot(request(&[("grpc-timeout", "5S")]))).unwrap();
    assert_eq!(*response.body(), Some(clock.now().after(5 * SECOND)));
}
