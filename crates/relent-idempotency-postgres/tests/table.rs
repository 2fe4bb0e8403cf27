//! The table, and what is refused.

mod common;

use std::time::Duration;

use common::Schema;
use relent_idempotency::{
    Answer, Caller, Claim, ClaimId, Claimed, End, ErrorKind, Fingerprint, Finished, IfLost, Key, RecordId,
    Store,
};
use relent_idempotency_postgres::{Options, PostgresStore};

fn claim(key: &str, number: u8) -> Claim {
    Claim {
        record: RecordId { caller: Caller::named("tenant-17"), key: Key::new(key).unwrap() },
        fingerprint: Fingerprint([7; 32]),
        id: ClaimId([number; 16]),
        lease: Duration::from_secs(30),
        lifetime: Duration::from_secs(86_400),
        tombstone: Duration::from_secs(3600),
        if_lost: IfLost::Unknown,
    }
}

#[tokio::test]
async fn many_processes_may_make_the_table_at_once() {
    let Some(schema) = Schema::new().await else { return };
    let sql = format!("DROP TABLE {}.relent_idempotency", schema.name);
    schema.pool.get().await.unwrap().batch_execute(&sql).await.unwrap();
    let making: Vec<_> = (0..8)
        .map(|_| {
            let options = Options::default().with_schema(&schema.name);
            let store = PostgresStore::new(common::pool_of(&schema.name), options).unwrap();
            tokio::spawn(async move { store.migrate().await })
        })
        .collect();
    for made in making {
        made.await.unwrap().unwrap();
    }
    assert!(matches!(schema.store.claim(&claim("order-1", 1)).await.unwrap(), Claimed::Mine(_)));
}

#[tokio::test]
async fn the_table_of_a_newer_relent_is_refused() {
    let Some(schema) = Schema::new().await else { return };
    let sql =
        format!("COMMENT ON TABLE {}.relent_idempotency IS 'relent idempotency, version 2'", schema.name);
    schema.pool.get().await.unwrap().batch_execute(&sql).await.unwrap();
    let refused = schema.store.migrate().await.unwrap_err();
    assert!(refused.to_string().contains("use a newer relent"), "{refused}");
}

