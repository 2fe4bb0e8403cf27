//! The store's threads: one writer that commits many requests together, and readers beside it.

mod commit;
mod parcel;

use std::{io, thread::JoinHandle};

use relent_ledger::{Error, ErrorKind};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::write::Write;
use commit::commit_together;
pub(crate) use commit::{Failure, Ran};
pub(crate) use parcel::{Parcel, Returned, Returns};

/// A request to the writer: run inside a transaction, answered after its commit.
pub(crate) trait Job: Send {
    /// Carries the request out. Called at most once.
    fn run(&mut self, write: &mut Write<'_>) -> Ran;

    /// Tells the caller. With a failure, nothing of the batch is on disk.
    fn answer(self: Box<Self>, commit: Result<(), &Failure>);
}

/// The way to a thread: what it is sent, and the order to stop.
pub(crate) enum Message<J> {
    Job(J),
    Stop,
}

/// A question to a reader.
pub(crate) type Question = Box<dyn FnOnce(&Connection) + Send>;

/// The writer's end of a request of any kind.
struct Request<T, W> {
    work: Option<W>,
    result: Option<Result<T, Error>>,
    reply: oneshot::Sender<Result<T, Error>>,
}

impl<T, W> Job for Request<T, W>
where
    T: Send,
    W: FnOnce(&mut Write<'_>) -> Result<T, Error> + Send,
{
    fn run(&mut self, write: &mut Write<'_>) -> Ran {
        // A caller that is gone by now needs nothing done.
        let Some(work) = self.work.take().filter(|_| !self.reply.is_closed()) else { return Ran::Unwanted };
        let result = work(write);
        let ran = result.as_ref().map_or_else(|error| Ran::Failed(error.kind()), |_| Ran::Keep);
        self.result = Some(result);
        ran
    }

    fn answer(self: Box<Self>, commit: Result<(), &Failure>) {
        let answer = match (self.result, commit) {
            (Some(Err(error)), _) => Err(error),
            (_, Err(failure)) => Err(failure.error()),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => return,
        };
        // Nobody may be waiting any more. A parcel that cannot be handed over goes back by itself.
        drop(self.reply.send(answer));
    }
}

/// Has the writer carry out `work` and waits until it is on disk.
///
/// # Cancellation safety
///
/// Dropped before the writer came to it, the work is not done; after, it is done whole.
pub(crate) async fn ask_writer<T: Send + 'static>(
    writer: &mpsc::Sender<Message<Box<dyn Job>>>,
    work: impl FnOnce(&mut Write<'_>) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let (reply, answer) = oneshot::channel();
    let request = Box::new(Request { work: Some(work), result: None, reply });
    writer.send(Message::Job(request)).await.map_err(|_| closed())?;
    answer.await.map_err(|_| died("writer"))?
}

/// Asks a reader.
pub(crate) async fn ask_reader<T: Send + 'static>(
    reader: &mpsc::Sender<Message<Question>>,
    question: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let (reply, answer) = oneshot::channel();
    let question = Box::new(move |connection: &Connection| drop(reply.send(question(connection))));
    reader.send(Message::Job(question)).await.map_err(|_| closed())?;
    answer.await.map_err(|_| died("reader"))?
}

/// Starts the writer. It ends when it is told to stop or when nobody can send to it any more, after what was
/// sent by then. It closes its connection after those of the readers, because the last to close takes the log
/// into the database and a reader cannot; `until_then` is dropped last.
pub(crate) fn spawn_writer(
    connection: Connection,
    returns: Returns,
    readers: [JoinHandle<()>; 2],
    mut requests: mpsc::Receiver<Message<Box<dyn Job>>>,
    until_then: impl Send + 'static,
) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("relent-ledger-writer".into()).spawn(move || {
        let mut batch = Vec::with_capacity(BATCH);
        while let Some(first) = requests.blocking_recv() {
            let mut next = Some(first);
            while let Some(message) = next {
                match message {
                    Message::Job(job) => batch.push(job),
                    Message::Stop => requests.close(),
                }
                next = if batch.len() < BATCH { requests.try_recv().ok() } else { None };
            }
            commit_together(&connection, &returns, &mut batch);
        }
        for reader in readers {
            await_end(reader);
        }
        drop(connection);
        drop(until_then);
    })
}

/// Waits until a thread has ended. If it panicked, its own message has said so, and its callers were told.
pub(crate) fn await_end(thread: JoinHandle<()>) {
    drop(thread.join());
}

/// Starts a reader, which ends like the writer.
pub(crate) fn spawn_reader(
    name: &str,
    connection: Connection,
    mut questions: mpsc::Receiver<Message<Question>>,
) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.into()).spawn(move || {
        while let Some(message) = questions.blocking_recv() {
            match message {
                Message::Job(question) => question(&connection),
                Message::Stop => questions.close(),
            }
        }
    })
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the store is closed")
}

fn died(which: &str) -> Error {
    Error::new(ErrorKind::Unavailable, format!("the store's {which} thread ended before it answered"))
}

/// The most requests in one commit: past 256 rows a sync is so well shared that more gains nothing and only
/// makes the first of them wait.
const BATCH: usize = 256;

/// The most requests that wait for the writer before callers wait to be let in: the batch being gathered while
/// one commits, and as much again.
pub(crate) const QUEUE: usize = 2 * BATCH;
