//! Bodies: read whole within limits, and streamed beyond them.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use relent_idempotency::Settings;
use tower::ServiceExt;

use crate::world::*;

/// A body of these frames, of unknown length.
struct Frames(Vec<Result<Frame<Bytes>, &'static str>>);

impl Frames {
    fn of_data(count: usize, size: usize) -> Self {
        Self((0..count).map(|_| Ok(Frame::data(vec![b'x'; size].into()))).collect())
    }
}

impl Body for Frames {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        Poll::Ready(if self.0.is_empty() { None } else { Some(self.0.remove(0)) })
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_too_large_to_keep_reaches_the_first_caller_whole() {
    // ID-13: 300 KiB where 256 KiB are kept.
    let size = 300 * 1024;
    let runs = Runs::default();
    for streamed in [false, true] {
        let counter = runs.clone();
        let service = behind(&usual(), move |_| {
            counter.count();
            let frames = if streamed { Frames::of_data(300, 1024) } else { Frames::of_data(1, size) };
            async move { Response::new(frames) }
        });
        let first = send(&service, post("/export", "k", "{}")).await;
        assert_eq!((first.status, first.body.len()), (200, size));
        for _ in 0..2 {
            let again = send(&service, post("/export", "k", "{}")).await;
            assert_eq!(again.refusal(), (410, "answer-not-kept".into()));
            assert!(again.text().contains("answered with 200"));
        }
    }
    assert_eq!(runs.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_known_to_be_too_large_is_not_read_beforehand() {
    let service = behind(&usual(), |_| async { Response::new(Full::new(Bytes::from(vec![0; 300 * 1024]))) });
    let first = send(&service, post("/export", "k", "{}")).await;
    assert_eq!(first.body.len(), 300 * 1024);
    assert_eq!(send(&service, post("/export", "k", "{}")).await.status, 410);
}

#[tokio::test(start_paused = true)]
async fn headers_count_to_the_size_of_an_answer() {
    let settings = Settings { max_answer: 100, ..Settings::default() };
    for (name_length, body, kept) in [(1, 95, true), (1, 96, false), (99, 0, false)] {
        let service = behind(&layer(memory(), settings.clone()), move |_| async move {
            let mut response = answer(200, vec![b'x'; body]);
            let name = HeaderName::from_bytes("n".repeat(name_length).as_bytes()).unwrap();
            response.headers_mut().insert(name, HeaderValue::from_static("v"));
            response
        });
        assert_eq!(send(&service, post("/orders", "k", "{}")).await.body.len(), body);
        let again = send(&service, post("/orders", "k", "{}")).await;
        assert_eq!(again.status, if kept { 200 } else { 410 }, "{name_length} {body}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_over_the_limit_is_refused_and_the_key_stays_free() {
    let runs = Runs::default();
    let layer = layer(memory(), Settings { max_request: 10, ..Settings::default() });
    let service = counting(&layer, &runs, millis(1));
    let long = send(&service, post("/orders", "k", "12345678901")).await;
    assert_eq!(long.refusal(), (413, "request-too-large".into()));
    assert!(long.text().contains("10 bytes"));
    assert_eq!(send(&service, post("/orders", "k", "1234567890")).await.status, 201);
    assert_eq!(runs.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_of_unknown_length_is_read_up_to_the_limit() {
    let layer = layer(memory(), Settings { max_request: 4096, ..Settings::default() });
    let service = layer_over_frames(&layer);
    for (frames, status) in [(Frames::of_data(4, 1024), 200), (Frames::of_data(5, 1024), 413)] {
        let request =
            http::Request::post("/orders").header("authorization", "a").header("idempotency-key", "k");
        let Ok(response) = service.clone().oneshot(request.body(frames).unwrap()).await;
        assert_eq!(response.status(), status);
    }
    let broken = Frames(vec![Ok(Frame::data("begun".into())), Err("reset")]);
    let request = http::Request::post("/orders").header("authorization", "a").header("idempotency-key", "k2");
    let Ok(response) = service.oneshot(request.body(broken).unwrap()).await;
    assert_eq!(response.status(), 400);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&body).contains("request-unreadable"));
}

fn layer_over_frames(
    layer: &relent_idempotency::IdempotencyLayer,
) -> impl tower::Service<
    http::Request<Frames>,
    Response = Response<relent_idempotency::ResponseBody<Full<Bytes>>>,
    Error = std::convert::Infallible,
> + Clone {
    tower::Layer::layer(
        layer,
        tower::service_fn(|request: http::Request<relent_idempotency::RequestBody<Frames>>| async {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            Ok::<_, std::convert::Infallible>(answer(200, body))
        }),
    )
}

#[tokio::test(start_paused = true)]
async fn the_handler_gets_the_body_as_it_was_sent() {
    let service = behind(&usual(), |request| async {
        assert_eq!(request.body().size_hint().exact(), Some(7));
        answer(200, request.into_body().collect().await.unwrap().to_bytes())
    });
    assert_eq!(send(&service, post("/orders", "k", "{\"a\":1}")).await.text(), "{\"a\":1}");
}

#[tokio::test(start_paused = true)]
async fn trailers_reach_the_first_caller() {
    let service = behind(&usual(), |_| async {
        let trailers: HeaderMap =
            [(HeaderName::from_static("x-sum"), HeaderValue::from_static("7"))].into_iter().collect();
        Response::new(Frames(vec![
            Ok(Frame::data("a".into())),
            Ok(Frame::data("b".into())),
            Ok(Frame::trailers(trailers)),
        ]))
    });
    let Ok(first) = service.clone().oneshot(post("/orders", "k", "{}")).await;
    let collected = first.into_body().collect().await.unwrap();
    assert_eq!(collected.trailers().unwrap()["x-sum"], "7");
    assert_eq!(collected.to_bytes(), "ab");
    assert_eq!(send(&service, post("/orders", "k", "{}")).await.text(), "ab");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_is_an_unknown_outcome() {
    let runs = Runs::default();
    let counter = runs.clone();
    let service = behind(&usual(), move |_| {
        counter.count();
        async { Response::new(Frames(vec![Ok(Frame::data("half".into())), Err("broken")])) }
    });
    let Ok(first) = service.clone().oneshot(post("/orders", "k", "{}")).await;
    let mut body = first.into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "half");
    assert_eq!(body.frame().await.unwrap().unwrap_err(), "broken");
    assert_eq!(send(&service, post("/orders", "k", "{}")).await.refusal(), (409, "outcome-unknown".into()));
    assert_eq!(runs.get(), 1);
}
