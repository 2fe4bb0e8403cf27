//! Who may open a store, and what is opened.

use std::error::Error as _;

use relent_ledger::{ErrorKind, Ledger, Stretch, suite::block_on};
use relent_ledger_sqlite::{Options, SqliteLedger, audit_file};
use rusqlite::Connection;

use crate::common::{Store, at, id, message};

fn kind(result: Result<SqliteLedger, relent_ledger::Error>) -> (ErrorKind, String) {
    let error = result.expect_err("not opened");
    (error.kind(), error.to_string())
}

#[test]
fn a_second_owner_is_refused_and_the_first_goes_on() {
    let store = Store::new();
    let (kind, sentence) = kind(SqliteLedger::open(store.folder.path(), Options::default(), at(1)));
    assert_eq!(kind, ErrorKind::Owned);
    assert!(sentence.contains("another process uses the store in"), "{sentence}");
    assert!(sentence.contains("relent.lock"), "{sentence}");
    let _ = block_on(store.ledger.accept(message(1))).unwrap();
}

#[test]
fn a_store_can_be_opened_again_once_it_is_closed_or_dropped() {
    let Store { ledger, folder } = Store::new();
    let clone = ledger.clone();
    let _ = block_on(ledger.accept(message(1))).unwrap();
    block_on(ledger.close());
    let refused = block_on(clone.accept(message(2))).expect_err("closed");
    assert_eq!(refused.kind(), ErrorKind::Closed);
    assert_eq!(block_on(clone.tally()).expect_err("closed").kind(), ErrorKind::Closed);
    let dropped = SqliteLedger::open(folder.path(), Options::default(), at(1)).unwrap();
    drop(dropped);
    let opened = SqliteLedger::open(folder.path(), Options::default(), at(2)).unwrap();
    assert!(block_on(opened.message(id(1), Stretch::ALL)).unwrap().is_some());
}

#[test]
fn closing_takes_the_log_into_the_database() {
    let Store { ledger, folder } = Store::new();
    let _ = block_on(ledger.accept(message(1))).unwrap();
    assert!(folder.path().join("relent.db-wal").exists());
    block_on(ledger.close());
    assert!(!folder.path().join("relent.db-wal").exists());
}

#[test]
fn a_folder_that_is_not_there_is_made_and_a_name_in_db_is_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("a/b");
    let ledger = SqliteLedger::open(&deep, Options::default(), at(0)).unwrap();
    assert_eq!(ledger.path(), deep.join("relent.db"));
    let named = folder.path().join("c/orders.db");
    let ledger = SqliteLedger::open(&named, Options::default(), at(0)).unwrap();
    assert_eq!(ledger.path(), named);
    drop(ledger);
    assert!(named.is_file());
    assert_eq!(SqliteLedger::open(&named, Options::default(), at(1)).unwrap().path(), named);
}

#[test]
fn a_newer_schema_is_refused_untouched() {
    let Store { ledger, folder } = Store::new();
    let database = ledger.path().to_owned();
    block_on(ledger.close());
    Connection::open(&database).unwrap().pragma_update(None, "user_version", 2).unwrap();
    let (kind, sentence) = kind(SqliteLedger::open(folder.path(), Options::default(), at(1)));
    assert_eq!(kind, ErrorKind::Unavailable);
    assert!(sentence.contains("version 2") && sentence.contains("newer relent"), "{sentence}");
    assert_eq!(audit_file(folder.path()).expect_err("refused").kind(), ErrorKind::Unavailable);
}

#[test]
fn a_file_that_is_no_store_of_ours_is_refused_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    let (_, sentence) = kind(SqliteLedger::open(&other, Options::default(), at(0)));
    assert!(sentence.contains("not a store of relent"), "{sentence}");
    let text = folder.path().join("text.db");
    std::fs::write(&text, "not a database at all, and long enough to be read as a header of one".repeat(9))
        .unwrap();
    let error = SqliteLedger::open(&text, Options::default(), at(0)).expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.source().is_some(), "the cause is kept");
    assert_eq!(audit_file(&folder.path().join("nowhere")).expect_err("none").kind(), ErrorKind::Unavailable);
}
