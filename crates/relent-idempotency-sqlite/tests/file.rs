//! What a file may hold beside the records, and what is refused.

mod common;

use std::time::Duration;

use common::File;
use relent_idempotency::{
    Answer, Caller, Claim, ClaimId, Claimed, End, ErrorKind, Fingerprint, Finished, IfLost, Key, Lease,
    RecordId, Store,
};
use relent_idempotency_sqlite::{Options, SqliteStore, rusqlite};

pub(crate) fn claim(key: &str, number: u8) -> Claim {
    Claim {
        record: RecordId { caller: Caller::named("tenant-17"), key: Key::new(key).unwrap() },
        fingerprint: Fingerprint([7; 32]),
        id: ClaimId([number; 16]),
        lease: Duration::from_secs(30),
        lifetime: Duration::from_secs(86_400),
        tombstone: Duration::from_secs(3600),
        if_lost: IfLost::RunAgain,
    }
}

async fn take(store: &SqliteStore, key: &str, number: u8) -> Lease {
    match store.claim(&claim(key, number)).await.unwrap() {
        Claimed::Mine(lease) => lease,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_file_may_hold_the_services_own_tables() {
    let file = File::new().await;
    file.beside()
        .execute_batch("CREATE TABLE orders (id INTEGER PRIMARY KEY); PRAGMA user_version = 7;")
        .unwrap();
    let again = SqliteStore::open_on(file.clock.clone(), file.path(), Options::default()).unwrap();
    take(&again, "order-1", 1).await;
    let version: i64 = file.beside().query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    assert_eq!(version, 7, "the service's own");
}

#[tokio::test]
async fn the_tables_of_a_newer_relent_are_refused() {
    let file = File::new().await;
    file.beside().execute_batch("UPDATE relent_idempotency_version SET version = 2").unwrap();
    let refused = SqliteStore::open_on(file.clock.clone(), file.path(), Options::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    assert!(refused.to_string().contains("use a newer relent"), "{refused}");
}

#[test]
fn a_file_that_cannot_be_opened_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let refused = SqliteStore::open(folder.path().join("none/service.db"), Options::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    let text = folder.path().join("text.db");
    std::fs::write(&text, "this is no database, whatever its name says").unwrap();
    assert_eq!(SqliteStore::open(&text, Options::default()).unwrap_err().kind(), ErrorKind::Corrupt);
}

/// The statements of a crate's front page.
fn operators_sql() -> (String, String) {
    let page = include_str!("../src/lib.rs");
    let sql: String = page
        .lines()
        .filter_map(|line| line.strip_prefix("//! "))
        .skip_while(|line| *line != "```sql")
        .skip(1)
        .take_while(|line| *line != "```")
        .collect();
    let (list, free) = sql.split_once(';').expect("two statements");
    (list.to_owned(), free.trim_end_matches(';').to_owned())
}

#[tokio::test]
async fn the_operators_statements_find_and_free_what_nobody_knows() {
    let file = File::new().await;
    let lease = take(&file.store, "order-1", 1).await;
    take(&file.store, "order-2", 2).await;
    assert_eq!(file.store.finish(&lease, End::Unknown).await.unwrap(), Finished::Done);
    let (list, free) = operators_sql();
    let beside = file.beside();
    let listed: Vec<String> =
        beside.prepare(&list).unwrap().query_map([], |row| row.get(1)).unwrap().map(Result::unwrap).collect();
    assert_eq!(listed, ["order-1"]);
    assert_eq!(beside.execute(&free, []).unwrap(), 1);
    take(&file.store, "order-1", 3).await;
    assert_eq!(beside.execute(&free, []).unwrap(), 0, "not what runs");
}

#[tokio::test]
async fn a_spoiled_record_is_an_error_and_never_a_second_run() {
    let file = File::new().await;
    for (number, spoil) in [(1, "head = x'FF'"), (2, "status = 7"), (3, "body = NULL"), (4, "run = -1")] {
        let key = format!("order-{number}");
        let lease = take(&file.store, &key, number).await;
        let answer = Answer::new(http::StatusCode::CREATED, "done");
        assert_eq!(file.store.finish(&lease, End::Answered(answer)).await.unwrap(), Finished::Done);
        let sql = format!("UPDATE relent_idempotency SET {spoil} WHERE key = ?1");
        assert_eq!(file.beside().execute(&sql, [&key]).unwrap(), 1);
        let error = file.store.claim(&claim(&key, 9)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{spoil}: {error}");
    }
    take(&file.store, "order-9", 9).await;
}

#[tokio::test]
async fn a_full_disk_is_told_as_such_and_passes() {
    let file = File::new().await;
    // The limit is the connection's, so it is set through a transaction on the store's own.
    let lease = take(&file.store, "order-0", 1).await;
    let limit = |pages: &'static str| {
        let (store, lease) = (file.store.clone(), lease.clone());
        async move {
            let set = store.transact(&lease, move |connection| {
                connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
                Err::<Answer, _>(rusqlite::Error::QueryReturnedNoRows)
            });
            set.await.unwrap_err();
        }
    };
    limit("1").await; // as many as there are already
    let large = End::Answered(Answer::new(http::StatusCode::CREATED, vec![0; 200_000]));
    let refused = file.store.finish(&lease, large.clone()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Full, "{refused}");
    limit("1000000").await;
    assert_eq!(file.store.finish(&lease, large).await.unwrap(), Finished::Done);
}
