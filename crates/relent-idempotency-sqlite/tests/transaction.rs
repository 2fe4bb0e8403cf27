//! A handler's writes and the end of its run in one transaction.

mod common;

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use common::File;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use relent_idempotency::{
    Answer, Caller, Claim, ClaimId, Claimed, End, ErrorKind, Everyone, Fingerprint, Finished,
    IdempotencyLayer, IfLost, Key, Lease, RecordId, RequestBody, Run, Settings, State, Store, WhenLost,
    suite::Fixture,
};
use relent_idempotency_sqlite::{SqliteStore, TransactError, rusqlite};
use tower::{Layer, ServiceExt, service_fn};

async fn file() -> File {
    let file = File::new().await;
    file.beside().execute_batch("CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT NOT NULL)").unwrap();
    file
}

fn orders(file: &File) -> i64 {
    file.beside().query_row("SELECT count(*) FROM orders", [], |row| row.get(0)).unwrap()
}

fn claim(number: u8) -> Claim {
    Claim {
        record: RecordId { caller: Caller::named("tenant-17"), key: Key::new("order-1").unwrap() },
        fingerprint: Fingerprint([7; 32]),
        id: ClaimId([number; 16]),
        lease: Duration::from_secs(30),
        lifetime: Duration::from_secs(86_400),
        tombstone: Duration::from_secs(3600),
        if_lost: IfLost::RunAgain,
    }
}

async fn take(store: &SqliteStore, number: u8) -> Lease {
    match store.claim(&claim(number)).await.unwrap() {
        Claimed::Mine(lease) => lease,
        other => panic!("{other:?}"),
    }
}

fn insert(connection: &rusqlite::Connection) -> rusqlite::Result<Answer> {
    connection.execute("INSERT INTO orders (item) VALUES ('apples')", [])?;
    Ok(Answer::new(StatusCode::CREATED, "one order"))
}

