//! A shop behind the idempotency layer, with axum and SQLite.
//!
//! ```console
//! $ cargo run -p relent-idempotency --features tracing --example orders            # shows itself and ends
//! $ cargo run -p relent-idempotency --features tracing --example orders 127.0.0.1:3000 shop.db
//! $ curl -i 127.0.0.1:3000/orders -H 'authorization: Bearer me' -H 'idempotency-key: order-1' -d apples
//! ```
//!
//! Two kinds of handlers stand side by side:
//!
//! - `POST /orders` writes into the database in which the records are, and ends its run in the same transaction. Kill the
//!   server whenever you like: an order that was answered is there, once, and one that was not can be sent again.
//! - `POST /payments` charges a card somewhere else, which no transaction of ours holds. If the server dies in between,
//!   a repeat is told that nobody knows, and a person looks it up.

use std::{error::Error, net::SocketAddr, path::Path, sync::Arc};

use axum::{
    Extension, Router,
    body::Bytes,
    extract::State,
    response::{IntoResponse, Response},
    routing::post,
};
use http::{HeaderValue, StatusCode, header};
use http_body_util::{BodyExt, Full};
use relent_idempotency::{
    Answer, ByHeader, IdempotencyLayer, NoEffect, Run, Settings, Store, Tracing, WhenLost,
};
use relent_idempotency_sqlite::{Options, SqliteStore, rusqlite};
use tokio::{net::TcpListener, signal};
use tower::ServiceExt;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args[..] {
        [] => show().await,
        [address, file] => serve(address.parse()?, Path::new(file)).await,
        _ => Err("usage: orders [ADDRESS FILE]".into()),
    }
}

/// The shop on a database.
fn shop(store: &SqliteStore) -> Result<(Router, IdempotencyLayer), Box<dyn Error>> {
    rusqlite::Connection::open(store.path())?
        .execute_batch("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT NOT NULL)")?;
    let callers = ByHeader(header::AUTHORIZATION);
    let layer = IdempotencyLayer::new(store.clone(), callers, Settings::default())?
        .observed_by(Arc::new(Tracing))
        .with_documentation("https://shop.example/docs/idempotency")?;
    let in_transaction = Settings { when_lost: WhenLost::SharedTransaction, ..Settings::default() };
    let router = Router::new()
        .route("/orders", post(create_order).route_layer(layer.clone().with_settings(in_transaction)?))
        .route("/payments", post(create_payment).route_layer(layer.clone()))
        .with_state(store.clone());
    Ok((router, layer))
}

/// Work and record in one transaction: SQLite commits both or neither.
async fn create_order(
    State(store): State<SqliteStore>,
    Extension(run): Extension<Run>,
    item: String,
) -> Response {
    let work = move |transaction: &rusqlite::Connection| {
        transaction.execute("INSERT INTO orders (item) VALUES (?1)", [&item])?;
        let id = transaction.last_insert_rowid();
        let location = HeaderValue::try_from(format!("/orders/{id}")).expect("a path of ASCII characters");
        let answer = Answer::new(StatusCode::CREATED, format!("order {id}: {item}\n"));
        Ok::<_, rusqlite::Error>(answer.with_header(header::LOCATION, location))
    };
    match store.transact(run.lease(), work).await {
        Ok(answer) => http::Response::<Full<Bytes>>::from(answer).into_response(),
        // Nothing was written, and the layer knows it: this is not kept, and a repeat may do the work.
        Err(error) => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("nothing was ordered: {error}\n")).into_response()
        }
    }
}

/// An effect that no transaction of ours holds.
async fn create_payment(amount: String) -> Response {
    match charge(&amount).await {
        Ok(receipt) => (StatusCode::CREATED, receipt).into_response(),
        // It refused before anything happened, and says so: the key stays free.
        Err(Refused) => {
            (StatusCode::SERVICE_UNAVAILABLE, Extension(NoEffect), "come back later\n").into_response()
        }
    }
}

struct Refused;

/// Stands for a call to a bank.
async fn charge(amount: &str) -> Result<String, Refused> {
    tokio::task::yield_now().await;
    if amount == "too much" { Err(Refused) } else { Ok(format!("charged {amount}\n")) }
}

async fn serve(address: SocketAddr, file: &Path) -> Result<(), Box<dyn Error>> {
    let store = SqliteStore::open(file, Options::default())?;
    let (router, layer) = shop(&store)?;
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let stop = async { signal::ctrl_c().await.expect("the system delivers signals") };
    axum::serve(listener, router).with_graceful_shutdown(stop).await?;
    // A handler whose client went away is still at work.
    layer.idle().await;
    for record in store.unknown(100).await? {
        println!("nobody knows what became of key {}", record.id.key);
    }
    Ok(())
}

/// A few requests, and what they are answered.
async fn show() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let store = SqliteStore::open(folder.path().join("shop.db"), Options::default())?;
    let (router, _) = shop(&store)?;
    println!("a first order, and the same request again:");
    ask(&router, "/orders", Some("order-1"), "apples").await?;
    ask(&router, "/orders", Some("order-1"), "apples").await?;
    println!("another request under the same key, and one without a key:");
    ask(&router, "/orders", Some("order-1"), "pears").await?;
    ask(&router, "/orders", None, "pears").await?;
    println!("a payment that is refused without effect, and the same again:");
    ask(&router, "/payments", Some("payment-1"), "too much").await?;
    ask(&router, "/payments", Some("payment-1"), "too much").await?;
    let orders: i64 =
        rusqlite::Connection::open(store.path())?
            .query_row("SELECT count(*) FROM orders", [], |row| row.get(0))?;
    println!("orders in the database: {orders}");
    Ok(())
}

async fn ask(
    router: &Router,
    path: &str,
    key: Option<&str>,
    body: &'static str,
) -> Result<(), Box<dyn Error>> {
    let mut request = http::Request::post(path).header(header::AUTHORIZATION, "Bearer me");
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    let response = router.clone().oneshot(request.body(axum::body::Body::from(body))?).await?;
    let (status, replayed) = (response.status(), response.headers().contains_key("idempotency-replayed"));
    let text = response.into_body().collect().await?.to_bytes();
    let replayed = if replayed { " (replayed)" } else { "" };
    println!("  {}{replayed}: {}", status.as_u16(), String::from_utf8_lossy(&text).trim());
    Ok(())
}
