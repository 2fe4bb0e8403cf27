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

#![forbid(unsafe_code)]

mod error;
mod record;
mod sql;
mod store;

pub use deadpool_postgres;
pub use tokio_postgres;

pub use store::{Options, PostgresStore};
