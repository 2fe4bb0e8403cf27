//! Which requests are guarded, and which are refused before anything is done.

use http::{Method, header::AUTHORIZATION};
use relent_idempotency::{Caller, Everyone, IdempotencyLayer, KeyIs, Refusal, Settings};

use crate::world::*;

#[tokio::test(start_paused = true)]
async fn a_request_without_the_key_it_needs_is_refused() {
    let runs = Runs::default();
    let layer = usual().with_documentation("https://api.example/keys").unwrap();
    let service = counting(&layer, &runs, millis(1));
    let reply = send(&service, request(Method::POST, "/orders", None, "{}")).await;
    assert_eq!(reply.refusal(), (400, "key-missing".into()));
    let link = "<https://api.example/keys>; rel=\"describedby\"; type=\"text/html\"";
    assert_eq!(reply.header("link"), Some(link));
    assert_eq!(runs.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_request_may_go_without_a_key_where_it_is_optional() {
    let runs = Runs::default();
    let layer = layer(memory(), Settings { key: KeyIs::Optional, ..Settings::default() });
    let service = counting(&layer, &runs, millis(1));
    for run in 1..=2 {
        let reply = send(&service, request(Method::POST, "/orders", None, "{}")).await;
        assert_eq!((reply.status, reply.text()), (201, &*format!("run {run}")), "unguarded");
    }
    for _ in 0..2 {
        assert_eq!(send(&service, post("/orders", "k", "{}")).await.text(), "run 3", "guarded");
    }
}

#[tokio::test(start_paused = true)]
async fn methods_that_http_lets_repeat_pass_with_or_without_a_key() {
    let runs = Runs::default();
    let service = counting(&usual(), &runs, millis(1));
    for (run, method) in [Method::GET, Method::PUT, Method::DELETE, Method::GET].into_iter().enumerate() {
        let reply = send(&service, request(method, "/orders", Some("k"), "")).await;
        assert_eq!(reply.text(), format!("run {}", run + 1));
    }
    let patched = send(&service, request(Method::PATCH, "/orders", None, "")).await;
    assert_eq!(patched.refusal(), (400, "key-missing".into()));
}

#[tokio::test(start_paused = true)]
async fn what_is_no_key_is_refused_and_two_lines_are() {
    let runs = Runs::default();
    let service = counting(&usual(), &runs, millis(1));
    for key in ["", "\"open", "a, b", &"x".repeat(256)] {
        let reply = send(&service, post("/orders", key, "{}")).await;
        assert_eq!(reply.refusal(), (400, "key-invalid".into()), "{key}");
    }
    let mut twice = post("/orders", "k", "{}");
    twice.headers_mut().append("idempotency-key", "k".parse().unwrap());
    assert_eq!(send(&service, twice).await.refusal(), (400, "key-invalid".into()));
    assert_eq!(runs.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn keys_are_kept_by_caller() {
    let runs = Runs::default();
    let service = counting(&usual(), &runs, millis(1));
    let other = || {
        let mut request = post("/orders", "k", "{}");
        request.headers_mut().insert(AUTHORIZATION, "Bearer two".parse().unwrap());
        request
    };
    assert_eq!(send(&service, post("/orders", "k", "{}")).await.text(), "run 1");
    assert_eq!(send(&service, other()).await.text(), "run 2", "never another's answer");
    assert_eq!(send(&service, other()).await.text(), "run 2");
    assert_eq!(send(&service, post("/orders", "k", "{}")).await.text(), "run 1");
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_caller_nobody_knows_is_refused() {
    let runs = Runs::default();
    let service = counting(&usual(), &runs, millis(1));
    let mut anonymous = post("/orders", "k", "{}");
    anonymous.headers_mut().remove(AUTHORIZATION);
    assert_eq!(send(&service, anonymous).await.refusal(), (403, "caller-unknown".into()));
    assert_eq!(runs.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn callers_may_be_told_by_a_closure_or_be_one() {
    #[derive(Clone)]
    struct Account(u64);
    let by_account = |parts: &http::request::Parts| {
        parts.extensions.get::<Account>().map(|account| Caller::named(&account.0.to_string()))
    };
    let runs = Runs::default();
    let layer = IdempotencyLayer::new(memory(), by_account, Settings::default()).unwrap();
    let service = counting(&layer, &runs, millis(1));
    for (account, run) in [(1, 1), (2, 2), (1, 1)] {
        let mut request = post("/orders", "k", "{}");
        request.extensions_mut().insert(Account(account));
        assert_eq!(send(&service, request).await.text(), format!("run {run}"));
    }
    let layer = IdempotencyLayer::new(memory(), Everyone, Settings::default()).unwrap();
    let service = counting(&layer, &runs, millis(1));
    let mut anonymous = post("/orders", "k", "{}");
    anonymous.headers_mut().remove(AUTHORIZATION);
    assert_eq!(send(&service, anonymous).await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_in_the_extensions_what_it_is() {
    let layer = usual();
    let service = counting(&layer, &Runs::default(), millis(1));
    let request = request(Method::POST, "/orders", None, "{}");
    let Ok(response) = tower::ServiceExt::oneshot(service, request).await;
    assert_eq!(response.extensions().get(), Some(&Refusal::KeyMissing));
}

#[test]
fn settings_that_cannot_be_kept_make_no_layer() {
    let bad = || Settings { lifetime: secs(1), ..Settings::default() };
    let refused = IdempotencyLayer::new(memory(), Everyone, bad()).unwrap_err();
    assert_eq!(refused.field, "lifetime");
    assert_eq!(usual().with_settings(bad()).unwrap_err().field, "lifetime");
    assert_eq!(usual().with_documentation("\n").unwrap_err().field, "documentation");
}
