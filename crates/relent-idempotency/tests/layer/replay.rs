//! What a repeat is answered once the first request is done.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, header};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use relent_idempotency::{KeptHeaders, NoEffect, Settings};
use tower::ServiceExt;

use crate::world::*;

#[tokio::test(start_paused = true)]
async fn a_repeat_is_given_the_first_answer_again() {
    let runs = Runs::default();
    let counter = runs.clone();
    let service = behind(&usual(), move |_| {
        let run = counter.count();
        async move {
            let mut response = answer(201, format!("run {run}"));
            for (name, value) in [
                ("location", "/orders/17"),
                ("content-type", "text/plain"),
                ("set-cookie", "session=1"),
                ("connection", "x-hop"),
                ("x-hop", "1"),
                ("date", "Mon, 30 Nov 2026 17:00:00 GMT"),
            ] {
                response.headers_mut().append(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            response
        }
    });
    let first = send(&service, post("/orders", "k", "{}")).await;
    assert_eq!((first.status, first.text(), first.is_replay()), (201, "run 1", false));
    assert_eq!(first.header("set-cookie"), Some("session=1"), "the first answer is the handler's own");
    for _ in 0..2 {
        let again = send(&service, post("/orders", "k", "{}")).await;
        assert_eq!((again.status, again.text(), again.is_replay()), (201, "run 1", true));
        assert_eq!(
            (again.header("location"), again.header("content-type")),
            (Some("/orders/17"), Some("text/plain"))
        );
        for gone in ["set-cookie", "connection", "x-hop", "date"] {
            assert_eq!(again.header(gone), None, "{gone}");
        }
    }
    assert_eq!(runs.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn only_chosen_headers_are_kept_where_some_are_chosen() {
    let settings = Settings { kept: KeptHeaders::Only(vec![header::LOCATION]), ..Settings::default() };
    let service = behind(&layer(memory(), settings), |_| async {
        let mut response = answer(201, "done");
        response.headers_mut().insert(header::LOCATION, HeaderValue::from_static("/orders/17"));
        response.headers_mut().insert(header::ETAG, HeaderValue::from_static("\"1\""));
        response
    });
    let first = send(&service, post("/orders", "k", "{}")).await;
    let again = send(&service, post("/orders", "k", "{}")).await;
    assert_eq!((first.header("etag"), again.header("etag")), (Some("\"1\""), None));
    assert_eq!(again.header("location"), Some("/orders/17"));
}

#[tokio::test(start_paused = true)]
async fn a_key_used_for_another_payload_is_refused_and_its_record_stays() {
    // ID-01
    let runs = Runs::default();
    let service = counting(&usual(), &runs, millis(1));
    let first = send(&service, post("/payments", "k", r#"{"amt":10}"#)).await;
    let other = send(&service, post("/payments", "k", r#"{"amt":99}"#)).await;
    assert_eq!((first.status, other.refusal()), (201, (422, "key-reused".into())));
    assert_eq!(runs.get(), 1);
    let again = send(&service, post("/payments", "k", r#"{"amt":10}"#)).await;
    assert_eq!((again.status, again.text(), again.is_replay()), (201, "run 1", true));
}

#[tokio::test(start_paused = true)]
async fn a_key_belongs_to_its_method_and_path() {
    // ID-03: one space of keys for each caller, as documented.
    let runs = Runs::default();
    let service = counting(&usual(), &runs, millis(1));
    assert_eq!(send(&service, post("/loans", "k", "{}")).await.text(), "run 1");
    for other in [
        post("/payouts", "k", "{}"),
        post("/loans?dry", "k", "{}"),
        request(Method::PATCH, "/loans", Some("k"), "{}"),
    ] {
        assert_eq!(send(&service, other).await.refusal(), (422, "key-reused".into()));
    }
    assert_eq!(runs.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_resource_may_be_named_where_a_router_strips_its_path() {
    #[derive(Clone)]
    struct Whole(&'static str);
    let layer = usual().with_resource(|parts| parts.extensions.get::<Whole>().unwrap().0.into());
    let service = counting(&layer, &Runs::default(), millis(1));
    let nested = |whole| {
        let mut request = post("/", "k", "{}");
        request.extensions_mut().insert(Whole(whole));
        request
    };
    assert_eq!(send(&service, nested("/v1/loans")).await.status, 201);
    assert_eq!(send(&service, nested("/v2/loans")).await.status, 422);
    assert!(send(&service, nested("/v1/loans")).await.is_replay());
}

#[tokio::test(start_paused = true)]
async fn every_answer_is_kept_whatever_its_status() {
    // ID-11: a 504 or a 500 says nothing about the effect, so it is not an invitation to do the work again.
    for status in [200, 204, 302, 400, 404, 409, 429, 500, 502, 503, 504] {
        let runs = Runs::default();
        let counter = runs.clone();
        let service = behind(&usual(), move |_| {
            counter.count();
            async move { answer(status, "as it was") }
        });
        let first = send(&service, post("/orders", "k", "{}")).await;
        let again = send(&service, post("/orders", "k", "{}")).await;
        assert_eq!((first.status, again.status, again.text()), (status, status, "as it was"));
        assert!(again.is_replay() && runs.get() == 1, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_effect_leaves_the_key_free() {
    // ID-09: unless the handler declared that nothing was done.
    for status in [429, 500, 503] {
        let runs = Runs::default();
        let counter = runs.clone();
        let service = behind(&usual(), move |_| {
            let run = counter.count();
            async move {
                let mut response = answer(if run == 1 { status } else { 201 }, format!("run {run}"));
                if run == 1 {
                    response.extensions_mut().insert(NoEffect);
                }
                response
            }
        });
        assert_eq!(send(&service, post("/orders", "k", "{}")).await.status, status);
        let second = send(&service, post("/orders", "k", "{}")).await;
        assert_eq!((second.status, second.text(), second.is_replay()), (201, "run 2", false), "{status}");
        assert!(send(&service, post("/orders", "k", "{}")).await.is_replay());
        assert_eq!(runs.get(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn routes_may_have_terms_of_their_own_over_one_store() {
    let usual = usual();
    let patient = usual.clone().with_settings(Settings { wait: secs(2), ..Settings::default() }).unwrap();
    let runs = Runs::default();
    let (one, other) = (counting(&usual, &runs, millis(1)), counting(&patient, &runs, millis(1)));
    assert_eq!(send(&one, post("/orders", "k", "{}")).await.text(), "run 1");
    assert!(send(&other, post("/orders", "k", "{}")).await.is_replay());
}

#[tokio::test(start_paused = true)]
async fn a_change_of_protocol_is_not_given_again() {
    let runs = Runs::default();
    let counter = runs.clone();
    let service = behind(&usual(), move |_| {
        counter.count();
        async { answer(101, "") }
    });
    assert_eq!(send(&service, post("/orders", "k", "{}")).await.status, 101);
    assert_eq!(send(&service, post("/orders", "k", "{}")).await.refusal(), (410, "answer-not-kept".into()));
    assert_eq!(runs.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn trailers_are_the_first_callers_and_leave_the_length_unsaid() {
    let service = behind(&usual(), |_| async {
        let trailers =
            async { Some(Ok(HeaderMap::from_iter([(header::ETAG, HeaderValue::from_static("7"))]))) };
        Response::new(Full::new(Bytes::from_static(b"hello")).with_trailers(trailers))
    });
    for replayed in [false, true] {
        let Ok(response) = service.clone().oneshot(post("/orders", "k", "{}")).await;
        let hint = response.body().size_hint();
        assert_eq!(
            (hint.lower(), hint.exact()),
            (5, replayed.then_some(5)),
            "HTTP/1.1 sends no trailers after a length"
        );
        let whole = response.into_body().collect().await.unwrap();
        assert_eq!(whole.trailers().is_some(), !replayed);
        assert_eq!(whole.to_bytes(), "hello");
    }
}
