//! Stores that fail.

use std::sync::Arc;

use relent::{Clock, TokioClock};
use relent_idempotency::{ErrorKind, Settings, WhenDown};

use crate::world::*;

#[tokio::test(start_paused = true)]
async fn nothing_is_done_while_the_store_is_down() {
    for (mood, problem) in [
        (Mood::Fails(ErrorKind::Unavailable), "store-unavailable"),
        (Mood::Fails(ErrorKind::Corrupt), "store-unavailable"),
        (Mood::Fails(ErrorKind::Full), "store-full"),
        (Mood::Hangs, "store-unavailable"),
    ] {
        let (store, runs, diary) = (Moody::new(), Runs::default(), Arc::new(Diary::default()));
        let layer = layer(store.clone(), Settings::default()).observed_by(diary.clone());
        let service = counting(&layer, &runs, millis(1));
        store.claims(mood);
        let began = TokioClock.now();
        let reply = send(&service, post("/orders", "k", "{}")).await;
        assert_eq!(reply.refusal(), (503, problem.into()), "{mood:?}");
        assert_eq!(reply.header("retry-after"), Some("1"));
        assert!(TokioClock.now().since(began) <= millis(5001), "{mood:?}");
        layer.idle().await;
        assert_eq!(runs.get(), 0);
        assert_eq!(diary.take()[..2], ["store_failed claim".to_owned(), format!("refused {problem}")]);
        store.claims(Mood::Works);
        // A claim that was given after all was taken back: nothing ran under it.
        assert_eq!(send(&service, post("/orders", "k", "{}")).await.text(), "run 1", "{mood:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_handler_runs_unguarded_where_that_was_chosen() {
    let (store, runs, diary) = (Moody::new(), Runs::default(), Arc::new(Diary::default()));
    let settings = Settings { when_down: WhenDown::RunUnguarded, ..Settings::default() };
    let layer = layer(store.clone(), settings).observed_by(diary.clone());
    let service = counting(&layer, &runs, millis(1));
    store.claims(Mood::Fails(ErrorKind::Unavailable));
    for run in 1..=2 {
        assert_eq!(send(&service, post("/orders", "k", "{}")).await.text(), format!("run {run}"));
    }
    layer.idle().await;
    assert_eq!(diary.take()[..2], ["store_failed claim", "ran_unguarded"]);
    store.claims(Mood::Works);
    assert_eq!(send(&service, post("/orders", "k", "{}")).await.text(), "run 3");
    assert!(send(&service, post("/orders", "k", "{}")).await.is_replay());
}

#[tokio::test(start_paused = true)]
async fn a_spoiled_record_is_no_reason_to_run_unguarded() {
    let (store, runs) = (Moody::new(), Runs::default());
    let settings = Settings { when_down: WhenDown::RunUnguarded, ..Settings::default() };
    let service = counting(&layer(store.clone(), settings), &runs, millis(1));
    store.claims(Mood::Fails(ErrorKind::Corrupt));
    let reply = send(&service, post("/orders", "k", "{}")).await;
    assert_eq!((reply.refusal(), runs.get()), ((503, "store-unavailable".into()), 0));
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_given_though_the_store_does_not_take_it_and_kept_when_it_does() {
    for mood in [Mood::Fails(ErrorKind::Unavailable), Mood::Fails(ErrorKind::Full), Mood::Hangs] {
        let (store, runs, diary) = (Moody::new(), Runs::default(), Arc::new(Diary::default()));
        let layer = layer(store.clone(), Settings::default()).observed_by(diary.clone());
        let service = counting(&layer, &runs, millis(1));
        store.ends(mood);
        assert_eq!(
            send(&service, post("/orders", "k", "{}")).await.text(),
            "run 1",
            "{mood:?}: it is the truth"
        );
        assert_eq!(diary.take(), ["store_failed finish"]);
        if mood != Mood::Hangs {
            assert_eq!(
                send(&service, post("/orders", "k", "{}")).await.refusal(),
                (409, "in-progress".into())
            );
        }
        sleep(secs(40)).await; // longer than a lease: it is renewed all the while
        store.ends(Mood::Works);
        layer.idle().await;
        assert!(send(&service, post("/orders", "k", "{}")).await.is_replay(), "{mood:?}");
        assert_eq!(runs.get(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_never_takes_the_answer_leaves_an_unknown_outcome() {
    let (store, runs, diary) = (Moody::new(), Runs::default(), Arc::new(Diary::default()));
    let layer = layer(store.clone(), Settings::default()).observed_by(diary.clone());
    let service = counting(&layer, &runs, millis(1));
    store.ends(Mood::Fails(ErrorKind::Unavailable));
    assert_eq!(send(&service, post("/orders", "k", "{}")).await.text(), "run 1");
    let began = TokioClock.now();
    layer.idle().await;
    let tried = TokioClock.now().since(began);
    assert!(tried > secs(50) && tried <= secs(60), "{tried:?}");
    assert!(
        diary.take().iter().filter(|line| *line == "store_failed finish").count() > 8,
        "it tried and said so"
    );
    sleep(secs(30)).await;
    assert_eq!(send(&service, post("/orders", "k", "{}")).await.refusal(), (409, "outcome-unknown".into()));
    assert_eq!(runs.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_never_answers_keeps_nobody_longer_than_its_time_out() {
    let of = |timeout| Settings { store_timeout: timeout, ..Settings::default() };
    for (first, then) in
        [(secs(5), None), (millis(1), None), (secs(5), Some(secs(20))), (secs(20), Some(secs(1)))]
    {
        let (store, runs, diary) = (Moody::new(), Runs::default(), Arc::new(Diary::default()));
        let mut layer = layer(store.clone(), of(first)).observed_by(diary.clone());
        if let Some(then) = then {
            layer = layer.with_settings(of(then)).unwrap();
        }
        store.ends(Mood::Hangs);
        let began = TokioClock.now();
        let reply = send(&counting(&layer, &runs, millis(0)), post("/orders", "k", "{}")).await;
        let took = TokioClock.now().since(began);
        assert_eq!(reply.text(), "run 1", "{first:?}, {then:?}: it is the truth");
        let timeout = then.unwrap_or(first);
        assert!(timeout <= took && took <= timeout + millis(5), "{timeout:?}: {took:?}");
        assert!(
            diary.take().contains(&"store_failed finish".into()),
            "{first:?}, {then:?}: and that is told"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_time_out_longer_than_the_patience_for_the_end_keeps_nobody_longer_either() {
    let (store, runs, diary) = (Moody::new(), Runs::default(), Arc::new(Diary::default()));
    let settings = Settings { store_timeout: secs(90), lease: secs(100), ..Settings::default() };
    let layer = layer(store.clone(), settings).observed_by(diary.clone());
    store.ends(Mood::Hangs);
    let began = TokioClock.now();
    assert_eq!(send(&counting(&layer, &runs, millis(0)), post("/orders", "k", "{}")).await.text(), "run 1");
    assert!(TokioClock.now().since(began) <= secs(91));
    assert!(diary.take().contains(&"store_failed finish".into()));
}