fn assert_store<E: std::fmt::Debug>(told: Result<Answer, TransactError<E>>, kind: ErrorKind) {
    match told {
        Err(TransactError::Store(error)) => assert_eq!(error.kind(), kind, "{error}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn writes_and_record_stand_together() {
    let mut file = file().await;
    let lease = take(&file.store, 1).await;
    let answer = file.store.transact(&lease, insert).await.unwrap();
    assert_eq!(orders(&file), 1);
    assert_eq!(file.store.claim(&claim(2)).await.unwrap(), Claimed::Answered(answer.clone()));
    assert_eq!(file.store.finish(&lease, End::Answered(answer)).await.unwrap(), Finished::Already);
    let _ = file.crash().await;
    assert_eq!(orders(&file), 1);
    assert!(matches!(file.store.claim(&claim(3)).await.unwrap(), Claimed::Answered(_)));
}

#[tokio::test]
async fn work_that_fails_leaves_neither() {
    let file = file().await;
    let lease = take(&file.store, 1).await;
    let failed = file.store.transact(&lease, |connection| {
        insert(connection).unwrap();
        Err::<Answer, _>("no")
    });
    assert!(matches!(failed.await, Err(TransactError::Work("no"))));
    assert_eq!(orders(&file), 0);
    assert_eq!(file.store.read(&lease.record).await.unwrap().unwrap().state, State::Running);
}

#[tokio::test]
async fn work_that_panics_leaves_neither_and_the_store_works_on() {
    let file = file().await;
    let lease = take(&file.store, 1).await;
    let (store, of_panic) = (file.store.clone(), lease.clone());
    let panicked = tokio::spawn(async move {
        let work = |connection: &rusqlite::Connection| {
            insert(connection)?;
            panic!("after the write")
        };
        store.transact::<rusqlite::Error>(&of_panic, work).await
    });
    assert_eq!(panicked.await.unwrap_err().into_panic().downcast_ref(), Some(&"after the write"));
    assert_eq!(orders(&file), 0);
    file.store.transact(&lease, insert).await.unwrap();
    assert_eq!(orders(&file), 1);
}

#[tokio::test]
async fn a_late_commit_is_refused_with_its_writes() {
    let file = file().await;
    let late = take(&file.store, 1).await;
    file.clock.advance(Duration::from_secs(30));
    let present = take(&file.store, 2).await;
    assert_store(file.store.transact(&late, insert).await, ErrorKind::Stale);
    assert_eq!(orders(&file), 0);
    file.store.transact(&present, insert).await.unwrap();
    assert_store(file.store.transact(&late, insert).await, ErrorKind::Stale);
    assert_eq!(orders(&file), 1);
}

#[tokio::test]
async fn a_run_does_its_work_in_one_transaction_only() {
    let file = file().await;
    let lease = take(&file.store, 1).await;
    file.store.transact(&lease, insert).await.unwrap();
    assert_store(file.store.transact(&lease, insert).await, ErrorKind::Misuse);
    assert_eq!(orders(&file), 1);
}

#[tokio::test]
async fn a_connection_of_the_handlers_own_can_hold_both() {
    let file = file().await;
    let lease = take(&file.store, 1).await;
    let mut own = file.beside();
    let answer =
        insert(&own).and_then(|answer| own.execute("DELETE FROM orders", []).map(|_| answer)).unwrap();
    assert_eq!(
        file.store.finish_in(&own, &lease, &answer).unwrap_err().kind(),
        ErrorKind::Misuse,
        "no transaction"
    );

    let rolled_back = own.transaction().unwrap();
    insert(&rolled_back).unwrap();
    file.store.finish_in(&rolled_back, &lease, &answer).unwrap();
    drop(rolled_back);
    assert_eq!(orders(&file), 0);
    assert_eq!(file.store.read(&lease.record).await.unwrap().unwrap().state, State::Running);

    let committed = own.transaction().unwrap();
    insert(&committed).unwrap();
    file.store.finish_in(&committed, &lease, &answer).unwrap();
    committed.commit().unwrap();
    assert_eq!(orders(&file), 1);
    assert_eq!(file.store.claim(&claim(2)).await.unwrap(), Claimed::Answered(answer.clone()));

    let late = own.transaction().unwrap();
    assert_eq!(file.store.finish_in(&late, &lease, &answer).unwrap_err().kind(), ErrorKind::Misuse);
}

#[tokio::test]
async fn behind_a_layer_sixty_four_at_once_write_one_order_and_a_failed_one_may_come_again() {
    let file = file().await;
    let settings = Settings {
        when_lost: WhenLost::SharedTransaction,
        wait: Duration::from_secs(20),
        ..Settings::default()
    };
    let layer = IdempotencyLayer::new(file.store.clone(), Everyone, settings).unwrap();
    let store = file.store.clone();
    let service = layer.layer(service_fn(move |request: Request<RequestBody<Full<Bytes>>>| {
        let (store, run) = (store.clone(), request.extensions().get::<Run>().unwrap().clone());
        async move {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let done = store.transact(run.lease(), move |connection| {
                let answer = insert(connection)?;
                if body == "fail" { Err(rusqlite::Error::InvalidQuery) } else { Ok(answer) }
            });
            let answer =
                done.await.unwrap_or_else(|_| Answer::new(StatusCode::INTERNAL_SERVER_ERROR, "rolled back"));
            Ok::<Response<Full<Bytes>>, Infallible>(answer.into())
        }
    }));
    let send = |key: &str, body: &'static str| {
        let request = Request::post("/orders").header("idempotency-key", key).body(Full::from(body)).unwrap();
        let service = service.clone();
        async move { service.oneshot(request).await.unwrap().status().as_u16() }
    };
    assert_eq!(send("k1", "fail").await, 500);
    assert_eq!((send("k1", "fail").await, orders(&file)), (500, 0), "it ran again, and nothing is written");
    let together: Vec<_> = (0..64).map(|_| tokio::spawn(send("k2", "{}"))).collect();
    for one in together {
        assert_eq!(one.await.unwrap(), 201);
    }
    assert_eq!(orders(&file), 1);
}
