//! What a layer adds to a request that succeeds: the one copy of its headers, and no box.

#[path = "../../crates/relent/tests/counting/mod.rs"]
mod counting;

use std::{
    convert::Infallible,
    future::{Future, Ready, ready},
    pin::pin,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use counting::counted;
use http::{HeaderMap, Request, Response, header};
use http_body_util::Full;
use relent::{ManualClock, Pipeline, Policy};
use relent_tower::PipelineLayer;
use tower::{Service, layer::Layer};

/// Answers at once and asks for no memory.
#[derive(Clone)]
struct Answering;

impl Service<Request<Full<Bytes>>> for Answering {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Full<Bytes>>) -> Self::Future {
        ready(Ok(Response::new(Full::default())))
    }
}

#[test]
fn a_request_that_succeeds_takes_no_more_memory_than_one_copy_of_its_headers() {
    let clock = ManualClock::new();
    let pipeline = Pipeline::on(clock, Policy::live()).expect("a possible policy").named("stock");
    let mut service = PipelineLayer::new(pipeline).expect("a patient policy").layer(Answering);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..3 {
        let request = request();
        let (_copy, of_one_copy) = counted(|| request.headers().clone());
        let (response, allocations) = counted(|| {
            let Poll::Ready(Ok(())) = service.poll_ready(&mut cx) else { panic!("it is always ready") };
            let mut call = pin!(service.call(request));
            let Poll::Ready(Ok(response)) = call.as_mut().poll(&mut cx) else { panic!("it answers at once") };
            response
        });
        assert_eq!(response.status(), 200);
        assert!(of_one_copy > 0 && allocations <= of_one_copy, "{allocations}, a copy is {of_one_copy}");
    }
}

fn request() -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::default());
    let headers: &mut HeaderMap = request.headers_mut();
    headers.insert(header::ACCEPT, "application/json".parse().expect("a value"));
    headers.insert(header::USER_AGENT, "stock/1.0".parse().expect("a value"));
    headers.insert(header::AUTHORIZATION, "Bearer 2YotnFZFEjr1zCsicMWpAA".parse().expect("a value"));
    request
}
