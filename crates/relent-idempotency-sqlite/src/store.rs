//! The handle on a store.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};

use async_trait::async_trait;
use relent::{Clock, Timestamp, UnixClock};
use relent_idempotency::{
    Answer, Claim, Claimed, End, Error, ErrorKind, Finished, Lease, Record, RecordId, Resolution, Resolved,
    Row, State, Store, Write,
};
use rusqlite::Connection;
use tokio::sync::mpsc;

use crate::{
    error::{TransactError, sqlite},
    record,
    thread::{self, Failed, QUEUE, Writer},
};

/// How a store is opened.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// The most records that are kept: once there were as many newer ones, a record that is done goes, and **a late
    /// repeat of it is carried out again**. `None`, the default: as many as live, and as the disk holds.
    pub max_records: Option<u64>,
}

impl Options {
    /// The same with a limit to the number of records.
    #[must_use]
    pub fn with_max_records(self, max_records: u64) -> Self {
        Self { max_records: Some(max_records) }
    }
}

/// A store in a SQLite file, which may hold the service's own tables too, and which several processes may share. Clones
/// share it.
///
/// What was answered is on disk before the client hears it. Dropping the last clone ends the writer after what was asked
/// by then, and waits for it.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

struct Inner {
    writer: Option<Writer>,
    thread: Option<JoinHandle<()>>,
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    options: Options,
    path: PathBuf,
}

impl SqliteStore {
    /// Opens the store in a file, which is made if it is not there. Blocks.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`] if the file cannot be used, or its tables are of a newer relent.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        Self::open_on(UnixClock::new(), path, options)
    }

    /// The same by another clock, for tests. All processes that share the file must have the same time.
    ///
    /// # Errors
    ///
    /// As [`SqliteStore::open`].
    pub fn open_on(clock: impl Clock, path: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        let path = path.as_ref().to_path_buf();
        let connection = Connection::open(&path).map_err(sqlite("open the database"))?;
        thread::configure(&connection)?;
        prepare(&connection)?;
        let (writer, requests) = mpsc::channel(QUEUE);
        let no_thread = |error: std::io::Error| {
            Error::new(ErrorKind::Unavailable, "cannot start a thread").with_source(error)
        };
        let thread = Some(thread::spawn(connection, requests).map_err(no_thread)?);
        let now = Arc::new(move || clock.now());
        Ok(Self { inner: Arc::new(Inner { writer: Some(writer), thread, now, options, path }) })
    }

    /// Where the database is.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Does a handler's work and ends its run in one transaction, on the store's own connection, where many commit
    /// together. The work gets a connection inside that transaction; what it writes stands if and only if its answer
    /// does. It must not begin or end transactions, and be short: everybody else waits.
    ///
    /// For layers with [`WhenLost::SharedTransaction`](relent_idempotency::WhenLost::SharedTransaction).
    ///
    /// # Errors
    ///
    /// [`TransactError::Store`] with [`ErrorKind::Stale`] if the lease is lost, with [`ErrorKind::Misuse`] if the run has
    /// ended already. Nothing is written then.
    ///
    /// # Panics
    ///
    /// With the work; nothing is written.
    ///
    /// # Cancellation safety
    ///
    /// Dropped before the writer came to it, nothing is done; after, all of it.
    pub async fn transact<E: Send + 'static>(
        &self,
        lease: &Lease,
        work: impl FnOnce(&Connection) -> Result<Answer, E> + Send + 'static,
    ) -> Result<Answer, TransactError<E>> {
        let (lease, now) = (lease.clone(), Arc::clone(&self.inner.now));
        let done = thread::ask(self.inner.writer()?, move |connection| {
            let answer = work(connection).map_err(Failed::Work)?;
            end_once(connection, &lease, &answer, now())?;
            Ok(answer)
        });
        done.await.map_err(|failed| match failed {
            Failed::Store(error) => TransactError::Store(error),
            Failed::Work(error) => TransactError::Work(error),
        })
    }

    /// Ends a run inside a transaction of the handler's own connection to the same file: the record stands if and only
    /// if that transaction does. Commit only after `Ok`.
    ///
    /// While the transaction is open, every claim on this file waits for it (SQLite has one writer), at most four
    /// seconds. Prefer [`SqliteStore::transact`] unless the connection must be the handler's.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Stale`] if the lease is lost, [`ErrorKind::Misuse`] if the run has ended already: roll back.
    /// [`ErrorKind::Misuse`] if the connection is in no transaction.
    pub fn finish_in(&self, transaction: &Connection, lease: &Lease, answer: &Answer) -> Result<(), Error> {
        thread::in_transaction(transaction)?;
        end_once(transaction, lease, answer, (self.inner.now)())
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection, Timestamp) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let now = Arc::clone(&self.inner.now);
        let done = thread::ask(self.inner.writer()?, move |connection| {
            Ok::<_, Failed<Never>>(work(connection, now())?)
        });
        done.await.map_err(|failed| match failed {
            Failed::Store(error) => error,
            Failed::Work(never) => match never {},
        })
    }
}

