//! Files as a killed process leaves them.

use std::{
    collections::HashSet,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
    },
};

use bytes::Bytes;
use relent_core::Settlement;
use relent_ledger::{Finish, Ledger, MessageId, State, Stretch, suite::block_on};
use relent_ledger_sqlite::{Options, SqliteLedger, audit_file};

use crate::common::{Store, at, claim, id, left_behind, message};

/// Copies are taken while four callers work. A log that is copied while it is written holds whole commits and a
/// torn end, as after a loss of power.
#[test]
fn whenever_a_store_is_cut_off_it_opens_sound_and_holds_all_that_was_answered() {
    let store = Store::new();
    // A copy is no snapshot: with a reader at the beginning of the log, none of it goes into the database
    // between the copies of the two files.
    let reader = store.beside();
    reader.execute_batch("BEGIN; SELECT count(*) FROM message").unwrap();
    let (stop, next) = (AtomicBool::new(false), AtomicU32::new(0));
    let answered: Mutex<HashSet<MessageId>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(SeqCst) {
                    let number = next.fetch_add(1, SeqCst);
                    block_on(accept_and_begin(&store.ledger, number));
                    answered.lock().unwrap().insert(id(number));
                }
            });
        }
        for round in 0..12 {
            while answered.lock().unwrap().len() < 10 * (round + 1) {
                std::thread::yield_now();
            }
            let before = answered.lock().unwrap().clone();
            check(&left_behind(store.folder.path()), &before);
        }
        stop.store(true, SeqCst);
    });
}

async fn accept_and_begin(ledger: &SqliteLedger, number: u32) {
    let _ = ledger.accept(message(number)).await.unwrap();
    if number.is_multiple_of(3) {
        for ticket in claim(ledger, at(1)).await {
            ledger.begin_attempt(&ticket, at(1)).await.unwrap();
        }
    }
}

fn check(folder: &tempfile::TempDir, answered: &HashSet<MessageId>) {
    let ledger = SqliteLedger::open(folder.path(), Options::default(), at(5)).unwrap();
    let audit = block_on(ledger.audit()).unwrap();
    assert!(audit.is_sound(), "{:?}", audit.findings);
    assert_eq!(audit.counted.count(State::InFlight), 0);
    for id in answered {
        assert!(
            block_on(ledger.message(*id, Stretch::NONE)).unwrap().is_some(),
            "{id} was answered and is gone"
        );
    }
}

#[test]
fn a_settlement_that_was_answered_is_there_after_the_crash_and_one_that_was_not_can_be_made() {
    let store = Store::new();
    block_on(async {
        let ledger = &store.ledger;
        for number in 1..=2 {
            let _ = ledger.accept(message(number)).await.unwrap();
        }
        let tickets = claim(ledger, at(1)).await;
        let ack = Finish { at: at(2), attempt: None, settlement: Settlement::Ack, history: Bytes::new() };
        ledger.finish(&tickets[0], ack).await.unwrap();
        let folder = left_behind(store.folder.path());
        let after = SqliteLedger::open(folder.path(), Options::default(), at(9)).unwrap();
        let state =
            async |number| after.message(id(number), Stretch::ALL).await.unwrap().unwrap().summary.state;
        assert_eq!((state(1).await, state(2).await), (State::Delivered, State::Waiting));
        assert_eq!(claim(&after, at(9)).await.len(), 1);
    });
}

#[test]
fn a_store_that_nobody_closed_can_be_checked_without_owning_it() {
    let store = Store::new();
    let _ = block_on(store.ledger.accept(message(1))).unwrap();
    let folder = left_behind(store.folder.path());
    let audit = audit_file(folder.path()).unwrap();
    assert!(audit.is_sound(), "{:?}", audit.findings);
    assert_eq!(audit.counted.accepted, 1);
}
