//! `relent fsck` on real store files: a sound one, and one for each fault planted by hand.

mod support;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use relent_core::{Observed, Policy, Settlement, StopReason, Timestamp, Wait, WaitOrigin};
use relent_ledger::{
    AttemptEnd, ClaimQuery, Claimed, Destination, Discard, Finish, Ledger as _, MessageId, NewMessage,
    Request, Truncated,
};
use relent_ledger_sqlite::{Options, SqliteLedger};
use rusqlite::Connection;
use serde_json::Value;
use support::{Ended, Receiver, Run as _, Server, relent};

/// A store with a delivered, a dead, a discarded, a cancelled and a waiting message.
struct Store {
    folder: tempfile::TempDir,
}

impl Store {
    fn sound() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(fill(folder.path()));
        Self { folder }
    }

    /// The sound store with one fault, planted with the constraints off that would stop it.
    fn with(fault: &str) -> Self {
        let store = Self::sound();
        let connection = Connection::open(store.database()).unwrap();
        connection.execute_batch(&format!("PRAGMA foreign_keys = OFF; {fault}")).unwrap();
        store
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("relent.db")
    }

    fn fsck(&self, more: &[&str]) -> Ended {
        relent().arg("fsck").arg("--data").arg(self.folder.path()).args(more).run()
    }
}

async fn fill(folder: &Path) {
    let ledger = SqliteLedger::open(folder, Options::default(), at(0)).unwrap();
    for second in 1..=5 {
        let _ = ledger.accept(message(second)).await.unwrap();
    }
    let stop = |reason| Settlement::DeadLetter { reason };
    settle(&ledger, 200, Settlement::Ack).await;
    settle(&ledger, 422, stop(StopReason::Permanent)).await;
    let discarded = settle(&ledger, 422, stop(StopReason::Permanent)).await;
    let _ = ledger.discard(discarded, Discard { at: at(20), seen_cycle: None }).await.unwrap();
    let wait = Wait::exactly(Duration::from_secs(3600), WaitOrigin::Backoff);
    let cancelled = settle(&ledger, 503, Settlement::Retry { wait }).await;
    let _ = ledger.cancel(cancelled, at(20)).await.unwrap();
    settle(&ledger, 503, Settlement::Retry { wait }).await;
    ledger.close().await;
}

/// Claims the longest due, tries it once with that answer, and settles it.
async fn settle(ledger: &SqliteLedger, status: u16, settlement: Settlement) -> MessageId {
    let claims = ledger.claim(ClaimQuery { now: at(10), limit: 1, skip: Vec::new() }).await.unwrap();
    let [Claimed::Work(ticket, work)] = claims.claimed.as_slice() else {
        panic!("one message is due: {claims:?}");
    };
    let number = ledger.begin_attempt(ticket, at(11)).await.unwrap();
    let attempt = AttemptEnd {
        number,
        took: Duration::from_millis(12),
        observed: Observed::Status(status),
        detail: String::new(),
        response: Bytes::from_static(b"as asked"),
        truncated: Truncated::No,
    };
    let finish = Finish { at: at(12), attempt: Some(attempt), settlement, history: work.history.clone() };
    ledger.finish(ticket, finish).await.unwrap();
    ticket.id
}

fn message(second: u64) -> NewMessage {
    let id = MessageId::generate(at(second));
    NewMessage {
        id,
        accepted_at: at(second),
        destination: Destination::new("http://127.0.0.1:9"),
        request: Request {
            method: "POST".to_owned(),
            url: "http://127.0.0.1:9/orders".to_owned(),
            headers: Vec::new(),
            body: Bytes::from_static(b"{}"),
        },
        key: Some(format!("order-{second}")),
        fingerprint: [7; 32],
        policy: "durable".to_owned(),
        repeat: relent_core::Idempotency::Keyed,
        labels: BTreeMap::new(),
        not_before: None,
        deadline: None,
        history: Bytes::copy_from_slice(
            &Policy::durable().begin(id.seed(), at(second), None, None).to_bytes(),
        ),
    }
}

fn at(second: u64) -> Timestamp {
    Timestamp::from_secs(1_800_000_000 + second)
}

