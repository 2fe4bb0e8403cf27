//! Idempotency records in embedded SQLite.
//!
//! The store of a service on one machine: a file, which may be the service's own database. One writer thread commits
//! many requests together, and is done when they are on disk. Several processes may share the file.
//!
//! A handler whose own tables are in the same file does its work and ends its run in one transaction,
//! [`SqliteStore::transact`]: then its outcome is never unknown, whenever the process dies.
//!
//! ```
//! use bytes::Bytes;
//! use http::{Response, StatusCode};
//! use http_body_util::Full;
//! use relent_idempotency::{Answer, Everyone, IdempotencyLayer, Run, Settings, WhenLost};
//! use relent_idempotency_sqlite::{Options, SqliteStore, rusqlite};
//!
//! /// Its run stands in the extensions of the request.
//! async fn create_order(store: SqliteStore, run: Run, item: String) -> Response<Full<Bytes>> {
//!     let done = store.transact(run.lease(), move |transaction| {
//!         transaction.execute("INSERT INTO orders (item) VALUES (?1)", [&item])?;
//!         let id = transaction.last_insert_rowid();
//!         Ok::<_, rusqlite::Error>(Answer::new(StatusCode::CREATED, format!("order {id}")))
//!     });
//!     match done.await {
//!         Ok(answer) => answer.into(),
//!         Err(_) => Answer::new(StatusCode::SERVICE_UNAVAILABLE, "nothing was done").into(),
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("shop.db");
//! let store = SqliteStore::open(&path, Options::default())?;
//! // Without this line a run of which nothing is recorded is of unknown outcome, and never repeated.
//! let settings = Settings { when_lost: WhenLost::SharedTransaction, ..Settings::default() };
//! // `Everyone`: one space of keys. A service with several callers tells them apart: `ByHeader`.
//! let layer = IdempotencyLayer::new(store.clone(), Everyone, settings)?;
//! // axum: Router::new().route("/orders", post(…)).route_layer(layer)
//! # rusqlite::Connection::open(store.path())?.execute_batch("CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT)")?;
//! # let service = tower::Layer::layer(&layer, tower::service_fn(move |request: http::Request<relent_idempotency::RequestBody<Full<Bytes>>>| {
//! #     let (store, run) = (store.clone(), request.extensions().get::<Run>().unwrap().clone());
//! #     async move { Ok::<_, std::convert::Infallible>(create_order(store, run, "apples".into()).await) }
//! # }));
//! # for replayed in [false, true] {
//! #     let request = http::Request::post("/orders").header("idempotency-key", "k").body(Full::default())?;
//! #     let response = tower::ServiceExt::oneshot(service.clone(), request).await?;
//! #     assert_eq!((response.status(), response.headers().contains_key("idempotency-replayed")), (StatusCode::CREATED, replayed));
//! # }
//! # Ok(())
//! # }
//! ```
//!
//! # For an operator
//!
//! What nobody knows, and, once it is known that it was not done, the way to let it be done:
//!
//! ```sql
//! SELECT caller, key, datetime(claimed_at / 1000000000, 'unixepoch') FROM relent_idempotency
//!     WHERE stage = 'unknown' OR (stage = 'running' AND if_lost = 'unknown' AND lease_until <= 1000000000 * unixepoch());
//! DELETE FROM relent_idempotency WHERE caller = 'tenant-17' AND key = 'order-1'
//!     AND (stage = 'unknown' OR (stage = 'running' AND lease_until <= 1000000000 * unixepoch()));
//! ```

#![forbid(unsafe_code)]

mod error;
mod record;
mod store;
mod thread;

pub use rusqlite;

pub use error::TransactError;
pub use store::{Options, SqliteStore};

/// The README's example, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
