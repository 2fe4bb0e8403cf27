//! How many messages a second `relent serve` takes in for good, on the disk that it runs on: each `201` comes
//! after a commit that was synced. What a disk gives differs a thousandfold, so the rate of single-row commits
//! of the same SQLite in the same folder in the same run stands beside it.
//!
//! `cargo xtask bench accept`. Fails below 5,000 a second, unless it is at least 6 times the single commits.

use std::{
    env,
    net::SocketAddr,
    path::Path,
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use relent_tests::{chance::Chance, client::Client, server, server::Server, wall};
use rusqlite::Connection;
use serde_json::json;

fn main() -> ExitCode {
    // `cargo test --benches` runs it too, in a profile that would say nothing.
    if !env::args().any(|argument| argument == "--bench") {
        println!("accept: skipped, run it with `cargo xtask bench accept`");
        return ExitCode::SUCCESS;
    }
    let mut server = Server::start("log_level = \"warn\"\n");
    let folder = server.data();
    let before = single_commits(&folder);
    let load = accept(&server);
    let after = single_commits(&folder);
    verify(&mut server, &load);
    report(&load, f64::midpoint(before, after))
}

/// What the load generator saw.
struct Load {
    /// The ids it was told, each with the number of its message.
    accepted: Vec<(u64, String)>,
    /// How long each took, sorted.
    latencies: Vec<Duration>,
    took: Duration,
}

fn accept(server: &Server) -> Load {
    let (at, token) = server.endpoint();
    let begin = wall::now();
    let end = begin + LENGTH;
    let mut load = thread::scope(|scope| {
        let connections: Vec<_> = (0..CONNECTIONS)
            .map(|number| {
                scope.spawn({
                    let token = &token;
                    move || connection(at, token, number, end)
                })
            })
            .collect();
        let mut load = Load { accepted: Vec::new(), latencies: Vec::new(), took: Duration::ZERO };
        for connection in connections {
            let (accepted, latencies) = connection.join().expect("a connection panicked");
            load.accepted.extend(accepted);
            load.latencies.extend(latencies);
        }
        load
    });
    load.took = begin.elapsed();
    load.latencies.sort();
    load
}

/// Sends one message after the other until the end.
fn connection(at: SocketAddr, token: &str, number: u64, end: Instant) -> (Vec<(u64, String)>, Vec<Duration>) {
    let mut client = Client::new(at, token);
    let (mut accepted, mut latencies) = (Vec::new(), Vec::new());
    for message in (0..).map(|nth| number << 32 | nth) {
        let begin = wall::now();
        if begin >= end {
            break;
        }
        let body = json!({
            "url": "http://receiver.invalid/orders", "not_before": "1d", "key": format!("order-{message}"),
            "headers": { "content-type": "application/json" }, "body": body_of(message),
        });
        let reply =
            client.send("POST", "/v1/messages", Some(body.to_string().as_bytes())).expect("an answer");
        latencies.push(begin.elapsed());
        assert_eq!(reply.status, 201, "{}", reply.text());
        accepted.push((message, reply.json()["id"].as_str().expect("an id").to_string()));
    }
    (accepted, latencies)
}

/// What was counted is what is stored: a sample over the API, the sum, and `fsck` of what a kill leaves.
fn verify(server: &mut Server, load: &Load) {
    let mut client = server.client();
    let mut chance = Chance::new(1);
    for _ in 0..SAMPLE {
        let place = chance.within(0, load.accepted.len() as u64 - 1);
        let (number, id) = &load.accepted[usize::try_from(place).expect("an index")];
        let message = client.json(&format!("/v1/messages/{id}"));
        assert_eq!((&message["state"], &message["body"]), (&json!("waiting"), &json!(body_of(*number))));
    }
    assert_eq!(server::count(&client.json("/v1/status"), "accepted"), load.accepted.len() as u64);
    server.kill();
    server.assert_sound();
}

fn report(load: &Load, single: f64) -> ExitCode {
    let rate = load.accepted.len() as f64 / load.took.as_secs_f64();
    let percentile = |percent: usize| load.latencies[(load.latencies.len() - 1) * percent / 100];
    println!("durable 201s           {rate:>10.0} a second, {CONNECTIONS} connections, {:.1?}", load.took);
    println!("single-row commits     {single:>10.0} a second, synchronous = FULL, same folder, same run");
    println!("ratio                  {:>10.1}", rate / single);
    println!("latency                {:>10.1?} median, {:.1?} at 99 %", percentile(50), percentile(99));
    println!("verified               {:>10} messages over the API, all by fsck", SAMPLE);
    if rate >= 5000.0 || rate >= 6.0 * single {
        println!("pass: at least 5,000 a second, or at least 6 times the single-row commits");
        ExitCode::SUCCESS
    } else {
        println!("FAIL: under 5,000 a second and under 6 times the single-row commits");
        ExitCode::FAILURE
    }
}

/// Commits of one row a second, each synced: what the disk gives to whoever does not share a commit.
fn single_commits(folder: &Path) -> f64 {
    let connection = Connection::open(folder.join("single-commits.db")).expect("a database");
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             CREATE TABLE IF NOT EXISTS row (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;",
        )
        .expect("a table");
    let mut insert = connection.prepare("INSERT INTO row (body) VALUES (?1)").expect("a statement");
    let begin = wall::now();
    let mut commits = 0u32;
    while begin.elapsed() < LENGTH / 2 {
        insert.execute([body_of(u64::from(commits))]).expect("a commit");
        commits += 1;
    }
    f64::from(commits) / begin.elapsed().as_secs_f64()
}

/// About as long as an order.
fn body_of(number: u64) -> String {
    format!(
        r#"{{"order":{number},"items":[{{"sku":"apples","count":3}},{{"sku":"pears","count":2}}],"note":"{}"}}"#,
        "-".repeat(120)
    )
}

const CONNECTIONS: u64 = 32;
const LENGTH: Duration = Duration::from_secs(5);
const SAMPLE: usize = 500;
