//! Handlers that fail without an answer.

use std::{panic::AssertUnwindSafe, sync::Arc};

use relent_idempotency::{Settings, WhenLost};
use tower::{Layer, ServiceExt};

use crate::world::*;

fn on_terms(when_lost: WhenLost) -> Settings {
    Settings { when_lost, ..Settings::default() }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_is_not_run_again() {
    // ID-09: one charge, then a panic; the client repeats twice.
    let charges = Runs::default();
    let counter = charges.clone();
    let diary = Arc::new(Diary::default());
    let layer = usual().observed_by(diary.clone());
    let service = behind(&layer, move |_| {
        let counter = counter.clone();
        async move {
            counter.count();
            sleep(millis(1)).await;
            panic!("after the charge");
            #[allow(unreachable_code)]
            answer(200, "")
        }
    });
    let panicked = tokio::spawn({
        let service = service.clone();
        async move { send(&service, post("/charges", "k", "{}")).await }
    });
    let panic = panicked.await.unwrap_err().into_panic();
    assert_eq!(panic.downcast_ref(), Some(&"after the charge"), "as without the layer");
    for _ in 0..2 {
        assert_eq!(
            send(&service, post("/charges", "k", "{}")).await.refusal(),
            (409, "outcome-unknown".into())
        );
    }
    assert_eq!(charges.get(), 1);
    assert_eq!(diary.take(), ["ran unknown", "refused outcome-unknown", "refused outcome-unknown"]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_is_run_again_where_that_is_allowed_or_its_transaction_is_gone() {
    for when_lost in [WhenLost::RunAgain, WhenLost::SharedTransaction] {
        let runs = Runs::default();
        let counter = runs.clone();
        let service = behind(&layer(memory(), on_terms(when_lost)), move |_| {
            let run = counter.count();
            async move {
                assert!(run > 1, "the first run panics");
                answer(201, format!("run {run}"))
            }
        });
        let first = AssertUnwindSafe(service.clone());
        assert!(tokio::spawn(async move { send(&first.0, post("/orders", "k", "{}")).await }).await.is_err());
        assert_eq!(send(&service, post("/orders", "k", "{}")).await.text(), "run 2", "{when_lost:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_fails_without_a_response_is_an_unknown_outcome() {
    for (when_lost, second) in [(WhenLost::Refuse, Some(409)), (WhenLost::RunAgain, None)] {
        let service = layer(memory(), on_terms(when_lost)).layer(tower::service_fn(
            |_: http::Request<relent_idempotency::RequestBody<_>>| async { Err::<Handled, _>("reset") },
        ));
        assert_eq!(service.clone().oneshot(post("/orders", "k", "{}")).await.unwrap_err(), "reset");
        match (service.oneshot(post("/orders", "k", "{}")).await, second) {
            (Ok(response), Some(status)) => assert_eq!(response.status(), status),
            (Err(error), None) => assert_eq!(error, "reset", "it ran again"),
            (other, _) => panic!("{when_lost:?}: {other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_never_ready_did_nothing() {
    #[derive(Clone)]
    struct Never;
    impl<Q> tower::Service<Q> for Never {
        type Response = Handled;
        type Error = &'static str;
        type Future = std::future::Ready<Result<Handled, &'static str>>;

        fn poll_ready(
            &mut self,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Result<(), &'static str>> {
            std::task::Poll::Ready(Err("overloaded"))
        }

        fn call(&mut self, _: Q) -> Self::Future {
            unreachable!("it was never ready")
        }
    }
    let store = memory();
    let service = layer(store.clone(), Settings::default()).layer(Never);
    assert_eq!(service.oneshot(post("/orders", "k", "{}")).await.unwrap_err(), "overloaded");
    assert!(store.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_failure_beside_its_transaction_leaves_the_key_free_and_a_success_is_told_aloud() {
    let diary = Arc::new(Diary::default());
    let layer = layer(memory(), on_terms(WhenLost::SharedTransaction)).observed_by(diary.clone());
    let runs = Runs::default();
    let counter = runs.clone();
    let service = behind(&layer, move |_| {
        let run = counter.count();
        async move { answer(if run == 1 { 500 } else { 201 }, format!("run {run}")) }
    });
    assert_eq!(send(&service, post("/orders", "k", "{}")).await.status, 500);
    assert_eq!(send(&service, post("/orders", "k", "{}")).await.text(), "run 2");
    assert!(send(&service, post("/orders", "k", "{}")).await.is_replay());
    assert_eq!(diary.take(), ["ran no_effect", "not_in_transaction", "ran answered", "replayed"]);
}
