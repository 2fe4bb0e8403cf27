//! Records and tables that somebody else holds: how long they are waited for, and what becomes of who gives up.

mod common;

use std::time::Duration;

use common::Schema;
use http::StatusCode;
use relent_idempotency::{
    Answer, Caller, Claim, ClaimId, Claimed, End, ErrorKind, Fingerprint, Finished, IfLost, Key, Lease,
    RecordId, Store,
};
use relent_idempotency_postgres::{Options, PostgresStore, tokio_postgres::Client};

fn claim(key: &str) -> Claim {
    Claim {
        record: RecordId { caller: Caller::named("tenant-17"), key: Key::new(key).unwrap() },
        fingerprint: Fingerprint([7; 32]),
        id: ClaimId([1; 16]),
        lease: Duration::from_secs(30),
        lifetime: Duration::from_secs(86_400),
        tombstone: Duration::from_secs(3600),
        if_lost: IfLost::RunAgain,
    }
}

async fn take(store: &PostgresStore, key: &str) -> Lease {
    match store.claim(&claim(key)).await.unwrap() {
        Claimed::Mine(lease) => lease,
        other => panic!("{other:?}"),
    }
}

fn answer() -> Answer {
    Answer::new(StatusCode::CREATED, "one order")
}

/// Waits until so many of the schema's connections wait for a lock. Whether it came to that.
async fn until_waiting(beside: &Client, schema: &Schema, expected: i64) -> bool {
    let sql =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'";
    for _ in 0..10_000 {
        let waiting: i64 = beside.query_one(sql, &[&schema.name]).await.unwrap().get(0);
        if waiting == expected {
            return true;
        }
        tokio::task::yield_now().await;
    }
    false
}

#[tokio::test]
async fn a_question_that_nobody_waits_for_is_cancelled_and_its_connection_asked_nothing_more() {
    let Some(schema) = Schema::new().await else { return };
    let mut beside = common::connect().await.unwrap();
    let observer = common::connect().await.unwrap();
    let lock = format!("LOCK TABLE {}.relent_idempotency IN ACCESS EXCLUSIVE MODE", schema.name);
    let held = beside.transaction().await.unwrap();
    held.batch_execute(&lock).await.unwrap();
    assert_eq!(schema.pool.status().size, 1, "the one that made the table");
    let (mut goes_on, mut left_in_pool) = (None, Vec::new());
    for question in ["read", "claim", "unknown", "purge"] {
        let store = schema.store.clone();
        let asking = tokio::spawn(async move {
            match question {
                "read" => drop(store.read(&claim("order-1").record).await),
                "claim" => drop(store.claim(&claim("order-1")).await),
                "unknown" => drop(store.unknown(1).await),
                _ => drop(store.purge(1).await),
            }
        });
        let waits = until_waiting(&observer, &schema, 1).await;
        asking.abort();
        drop(asking.await);
        left_in_pool.push(schema.pool.status().size);
        // While the lock is held: it is the cancellation that ends the wait.
        if !waits || !until_waiting(&observer, &schema, 0).await {
            goes_on = Some(question);
            break;
        }
    }
    held.rollback().await.unwrap(); // before anything is asserted, or the schema could not be dropped
    assert_eq!(goes_on, None, "waits as long as the lock is held");
    assert_eq!(left_in_pool, [0; 4], "the pool has nothing that is busy");
    take(&schema.store, "order-1").await;
    assert_eq!(schema.pool.status().size, 1);
}

#[tokio::test]
async fn a_record_that_is_held_is_waited_for_no_longer_than_the_limit() {
    let Some(schema) = Schema::new().await else { return };
    let limit = Duration::from_millis(20);
    let options = Options::default().with_schema(&schema.name).with_lock_timeout(limit);
    let store = PostgresStore::new(schema.pool.clone(), options.with_clock(schema.clock.clone())).unwrap();
    let lease = take(&store, "order-1").await;
    let mut client = schema.pool.get().await.unwrap();
    let before: String = client.query_one("SHOW lock_timeout", &[]).await.unwrap().get(0);
    let held = client.transaction().await.unwrap();
    store.finish_in(&held, &lease, &answer()).await.unwrap();
    let within: String = held.query_one("SHOW lock_timeout", &[]).await.unwrap().get(0);
    assert_eq!(within, before, "the handler's transaction keeps its own");
    for end in [End::NoEffect, End::Unknown, End::Answered(answer())] {
        let error = store.finish(&lease, end.clone()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{end:?}: {error}");
    }
    assert_eq!(schema.pool.status().size, 2, "the connection is good, and given back");
    take(&store, "order-2").await;
    held.rollback().await.unwrap();
    assert_eq!(store.finish(&lease, End::NoEffect).await.unwrap(), Finished::Done);
}
