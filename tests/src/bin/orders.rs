//! A small service behind the idempotency layer, for tests that kill it.
//!
//! `orders COMMAND STORE`, where STORE is `sqlite FILE` or `postgres URL SCHEMA`:
//!
//! - `prepare`: makes the store and the table of orders. Exit code 3: no database answers.
//! - `serve LEASE EFFECTS [again | shared]`: answers `POST /orders` and prints its address. LEASE is in milliseconds. An
//!   order is a line in the file EFFECTS, synced, which no transaction holds (`again`: and lost work is done again); or, `shared`, a row beside the
//!   record.
//! - `count`: the key of every row of orders, a line each.
//! - `drop`: removes the schema.

#![forbid(unsafe_code)]

use std::{
    env,
    error::Error as StdError,
    fs::OpenOptions,
    io::Write,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use axum::{
    Extension, Router,
    body::Bytes,
    http::{self, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use http_body_util::Full;
use relent::{Clock, TokioClock};
use relent_idempotency::{Answer, Everyone, IdempotencyLayer, Run, Settings, WhenLost};
use relent_idempotency_postgres::{
    Options, PostgresStore,
    deadpool_postgres::{Manager, Pool},
    tokio_postgres::{self, NoTls},
};
use relent_idempotency_sqlite::{SqliteStore, rusqlite};

type Failure = Box<dyn StdError + Send + Sync>;

/// Where records and orders are.
#[derive(Clone)]
enum Place {
    Sqlite(SqliteStore),
    Postgres { store: PostgresStore, pool: Pool, schema: String },
}

/// What the handler is to do.
struct Desk {
    place: Place,
    effects: PathBuf,
    when_lost: WhenLost,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&args).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("orders: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: &[&str]) -> Result<ExitCode, Failure> {
    let (command, args) = args.split_first().ok_or("a command is missing")?;
    let (place, rest) = Place::of(args).await?;
    match *command {
        "prepare" => {
            if let Place::Postgres { pool, .. } = &place
                && let Err(error) = pool.get().await
            {
                eprintln!("no database: {error}");
                return Ok(ExitCode::from(3));
            }
            place.prepare().await?;
        }
        "serve" => serve(place, rest).await?,
        "count" => place.print_orders().await?,
        "drop" => place.drop().await?,
        other => return Err(format!("no command is called {other}").into()),
    }
    Ok(ExitCode::SUCCESS)
}

async fn serve(place: Place, rest: &[&str]) -> Result<(), Failure> {
    let (lease, effects, when_lost) = match rest {
        [lease, effects] => (lease, effects, WhenLost::Refuse),
        [lease, effects, "again"] => (lease, effects, WhenLost::RunAgain),
        [lease, effects, "shared"] => (lease, effects, WhenLost::SharedTransaction),
        _ => {
            return Err("serve wants a lease, a file for the effects, and perhaps `again` or `shared`".into());
        }
    };
    let lease = Duration::from_millis(lease.parse()?);
    let settings = Settings { lease, store_timeout: lease * 9 / 10, when_lost, ..Settings::default() };
    let layer = match &place {
        Place::Sqlite(store) => IdempotencyLayer::new(store.clone(), Everyone, settings)?,
        Place::Postgres { store, .. } => IdempotencyLayer::new(store.clone(), Everyone, settings)?,
    };
    let desk = Arc::new(Desk { place, effects: PathBuf::from(effects), when_lost });
    let orders = post(move |Extension(run): Extension<Run>| async move { take(&desk, &run).await });
    let app = Router::new().route("/orders", orders.route_layer(layer));
    let listener = tokio::net::TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    println!("listening on {}", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}

/// Takes an order: some time passes before its effect and some after, so that a kill falls between the two. An order
/// whose key begins with `gated` makes a file EFFECTS.there, and waits until there is a file EFFECTS.go.
async fn take(desk: &Desk, run: &Run) -> Response {
    let lease = run.lease();
    let key = lease.record.key.as_str().to_owned();
    let (before, after) = (u64::from(lease.claim.0[1] % 4), u64::from(lease.claim.0[2] % 4));
    TokioClock.sleep(Duration::from_millis(before)).await;
    if key.starts_with("gated") {
        std::fs::write(desk.effects.with_extension("there"), "").expect("a file can be made");
        let gate = desk.effects.with_extension("go");
        while !gate.exists() {
            TokioClock.sleep(Duration::from_millis(10)).await;
        }
    }
    let answer = Answer::new(StatusCode::CREATED, format!("ordered {key}"));
    let done = match desk.when_lost {
        WhenLost::SharedTransaction => desk.place.order(run, key, answer).await,
        WhenLost::Refuse | WhenLost::RunAgain => {
            append(&desk.effects, &key).map(|()| answer).map_err(Failure::from)
        }
    };
    TokioClock.sleep(Duration::from_millis(after)).await;
    match done {
        Ok(answer) => http::Response::<Full<Bytes>>::from(answer).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// An effect that no transaction holds: a line on disk.
fn append(file: &Path, key: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    file.write_all(format!("{key}\n").as_bytes())?;
    file.sync_data()
}

impl Place {
    /// The place that the arguments name, and the arguments behind.
    async fn of<'a>(args: &'a [&'a str]) -> Result<(Self, &'a [&'a str]), Failure> {
        match args {
            ["sqlite", file, rest @ ..] => Ok((
                Self::Sqlite(SqliteStore::open(file, relent_idempotency_sqlite::Options::default())?),
                rest,
            )),
            ["postgres", url, schema, rest @ ..] => {
                let config: tokio_postgres::Config = url.parse()?;
                let pool = Pool::builder(Manager::new(config, NoTls)).max_size(8).build()?;
                let store = PostgresStore::new(pool.clone(), Options::default().with_schema(*schema))?;
                Ok((Self::Postgres { store, pool, schema: (*schema).into() }, rest))
            }
            _ => Err("name a store: sqlite FILE, or postgres URL SCHEMA".into()),
        }
    }

    async fn prepare(&self) -> Result<(), Failure> {
        match self {
            Self::Sqlite(store) => {
                let connection = rusqlite::Connection::open(store.path())?;
                connection
                    .execute_batch("CREATE TABLE orders (id INTEGER PRIMARY KEY, key TEXT NOT NULL)")?;
            }
            Self::Postgres { store, pool, schema } => {
                let orders =
                    format!("CREATE TABLE {schema}.orders (id bigserial PRIMARY KEY, key text NOT NULL)");
                pool.get().await?.batch_execute(&format!("CREATE SCHEMA {schema}; {orders}")).await?;
                store.migrate().await?;
            }
        }
        Ok(())
    }

    /// An order and the end of its run in one transaction.
    async fn order(&self, run: &Run, key: String, answer: Answer) -> Result<Answer, Failure> {
        match self {
            Self::Sqlite(store) => {
                let work = move |transaction: &rusqlite::Connection| {
                    transaction.execute("INSERT INTO orders (key) VALUES (?1)", [&key])?;
                    Ok::<_, rusqlite::Error>(answer)
                };
                Ok(store.transact(run.lease(), work).await?)
            }
            Self::Postgres { store, pool, schema } => {
                let mut client = pool.get().await?;
                let transaction = client.transaction().await?;
                transaction
                    .execute(&format!("INSERT INTO {schema}.orders (key) VALUES ($1)"), &[&key])
                    .await?;
                store.finish_in(&transaction, run.lease(), &answer).await?;
                transaction.commit().await?;
                Ok(answer)
            }
        }
    }

    async fn print_orders(&self) -> Result<(), Failure> {
        let keys: Vec<String> = match self {
            Self::Sqlite(store) => {
                let connection = rusqlite::Connection::open(store.path())?;
                let mut statement = connection.prepare("SELECT key FROM orders")?;
                statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?
            }
            Self::Postgres { pool, schema, .. } => {
                let rows = pool.get().await?.query(&format!("SELECT key FROM {schema}.orders"), &[]).await?;
                rows.iter().map(|row| row.get(0)).collect()
            }
        };
        keys.iter().for_each(|key| println!("{key}"));
        Ok(())
    }

    async fn drop(&self) -> Result<(), Failure> {
        if let Self::Postgres { pool, schema, .. } = self {
            pool.get().await?.batch_execute(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE")).await?;
        }
        Ok(())
    }
}
