//! Idempotency records in PostgreSQL.
//!
//! The store of a service of many processes, over a pool that may be the service's own. Its time is the database's, so
//! that no machine's clock matters.
//!
//! A handler whose own tables are in the same database ends its run in its own transaction,
//! [`PostgresStore::finish_in`]: then its outcome is never unknown, whenever the process dies.
//!
//! ```no_run
//! use deadpool_postgres::Pool;
//! use http::StatusCode;
//! use relent_idempotency::{Answer, Run};
//! use relent_idempotency_postgres::PostgresStore;
//!
//! async fn create_order(
//!     store: &PostgresStore,
//!     pool: &Pool,
//!     run: &Run,
//!     item: &str,
//! ) -> Result<Answer, Box<dyn std::error::Error>> {
//!     let mut client = pool.get().await?;
//!     let transaction = client.transaction().await?;
//!     let order = transaction.query_one("INSERT INTO orders (item) VALUES ($1) RETURNING id", &[&item]).await?;
//!     let answer = Answer::new(StatusCode::CREATED, format!("order {}", order.get::<_, i64>(0)));
//!     store.finish_in(&transaction, run.lease(), &answer).await?;
//!     transaction.commit().await?;
//!     Ok(answer)
//! }
//! ```
//!
//! An error of this function becomes an answer of 500 or more; the layer then knows that nothing was done, also where
//! the connection broke in the commit and nobody can tell: the record was in it.
//!
//! # For an operator
//!
//! What nobody knows, and, once it is known that it was not done, the way to let it be done:
//!
//! ```sql
//! SELECT caller, key, to_timestamp(claimed_at / 1e9) FROM relent_idempotency
//!     WHERE stage = 'unknown' OR (stage = 'running' AND if_lost = 'unknown' AND lease_until <= 1000000000 * extract(epoch FROM now()));
//! DELETE FROM relent_idempotency WHERE caller = 'tenant-17' AND key = 'order-1'
//!     AND (stage = 'unknown' OR (stage = 'running' AND lease_until <= 1000000000 * extract(epoch FROM now())));
//! ```

#![forbid(unsafe_code)]

mod error;
mod migrate;
mod options;
mod record;
mod sql;
mod store;

pub use deadpool_postgres;
pub use tokio_postgres;

pub use options::Options;
pub use store::PostgresStore;
