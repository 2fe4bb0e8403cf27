//! One commit for many requests, each of which can fail alone; but a full disk or a failed write undoes the whole
//! commit, and then every request of it fails and may be made again.

use std::sync::Arc;

use relent_ledger::{Error, ErrorKind};
use rusqlite::Connection;

use super::{Job, Returns};
use crate::{
    error::kind,
    write::{Delta, Write, release},
};

/// Whether a request's changes stand.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ran {
    /// They do, if the commit does.
    Keep,
    /// Nobody wants it any more, and nothing was changed.
    Unwanted,
    /// The request failed: its changes are undone, and only its.
    Failed(ErrorKind),
}

/// Why nothing of a batch is on disk.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: ErrorKind,
    cause: Option<Arc<rusqlite::Error>>,
}

impl Failure {
    /// The failure as one of the batch's callers is told.
    pub(crate) fn error(&self) -> Error {
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

/// Carries out the requests in one transaction and answers them once it is on disk.
pub(super) fn commit_together(connection: &Connection, returns: &Returns, batch: &mut Vec<Box<dyn Job>>) {
    let returned = returns.take();
    let committed = transact(connection, |delta| {
        release(connection, &returned, delta)?;
        for job in batch.iter_mut() {
            run_alone(connection, job.as_mut(), delta)?;
        }
        Ok(())
    });
    if committed.is_err() {
        returns.put(returned);
    }
    for job in batch.drain(..) {
        job.answer(committed.as_ref().copied());
    }
}

/// One transaction around `work`, with what it changed in the counts.
fn transact(
    connection: &Connection,
    work: impl FnOnce(&mut Delta) -> Result<(), Failure>,
) -> Result<(), Failure> {
    execute(connection, "BEGIN IMMEDIATE")?;
    let mut delta = Delta::default();
    let done = work(&mut delta)
        .and_then(|()| delta.store(connection).map_err(Failure::from))
        .and_then(|()| execute(connection, "COMMIT"));
    // SQLite may have undone the transaction by itself already (a full disk, a failed write).
    if done.is_err() && !connection.is_autocommit() {
        execute(connection, "ROLLBACK")?;
    }
    done
}

/// Runs one request in a savepoint. Fails only if the whole batch is lost.
fn run_alone(connection: &Connection, job: &mut dyn Job, delta: &mut Delta) -> Result<(), Failure> {
    execute(connection, "SAVEPOINT request")?;
    let mut write = Write::new(connection);
    match job.run(&mut write) {
        Ran::Keep => delta.merge(write.into_delta()),
        Ran::Unwanted => {}
        // The failure took the transaction with it, and the requests before it.
        Ran::Failed(kind) if connection.is_autocommit() => return Err(Failure { kind, cause: None }),
        Ran::Failed(_) => execute(connection, "ROLLBACK TO request")?,
    }
    execute(connection, "RELEASE request")
}

fn execute(connection: &Connection, sql: &str) -> Result<(), Failure> {
    connection.prepare_cached(sql)?.execute([])?;
    Ok(())
}
