//! How a store uses its database.

use std::{fmt, sync::Arc};

use relent::{Clock, Timestamp};

/// How a store uses its database.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Options {
    /// The schema of the table. `None`, the default: the first one where the connection looks (`search_path`).
    pub schema: Option<String>,
    /// The most records that are kept: once there were as many newer ones, a record that is done goes, and **a late
    /// repeat of it is carried out again**. `None`, the default: as many as live.
    pub max_records: Option<u64>,
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

    /// The same by another clock than the database's, for tests.
    #[must_use]
    pub fn with_clock(self, clock: impl Clock) -> Self {
        Self { now: Some(Arc::new(move || clock.now())), ..self }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { schema, max_records, .. } = self;
        f.debug_struct("Options")
            .field("schema", schema)
            .field("max_records", max_records)
            .finish_non_exhaustive()
    }
}
