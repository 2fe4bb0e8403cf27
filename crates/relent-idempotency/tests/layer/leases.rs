//! Leases while a handler runs: renewed, lost, and never committed late.

use std::sync::Arc;

use relent::{Clock, TokioClock};
use relent_idempotency::{
    Caller, ErrorKind, Key, RecordId, Resolution, Resolved, Run, Settings, State, Store, WhenLost,
};

use crate::world::*;

fn record(key: &str) -> RecordId {
    RecordId { caller: Caller::secret(b"Bearer one"), key: Key::new(key).unwrap() }
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_for_as_long_as_the_handler_runs() {
    let (store, runs) = (memory(), Runs::default());
    let service = counting(&layer(store.clone(), Settings::default()), &runs, secs(3600));
    let first = tokio::spawn({
        let service = service.clone();
        async move { send(&service, post("/orders", "k", "{}")).await }
    });
    for _ in 0..35 {
        sleep(secs(100)).await;
        assert_eq!(store.read(&record("k")).await.unwrap().unwrap().state, State::Running);
        assert_eq!(send(&service, post("/orders", "k", "{}")).await.refusal(), (409, "in-progress".into()));
    }
    assert_eq!(first.await.unwrap().text(), "run 1");
    assert!(send(&service, post("/orders", "k", "{}")).await.is_replay());
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_is_an_unknown_outcome_until_the_run_itself_tells() {
    let (store, runs, diary) = (Moody::new(), Runs::default(), Arc::new(Diary::default()));
    let layer = layer(store.clone(), Settings::default()).observed_by(diary.clone());
    let service = counting(&layer, &runs, secs(60));
    store.renewals(Mood::Fails(ErrorKind::Unavailable));
    let first = tokio::spawn({
        let service = service.clone();
        async move { send(&service, post("/orders", "k", "{}")).await }
    });
    sleep(secs(31)).await;
    assert_eq!(send(&service, post("/orders", "k", "{}")).await.refusal(), (409, "outcome-unknown".into()));
    store.renewals(Mood::Works);
    assert_eq!(first.await.unwrap().text(), "run 1");
    assert!(
        send(&service, post("/orders", "k", "{}")).await.is_replay(),
        "the run knew what others could not"
    );
    assert_eq!(runs.get(), 1);
    let lines = diary.take();
    for line in ["store_failed renew", "refused outcome-unknown", "lease_lost", "ran answered", "replayed"] {
        assert!(lines.iter().any(|told| told == line), "{line}: {lines:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_end_is_refused_once_another_run_has_the_record() {
    let (store, runs, diary) = (Moody::new(), Runs::default(), Arc::new(Diary::default()));
    let settings = Settings { when_lost: WhenLost::RunAgain, ..Settings::default() };
    let layer = layer(store.clone(), settings).observed_by(diary.clone());
    let counter = runs.clone();
    let service = behind(&layer, move |_| {
        let run = counter.count();
        async move {
            sleep(if run == 1 { secs(60) } else { secs(5) }).await;
            answer(201, format!("run {run}"))
        }
    });
    store.renewals(Mood::Fails(ErrorKind::Unavailable));
    let first = tokio::spawn({
        let service = service.clone();
        async move { send(&service, post("/orders", "k", "{}")).await }
    });
    sleep(secs(31)).await;
    assert_eq!(send(&service, post("/orders", "k", "{}")).await.text(), "run 2", "the route allows it");
    assert_eq!(first.await.unwrap().text(), "run 1", "its own client is told what it did");
    assert_eq!(
        send(&service, post("/orders", "k", "{}")).await.text(),
        "run 2",
        "the record is the second's"
    );
    assert_eq!(runs.get(), 2);
    assert!(diary.take().iter().any(|line| line == "lease_lost"));
}

#[tokio::test(start_paused = true)]
async fn a_handler_hears_that_its_lease_is_lost() {
    let store = memory();
    let service = behind(&layer(store.clone(), Settings::default()), |request| {
        let mut run = request.extensions().get::<Run>().expect("a guarded request has its run").clone();
        async move {
            assert_eq!((run.lease().record.clone(), run.lease().run, run.is_lost()), (record("k"), 1, false));
            run.lost().await;
            assert!(run.is_lost());
            answer(500, "stopped")
        }
    });
    let began = TokioClock.now();
    let first = tokio::spawn({
        let service = service.clone();
        async move { send(&service, post("/orders", "k", "{}")).await }
    });
    sleep(millis(1)).await;
    // An operator cannot settle what runs. A lease that ran out under a stalled process can be settled.
    assert_eq!(store.resolve(&record("k"), Resolution::RunAgain).await.unwrap(), Resolved::NotUnknown);
    let mut lease = None;
    while lease.is_none() {
        // What a process that stops for longer than its lease would find.
        tokio::time::advance(secs(31)).await;
        lease = match store.resolve(&record("k"), Resolution::RunAgain).await.unwrap() {
            Resolved::Done => Some(()),
            _ => None,
        };
        assert!(TokioClock.now().since(began) < secs(3600), "the renewals were faster each time");
    }
    assert_eq!(first.await.unwrap().status, 500);
    assert_eq!(store.read(&record("k")).await.unwrap(), None, "the late end was refused");
}

#[tokio::test(start_paused = true)]
async fn an_operator_settles_what_nobody_knows() {
    let store = memory();
    let service = behind(&layer(store.clone(), Settings::default()), |_| async {
        panic!("broken");
        #[allow(unreachable_code)]
        answer(200, "")
    });
    for key in ["a", "b"] {
        let broken = service.clone();
        let request = post("/orders", key, "{}");
        assert!(tokio::spawn(async move { send(&broken, request).await }).await.is_err());
        assert_eq!(
            send(&service, post("/orders", key, "{}")).await.refusal(),
            (409, "outcome-unknown".into())
        );
    }
    let unknown: Vec<_> = store.unknown(10).await.unwrap().into_iter().map(|record| record.id).collect();
    assert_eq!(unknown, [record("a"), record("b")]);
    let known = relent_idempotency::Answer::new(http::StatusCode::CREATED, "it was done");
    assert_eq!(store.resolve(&record("a"), Resolution::Answer(known)).await.unwrap(), Resolved::Done);
    let replay = send(&service, post("/orders", "a", "{}")).await;
    assert_eq!((replay.status, replay.text(), replay.is_replay()), (201, "it was done", true));
}
