//! Idempotency records in PostgreSQL.
//!
//! The store of a service of many processes, over a pool that may be the service's own. Its time is the database's, so
//! that no machine's clock matters.
//!
//! A handler whose own tables are in the same database ends its run in its own transaction,
//! [`PostgresStore::finish_in`]: then its outcome is never unknown, whenever the process dies.
//!
//! ```no_run
//! use http::StatusCode;
//! use relent_idempotency::{Answer, Everyone, IdempotencyLayer, Run, Settings, WhenLost};
//! use relent_idempotency_postgres::{
//!     Options, PostgresStore,
//!     deadpool_postgres::{Manager, Pool},
//!     tokio_postgres::NoTls,
//! };
//!
//! type Failed = Box<dyn std::error::Error + Send + Sync>;
//!
//! /// Its run stands in the extensions of the request. What fails is to be answered with 500 or more.
//! async fn create_order(store: &PostgresStore, pool: &Pool, run: &Run, item: &str) -> Result<Answer, Failed> {
//!     let mut client = pool.get().await?;
//!     let transaction = client.transaction().await?;
//!     let order = transaction.query_one("INSERT INTO orders (item) VALUES ($1) RETURNING id", &[&item]).await?;
//!     let answer = Answer::new(StatusCode::CREATED, format!("order {}", order.get::<_, i64>(0)));
//!     store.finish_in(&transaction, run.lease(), &answer).await?;
//!     transaction.commit().await?;
//!     Ok(answer)
//! }
//!
//! # async fn start() -> Result<IdempotencyLayer, Failed> {
//! let config = "postgres://shop@localhost/shop?connect_timeout=2".parse()?;
//! let pool = Pool::builder(Manager::new(config, NoTls)).max_size(16).build()?;
//! let store = PostgresStore::new(pool, Options::default())?;
//! store.migrate().await?; // or its `schema()` by the tool that makes the other tables
//! // Without this line a run of which nothing is recorded is of unknown outcome, and never repeated.
//! let settings = Settings { when_lost: WhenLost::SharedTransaction, ..Settings::default() };
//! // `Everyone`: one space of keys. A service with several callers tells them apart: `ByHeader`.
//! let layer = IdempotencyLayer::new(store, Everyone, settings)?;
//! // axum: Router::new().route("/orders", post(…)).route_layer(layer)
//! # Ok(layer)
//! # }
//! ```
//!
//! An error of `create_order` becomes an answer of 500 or more; the layer then knows that nothing was done, also where
//! the connection broke in the commit and nobody can tell: the record was in it.
//!
//! # Connections
//!
//! A question that the layer gives up (`Settings::store_timeout`), or whose caller is dropped, is cancelled on the server,
//! and its connection leaves the pool: nothing is asked behind a statement that waits. The cancellation goes without TLS,
//! as `psql`'s did for decades; a server that refuses that ends the statement at [`Options::lock_timeout`] at the latest
//! where it waits for a record. Give the pool room for the handlers' transactions and for the store beside them.
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
mod lent;
mod migrate;
mod options;
mod record;
mod sql;
mod store;

pub use deadpool_postgres;
pub use tokio_postgres;

pub use options::Options;
pub use store::PostgresStore;

/// The README's example, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
