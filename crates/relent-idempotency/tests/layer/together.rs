//! Requests with the same key at the same time.

use std::sync::Arc;

use relent::{Clock, TokioClock};
use relent_idempotency::Settings;
use tokio::task::JoinSet;
use tower::{Layer, limit::ConcurrencyLimitLayer};

use crate::world::*;

#[tokio::test(start_paused = true)]
async fn of_sixty_four_at_once_one_is_carried_out() {
    let runs = Runs::default();
    let layer = usual();
    let service = counting(&layer, &runs, millis(200));
    let mut together = JoinSet::new();
    for _ in 0..64 {
        let service = service.clone();
        together.spawn(async move { send(&service, post("/orders", "k", "{}")).await });
    }
    let replies = together.join_all().await;
    let (done, refused): (Vec<_>, Vec<_>) = replies.into_iter().partition(|reply| reply.status == 201);
    assert_eq!((done.len(), refused.len(), runs.get()), (1, 63, 1));
    for reply in refused {
        assert_eq!(reply.refusal(), (409, "in-progress".into()));
        assert_eq!(reply.header("retry-after"), Some("1"));
    }
    assert!(send(&service, post("/orders", "k", "{}")).await.is_replay());
}

#[tokio::test(start_paused = true)]
async fn look_up_and_reservation_are_one_step() {
    // ID-05: 50 at the same instant, 200 rounds, over two servers that share a store.
    let (store, runs) = (memory(), Runs::default());
    let wait = Settings { wait: secs(5), ..Settings::default() };
    let services: Vec<_> =
        (0..2).map(|_| counting(&layer(store.clone(), wait.clone()), &runs, millis(200))).collect();
    for round in 1..=200 {
        let key = Arc::new(format!("order-{round}"));
        let mut together = JoinSet::new();
        for number in 0..50 {
            let (service, key) = (services[number % 2].clone(), key.clone());
            together.spawn(async move { send(&service, post("/orders", &key, "{}")).await });
        }
        for reply in together.join_all().await {
            assert_eq!((reply.status, reply.text()), (201, &*format!("run {round}")));
        }
        assert_eq!(runs.get(), round);
    }
}

#[tokio::test(start_paused = true)]
async fn another_request_under_the_key_is_refused_while_the_first_runs() {
    let runs = Runs::default();
    let service = counting(&usual(), &runs, millis(500));
    let first = tokio::spawn({
        let service = service.clone();
        async move { send(&service, post("/orders", "k", "{}")).await }
    });
    sleep(millis(100)).await;
    let other = send(&service, post("/orders", "k", "{\"other\":1}")).await;
    assert_eq!(other.refusal(), (422, "key-reused".into()));
    assert_eq!((first.await.unwrap().status, runs.get()), (201, 1));
}

#[tokio::test(start_paused = true)]
async fn a_repeat_is_refused_at_once_with_a_time_to_come_back() {
    // ID-07 (a): the handler takes 0.5 s, the repeat comes after 0.1 s.
    let began = TokioClock.now();
    let runs = Runs::default();
    let service = counting(&usual(), &runs, millis(500));
    let first = tokio::spawn({
        let service = service.clone();
        async move { send(&service, post("/orders", "k", "{}")).await }
    });
    sleep(millis(100)).await;
    let repeat = send(&service, post("/orders", "k", "{}")).await;
    assert_eq!(repeat.refusal(), (409, "in-progress".into()));
    assert!(TokioClock.now().since(began) < millis(110), "at once");
    let come_back: u64 = repeat.header("retry-after").unwrap().parse().unwrap();
    assert!(come_back >= 1);
    sleep(secs(come_back)).await;
    assert!(send(&service, post("/orders", "k", "{}")).await.is_replay());
    assert_eq!((first.await.unwrap().status, runs.get()), (201, 1));
}

#[tokio::test(start_paused = true)]
async fn a_repeat_that_waits_is_answered_when_the_first_is() {
    // ID-07 (b): the answer at 0.5 s, and no refusal before the limit of 2 s.
    for servers in [1, 2] {
        let (store, runs) = (memory(), Runs::default());
        let wait = Settings { wait: secs(2), ..Settings::default() };
        let first_layer = layer(store.clone(), wait.clone());
        let other_layer = if servers == 1 { first_layer.clone() } else { layer(store, wait) };
        let began = TokioClock.now();
        let service = counting(&first_layer, &runs, millis(500));
        let first = tokio::spawn(async move { send(&service, post("/orders", "k", "{}")).await });
        sleep(millis(100)).await;
        let repeat = send(&counting(&other_layer, &runs, millis(500)), post("/orders", "k", "{}")).await;
        assert_eq!((repeat.status, repeat.text(), repeat.is_replay()), (201, "run 1", true));
        let waited = TokioClock.now().since(began);
        // In the same process it is told; of another's answer it hears when it asks the next time.
        let late = if servers == 1 { millis(5) } else { millis(255) };
        assert!(waited >= millis(500) && waited <= millis(500) + late, "{servers} servers: {waited:?}");
        assert_eq!((first.await.unwrap().status, runs.get()), (201, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeat_waits_no_longer_than_it_is_told_to() {
    let runs = Runs::default();
    let service =
        counting(&layer(memory(), Settings { wait: secs(2), ..Settings::default() }), &runs, secs(10));
    let first = tokio::spawn({
        let service = service.clone();
        async move { send(&service, post("/orders", "k", "{}")).await }
    });
    sleep(millis(100)).await;
    let began = TokioClock.now();
    assert_eq!(send(&service, post("/orders", "k", "{}")).await.refusal(), (409, "in-progress".into()));
    let waited = TokioClock.now().since(began);
    assert!(waited >= secs(2) && waited < millis(2010), "{waited:?}");
    assert_eq!((first.await.unwrap().status, runs.get()), (201, 1));
}

#[tokio::test(start_paused = true)]
async fn a_repeat_that_waits_holds_no_place_in_the_handlers_limit() {
    let runs = Runs::default();
    let layer = layer(memory(), Settings { wait: secs(5), ..Settings::default() });
    let counter = runs.clone();
    let limited = ConcurrencyLimitLayer::new(2).layer(tower::service_fn(move |request: http::Request<_>| {
        let run = counter.count();
        let slow = request.uri().path() == "/slow";
        drop(request);
        async move {
            TokioClock.sleep(if slow { secs(3) } else { millis(10) }).await;
            Ok::<_, std::convert::Infallible>(answer(201, format!("run {run}")))
        }
    }));
    let service = layer.layer(limited);
    let mut repeats = JoinSet::new();
    for _ in 0..3 {
        let service = service.clone();
        repeats.spawn(async move { send(&service, post("/slow", "slow", "{}")).await });
        sleep(millis(10)).await;
    }
    let began = TokioClock.now();
    assert_eq!(send(&service, post("/quick", "quick", "{}")).await.status, 201);
    assert!(TokioClock.now().since(began) < millis(100), "the repeats left it a place");
    assert!(repeats.join_all().await.iter().all(|reply| reply.text() == "run 1"));
    assert_eq!(runs.get(), 2);
}
