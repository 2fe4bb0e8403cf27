//! PostgreSQL's failures as the contract's.

use deadpool_postgres::PoolError;
use relent_idempotency::{Error, ErrorKind};
use tokio_postgres::error::SqlState;

/// Says what was being done when PostgreSQL failed.
pub(crate) fn postgres(what: &'static str) -> impl FnOnce(tokio_postgres::Error) -> Error {
    move |error| {
        let kind = match error.code() {
            Some(&SqlState::DISK_FULL | &SqlState::CONFIGURATION_LIMIT_EXCEEDED) => ErrorKind::Full,
            Some(&SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED) => ErrorKind::Corrupt,
            Some(&SqlState::QUERY_CANCELED | &SqlState::LOCK_NOT_AVAILABLE) => ErrorKind::TimedOut,
            _ => ErrorKind::Unavailable,
        };
        // The driver's own text says only "db error"; the server's says which.
        let detail = error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string);
        Error::new(kind, format!("cannot {what}: {detail}")).with_source(error)
    }
}

/// Says why there is no connection.
pub(crate) fn pool(error: PoolError) -> Error {
    match error {
        PoolError::Backend(error) => postgres("connect")(error),
        PoolError::Timeout(_) => {
            Error::new(ErrorKind::TimedOut, "no connection came free in time").with_source(error)
        }
        _ => Error::new(ErrorKind::Unavailable, format!("no connection: {error}")).with_source(error),
    }
}

/// A failure because what is stored cannot be read.
pub(crate) fn spoiled(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("a record's {what} cannot be read"))
}