#[tokio::test]
async fn a_store_whose_table_is_missing_or_whose_server_is_gone_says_so() {
    let Some(schema) = Schema::new().await else { return };
    let nowhere =
        PostgresStore::new(schema.pool.clone(), Options::default().with_schema("relent_nowhere")).unwrap();
    let error = nowhere.claim(&claim("order-1", 1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("relent_nowhere"), "{error}");
    assert_eq!(
        PostgresStore::new(schema.pool.clone(), Options::default().with_schema("")).unwrap_err().field,
        "schema"
    );
}

#[tokio::test]
async fn a_connection_that_died_is_replaced() {
    let Some(schema) = Schema::new().await else { return };
    assert!(matches!(schema.store.claim(&claim("order-1", 1)).await.unwrap(), Claimed::Mine(_)));
    let beside = common::connect().await.unwrap();
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
    assert!(beside.execute(sql, &[&schema.name]).await.unwrap() > 0);
    let mut failures = 0;
    let claimed = loop {
        match schema.store.claim(&claim("order-2", 2)).await {
            Ok(claimed) => break claimed,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        }
        failures += 1;
        assert!(failures <= 2, "the dead connection is asked again and again");
    };
    assert!(matches!(claimed, Claimed::Mine(_)));
}

#[tokio::test]
async fn a_schema_may_have_any_name() {
    let Some(schema) = Schema::new().await else { return };
    let odd = format!("{} \"odd\"; 'DROP", schema.name);
    let quoted = odd.replace('"', "\"\"");
    let client = schema.pool.get().await.unwrap();
    client.batch_execute(&format!("CREATE SCHEMA \"{quoted}\"")).await.unwrap();
    let store = PostgresStore::new(schema.pool.clone(), Options::default().with_schema(&odd)).unwrap();
    store.migrate().await.unwrap();
    assert!(matches!(store.claim(&claim("order-1", 1)).await.unwrap(), Claimed::Mine(_)));
    client.batch_execute(&format!("DROP SCHEMA \"{quoted}\" CASCADE")).await.unwrap();
}

#[tokio::test]
async fn time_is_the_databases_unless_told_otherwise() {
    let Some(schema) = Schema::new().await else { return };
    let options = Options::default().with_schema(&schema.name);
    let store = PostgresStore::new(schema.pool.clone(), options).unwrap();
    let claim = claim("order-1", 1);
    assert!(matches!(store.claim(&claim).await.unwrap(), Claimed::Mine(_)));
    let record = store.read(&claim.record).await.unwrap().unwrap();
    let client = schema.pool.get().await.unwrap();
    let age: f64 = client
        .query_one(
            "SELECT extract(epoch FROM clock_timestamp())::float8 - $1",
            &[&(record.claimed_at.as_secs() as f64)],
        )
        .await
        .unwrap()
        .get(0);
    assert!((0.0..60.0).contains(&age), "{age}");
}

/// The statements of the crate's front page, in a schema.
fn operators_sql(schema: &str) -> (String, String) {
    let page = include_str!("../src/lib.rs");
    let sql: String = page
        .lines()
        .filter_map(|line| line.strip_prefix("//! "))
        .skip_while(|line| *line != "```sql")
        .skip(1)
        .take_while(|line| *line != "```")
        .collect();
    let sql = sql.replace("relent_idempotency", &format!("{schema}.relent_idempotency"));
    let (list, free) = sql.split_once(';').expect("two statements");
    (list.to_owned(), free.trim_end_matches(';').to_owned())
}

#[tokio::test]
async fn the_operators_statements_find_and_free_what_nobody_knows() {
    let Some(schema) = Schema::new().await else { return };
    let Claimed::Mine(lease) = schema.store.claim(&claim("order-1", 1)).await.unwrap() else { panic!("new") };
    assert!(matches!(schema.store.claim(&claim("order-2", 2)).await.unwrap(), Claimed::Mine(_)));
    assert_eq!(schema.store.finish(&lease, End::Unknown).await.unwrap(), Finished::Done);
    let (list, free) = operators_sql(&schema.name);
    let client = schema.pool.get().await.unwrap();
    let listed: Vec<String> = client.query(&list, &[]).await.unwrap().iter().map(|row| row.get(1)).collect();
    assert_eq!(listed, ["order-1"]);
    assert_eq!(client.execute(&free, &[]).await.unwrap(), 1);
    assert!(matches!(schema.store.claim(&claim("order-1", 3)).await.unwrap(), Claimed::Mine(_)));
    assert_eq!(client.execute(&free, &[]).await.unwrap(), 0, "not what runs");
}

#[tokio::test]
async fn a_spoiled_record_is_an_error_and_never_a_second_run() {
    let Some(schema) = Schema::new().await else { return };
    for (number, spoil) in [(1, "head = '\\xFF'"), (2, "status = 7"), (3, "body = NULL"), (4, "run = -1")] {
        let key = format!("order-{number}");
        let Claimed::Mine(lease) = schema.store.claim(&claim(&key, number)).await.unwrap() else {
            panic!("new")
        };
        let answer = Answer::new(http::StatusCode::CREATED, "done");
        assert_eq!(schema.store.finish(&lease, End::Answered(answer)).await.unwrap(), Finished::Done);
        let sql = format!("UPDATE {}.relent_idempotency SET {spoil} WHERE key = $1", schema.name);
        assert_eq!(schema.pool.get().await.unwrap().execute(&sql, &[&key]).await.unwrap(), 1);
        let error = schema.store.claim(&claim(&key, 9)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{spoil}: {error}");
    }
}
