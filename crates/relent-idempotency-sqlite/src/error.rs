//! SQLite's failures as the contract's.

use relent_idempotency::{Error, ErrorKind};
use rusqlite::ErrorCode;

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
