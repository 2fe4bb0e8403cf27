//! A full disk refuses and loses nothing.

use bytes::Bytes;
use relent_ledger::{ErrorKind, Ledger, NewMessage, Request, State, Stretch, suite::block_on};
use relent_ledger_sqlite::Options;

use crate::common::{Store, at, claim, id, message};

fn large(number: u32) -> NewMessage {
    let request = Request { body: Bytes::from(vec![b'x'; 40_000]), ..message(number).request };
    NewMessage { request, ..message(number) }
}

#[test]
fn a_full_store_refuses_what_does_not_fit_and_keeps_what_was_answered() {
    let store = Store::with(Options::default().with_max_pages(120));
    let ledger = &store.ledger;
    block_on(async {
        let mut number = 0;
        let refused = loop {
            match ledger.accept(large(number)).await {
                Ok(_) => number += 1,
                Err(error) => break error,
            }
            assert!(number < 100, "the limit does nothing");
        };
        assert_eq!(refused.kind(), ErrorKind::Full, "{refused}");
        while ledger.accept(message(1000 + number)).await.is_ok() {
            number += 1;
        }
        assert_eq!(ledger.room().await.unwrap_err().kind(), ErrorKind::Full);
        assert!(number > 3, "something fitted");
        assert_eq!(ledger.message(id(number), Stretch::ALL).await.unwrap(), None);
        let audit = ledger.audit().await.unwrap();
        assert!(audit.is_sound(), "{:?}", audit.findings);
        assert_eq!(ledger.tally().await.unwrap().accepted, u64::from(number));
        // What needs no room goes on.
        assert_eq!(claim(ledger, at(1)).await.len(), number as usize);
        assert_eq!(ledger.tally().await.unwrap().count(State::InFlight), u64::from(number));
    });
}

#[test]
fn of_many_at_once_those_that_are_answered_are_there_and_the_others_are_not() {
    let store = Store::with(Options::default().with_max_pages(120));
    let ledger = &store.ledger;
    let answers: Vec<_> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..16)
            .map(|number| scope.spawn(move || (number, block_on(ledger.accept(large(number))))))
            .collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    let mut accepted = 0;
    for (number, answer) in answers {
        let there = block_on(ledger.message(id(number), Stretch::ALL)).unwrap().is_some();
        match answer {
            Ok(_) => accepted += 1,
            Err(ref error) => assert_eq!(error.kind(), ErrorKind::Full, "{error}"),
        }
        assert_eq!(there, answer.is_ok(), "message {number}");
    }
    // A full disk undoes the whole commit, and with it the requests that would have fitted: how many are let in
    // depends on how they gathered, down to none. Not all of them can be.
    assert!(accepted < 16, "all fitted, so nothing was full");
    assert_eq!(block_on(ledger.tally()).unwrap().accepted, accepted);
    assert!(block_on(ledger.audit()).unwrap().is_sound());
}
