//! Requests that wait together share a commit, which is what makes a durable store quick. Counted on the disk: in the
//! write-ahead log the last frame of each transaction bears the size of the database.

use std::{
    fs,
    path::Path,
    task::{Context, Poll, Waker},
};

use relent_ledger::{Accepted, Ledger, Stretch, suite::block_on};

use crate::common::{Store, id, message};

#[test]
fn requests_that_wait_together_share_a_commit() {
    let store = Store::new();
    let before = commits(store.ledger.path());
    // While somebody else holds the lock, the writer waits with whatever it took first, and the rest gathers.
    let other = store.beside();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut waiting: Vec<_> = (0..REQUESTS).map(|number| store.ledger.accept(message(number))).collect();
    for request in &mut waiting {
        let asked = request.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(asked, Poll::Pending), "answered before it was on disk");
    }
    assert_eq!(commits(store.ledger.path()), before);
    other.execute_batch("ROLLBACK").unwrap();
    for request in waiting {
        assert_eq!(block_on(request).unwrap(), Accepted::New);
    }
    let shared = commits(store.ledger.path()) - before;
    assert!((1..=2).contains(&shared), "{shared} commits for {REQUESTS} requests that waited together");
    assert!(block_on(store.ledger.message(id(REQUESTS - 1), Stretch::NONE)).unwrap().is_some());
}

#[test]
fn requests_that_come_one_by_one_have_each_its_own() {
    // Otherwise the count above would be worth nothing.
    let store = Store::new();
    let before = commits(store.ledger.path());
    for number in 0..5 {
        assert_eq!(block_on(store.ledger.accept(message(number))).unwrap(), Accepted::New);
    }
    assert_eq!(commits(store.ledger.path()) - before, 5);
}

/// The commits in the write-ahead log, which is far too short here to be begun anew.
///
/// # Source
///
/// "The WAL File Format" in the documentation of SQLite: a header of 32 bytes with the page size at byte 8; each
/// frame a header of 24 bytes, in which bytes 4 to 8 are zero but in the last frame of a transaction, and a page.
fn commits(database: &Path) -> usize {
    let log = fs::read(database.with_extension("db-wal")).unwrap();
    let Some((header, frames)) = log.split_at_checked(32) else { return 0 };
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
    let page = usize::try_from(number(&header[8..12])).unwrap();
    assert_eq!(frames.len() % (24 + page), 0, "a log of whole frames");
    frames.chunks(24 + page).filter(|frame| number(&frame[4..8]) != 0).count()
}

/// As many as one commit takes at most.
const REQUESTS: u32 = 256;
