//! SQLite's failures as the contract's, and those of a transaction with a record.

use std::fmt;

use relent_idempotency::{Error, ErrorKind};
use rusqlite::ErrorCode;

/// Why a transaction with a record did not come to be. Nothing of it was written.
#[derive(Debug)]
pub enum TransactError<E> {
    /// The store failed, or the lease is lost.
    Store(Error),
    /// The work failed.
    Work(E),
}

impl<E: fmt::Display> fmt::Display for TransactError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => write!(f, "{error}"),
            Self::Work(error) => write!(f, "{error}"),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for TransactError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            Self::Work(error) => Some(error),
        }
    }
}

impl<E> From<Error> for TransactError<E> {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

/// How a caller should treat a failure of SQLite.
pub(crate) fn kind(error: &rusqlite::Error) -> ErrorKind {
    match error {
        rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::DiskFull => ErrorKind::Full,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => ErrorKind::Corrupt,
            _ => ErrorKind::Unavailable,
        },
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::Utf8Error(..) => ErrorKind::Corrupt,
        _ => ErrorKind::Unavailable,
    }
}

/// Says what was being done when SQLite failed.
pub(crate) fn sqlite(what: &'static str) -> impl FnOnce(rusqlite::Error) -> Error {
    move |error| Error::new(kind(&error), format!("cannot {what}: {error}")).with_source(error)
}
