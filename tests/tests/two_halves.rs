//! The client's half and the server's half of `Idempotency-Key`, one over the other: a POST that times out after the
//! server received it is sent once without a key; with one it is repeated, and carried out once.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use relent::{Ambient, Answer, Clock, Idempotency, Pipeline, Policy, RouteRule, Rules, TokioClock};
use relent_idempotency::{
    Everyone, IdempotencyLayer, KeyIs, RequestBody, ResponseBody, Settings, UnsharedMemory,
};
use relent_tower::{DeadlineLayer, PipelineLayer};
use tower::{Layer, Service, ServiceExt, service_fn, util::BoxCloneService};

/// What the server did.
#[derive(Clone, Default)]
struct Counts {
    arrived: Arc<AtomicUsize>,
    carried_out: Arc<AtomicUsize>,
}

impl Counts {
    fn get(&self) -> (usize, usize) {
        (self.arrived.load(Ordering::SeqCst), self.carried_out.load(Ordering::SeqCst))
    }
}

/// A server whose handler takes three seconds.
fn server(
    counts: &Counts,
) -> impl Service<Request<Full<Bytes>>, Response = Response<Full<Bytes>>, Error = Infallible, Future: Send>
+ Clone
+ Send
+ 'static {
    let settings = Settings { key: KeyIs::Optional, ..Settings::default() };
    let layer = IdempotencyLayer::new(UnsharedMemory::new(TokioClock), Everyone, settings).expect("settings");
    let carried_out = Arc::clone(&counts.carried_out);
    let guarded = layer.layer(service_fn(move |_: Request<RequestBody<Full<Bytes>>>| {
        let carried_out = Arc::clone(&carried_out);
        async move {
            carried_out.fetch_add(1, Ordering::SeqCst);
            TokioClock.sleep(Duration::from_secs(3)).await;
            let mut response = Response::new(Full::new(Bytes::from_static(b"paid")));
            *response.status_mut() = StatusCode::CREATED;
            Ok::<_, Infallible>(response)
        }
    }));
    let arrived = Arc::clone(&counts.arrived);
    service_fn(move |request| {
        arrived.fetch_add(1, Ordering::SeqCst);
        let guarded = guarded.clone();
        async move {
            let (parts, body) = guarded.oneshot(request).await?.into_parts();
            let Ok(whole) = body.collect().await;
            Ok(Response::from_parts(parts, Full::new(whole.to_bytes())))
        }
    })
}

/// A client that gives each attempt a second, and knows that 409 says "still being carried out" on this route.
fn client(repeat: Option<Idempotency>) -> PipelineLayer {
    let mut policy = Policy {
        attempt_timeout: Duration::from_secs(1),
        total_timeout: Some(Duration::from_secs(30)),
        budget: None,
        ..Policy::live()
    };
    policy.retry.max_attempts = Some(20);
    policy.classify.routes = vec![RouteRule {
        method: Some("POST".into()),
        repeat,
        rules: Rules { statuses: vec![(409, 409, Answer::NotNow)], ..Rules::default() },
        ..RouteRule::on("/payments")
    }];
    PipelineLayer::new(Pipeline::new(policy).expect("a policy")).expect("a layer")
}

fn payment() -> Request<Full<Bytes>> {
    Request::post("/payments").body(Full::new(Bytes::from_static(b"{\"amount\":10}"))).expect("a request")
}

#[tokio::test(start_paused = true)]
async fn a_post_with_a_key_that_times_out_is_repeated_and_carried_out_once() {
    let counts = Counts::default();
    let response =
        client(Some(Idempotency::Keyed)).layer(server(&counts)).oneshot(payment()).await.expect("an answer");
    assert_eq!(response.status(), StatusCode::CREATED);
    assert_eq!(response.headers()["idempotency-replayed"], "true", "the first attempt's answer");
    let (arrived, carried_out) = counts.get();
    assert!(arrived > 1, "it was sent again");
    assert_eq!(carried_out, 1);
}

#[tokio::test(start_paused = true)]
async fn a_post_without_a_key_that_times_out_is_sent_once() {
    let counts = Counts::default();
    client(None).layer(server(&counts)).oneshot(payment()).await.expect_err("nobody knows what became of it");
    assert_eq!(counts.get(), (1, 1));
}

/// A handler that says whether it knows of a deadline, between the two layers in either order.
fn hurried(
    deadline_outside: bool,
) -> impl Service<Request<Full<Bytes>>, Response = Response<Bytes>, Error = Infallible, Future: Send> + Clone
{
    let layer = IdempotencyLayer::new(UnsharedMemory::new(TokioClock), Everyone, Settings::default());
    let layer = layer.expect("settings");
    let handler = service_fn(|_: Request<RequestBody<Full<Bytes>>>| async {
        let deadline = Ambient::here(TokioClock).and_then(|here| here.deadline());
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(format!("bounded: {}", deadline.is_some())))))
    });
    let read = |response: Result<Response<ResponseBody<Full<Bytes>>>, Infallible>| async {
        let (parts, body) = response?.into_parts();
        let Ok(whole) = body.collect().await;
        Ok(Response::from_parts(parts, whole.to_bytes()))
    };
    if deadline_outside {
        BoxCloneService::new(DeadlineLayer::new().layer(layer.layer(handler).then(read)))
    } else {
        BoxCloneService::new(layer.layer(DeadlineLayer::new().layer(handler)).then(read))
    }
}

#[tokio::test(start_paused = true)]
async fn what_came_too_late_is_no_answer_and_what_came_in_time_knows_its_deadline() {
    for deadline_outside in [true, false] {
        let service = hurried(deadline_outside);
        let send = |left: &'static str| {
            let request = Request::post("/payments").header("idempotency-key", "k");
            let request =
                request.header("x-request-timeout-ms", left).body(Full::default()).expect("a request");
            service.clone().oneshot(request)
        };
        let Ok(late) = send("0").await;
        assert_eq!(late.status(), StatusCode::GATEWAY_TIMEOUT);
        let Ok(in_time) = send("5000").await;
        assert_eq!(in_time.body(), "bounded: true", "deadline outside: {deadline_outside}");
        let Ok(again) = send("5000").await;
        assert!(again.headers().contains_key("idempotency-replayed"));
    }
}
