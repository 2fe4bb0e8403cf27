//! Claims past a backlog, past spoiled rows, and for callers who are gone.

use std::{future::Future, pin::pin, task::Context};

use relent_core::StopReason;
use relent_ledger::{ClaimQuery, Claimed, Destination, Ledger, NewMessage, Shelve, State, suite::block_on};
use relent_ledger_sqlite::{Options, Synchronous};

use crate::common::{Store, all, at, claim, id, message};

fn to(number: u32, destination: &Destination, due: u64) -> NewMessage {
    NewMessage { destination: destination.clone(), not_before: Some(at(due)), ..message(number) }
}

/// More than are passed over one by one, so that the claim goes around them.
#[test]
fn a_backlog_that_is_skipped_hides_nothing_behind_it() {
    let store = Store::with(Options::default().with_synchronous(Synchronous::Off));
    let ledger = &store.ledger;
    let [held, a, b, c] = ["held", "a", "b", "c"].map(|name| Destination::new(format!("https://{name}:443")));
    block_on(async {
        for number in 0..1100 {
            let _ = ledger.accept(to(number, &held, 1)).await.unwrap();
        }
        for (number, destination, due) in
            [(2001, &b, 20), (2002, &a, 30), (2003, &b, 10), (2004, &c, 25), (2005, &a, 10)]
        {
            let _ = ledger.accept(to(number, destination, due)).await.unwrap();
        }
        let query = |now, limit| ClaimQuery { now: at(now), limit, skip: vec![held.clone(), c.clone()] };
        let early = ledger.claim(query(9, 10)).await.unwrap();
        assert!(early.claimed.is_empty());
        assert_eq!(early.next_due, Some(at(10)));
        let claims = ledger.claim(query(25, 2)).await.unwrap();
        assert_eq!(claims.next_due, Some(at(20)), "cut by the limit");
        let ids: Vec<_> = claims.claimed.iter().map(ticket_id).collect();
        assert_eq!(ids, [2003, 2005].map(id), "the longest due first, of equals the first accepted");
        let claims = ledger.claim(query(25, 9)).await.unwrap();
        assert_eq!(claims.claimed.iter().map(ticket_id).collect::<Vec<_>>(), [id(2001)]);
        assert_eq!(claims.next_due, Some(at(30)));
    });
}

fn ticket_id(claimed: &Claimed) -> relent_ledger::MessageId {
    let (Claimed::Work(ticket, _) | Claimed::Unreadable(ticket, _)) = claimed;
    ticket.id
}

/// A worker that is cancelled while it waits for its claim must not keep the messages.
#[test]
fn what_a_dropped_call_claimed_is_given_to_the_next() {
    let store = Store::new();
    let ledger = &store.ledger;
    block_on(async {
        for number in 1..=3 {
            let _ = ledger.accept(message(number)).await.unwrap();
        }
        for _ in 0..20 {
            {
                let mut dropped = pin!(ledger.claim(all(at(1))));
                let mut context = Context::from_waker(std::task::Waker::noop());
                assert!(dropped.as_mut().poll(&mut context).is_pending());
            }
            // The claim is carried out or not; either way the messages are there for this one.
            let mut found = claim(ledger, at(1)).await;
            while found.len() < 3 {
                found.extend(claim(ledger, at(1)).await);
            }
            assert_eq!(found.len(), 3);
            for ticket in found {
                let wait = relent_core::Wait::NONE;
                let finish = relent_ledger::Finish {
                    at: at(1),
                    attempt: None,
                    settlement: relent_core::Settlement::Defer { wait },
                    history: message(1).history,
                };
                ledger.finish(&ticket, finish).await.unwrap();
            }
        }
        let audit = ledger.audit().await.unwrap();
        assert!(audit.is_sound(), "{:?}", audit.findings);
        assert_eq!(ledger.tally().await.unwrap().count(State::Waiting), 3);
    });
}

