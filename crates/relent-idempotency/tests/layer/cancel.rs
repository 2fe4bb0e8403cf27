//! Clients that go away.

use relent::{Clock, TokioClock};
use relent_idempotency::{ErrorKind, Settings};
use tower::{Service, ServiceExt};

use crate::world::*;

#[tokio::test(start_paused = true)]
async fn a_handler_whose_client_is_gone_runs_to_its_end_and_its_answer_is_kept() {
    let runs = Runs::default();
    let layer = usual();
    let service = counting(&layer, &runs, secs(10));
    let client = service.clone().oneshot(post("/orders", "k", "{}"));
    tokio::select! {
        _ = client => panic!("not yet"),
        () = sleep(secs(1)) => {} // dropped here: the connection is gone
    }
    assert_eq!(send(&service, post("/orders", "k", "{}")).await.refusal(), (409, "in-progress".into()));
    layer.idle().await;
    let again = send(&service, post("/orders", "k", "{}")).await;
    assert_eq!((again.status, again.text(), again.is_replay(), runs.get()), (201, "run 1", true, 1));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_done_for_a_client_that_is_gone_before_the_handler_began() {
    let (store, runs) = (memory(), Runs::default());
    let layer = layer(store.clone(), Settings::default());
    let mut service = counting(&layer, &runs, secs(10));
    let mut client = Box::pin(service.ready().await.unwrap().call(post("/orders", "k", "{}")));
    // Polled once, so that its task is there, and dropped before that task had its turn.
    let polled =
        std::future::poll_fn(|cx| std::task::Poll::Ready(client.as_mut().poll(cx).is_pending())).await;
    assert!(polled);
    drop(client);
    layer.idle().await;
    assert_eq!(runs.get(), 0);
    assert!(store.is_empty(), "the key is free");
    assert_eq!(send(&service, post("/orders", "k", "{}")).await.text(), "run 1");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_gone_while_it_waits_is_waited_for_no_longer() {
    let runs = Runs::default();
    let layer = layer(memory(), Settings { wait: secs(3600), ..Settings::default() });
    let service = counting(&layer, &runs, secs(10));
    let first = tokio::spawn({
        let service = service.clone();
        async move { send(&service, post("/orders", "k", "{}")).await }
    });
    sleep(secs(1)).await;
    tokio::select! {
        _ = service.clone().oneshot(post("/orders", "k", "{}")) => panic!("not yet"),
        () = sleep(secs(1)) => {}
    }
    assert_eq!(first.await.unwrap().text(), "run 1");
    let began = TokioClock.now();
    layer.idle().await;
    assert!(TokioClock.now().since(began) < secs(1));
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_what_runs_and_for_its_record() {
    let (store, runs) = (Moody::new(), Runs::default());
    let layer = layer(store.clone(), Settings::default());
    layer.idle().await; // nothing runs
    let service = counting(&layer, &runs, secs(2));
    store.ends(Mood::Fails(ErrorKind::Unavailable));
    let began = TokioClock.now();
    assert_eq!(send(&service, post("/orders", "k", "{}")).await.text(), "run 1");
    let mended = tokio::spawn({
        let store = store.clone();
        async move {
            sleep(secs(10)).await;
            store.ends(Mood::Works);
        }
    });
    layer.idle().await;
    mended.await.unwrap();
    assert!(TokioClock.now().since(began) >= secs(12));
    assert!(send(&service, post("/orders", "k", "{}")).await.is_replay());
}
