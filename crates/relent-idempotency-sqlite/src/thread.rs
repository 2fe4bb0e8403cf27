//! The store's one writer: it takes what has gathered, carries each request out in a savepoint of its own, commits once,
//! and answers only then. A commit costs one sync whether it carries one record or a hundred.

use std::{io, panic::AssertUnwindSafe, sync::Arc, thread::JoinHandle};

use relent_idempotency::{Error, ErrorKind};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::error::{kind, sqlite};

/// A request to the writer: run inside a transaction, answered after its commit.
pub(crate) trait Job: Send {
    /// Carries the request out. Called at most once.
    fn run(&mut self, connection: &Connection) -> Ran;

    /// Tells the caller. With a failure, nothing of the batch is on disk.
    fn answer(self: Box<Self>, commit: Result<(), &Failure>);
}

/// Whether a request's changes stand.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ran {
    /// They do, if the commit does.
    Keep,
    /// They are undone, and only they.
    Undo,
}

/// Why nothing of a batch is on disk.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: ErrorKind,
    cause: Option<Arc<rusqlite::Error>>,
}

impl Failure {
    fn error(&self) -> Error {
        match &self.cause {
            Some(cause) => {
                Error::new(self.kind, format!("cannot commit: {cause}")).with_source(Arc::clone(cause))
            }
            None => Error::new(self.kind, "cannot commit: another request's failure undid the transaction"),
        }
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self { kind: kind(&error), cause: Some(Arc::new(error)) }
    }
}

/// What came of a request's work: a value, its own failure, or its panic.
pub(crate) type Outcome<T, E> = std::thread::Result<Result<T, Failed<E>>>;

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum Failed<E> {
    /// The store did.
    Store(Error),
    /// The work itself did.
    Work(E),
}

impl<E> From<Error> for Failed<E> {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

struct Request<T, E, W> {
    work: Option<W>,
    outcome: Option<Outcome<T, E>>,
    reply: oneshot::Sender<Outcome<T, E>>,
}

impl<T, E, W> Job for Request<T, E, W>
where
    T: Send,
    E: Send,
    W: FnOnce(&Connection) -> Result<T, Failed<E>> + Send,
{
    fn run(&mut self, connection: &Connection) -> Ran {
        // A caller that is gone by now needs nothing done.
        let Some(work) = self.work.take().filter(|_| !self.reply.is_closed()) else { return Ran::Undo };
        // A panic's changes are undone with the savepoint, and whoever asked panics in its place.
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| work(connection)));
        let ran = if matches!(outcome, Ok(Ok(_))) { Ran::Keep } else { Ran::Undo };
        self.outcome = Some(outcome);
        ran
    }

    fn answer(self: Box<Self>, commit: Result<(), &Failure>) {
        let outcome = match (self.outcome, commit) {
            (Some(outcome @ (Err(_) | Ok(Err(_)))), _) => outcome,
            (_, Err(failure)) => Ok(Err(Failed::Store(failure.error()))),
            (Some(outcome), Ok(())) => outcome,
            (None, Ok(())) => return,
        };
        // Nobody may be waiting any more.
        drop(self.reply.send(outcome));
    }
}

/// The way to the writer.
pub(crate) type Writer = mpsc::Sender<Box<dyn Job>>;

/// Has the writer carry out `work` and waits until it is on disk.
///
/// # Cancellation safety
///
/// Dropped before the writer came to it, the work is not done; after, it is done whole.
pub(crate) async fn ask<T: Send + 'static, E: Send + 'static>(
    writer: &Writer,
    work: impl FnOnce(&Connection) -> Result<T, Failed<E>> + Send + 'static,
) -> Result<T, Failed<E>> {
    let (reply, answer) = oneshot::channel();
    let request = Box::new(Request { work: Some(work), outcome: None, reply });
    let ended = || Failed::Store(Error::new(ErrorKind::Unavailable, "the store's writer has ended"));
    writer.send(request).await.map_err(|_| ended())?;
    match answer.await.map_err(|_| ended())? {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Starts the writer. It ends when nobody can send to it any more, after what was sent by then.
pub(crate) fn spawn(
    connection: Connection,
    mut requests: mpsc::Receiver<Box<dyn Job>>,
) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("relent-idempotency".into()).spawn(move || {
        let mut batch = Vec::with_capacity(BATCH);
        while let Some(first) = requests.blocking_recv() {
            batch.push(first);
            while batch.len() < BATCH
                && let Ok(next) = requests.try_recv()
            {
                batch.push(next);
            }
            commit_together(&connection, &mut batch);
        }
    })
}

/// Carries out the requests in one transaction and answers them once it is on disk.
fn commit_together(connection: &Connection, batch: &mut Vec<Box<dyn Job>>) {
    let committed = transact(connection, batch);
    for job in batch.drain(..) {
        job.answer(committed.as_ref().copied());
    }
}

fn transact(connection: &Connection, batch: &mut [Box<dyn Job>]) -> Result<(), Failure> {
    execute(connection, "BEGIN IMMEDIATE")?;
    let done = batch
        .iter_mut()
        .try_for_each(|job| run_alone(connection, job.as_mut()))
        .and_then(|()| execute(connection, "COMMIT"));
    // SQLite may have undone the transaction by itself already (a full disk, a failed write).
    if done.is_err() && !connection.is_autocommit() {
        execute(connection, "ROLLBACK")?;
    }
    done
}

/// Runs one request in a savepoint. Fails only if the whole batch is lost.
fn run_alone(connection: &Connection, job: &mut dyn Job) -> Result<(), Failure> {
    execute(connection, "SAVEPOINT relent_request")?;
    let ran = job.run(connection);
    if connection.is_autocommit() {
        return Err(Failure { kind: ErrorKind::Unavailable, cause: None });
    }
    if ran == Ran::Undo {
        execute(connection, "ROLLBACK TO relent_request")?;
    }
    execute(connection, "RELEASE relent_request")
}

fn execute(connection: &Connection, sql: &str) -> Result<(), Failure> {
    connection.prepare_cached(sql)?.execute([])?;
    Ok(())
}

/// Checks that a connection of the handler's own is in a transaction.
pub(crate) fn in_transaction(connection: &Connection) -> Result<(), Error> {
    if connection.is_autocommit() {
        let what =
            "the connection is in no transaction: the record would be committed without the handler's writes";
        return Err(Error::new(ErrorKind::Misuse, what));
    }
    Ok(())
}

/// Turns on what the store relies on, for its own connection.
pub(crate) fn configure(connection: &Connection) -> Result<(), Error> {
    let pragmas =
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864;";
    connection
        .busy_timeout(BUSY)
        .and_then(|()| connection.execute_batch(pragmas))
        .map_err(sqlite("open the database"))
}

/// The most requests in one commit: past 256 rows a sync is so well shared that more gains nothing and only makes the
/// first of them wait.
const BATCH: usize = 256;

/// The most requests that wait for the writer before callers wait to be let in: the batch being gathered while one
/// commits, and as much again.
pub(crate) const QUEUE: usize = 2 * BATCH;

/// How long another writer may hold the file: a handler's own transaction, or another process's commit.
const BUSY: std::time::Duration = std::time::Duration::from_secs(4);
