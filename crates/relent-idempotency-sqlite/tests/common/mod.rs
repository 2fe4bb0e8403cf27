//! Files of their own, on a clock that is moved by hand.

#![allow(dead_code, reason = "each test uses its part")]

use std::{fs, path::PathBuf, time::Duration};

use async_trait::async_trait;
use relent::{ManualClock, Timestamp};
use relent_idempotency::suite::{Crashed, Fixture, MAX_RECORDS};
use relent_idempotency_sqlite::{Options, SqliteStore, rusqlite::Connection};
use tempfile::TempDir;

/// A store in a file of its own.
pub(crate) struct File {
    pub(crate) clock: ManualClock,
    pub(crate) folder: TempDir,
    pub(crate) store: SqliteStore,
}

impl File {
    #[expect(clippy::unused_async, reason = "the suite takes a future, for stores that must connect")]
    pub(crate) async fn new() -> Self {
        let clock = ManualClock::starting_at(Timestamp::from_secs(1_800_000_000));
        let folder = tempfile::tempdir().unwrap();
        let store = open(&clock, folder.path().join(NAME));
        Self { clock, folder, store }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join(NAME)
    }

    /// A connection beside the store: the handler's own.
    pub(crate) fn beside(&self) -> Connection {
        let connection = Connection::open(self.path()).unwrap();
        connection.busy_timeout(Duration::from_secs(5)).unwrap();
        connection
    }
}

fn open(clock: &ManualClock, path: PathBuf) -> SqliteStore {
    SqliteStore::open_on(clock.clone(), path, Options::default().with_max_records(MAX_RECORDS)).unwrap()
}

#[async_trait]
impl Fixture for File {
    type Store = SqliteStore;

    fn store(&self) -> &SqliteStore {
        &self.store
    }

    async fn another(&self) -> SqliteStore {
        open(&self.clock, self.path())
    }

    fn advance(&self, length: Duration) {
        self.clock.advance(length);
    }

    async fn count(&self) -> u64 {
        let count = self
            .beside()
            .query_row("SELECT count(*) FROM relent_idempotency", [], |row| row.get::<_, i64>(0));
        count.unwrap().unsigned_abs()
    }

    /// The files as they are at this moment, without what a close would do: what a killed process leaves.
    async fn crash(&mut self) -> Crashed {
        let folder = tempfile::tempdir().unwrap();
        for name in [NAME.to_owned(), format!("{NAME}-wal")] {
            let from = self.folder.path().join(&name);
            if from.exists() {
                fs::copy(from, folder.path().join(&name)).unwrap();
            }
        }
        self.store = open(&self.clock, folder.path().join(NAME));
        self.folder = folder;
        Crashed::Reopened
    }
}

const NAME: &str = "service.db";
