//! A server that stands still for longer than its lease, in the middle of an order, and goes on: it commits nothing late.

use std::{
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

use relent_tests::{
    client::{Client, Reply},
    orders::{Effect, Kind, Orders, Process},
    wall,
};

const BINARY: &str = env!("CARGO_BIN_EXE_orders");
const KEY: &str = "gated-order";

#[test]
fn a_paused_servers_late_commit_is_refused_on_sqlite() {
    late_commit(Kind::Sqlite);
}

#[test]
fn a_paused_servers_late_commit_is_refused_on_postgres() {
    late_commit(Kind::Postgres);
}

#[test]
fn a_paused_servers_order_is_never_done_by_another_and_its_late_answer_is_kept_on_sqlite() {
    late_answer(Kind::Sqlite);
}

#[test]
fn a_paused_servers_order_is_never_done_by_another_and_its_late_answer_is_kept_on_postgres() {
    late_answer(Kind::Postgres);
}

/// Work and record are one transaction: another does the work, and the late one is undone.
fn late_commit(kind: Kind) {
    let Some(orders) = Orders::prepare(BINARY, kind, Effect::Shared) else { return };
    let orders = orders.with_short_leases();
    let (paused, other) = (orders.serve(), orders.serve());
    let first = order_and_pause(&orders, &paused);
    orders.open_gate();
    let told = repeat_until(&other, |reply| reply.status == 201);
    assert_eq!((told.header("idempotency-replayed"), told.text()), (None, format!("ordered {KEY}")));
    paused.go_on();
    let late = first.recv().expect("an answer");
    assert_eq!(late.status, 500, "its transaction was refused: {}", late.text());
    assert!(late.text().contains("lease"), "{}", late.text());
    assert_eq!(
        repeat_until(&paused, |reply| reply.status == 201).header("idempotency-replayed"),
        Some("true")
    );
    assert_eq!(orders.executions().get(KEY), Some(&1));
}

/// Nobody else can know, so nobody else does it; when it goes on, it tells.
fn late_answer(kind: Kind) {
    let Some(orders) = Orders::prepare(BINARY, kind, Effect::Outside) else { return };
    let orders = orders.with_short_leases();
    let (paused, other) = (orders.serve(), orders.serve());
    let first = order_and_pause(&orders, &paused);
    orders.open_gate();
    let told = repeat_until(&other, |reply| reply.status != 409 || reply.text().contains(":outcome-unknown"));
    assert_eq!((told.status, orders.executions().get(KEY)), (409, None));
    paused.go_on();
    assert_eq!(first.recv().expect("an answer").status, 201);
    let told = repeat_until(&other, |reply| reply.status == 201);
    assert_eq!(told.header("idempotency-replayed"), Some("true"));
    assert_eq!(orders.executions().get(KEY), Some(&1));
}

/// Sends an order twice and stops its server when one of the two is told that the other is under way, and that other is in
/// the handler's hands; where its answer will come.
fn order_and_pause(orders: &Orders, server: &Process) -> Receiver<Reply> {
    let (told, replies) = mpsc::channel();
    for _ in 0..2 {
        let (mut client, told) = (server.client(), told.clone());
        thread::spawn(move || told.send(send(&mut client)));
    }
    let second = replies.recv().expect("an answer");
    assert_eq!(second.status, 409, "{}", second.text());
    orders.wait_at_gate();
    server.pause();
    replies
}

fn repeat_until(server: &Process, is_it: impl Fn(&Reply) -> bool) -> Reply {
    let mut client = server.client();
    wall::eventually("an answer", Duration::from_secs(60), || {
        Some(send(&mut client)).filter(|reply| is_it(reply))
    })
}

fn send(client: &mut Client) -> Reply {
    client.send_with("POST", "/orders", &[("Idempotency-Key", KEY)], Some(b"{}")).expect("an answer")
}
