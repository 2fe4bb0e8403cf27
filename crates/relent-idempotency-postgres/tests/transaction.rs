//! A handler's writes and the end of its run in one transaction, and what others see meanwhile.

mod common;

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use common::Schema;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use relent_idempotency::{
    Answer, Caller, Claim, ClaimId, Claimed, End, ErrorKind, Everyone, Fingerprint, Finished,
    IdempotencyLayer, IfLost, Key, Lease, RecordId, RequestBody, Run, Settings, State, Store, WhenLost,
};
use relent_idempotency_postgres::{
    PostgresStore,
    deadpool_postgres::{Pool, Transaction},
    tokio_postgres::{self, IsolationLevel},
};
use tower::{Layer, ServiceExt, service_fn};

async fn schema() -> Option<Schema> {
    let schema = Schema::new().await?;
    let orders =
        format!("CREATE TABLE {}.orders (id bigserial PRIMARY KEY, item text NOT NULL)", schema.name);
    schema.pool.get().await.unwrap().batch_execute(&orders).await.unwrap();
    Some(schema)
}

async fn orders(schema: &Schema) -> i64 {
    let sql = format!("SELECT count(*) FROM {}.orders", schema.name);
    schema.pool.get().await.unwrap().query_one(&sql, &[]).await.unwrap().get(0)
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

async fn take(store: &PostgresStore, number: u8) -> Lease {
    match store.claim(&claim(number)).await.unwrap() {
        Claimed::Mine(lease) => lease,
        other => panic!("{other:?}"),
    }
}

fn answer() -> Answer {
    Answer::new(StatusCode::CREATED, "one order")
}

async fn insert(schema: &str, transaction: &Transaction<'_>) -> Result<(), tokio_postgres::Error> {
    transaction.execute(&format!("INSERT INTO {schema}.orders (item) VALUES ('apples')"), &[]).await.map(drop)
}

#[tokio::test]
async fn writes_and_record_stand_together_or_not_at_all() {
    let Some(schema) = schema().await else { return };
    let lease = take(&schema.store, 1).await;
    let mut client = schema.pool.get().await.unwrap();

    let rolled_back = client.transaction().await.unwrap();
    insert(&schema.name, &rolled_back).await.unwrap();
    schema.store.finish_in(&rolled_back, &lease, &answer()).await.unwrap();
    rolled_back.rollback().await.unwrap();
    assert_eq!(orders(&schema).await, 0);
    assert_eq!(schema.store.read(&lease.record).await.unwrap().unwrap().state, State::Running);

    let committed = client.transaction().await.unwrap();
    insert(&schema.name, &committed).await.unwrap();
    schema.store.finish_in(&committed, &lease, &answer()).await.unwrap();
    committed.commit().await.unwrap();
    assert_eq!(orders(&schema).await, 1);
    assert_eq!(schema.store.claim(&claim(2)).await.unwrap(), Claimed::Answered(answer()));
    assert_eq!(schema.store.finish(&lease, End::NoEffect).await.unwrap(), Finished::Already);

    let second = client.transaction().await.unwrap();
    let refused = schema.store.finish_in(&second, &lease, &answer()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Misuse, "a run does its work once");
}

#[tokio::test]
async fn a_late_commit_is_refused_with_its_writes() {
    let Some(schema) = schema().await else { return };
    let late = take(&schema.store, 1).await;
    schema.clock.advance(Duration::from_secs(30));
    let present = take(&schema.store, 2).await;
    let mut client = schema.pool.get().await.unwrap();
    let transaction = client.transaction().await.unwrap();
    insert(&schema.name, &transaction).await.unwrap();
    let refused = schema.store.finish_in(&transaction, &late, &answer()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Stale);
    drop(transaction);
    assert_eq!(orders(&schema).await, 0);
    assert_eq!(schema.store.finish(&present, End::Answered(answer())).await.unwrap(), Finished::Done);
}

#[tokio::test]
async fn nobody_waits_for_a_run_that_is_committing() {
    let Some(schema) = schema().await else { return };
    let lease = take(&schema.store, 1).await;
    let mut client = schema.pool.get().await.unwrap();
    let open = client.transaction().await.unwrap();
    schema.store.finish_in(&open, &lease, &answer()).await.unwrap();
    // It is not committed, so to others the run goes on; nothing of theirs waits for its lock.
    assert_eq!(
        schema.store.claim(&claim(2)).await.unwrap(),
        Claimed::Running { left: Duration::from_secs(30) }
    );
    schema.store.renew(&lease, Duration::from_secs(30)).await.unwrap();
    schema.clock.advance(Duration::from_secs(60));
    assert_eq!(schema.store.claim(&claim(3)).await.unwrap(), Claimed::Running { left: Duration::ZERO });
    open.commit().await.unwrap();
    assert_eq!(schema.store.claim(&claim(4)).await.unwrap(), Claimed::Answered(answer()));
}

#[tokio::test]
async fn a_commit_of_which_nobody_knows_is_waited_for_and_settled_exactly() {
    let Some(schema) = schema().await else { return };
    for commits in [true, false] {
        let mut claim = claim(1);
        claim.record.key = Key::new(if commits { "commits" } else { "rolls-back" }).unwrap();
        let Claimed::Mine(lease) = schema.store.claim(&claim).await.unwrap() else { panic!("it is new") };
        let mut client = schema.pool.get().await.unwrap();
        let open = client.transaction().await.unwrap();
        schema.store.finish_in(&open, &lease, &answer()).await.unwrap();
        // The layer, told of an error, asks to free the key while the commit is still on its way.
        let (store, of_layer) = (schema.store.clone(), lease.clone());
        let freeing = tokio::spawn(async move { store.finish(&of_layer, End::NoEffect).await.unwrap() });
        tokio::task::yield_now().await;
        if commits {
            open.commit().await.unwrap();
            assert_eq!(freeing.await.unwrap(), Finished::Already, "the answer stands");
            assert_eq!(schema.store.claim(&claim).await.unwrap(), Claimed::Answered(answer()));
        } else {
            open.rollback().await.unwrap();
            assert_eq!(freeing.await.unwrap(), Finished::Done, "the key is free");
            assert!(matches!(schema.store.claim(&claim).await.unwrap(), Claimed::Mine(_)));
        }
    }
}

#[tokio::test]
async fn a_serializable_transaction_fails_whole_if_its_lease_was_renewed_meanwhile() {
    let Some(schema) = schema().await else { return };
    let lease = take(&schema.store, 1).await;
    let mut client = schema.pool.get().await.unwrap();
    let transaction =
        client.build_transaction().isolation_level(IsolationLevel::Serializable).start().await.unwrap();
    insert(&schema.name, &transaction).await.unwrap();
    schema.store.renew(&lease, Duration::from_secs(60)).await.unwrap();
    let refused = schema.store.finish_in(&transaction, &lease, &answer()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
    drop(transaction);
    assert_eq!(orders(&schema).await, 0);
    assert_eq!(schema.store.finish(&lease, End::NoEffect).await.unwrap(), Finished::Done);
}

/// The whole way of a request: its own transaction, and every failure an answer of 500.
async fn create(schema: &str, store: &PostgresStore, pool: &Pool, run: &Run, body: &[u8]) -> Option<Answer> {
    let mut client = pool.get().await.ok()?;
    let transaction = client.transaction().await.ok()?;
    insert(schema, &transaction).await.ok()?;
    store.finish_in(&transaction, run.lease(), &answer()).await.ok()?;
    if body == b"fail" {
        return None;
    }
    transaction.commit().await.ok()?;
    Some(answer())
}

#[tokio::test]
async fn behind_a_layer_sixty_four_at_once_write_one_order_and_a_failed_one_may_come_again() {
    let Some(schema) = schema().await else { return };
    let settings = Settings {
        when_lost: WhenLost::SharedTransaction,
        wait: Duration::from_secs(20),
        ..Settings::default()
    };
    let layer = IdempotencyLayer::new(schema.store.clone(), Everyone, settings).unwrap();
    let (name, store, pool) = (schema.name.clone(), schema.store.clone(), schema.pool.clone());
    let service = layer.layer(service_fn(move |request: Request<RequestBody<Full<Bytes>>>| {
        let (name, store, pool) = (name.clone(), store.clone(), pool.clone());
        async move {
            let run = request.extensions().get::<Run>().unwrap().clone();
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let created = create(&name, &store, &pool, &run, &body).await;
            let answer =
                created.unwrap_or_else(|| Answer::new(StatusCode::INTERNAL_SERVER_ERROR, "rolled back"));
            Ok::<Response<Full<Bytes>>, Infallible>(answer.into())
        }
    }));
    let send = |key: &str, body: &'static str| {
        let request = Request::post("/orders").header("idempotency-key", key).body(Full::from(body)).unwrap();
        let service = service.clone();
        async move { service.oneshot(request).await.unwrap().status().as_u16() }
    };
    assert_eq!(send("k1", "fail").await, 500);
    assert_eq!(
        (send("k1", "fail").await, orders(&schema).await),
        (500, 0),
        "it ran again, and nothing is written"
    );
    let together: Vec<_> = (0..64).map(|_| tokio::spawn(send("k2", "{}"))).collect();
    for one in together {
        assert_eq!(one.await.unwrap(), 201);
    }
    assert_eq!(orders(&schema).await, 1);
}
