//! What group commit buys: single-row commits a second, accepts a second by many callers, and the ratio.
//! Bounded to about ten seconds.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use relent_core::{Idempotency, Settlement, Timestamp};
use relent_ledger::{
    AttemptEnd, ClaimQuery, Claimed, Destination, Finish, Ledger, MessageId, NewMessage, Request, Truncated,
};
use relent_ledger_sqlite::{Options, SqliteLedger};
use tokio::runtime::{Builder, Runtime};

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let single = single_row_commits(&folder.path().join("single.sqlite"));
    println!("single-row commits            {single:>9.0} /s");
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    for callers in [1, 32, 64] {
        let rate = accepts(&runtime, &folder.path().join(format!("accepts-{callers}")), callers);
        println!(
            "accepts by {callers:>2} callers         {rate:>9.0} /s  {:>6.1} times single-row",
            rate / single
        );
    }
    let rate = deliveries(&runtime, &folder.path().join("deliveries"), 64);
    println!("claim, begin, finish by 64    {rate:>9.0} /s  {:>6.1} times single-row", rate / single);
}

/// One row a transaction in bare SQLite with the store's settings: one sync each.
fn single_row_commits(path: &Path) -> f64 {
    let connection = rusqlite::Connection::open(path).expect("a database");
    connection
        .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE row (body BLOB)")
        .expect("a table");
    let mut insert = connection.prepare("INSERT INTO row VALUES (zeroblob(500))").expect("a statement");
    let mut rows = 0_u32;
    let elapsed = for_a_while(|| {
        insert.execute([]).expect("a row");
        rows += 1;
    });
    f64::from(rows) / elapsed.as_secs_f64()
}

fn accepts(runtime: &Runtime, path: &Path, callers: usize) -> f64 {
    let ledger = Arc::new(SqliteLedger::open(path, Options::default(), NOW).expect("a store"));
    let accepted = Arc::new(AtomicU64::new(0));
    let elapsed = by_many(runtime, callers, {
        let (ledger, accepted) = (Arc::clone(&ledger), Arc::clone(&accepted));
        move || {
            let (ledger, accepted) = (Arc::clone(&ledger), Arc::clone(&accepted));
            async move {
                let _ = ledger.accept(message()).await.expect("accepted");
                accepted.fetch_add(1, Relaxed);
            }
        }
    });
    per_second(accepted.load(Relaxed), elapsed)
}

fn deliveries(runtime: &Runtime, path: &Path, callers: usize) -> f64 {
    let ledger = Arc::new(SqliteLedger::open(path, Options::default(), NOW).expect("a store"));
    runtime.block_on(async {
        let mut accepting = tokio::task::JoinSet::new();
        for _ in 0..256 {
            let ledger = Arc::clone(&ledger);
            accepting.spawn(async move {
                for _ in 0..400 {
                    let _ = ledger.accept(message()).await.expect("accepted");
                }
            });
        }
        accepting.join_all().await;
    });
    let delivered = Arc::new(AtomicU64::new(0));
    let elapsed = by_many(runtime, callers, {
        let (ledger, delivered) = (Arc::clone(&ledger), Arc::clone(&delivered));
        move || deliver_one(Arc::clone(&ledger), Arc::clone(&delivered))
    });
    per_second(delivered.load(Relaxed), elapsed)
}

async fn deliver_one(ledger: Arc<SqliteLedger>, delivered: Arc<AtomicU64>) {
    let claims = ledger.claim(ClaimQuery { now: NOW, limit: 1, skip: Vec::new() }).await.expect("claimed");
    for claimed in claims.claimed {
        let Claimed::Work(ticket, work) = claimed else { panic!("unreadable") };
        let number = ledger.begin_attempt(&ticket, NOW).await.expect("begun");
        let end = AttemptEnd {
            number,
            took: Duration::from_millis(3),
            observed: relent_core::Observed::Status(200),
            detail: String::new(),
            response: Bytes::from_static(b"ok"),
            truncated: Truncated::No,
        };
        let finish =
            Finish { at: NOW, attempt: Some(end), settlement: Settlement::Ack, history: work.history };
        ledger.finish(&ticket, finish).await.expect("finished");
        delivered.fetch_add(1, Relaxed);
    }
}

/// Has many tasks repeat `work` for a while; the time until all are done.
fn by_many<F>(runtime: &Runtime, callers: usize, work: impl Fn() -> F + Send + Sync + 'static) -> Duration
where
    F: Future<Output = ()> + Send + 'static,
{
    let work = Arc::new(work);
    let began = now();
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..callers {
            let work = Arc::clone(&work);
            tasks.spawn(async move {
                while now().duration_since(began) < WHILE {
                    work().await;
                }
            });
        }
        tasks.join_all().await;
    });
    now().duration_since(began)
}

fn for_a_while(mut work: impl FnMut()) -> Duration {
    let began = now();
    while now().duration_since(began) < WHILE {
        work();
    }
    now().duration_since(began)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn per_second(count: u64, elapsed: Duration) -> f64 {
    count as f64 / elapsed.as_secs_f64()
}

fn message() -> NewMessage {
    let id = MessageId::generate(NOW);
    NewMessage {
        id,
        accepted_at: NOW,
        destination: Destination::new("https://receiver.example:443"),
        request: Request {
            method: "POST".into(),
            url: "https://receiver.example/orders".into(),
            headers: vec![("content-type".into(), "application/json".into())],
            body: Bytes::from_static(&[b'x'; 300]),
        },
        key: Some(id.to_string()),
        fingerprint: [7; 32],
        policy: "default".into(),
        repeat: Idempotency::Keyed,
        labels: Default::default(),
        not_before: None,
        deadline: None,
        history: Bytes::from_static(&[1; 96]),
    }
}

const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);
const WHILE: Duration = Duration::from_millis(1500);