/// Work of the store's own fails only as the store.
enum Never {}

#[async_trait]
impl Store for SqliteStore {
    async fn claim(&self, claim: &Claim) -> Result<Claimed, Error> {
        let (claim, max_records) = (claim.clone(), self.inner.options.max_records);
        self.write(move |connection, now| {
            let id = &claim.record;
            let step = Row::claim(record::load(connection, id)?.as_ref(), &claim, now);
            match &step.write {
                Write::Put(row) if step.say.is_new() => record::begin(connection, id, row, now, max_records)?,
                _ => return record::carry_out(connection, id, step),
            }
            Ok(step.say)
        })
        .await
    }

    async fn renew(&self, lease: &Lease, length: Duration) -> Result<(), Error> {
        let lease = lease.clone();
        self.write(move |connection, now| {
            let row = record::load(connection, &lease.record)?;
            record::carry_out(connection, &lease.record, Row::renew(row.as_ref(), lease.claim, length, now)?)
        })
        .await
    }

    async fn finish(&self, lease: &Lease, end: End) -> Result<Finished, Error> {
        let lease = lease.clone();
        self.write(move |connection, now| finish(connection, &lease, end, now)).await
    }

    async fn read(&self, id: &RecordId) -> Result<Option<Record>, Error> {
        let id = id.clone();
        self.write(move |connection, now| {
            Ok(record::load(connection, &id)?.and_then(|row| row.record(&id, now)))
        })
        .await
    }

    async fn unknown(&self, limit: usize) -> Result<Vec<Record>, Error> {
        self.write(move |connection, now| {
            record::open(connection, limit, |id, row| {
                row.record(id, now).filter(|record| record.state == State::Unknown)
            })
        })
        .await
    }

    async fn resolve(&self, id: &RecordId, resolution: Resolution) -> Result<Resolved, Error> {
        let id = id.clone();
        self.write(move |connection, now| {
            let row = record::load(connection, &id)?;
            record::carry_out(connection, &id, Row::resolve(row.as_ref(), resolution, now))
        })
        .await
    }

    async fn purge(&self, limit: usize) -> Result<u64, Error> {
        self.write(move |connection, now| record::purge(connection, now, limit)).await
    }
}

fn finish(connection: &Connection, lease: &Lease, end: End, now: Timestamp) -> Result<Finished, Error> {
    let row = record::load(connection, &lease.record)?;
    record::carry_out(connection, &lease.record, Row::finish(row.as_ref(), lease.claim, end, now)?)
}

/// Ends a run that has not ended: a second transaction of the same run would do its work a second time.
fn end_once(connection: &Connection, lease: &Lease, answer: &Answer, now: Timestamp) -> Result<(), Error> {
    match finish(connection, lease, End::Answered(answer.clone()), now)? {
        Finished::Done => Ok(()),
        Finished::Already => {
            Err(Error::new(ErrorKind::Misuse, "the run has ended already, with the answer that stands"))
        }
    }
}

/// Makes the tables if they are not there, and refuses those of a newer relent.
fn prepare(connection: &Connection) -> Result<(), Error> {
    let schema = format!("BEGIN IMMEDIATE; {}; COMMIT;", include_str!("schema.sql"));
    connection.execute_batch(&schema).map_err(sqlite("make the tables"))?;
    let version: i64 = connection
        .query_row("SELECT version FROM relent_idempotency_version", [], |row| row.get(0))
        .map_err(sqlite("read the version"))?;
    if version != VERSION {
        let what =
            format!("the tables have version {version}, and this relent knows {VERSION}: use a newer relent");
        return Err(Error::new(ErrorKind::Unavailable, what));
    }
    Ok(())
}

const VERSION: i64 = 1;

impl Inner {
    fn writer(&self) -> Result<&Writer, Error> {
        self.writer.as_ref().ok_or_else(|| Error::new(ErrorKind::Unavailable, "the store is closed"))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.writer = None;
        if let Some(thread) = self.thread.take() {
            // If it panicked, its own message has said so, and its callers were told.
            drop(thread.join());
        }
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.inner.path).finish_non_exhaustive()
    }
}