#[test]
fn a_sound_store_is_sound_and_counted() {
    let store = Store::sound();
    let shown = store.fsck(&[]).done();
    assert!(shown.contains("sound: every rule holds"), "{shown}");
    let json: Value = serde_json::from_str(&store.fsck(&["--json"]).done()).unwrap();
    assert_eq!(json["sound"], true);
    for (count, number) in
        [("accepted", 5), ("delivered", 1), ("dead", 1), ("discarded", 1), ("cancelled", 1), ("waiting", 1)]
    {
        assert_eq!(json[count], number, "{count} in {json}");
    }
    assert_eq!((&json["attempts"], &json["in_flight"]), (&5.into(), &0.into()));
}

#[test]
fn each_planted_fault_is_found_by_its_rule() {
    for (fault, sql, rules) in FAULTS {
        let store = Store::with(sql);
        let ended = store.fsck(&["--json"]);
        assert_eq!(ended.code, Some(1), "{fault}: {ended:?}");
        let json: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(json["sound"], false, "{fault}");
        let found: Vec<&str> = json["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|finding| finding["rule"].as_str().unwrap())
            .collect();
        for rule in *rules {
            assert!(found.contains(rule), "{fault}: {rule} is not among {found:?}");
        }
        let shown = store.fsck(&[]);
        assert_eq!(shown.code, Some(1), "{fault}");
        assert!(shown.stdout.contains("not sound"), "{fault}: {}", shown.stdout);
        assert!(shown.stdout.contains(rules[0]), "{fault}: {}", shown.stdout);
    }
}

#[test]
fn a_finding_names_the_message_it_is_about() {
    let store = Store::with("DELETE FROM content WHERE seq = 5");
    let id: [u8; 16] = Connection::open(store.database())
        .unwrap()
        .query_row("SELECT id FROM message WHERE seq = 5", [], |row| row.get(0))
        .unwrap();
    let ended = store.fsck(&[]);
    assert!(ended.stdout.contains(&MessageId::from_bytes(id).to_string()), "{}", ended.stdout);
}

#[test]
fn where_there_is_no_store_it_is_wrong_use() {
    let folder = tempfile::tempdir().unwrap();
    let ended = relent().arg("fsck").arg("--data").arg(folder.path()).run();
    let said = ended.failed(2);
    assert!(said.contains("no store") && said.contains("--data"), "{said}");
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "looking must not make one");
}

#[test]
fn a_file_that_is_no_store_fails_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("relent.db"),
        "this is a letter to my aunt, not a database".repeat(200),
    )
    .unwrap();
    let said = relent().arg("fsck").arg("--data").arg(folder.path()).run().failed(1);
    assert!(said.contains("not a database"), "{said}");
}

#[test]
fn a_store_is_sound_beside_its_running_server() {
    let (server, receiver) = (Server::start(), Receiver::open());
    for _ in 0..5 {
        server.send(&[&receiver.url("/200"), "--policy", "quick"]);
        server.send(&[&receiver.url("/503"), "--policy", "quick"]);
        let json = server.json(&["fsck"]);
        assert_eq!(json["findings"], serde_json::json!([]));
    }
    let json = server.json(&["fsck"]);
    assert_eq!(json["accepted"], 10);
}

/// A fault in words, how it is planted, and the rules that must find it, the telling one first.
const FAULTS: &[(&str, &str, &[&str])] = &[
    ("a missing row", "DELETE FROM message WHERE seq = 1", &["sum", "counts", "attempts"]),
    ("a message without content", "DELETE FROM content WHERE seq = 1", &["content"]),
    (
        "an orphan attempt",
        "INSERT INTO attempt (seq, number, cycle, began_at) VALUES (99, 1, 0, 1)",
        &["attempts"],
    ),
    ("an attempt lost from a log", "DELETE FROM attempt WHERE seq = 2", &["attempts"]),
    (
        "a duplicate id",
        "DROP INDEX message_id; UPDATE message SET id = (SELECT id FROM message WHERE seq = 1) WHERE seq = 2",
        &["unique_ids"],
    ),
    ("a wrong count", "UPDATE tally SET value = value + 1 WHERE name = 'accepted'", &["sum"]),
    ("a wrong count of a state", "UPDATE tally SET value = value + 1 WHERE name = 'state:dead'", &["counts"]),
    ("a message that waits for ever", "UPDATE message SET due_at = NULL WHERE state = 'waiting'", &["waits"]),
    ("an orphan key", "UPDATE idempotency SET seq = 99 WHERE key = 'order-1'", &["keys"]),
    ("a dead letter without a reason", "UPDATE message SET reason = NULL WHERE state = 'dead'", &["ends"]),
    ("a changed body", "UPDATE content SET body = x'00' WHERE seq = 1", &["content"]),
];
