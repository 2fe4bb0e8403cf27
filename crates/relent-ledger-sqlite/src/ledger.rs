//! The handle on a store.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
    thread::JoinHandle,
};

use async_trait::async_trait;
use relent_core::Timestamp;
use relent_ledger::{
    Accepted, Audit, ClaimQuery, Claims, Discard, Error, ErrorKind, Finish, Ledger, ListQuery, Message,
    MessageId, NewMessage, Page, Redrive, Settled, Shelve, Stretch, Summary, Tally, Ticket,
};
use rusqlite::Connection;
use tokio::sync::{mpsc, watch};

use crate::{
    audit::audit,
    error::sqlite,
    open::{self, Options, Owned},
    read,
    row::Content,
    thread::{
        self, Job, Parcel, QUEUE, Question, Returns, ask_reader, ask_writer, await_end, spawn_reader,
        spawn_writer,
    },
    write::{self, Write},
};

/// A store on embedded SQLite, owned by this process. Clones share it.
///
/// Dropping the last clone ends the threads after what was asked by then, and waits for them.
#[derive(Clone)]
pub struct SqliteLedger {
    inner: Arc<Inner>,
}

struct Inner {
    lanes: Option<Lanes>,
    returns: Returns,
    ended: watch::Receiver<()>,
    thread: Option<JoinHandle<()>>,
    database: PathBuf,
}

/// The ways to the threads. A check reads everything and takes as long, so it has a thread of its own.
struct Lanes {
    writer: mpsc::Sender<thread::Message<Box<dyn Job>>>,
    reads: mpsc::Sender<thread::Message<Question>>,
    audits: mpsc::Sender<thread::Message<Question>>,
}

impl SqliteLedger {
    /// Opens the store in a folder (or the database `path` itself, if that is a file or is called `….db`), makes
    /// it if there is none, and puts back what an earlier owner had in flight, due at `now`. Blocks.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Owned`] while another process, or another handle of this one, has the store;
    /// [`ErrorKind::Unavailable`] if the file is not a store, or was made by a newer relent.
    pub fn open(path: &Path, options: Options, now: Timestamp) -> Result<Self, Error> {
        let Owned { writer, database, lock } = open::own(path, options, now)?;
        let (reads, audits) = (open::reader(&database)?, open::reader(&database)?);
        let (to_writer, requests) = mpsc::channel(QUEUE);
        let (to_reads, read_questions) = mpsc::channel(QUEUE);
        let (to_audits, audit_questions) = mpsc::channel(QUEUE);
        let returns = Returns::new(&to_writer);
        let (alive, ended) = watch::channel(());
        let no_thread =
            |error: io::Error| Error::new(ErrorKind::Unavailable, "cannot start a thread").with_source(error);
        let readers = [
            spawn_reader("relent-ledger-reads", reads, read_questions).map_err(no_thread)?,
            spawn_reader("relent-ledger-audits", audits, audit_questions).map_err(no_thread)?,
        ];
        // The lock is given up first, and then it is said.
        let until_then = (lock, alive);
        let thread =
            spawn_writer(writer, returns.clone(), readers, requests, until_then).map_err(no_thread)?;
        let lanes = Lanes { writer: to_writer, reads: to_reads, audits: to_audits };
        let inner = Inner { lanes: Some(lanes), returns, ended, thread: Some(thread), database };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Where the database is.
    pub fn path(&self) -> &Path {
        &self.inner.database
    }

    /// Closes the store for every clone: what was asked by now is carried out, what comes later is refused as
    /// [`ErrorKind::Closed`]. Returns when the threads have ended and the store may be opened again.
    ///
    /// # Cancellation safety
    ///
    /// Dropped halfway, the store closes all the same or, if a queue was full, stays open.
    pub async fn close(self) {
        if let Some(lanes) = &self.inner.lanes {
            // An error says that the thread has ended already.
            drop(lanes.reads.send(thread::Message::Stop).await);
            drop(lanes.audits.send(thread::Message::Stop).await);
            drop(lanes.writer.send(thread::Message::Stop).await);
        }
        let mut ended = self.inner.ended.clone();
        while ended.changed().await.is_ok() {}
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Write<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        ask_writer(&self.inner.lanes()?.writer, work).await
    }

    async fn read<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        ask_reader(&self.inner.lanes()?.reads, question).await
    }
}

#[async_trait]
impl Ledger for SqliteLedger {
    async fn accept(&self, message: NewMessage) -> Result<Accepted, Error> {
        let content = Content::encode(&message)
            .map_err(|error| Error::new(ErrorKind::Misuse, "cannot encode the message").with_source(error))?;
        self.write(move |write| write::accept(write, &message, &content)).await
    }

    /// Asked of the writer, so that an acceptance which is still on its way to the disk is known as well.
    async fn replay(&self, key: &str, fingerprint: [u8; 32]) -> Result<Option<Accepted>, Error> {
        let key = key.to_owned();
        self.write(move |write| write::replay(write, &key, fingerprint)).await
    }

    async fn claim(&self, query: ClaimQuery) -> Result<Claims, Error> {
        let returns = self.inner.returns.clone();
        let parcel = self
            .write(move |write| {
                write::claim(write, &query).map(|(claims, due)| Parcel::new(claims, due, returns))
            })
            .await?;
        Ok(parcel.open())
    }

    async fn begin_attempt(&self, ticket: &Ticket, at: Timestamp) -> Result<u32, Error> {
        let ticket = *ticket;
        self.write(move |write| write::begin_attempt(write, &ticket, at)).await
    }

    async fn finish(&self, ticket: &Ticket, finish: Finish) -> Result<(), Error> {
        let ticket = *ticket;
        self.write(move |write| write::finish(write, &ticket, &finish)).await
    }

    async fn shelve(&self, ticket: &Ticket, shelve: Shelve) -> Result<(), Error> {
        let ticket = *ticket;
        self.write(move |write| write::shelve(write, &ticket, &shelve)).await
    }

    async fn redrive(&self, id: MessageId, redrive: Redrive) -> Result<Settled, Error> {
        self.write(move |write| write::redrive(write, id, &redrive)).await
    }

    async fn discard(&self, id: MessageId, discard: Discard) -> Result<Settled, Error> {
        self.write(move |write| write::discard(write, id, discard)).await
    }

    async fn cancel(&self, id: MessageId, at: Timestamp) -> Result<Settled, Error> {
        self.write(move |write| write::cancel(write, id, at)).await
    }

    async fn message(&self, id: MessageId, log: Stretch) -> Result<Option<Message>, Error> {
        self.read(move |connection| read::message(connection, id, log).map_err(sqlite("read a message")))
            .await
    }

    async fn list(&self, query: ListQuery) -> Result<Page<Summary>, Error> {
        self.read(move |connection| read::list(connection, &query).map_err(sqlite("list messages"))).await
    }

    async fn room(&self) -> Result<(), Error> {
        self.write(write::room).await
    }

    async fn tally(&self) -> Result<Tally, Error> {
        self.read(|connection| read::tally(connection).map_err(sqlite("read the counts"))).await
    }

    async fn audit(&self) -> Result<Audit, Error> {
        ask_reader(&self.inner.lanes()?.audits, audit).await
    }
}

impl fmt::Debug for SqliteLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteLedger").field("path", &self.inner.database).finish_non_exhaustive()
    }
}

impl Inner {
    fn lanes(&self) -> Result<&Lanes, Error> {
        self.lanes.as_ref().ok_or_else(|| Error::new(ErrorKind::Closed, "the store is closed"))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.lanes = None;
        if let Some(thread) = self.thread.take() {
            await_end(thread);
        }
    }
}
