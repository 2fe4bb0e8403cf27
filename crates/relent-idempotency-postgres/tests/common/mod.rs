//! Schemas of their own on a real server, on a clock that is moved by hand.

#![allow(dead_code, reason = "each test uses its part")]

use std::{
    env,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use relent::{ManualClock, Timestamp};
use relent_idempotency::suite::{Crashed, Fixture, MAX_RECORDS};
use relent_idempotency_postgres::{
    Options, PostgresStore,
    deadpool_postgres::{Manager, Pool},
    tokio_postgres::{self, NoTls},
};

/// A store in a schema of its own, which goes with it.
pub(crate) struct Schema {
    pub(crate) clock: ManualClock,
    pub(crate) name: String,
    pub(crate) pool: Pool,
    pub(crate) store: PostgresStore,
}

impl Schema {
    /// `None` without a server; that is said aloud, and fails where a server was promised.
    pub(crate) async fn new() -> Option<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let client = connect().await?;
        let number = MADE.fetch_add(1, Ordering::SeqCst);
        let name = format!("relent_test_{}_{number}", std::process::id());
        client
            .batch_execute(&format!("DROP SCHEMA IF EXISTS {name} CASCADE; CREATE SCHEMA {name}"))
            .await
            .unwrap();
        let clock = ManualClock::starting_at(Timestamp::from_secs(1_800_000_000));
        let pool = pool_of(&name);
        let store = open(&pool, &name, &clock);
        store.migrate().await.unwrap();
        Some(Self { clock, name, pool, store })
    }
}

fn open(pool: &Pool, name: &str, clock: &ManualClock) -> PostgresStore {
    let options =
        Options::default().with_schema(name).with_max_records(MAX_RECORDS).with_clock(clock.clone());
    PostgresStore::new(pool.clone(), options).unwrap()
}

/// A pool of its own, known by a name.
pub(crate) fn pool_of(name: &str) -> Pool {
    let mut config: tokio_postgres::Config =
        url().parse().expect("RELENT_TEST_POSTGRES is a URL of PostgreSQL");
    config.application_name(name);
    Pool::builder(Manager::new(config, NoTls)).max_size(8).build().unwrap()
}

/// A connection, if there is a server.
pub(crate) async fn connect() -> Option<tokio_postgres::Client> {
    match tokio_postgres::connect(&url(), NoTls).await {
        Ok((client, connection)) => {
            tokio::spawn(connection);
            Some(client)
        }
        Err(error) => {
            let required = env::var("RELENT_TEST_REQUIRE").unwrap_or_default();
            let promised = required.split(',').any(|service| service.trim() == "postgres");
            assert!(!promised, "no PostgreSQL at {}, and RELENT_TEST_REQUIRE names it: {error}", url());
            eprintln!("SKIPPED: no PostgreSQL at {} ({error}); start one with: cargo xtask services", url());
            None
        }
    }
}

fn url() -> String {
    env::var("RELENT_TEST_POSTGRES").unwrap_or_else(|_| "postgres://postgres@127.0.0.1:5432/postgres".into())
}

#[async_trait]
impl Fixture for Schema {
    type Store = PostgresStore;

    fn store(&self) -> &PostgresStore {
        &self.store
    }

    async fn another(&self) -> PostgresStore {
        open(&pool_of(&self.name), &self.name, &self.clock)
    }

    fn advance(&self, length: Duration) {
        self.clock.advance(length);
    }

    async fn count(&self) -> u64 {
        let sql = format!("SELECT count(*) FROM {}.relent_idempotency", self.name);
        let count: i64 = self.pool.get().await.unwrap().query_one(&sql, &[]).await.unwrap().get(0);
        count.unsigned_abs()
    }

    /// The service's process, not the server's: whatever the server committed is there.
    async fn crash(&mut self) -> Crashed {
        self.pool = pool_of(&self.name);
        self.store = open(&self.pool, &self.name, &self.clock);
        Crashed::Reopened
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        // What the test left open would never let go: its runtime waits here.
        let name = &self.name;
        let sql = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{name}'; \
             DROP SCHEMA {name} CASCADE"
        );
        // A thread of its own, since the test's runtime may not be blocked on.
        let gone = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                if let Some(client) = connect().await {
                    client.batch_execute(&sql).await.unwrap();
                }
            });
        });
        gone.join().unwrap();
    }
}
