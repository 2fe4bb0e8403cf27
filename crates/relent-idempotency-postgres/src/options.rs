//! How a store uses its database.

use std::{fmt, sync::Arc, time::Duration};

use relent::{Clock, Timestamp};

/// How a store uses its database.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Options {
    /// The schema of the table. `None`, the default: the first one where the connection looks (`search_path`).
    pub schema: Option<String>,
    /// The most records that are kept: once there were as many newer ones, a record that is done goes, and **a late
    /// repeat of it is carried out again**. Each process counts them whenever it has made another hundredth of the limit,
    /// or 64: so many more may be there. `None`, the default: as many as live.
    pub max_records: Option<u64>,
    /// How long a statement waits for a record that somebody holds in a transaction of theirs, and fails then with
    /// [`ErrorKind::TimedOut`](relent_idempotency::ErrorKind::TimedOut). `None`, the default: 2 s. Choose it shorter than
    /// the layer's [`store_timeout`](relent_idempotency::Settings::store_timeout): what is given up there is cancelled,
    /// and costs its connection.
    pub lock_timeout: Option<Duration>,
    /// Where the time comes from. `None`, the default: the database, so that no machine's clock matters.
    pub(crate) now: Option<Arc<dyn Fn() -> Timestamp + Send + Sync>>,
}

impl Options {
    /// The same in that schema, which must be there.
    #[must_use]
    pub fn with_schema(self, schema: impl Into<String>) -> Self {
        Self { schema: Some(schema.into()), ..self }
    }

    /// The same with a limit to the number of records.
    #[must_use]
    pub fn with_max_records(self, max_records: u64) -> Self {
        Self { max_records: Some(max_records), ..self }
    }

    /// The same, waiting for so long for a record that somebody holds; at least a millisecond.
    #[must_use]
    pub fn with_lock_timeout(self, lock_timeout: Duration) -> Self {
        Self { lock_timeout: Some(lock_timeout), ..self }
    }

    /// The same by another clock than the database's, for tests.
    #[must_use]
    pub fn with_clock(self, clock: impl Clock) -> Self {
        Self { now: Some(Arc::new(move || clock.now())), ..self }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { schema, max_records, lock_timeout, .. } = self;
        f.debug_struct("Options")
            .field("schema", schema)
            .field("max_records", max_records)
            .field("lock_timeout", lock_timeout)
            .finish_non_exhaustive()
    }
}
