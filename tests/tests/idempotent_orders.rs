//! A POST with a key, over real sockets, on SQLite and PostgreSQL: carried out once, however often it is sent and
//! whenever the server dies; or the record says that nobody knows.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    io::Write,
    net::{SocketAddr, TcpStream},
    sync::{
        Barrier, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use relent_tests::{
    chance::{self, Chance},
    client::{Client, Reply},
    orders::{Effect, Kind, Orders, Process},
    wall,
};

const BINARY: &str = env!("CARGO_BIN_EXE_orders");

#[test]
fn sixty_four_at_once_are_carried_out_once_on_sqlite() {
    sixty_four_at_once(Kind::Sqlite);
}

#[test]
fn sixty_four_at_once_are_carried_out_once_on_postgres() {
    sixty_four_at_once(Kind::Postgres);
}

#[test]
fn two_servers_on_one_sqlite_file_carry_each_key_out_once() {
    two_servers(Kind::Sqlite);
}

#[test]
fn two_servers_on_one_postgres_carry_each_key_out_once() {
    two_servers(Kind::Postgres);
}

#[test]
fn a_killed_server_carries_no_order_out_twice_on_sqlite() {
    kill(Kind::Sqlite, Effect::Outside);
}

#[test]
fn a_killed_server_carries_no_order_out_twice_on_postgres() {
    kill(Kind::Postgres, Effect::Outside);
}

#[test]
fn a_killed_server_carries_every_order_out_once_in_a_transaction_on_sqlite() {
    kill(Kind::Sqlite, Effect::Shared);
}

#[test]
fn a_killed_server_carries_every_order_out_once_in_a_transaction_on_postgres() {
    kill(Kind::Postgres, Effect::Shared);
}

/// The control: the same kills, where the route allows lost work to be done again. Doubles are there to be seen.
#[test]
fn a_killed_server_carries_orders_out_again_where_its_route_allows_it() {
    let Some(books) = kill_again_and_again(Kind::Sqlite, Effect::RunAgain) else { return };
    assert!(books.outcomes.values().all(|outcome| *outcome == Outcome::Done));
    let twice = books.executions.values().filter(|count| **count > 1).count();
    assert!(twice > 0, "no order was carried out twice, so the others' tests prove nothing");
}

/// A client that hangs up as soon as it has sent does not stop its order halfway.
#[test]
fn an_order_whose_client_hung_up_is_carried_out_once() {
    let Some(orders) = Orders::prepare(BINARY, Kind::Sqlite, Effect::Outside) else { return };
    let server = orders.serve();
    for number in 0..50 {
        let key = format!("order-{number}");
        let mut stream = TcpStream::connect(server.at()).expect("a connection");
        let head = format!(
            "POST /orders HTTP/1.1\r\nHost: orders\r\nIdempotency-Key: {key}\r\nContent-Length: 2\r\n\r\n"
        );
        stream.write_all(format!("{head}{{}}").as_bytes()).expect("it is sent");
        wall::sleep(Duration::from_micros(500 * number % 5000));
        drop(stream);
        assert_eq!(
            (settle(&server, &key), orders.executions().get(&key)),
            (Outcome::Done, Some(&1)),
            "{key}"
        );
    }
}

fn sixty_four_at_once(kind: Kind) {
    for effect in [Effect::Outside, Effect::Shared] {
        let Some(orders) = Orders::prepare(BINARY, kind, effect) else { return };
        let server = orders.serve();
        let replies = at_once(64, |_| server.at(), "order-1");
        assert_once(&orders, &replies, "order-1");
    }
}

/// ID-05: over two processes that share a store, round after round.
fn two_servers(kind: Kind) {
    let Some(orders) = Orders::prepare(BINARY, kind, Effect::Outside) else { return };
    let servers = [orders.serve(), orders.serve()];
    for round in 0..20 {
        let key = format!("order-{round}");
        let replies = at_once(50, |number| servers[number % 2].at(), &key);
        assert_once(&orders, &replies, &key);
    }
}

/// Sends the same request so many times at the same instant.
fn at_once(count: usize, at: impl Fn(usize) -> SocketAddr, key: &str) -> Vec<Reply> {
    let together = Barrier::new(count);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|number| {
                let (mut client, together) = (Client::new(at(number), ""), &together);
                scope.spawn(move || {
                    together.wait();
                    send(&mut client, key).expect("an answer")
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a client does not panic")).collect()
    })
}

/// One is answered by the handler, the others wait outside or are given the same again.
fn assert_once(orders: &Orders, replies: &[Reply], key: &str) {
    let mut first = 0;
    for reply in replies {
        match (reply.status, reply.header("idempotency-replayed")) {
            (201, None) => first += 1,
            (201, Some("true")) => {}
            (409, None) => {
                assert!(reply.text().contains(":in-progress"), "{}", reply.text());
                let wait: u64 =
                    reply.header("retry-after").expect("a time to come back").parse().expect("seconds");
                assert!(wait >= 1);
                continue;
            }
            (status, _) => panic!("{status}: {}", reply.text()),
        }
        assert_eq!(reply.text(), format!("ordered {key}"));
    }
    assert_eq!((first, orders.executions().get(key)), (1, Some(&1)));
}

fn send(client: &mut Client, key: &str) -> std::io::Result<Reply> {
    client.send_with("POST", "/orders", &[("Idempotency-Key", key)], Some(b"{}"))
}

fn kill(kind: Kind, effect: Effect) {
    let Some(Books { outcomes, executions }) = kill_again_and_again(kind, effect) else { return };
    for (key, outcome) in &outcomes {
        let count = executions.get(key).copied().unwrap_or(0);
        assert!(count <= 1, "{key} was carried out {count} times");
        assert!(
            *outcome == Outcome::Unknown || count == 1,
            "{key} is done and was carried out {count} times"
        );
    }
    let unknown = outcomes.values().filter(|outcome| **outcome == Outcome::Unknown).count();
    match effect {
        Effect::Shared => assert_eq!(unknown, 0, "work and record are one transaction"),
        _ => assert!(unknown >= ROUNDS / 4, "the kills hit nothing: the run proves nothing"),
    }
}

/// What became of each key in the end, by the server and by its effects.
struct Books {
    outcomes: BTreeMap<String, Outcome>,
    executions: BTreeMap<String, usize>,
}

fn kill_again_and_again(kind: Kind, effect: Effect) -> Option<Books> {
    let orders = Orders::prepare(BINARY, kind, effect)?.with_short_leases();
    let mut chance = Chance::new(chance::seed("killed between claim and answer"));
    let told = Mutex::default();
    for round in 0..ROUNDS {
        let server = orders.serve();
        let after = chance.within(1, (KEYS * DUPLICATES / 2) as u64);
        let pause = Duration::from_micros(chance.within(0, 3000));
        kill_while_they_order(server, round, after, pause, &told);
    }
    let server = orders.serve();
    let told = told.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut outcomes = BTreeMap::new();
    for key in (0..ROUNDS).flat_map(|round| (0..KEYS).map(move |number| key(round, number))) {
        let outcome = settle(&server, &key);
        assert!(outcome == Outcome::Done || !told.contains(&key), "{key}: told done, and forgotten");
        outcomes.insert(key, outcome);
    }
    server.kill();
    let books = Books { outcomes, executions: orders.executions() };
    println!("{kind:?}, {effect:?}: {books}");
    Some(books)
}

impl fmt::Display for Books {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unknown = || self.outcomes.iter().filter(|(_, outcome)| **outcome == Outcome::Unknown);
        let carried_out = unknown().filter(|(key, _)| self.executions.contains_key(*key)).count();
        let (keys, unknown) = (self.outcomes.len(), unknown().count());
        let twice = self.executions.values().filter(|count| **count > 1).count();
        write!(
            f,
            "{ROUNDS} kills, {keys} keys, {unknown} unknown ({carried_out} of them carried out), {twice} twice"
        )
    }
}

/// Clients order, and after so many answers the server dies.
fn kill_while_they_order(
    server: Process,
    round: usize,
    after: u64,
    pause: Duration,
    told: &Mutex<BTreeSet<String>>,
) {
    let (next, answers, at) = (AtomicUsize::new(0), AtomicUsize::new(0), server.at());
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = Client::new(at, "");
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= KEYS * DUPLICATES {
                        return;
                    }
                    let key = key(round, number / DUPLICATES);
                    // The server is gone, or the request was refused: it is settled later.
                    let Ok(reply) = send(&mut client, &key) else { return };
                    answers.fetch_add(1, Ordering::SeqCst);
                    if reply.status == 201 {
                        told.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
                    }
                }
            });
        }
        let reached = || (answers.load(Ordering::SeqCst) as u64 >= after).then_some(());
        wall::eventually("answers before the kill", Duration::from_secs(60), reached);
        wall::sleep(pause);
        server.kill();
    });
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Outcome {
    Done,
    Unknown,
}

/// Repeats a request until it is known what became of it, or that nobody knows.
fn settle(server: &Process, key: &str) -> Outcome {
    let mut client = server.client();
    wall::eventually("an outcome", Duration::from_secs(60), || match send(&mut client, key) {
        Ok(reply) if reply.status == 201 => Some(Outcome::Done),
        Ok(reply) if reply.status == 409 && reply.text().contains(":outcome-unknown") => {
            Some(Outcome::Unknown)
        }
        Ok(reply) if matches!(reply.status, 409 | 503) => None,
        Ok(reply) => panic!("{key}: {} {}", reply.status, reply.text()),
        Err(error) => panic!("{key}: {error}"),
    })
}

fn key(round: usize, number: usize) -> String {
    format!("order-{round}-{number}")
}

const ROUNDS: usize = 16;
const KEYS: usize = 24;
/// Each key is sent so often in a row, by different clients.
const DUPLICATES: usize = 3;
const CLIENTS: usize = 8;
