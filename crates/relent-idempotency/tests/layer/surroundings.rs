//! What the handler knows of whoever called the layer, although it runs in a task of its own.

use std::sync::Arc;

use relent::{Ambient, Clock, TokioClock};
use relent_idempotency::{ErrorKind, Settings};
use tracing::{Instrument, Span, info_span};
use tracing_subscriber::util::SubscriberInitExt;

use crate::world::*;

#[tokio::test(start_paused = true)]
async fn the_handler_knows_its_callers_deadline_and_attempt() {
    let service = behind(&usual(), |_| async {
        let here = Ambient::here(TokioClock);
        let known = here.map(|here| (here.deadline().map(|at| at.since(TokioClock.now())), here.attempt()));
        answer(200, format!("{known:?}"))
    });
    let untold = send(&service, post("/orders", "untold", "{}")).await;
    assert_eq!(untold.text(), "None");
    let ambient = Ambient::on(TokioClock).until(TokioClock.now().after(secs(5))).in_attempt(2);
    let told = ambient.scope(send(&service, post("/orders", "told", "{}"))).await;
    assert_eq!(told.text(), "Some((Some(5s), Some(2)))");
}

#[tokio::test(start_paused = true)]
async fn how_long_the_caller_waits_is_nothing_to_the_store() {
    let (store, runs, diary) = (Moody::new(), Runs::default(), Arc::new(Diary::default()));
    let layer = layer(store.clone(), Settings::default()).observed_by(diary.clone());
    let service = counting(&layer, &runs, secs(2));
    store.ends(Mood::Fails(ErrorKind::Unavailable));
    let ambient = Ambient::on(TokioClock).until(TokioClock.now().after(secs(1)));
    assert_eq!(ambient.scope(send(&service, post("/orders", "k", "{}"))).await.text(), "run 1");
    sleep(secs(10)).await;
    assert!(diary.take().len() > 3, "its end is asked for again and again, though the caller's time is over");
    store.ends(Mood::Works);
    layer.idle().await;
    assert!(send(&service, post("/orders", "k", "{}")).await.is_replay());
}

#[tokio::test(start_paused = true)]
async fn the_handler_runs_in_the_span_of_its_request() {
    let _spans = tracing_subscriber::registry().set_default();
    let service = behind(&usual(), |_| async {
        let span = Span::current();
        answer(200, span.metadata().map_or("none", |span| span.name()))
    });
    assert_eq!(send(&service, post("/orders", "outside", "{}")).await.text(), "none");
    let request = send(&service, post("/orders", "within", "{}")).instrument(info_span!("request"));
    assert_eq!(request.await.text(), "request");
}
