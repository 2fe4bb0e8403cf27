//! What the tests of the store share: folders that crash, and messages.

#![allow(dead_code, reason = "each test uses its part")]

use std::{fs, path::Path};

use async_trait::async_trait;
use bytes::Bytes;
use relent_core::{Idempotency, Timestamp};
use relent_ledger::{
    ClaimQuery, Claimed, Destination, Ledger, MessageId, NewMessage, Request, Ticket,
    suite::{Fixture, Plant, Planted},
};
use relent_ledger_sqlite::{Options, SqliteLedger};
use rusqlite::Connection;
use tempfile::TempDir;

/// A store in a folder of its own.
pub(crate) struct Store {
    pub(crate) ledger: SqliteLedger,
    pub(crate) folder: TempDir,
}

impl Store {
    pub(crate) fn new() -> Self {
        Self::with(Options::default())
    }

    pub(crate) fn with(options: Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ledger = SqliteLedger::open(folder.path(), options, at(0)).unwrap();
        Self { ledger, folder }
    }

    /// A connection beside the store, for what nobody should do to it.
    pub(crate) fn beside(&self) -> Connection {
        Connection::open(self.ledger.path()).unwrap()
    }
}

#[async_trait]
impl Fixture for Store {
    type Ledger = SqliteLedger;

    fn ledger(&self) -> &SqliteLedger {
        &self.ledger
    }

    /// The files as they are at this moment, without what a close would do: what a killed process leaves.
    async fn crash(&mut self, now: Timestamp) {
        let folder = left_behind(self.folder.path());
        self.ledger = SqliteLedger::open(folder.path(), Options::default(), now).unwrap();
        self.folder = folder;
    }

    async fn plant(&mut self, plant: Plant, id: MessageId) -> Planted {
        let sql = match plant {
            Plant::Content => {
                "UPDATE content SET url = url || 'x' WHERE seq = (SELECT seq FROM message WHERE id = ?1)"
            }
            Plant::History => "UPDATE message SET history = x'FF' WHERE id = ?1",
        };
        assert_eq!(self.beside().execute(sql, [id.to_bytes()]).unwrap(), 1);
        Planted::Done
    }
}

/// A copy of a store's files as they are.
pub(crate) fn left_behind(folder: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in ["relent.db", "relent.db-wal"] {
        let from = folder.join(name);
        if from.exists() {
            fs::copy(from, copy.path().join(name)).unwrap();
        }
    }
    copy
}

pub(crate) fn at(secs: u64) -> Timestamp {
    Timestamp::from_secs(1_800_000_000 + secs)
}

pub(crate) fn id(number: u32) -> MessageId {
    let [a, b, c, d] = number.to_be_bytes();
    MessageId::from_bytes([1, 0x98, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, a, b, c, d])
}

pub(crate) fn message(number: u32) -> NewMessage {
    NewMessage {
        id: id(number),
        accepted_at: at(0),
        destination: Destination::new("https://receiver.example:443"),
        request: Request {
            method: "POST".into(),
            url: format!("https://receiver.example/orders/{number}"),
            headers: vec![("content-type".into(), "application/json".into())],
            body: Bytes::from_static(b"{}"),
        },
        key: Some(format!("order-{number}")),
        fingerprint: [7; 32],
        policy: "default".into(),
        repeat: Idempotency::Keyed,
        labels: Default::default(),
        not_before: None,
        deadline: None,
        history: Bytes::from_static(b"history"),
    }
}

pub(crate) fn all(now: Timestamp) -> ClaimQuery {
    ClaimQuery { now, limit: 1000, skip: Vec::new() }
}

/// Claims everything that is due; the tickets.
pub(crate) async fn claim(ledger: &SqliteLedger, now: Timestamp) -> Vec<Ticket> {
    let claims = ledger.claim(all(now)).await.unwrap();
    claims.claimed.iter().map(|(Claimed::Work(ticket, _) | Claimed::Unreadable(ticket, _))| *ticket).collect()
}