#[test]
fn whatever_is_spoiled_in_a_row_the_others_come() {
    for spoil in [
        "UPDATE content SET body = x'00' WHERE seq = 2",
        "UPDATE content SET headers = 'garbage' WHERE seq = 2",
        "UPDATE content SET labels = '{}}' WHERE seq = 2",
        "UPDATE content SET key = NULL WHERE seq = 2",
        "UPDATE content SET sum = sum + 1 WHERE seq = 2",
        "UPDATE content SET url = CAST(x'ff' AS TEXT) WHERE seq = 2",
        "DELETE FROM content WHERE seq = 2",
        "UPDATE message SET destination = 99 WHERE seq = 2",
        "UPDATE message SET history = x'FF' WHERE seq = 2",
        "UPDATE message SET attempts = -1 WHERE seq = 2",
        "UPDATE message SET accepted_at = 1 WHERE seq = 2",
    ] {
        let store = Store::new();
        let ledger = &store.ledger;
        block_on(async {
            for number in 1..=3 {
                let _ = ledger.accept(message(number)).await.unwrap();
            }
            store.beside().execute_batch(&format!("PRAGMA foreign_keys = OFF; {spoil}")).unwrap();
            let claimed = ledger.claim(all(at(1))).await.unwrap().claimed;
            assert_eq!(claimed.iter().map(ticket_id).collect::<Vec<_>>(), [1, 2, 3].map(id), "{spoil}");
            let readable: Vec<_> =
                claimed.iter().map(|claimed| matches!(claimed, Claimed::Work(..))).collect();
            assert_eq!(readable, [true, false, true], "{spoil}");
        });
    }
}

/// Not even a ticket can be made for it, so the store itself takes it out of the way.
#[test]
fn a_row_whose_name_cannot_be_read_is_shelved_and_the_others_come() {
    let store = Store::new();
    let ledger = &store.ledger;
    block_on(async {
        for number in 1..=3 {
            let _ = ledger.accept(message(number)).await.unwrap();
        }
        let spoil = "PRAGMA ignore_check_constraints = ON; UPDATE message SET id = x'00' WHERE seq = 2";
        store.beside().execute_batch(spoil).unwrap();
        assert_eq!(claim(ledger, at(1)).await.len(), 2);
        let tally = ledger.tally().await.unwrap();
        assert_eq!(tally.dead.get(StopReason::Unreadable.name()), Some(&1));
        assert_eq!((tally.count(State::InFlight), tally.count(State::Dead)), (2, 1));
    });
}

/// An epoch that cannot be counted on makes no ticket either.
#[test]
fn a_row_whose_epoch_is_spoiled_is_shelved_and_the_others_come() {
    for epoch in [i64::MAX, -5, i64::MIN] {
        let store = Store::new();
        let ledger = &store.ledger;
        block_on(async {
            for number in 1..=3 {
                let _ = ledger.accept(message(number)).await.unwrap();
            }
            store.beside().execute("UPDATE message SET epoch = ?1 WHERE seq = 2", [epoch]).unwrap();
            let claimed = claim(ledger, at(1)).await;
            assert_eq!(claimed.iter().map(|ticket| ticket.id).collect::<Vec<_>>(), [1, 3].map(id), "{epoch}");
            let tally = ledger.tally().await.unwrap();
            assert_eq!(tally.dead.get(StopReason::Unreadable.name()), Some(&1), "{epoch}");
            assert_eq!((tally.count(State::InFlight), tally.count(State::Dead)), (2, 1), "{epoch}");
        });
    }
}

#[test]
fn whatever_number_is_spoiled_the_message_can_be_shelved() {
    for spoil in ["attempts = -1", "attempts = 4294967301", "cycle = -1", "open_attempt = -1"] {
        let store = Store::new();
        let ledger = &store.ledger;
        block_on(async {
            let _ = ledger.accept(message(1)).await.unwrap();
            store.beside().execute(&format!("UPDATE message SET {spoil}"), []).unwrap();
            let claimed = ledger.claim(all(at(1))).await.unwrap().claimed;
            let [Claimed::Unreadable(ticket, what)] = &claimed[..] else { panic!("{spoil}: {claimed:?}") };
            let shelve = Shelve { at: at(2), reason: StopReason::Unreadable, detail: what.clone() };
            ledger.shelve(ticket, shelve).await.unwrap();
            let tally = ledger.tally().await.unwrap();
            assert_eq!((tally.count(State::InFlight), tally.count(State::Dead)), (0, 1), "{spoil}");
        });
    }
}
