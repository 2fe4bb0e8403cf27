//! Rules of settling.

use relent_core::{Gate, Settlement, StopReason, WaitOrigin};

use super::{Fixture, words::*};
use crate::{ErrorKind, Ledger, Shelve, State, Ticket};

/// Accepts a message, claims it and begins an attempt.
async fn under_way(ledger: &impl Ledger) -> Ticket {
    accept(ledger, message(1)).await;
    let (ticket, _) = claim_one(ledger, at(1)).await;
    assert_eq!(ledger.begin_attempt(&ticket, at(1)).await.unwrap(), 1);
    ticket
}

pub(super) async fn an_acknowledged_message_is_delivered<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let ticket = under_way(ledger).await;
    ledger.finish(&ticket, ended(at(2), succeeded(1), Settlement::Ack)).await.unwrap();
    let line = read(ledger, ticket.id).await.summary;
    assert_eq!((line.state, line.ended_at, line.due_at), (State::Delivered, Some(at(2)), None));
    assert_eq!(line.reason, None);
    assert!(claimed_ids(ledger, all(at(9000))).await.is_empty());
}

pub(super) async fn a_retry_is_due_after_its_wait<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let ticket = under_way(ledger).await;
    let wait = wait(30, WaitOrigin::Backoff);
    ledger.finish(&ticket, ended(at(2), failed(1), Settlement::Retry { wait })).await.unwrap();
    waits_until_32(ledger, ticket).await;
}

pub(super) async fn a_deferral_is_due_after_its_wait<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    accept(ledger, message(1)).await;
    let (ticket, _) = claim_one(ledger, at(1)).await;
    let wait = wait(30, WaitOrigin::Gate(Gate::Breaker));
    ledger.finish(&ticket, settled(at(2), Settlement::Defer { wait })).await.unwrap();
    assert!(read(ledger, ticket.id).await.attempts.is_empty(), "no attempt was made");
    waits_until_32(ledger, ticket).await;
}

async fn waits_until_32(ledger: &impl Ledger, ticket: Ticket) {
    let line = read(ledger, ticket.id).await.summary;
    assert_eq!((line.state, line.due_at), (State::Waiting, Some(at(32))));
    assert!(claimed_ids(ledger, all(at(31))).await.is_empty());
    assert_eq!(claimed_ids(ledger, all(at(32))).await, [ticket.id]);
}

pub(super) async fn every_wait_is_recorded_with_its_derivation<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let ticket = under_way(ledger).await;
    let first = wait(3, WaitOrigin::Server);
    ledger.finish(&ticket, ended(at(2), failed(1), Settlement::Retry { wait: first })).await.unwrap();
    let (next, _) = claim_one(ledger, at(5)).await;
    let second = relent_core::Wait { asked: None, ..wait(4, WaitOrigin::Shutdown) };
    ledger.finish(&next, settled(at(6), Settlement::Defer { wait: second })).await.unwrap();
    let waits = read(ledger, ticket.id).await.waits;
    let waits: Vec<_> =
        waits.iter().map(|record| (record.decided_at, record.after_attempt, record.wait)).collect();
    assert_eq!(waits, [(at(2), 1, first), (at(6), 1, second)]);
}

pub(super) async fn a_dead_letter_has_its_reason<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    for (number, &reason) in (1..).zip(StopReason::ALL) {
        let id = accept(ledger, message(number)).await;
        let (ticket, _) = claim_one(ledger, at(1)).await;
        ledger.finish(&ticket, settled(at(2), Settlement::DeadLetter { reason })).await.unwrap();
        let line = read(ledger, id).await.summary;
        assert_eq!((line.state, line.reason, line.ended_at), (State::Dead, Some(reason), Some(at(2))));
    }
    assert!(claimed_ids(ledger, all(at(9000))).await.is_empty());
}

pub(super) async fn what_is_left_is_due_at_once_and_its_attempt_stays_open<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let ticket = under_way(ledger).await;
    ledger.finish(&ticket, settled(at(7), Settlement::Leave)).await.unwrap();
    let line = read(ledger, ticket.id).await.summary;
    assert_eq!((line.state, line.due_at), (State::Waiting, Some(at(7))));
    let (_, work) = claim_one(ledger, at(7)).await;
    assert_eq!(work.interrupted, Some(1));
}

pub(super) async fn the_decision_state_is_kept<F: Fixture>(mut fixture: F) {
    let ticket = under_way(fixture.ledger()).await;
    let settlement = Settlement::Retry { wait: wait(1, WaitOrigin::Backoff) };
    fixture.ledger().finish(&ticket, ended(at(2), failed(1), settlement)).await.unwrap();
    fixture.crash(at(3)).await;
    assert_eq!(read(fixture.ledger(), ticket.id).await.history, "settled");
    let (_, work) = claim_one(fixture.ledger(), at(3)).await;
    assert_eq!(work.history, "settled");
}

// ST-06: settled twice, in every way there is.
pub(super) async fn a_ticket_is_over_once_it_is_settled<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let ticket = under_way(ledger).await;
    ledger.finish(&ticket, ended(at(2), succeeded(1), Settlement::Ack)).await.unwrap();
    let before = read(ledger, ticket.id).await;
    refuses(ledger, ticket).await;
    assert_eq!(read(ledger, ticket.id).await, before, "nothing is written");
}

// ST-08: the first worker's late settlement is not credited to the second's claim.
pub(super) async fn a_late_settlement_is_refused<F: Fixture>(mut fixture: F) {
    let late = under_way(fixture.ledger()).await;
    fixture.crash(at(30)).await;
    let ledger = fixture.ledger();
    let (held, _) = claim_one(ledger, at(30)).await;
    let before = read(ledger, late.id).await;
    refuses(ledger, late).await;
    assert_eq!(read(ledger, late.id).await, before, "nothing is written");
    let again = Settlement::Retry { wait: relent_core::Wait::NONE };
    ledger.finish(&held, ended(at(50), failed(1), again)).await.unwrap();
    assert_eq!(claimed_ids(ledger, all(at(50))).await, [late.id], "given out a third time");
}

async fn refuses(ledger: &impl Ledger, over: Ticket) {
    assert_failed(ledger.finish(&over, settled(at(35), Settlement::Ack)).await, ErrorKind::Stale);
    let dead = Settlement::DeadLetter { reason: StopReason::Permanent };
    assert_failed(ledger.finish(&over, settled(at(35), dead)).await, ErrorKind::Stale);
    assert_failed(ledger.begin_attempt(&over, at(35)).await, ErrorKind::Stale);
    let shelve = Shelve { at: at(35), reason: StopReason::Unreadable, detail: "late".into() };
    assert_failed(ledger.shelve(&over, shelve).await, ErrorKind::Stale);
}

pub(super) async fn a_shelved_message_is_dead_as_it_is<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let ticket = under_way(ledger).await;
    let shelve = Shelve { at: at(4), reason: StopReason::Unreadable, detail: "no such version".into() };
    ledger.shelve(&ticket, shelve).await.unwrap();
    let found = read(ledger, ticket.id).await;
    let line = &found.summary;
    assert_eq!((line.state, line.reason), (State::Dead, Some(StopReason::Unreadable)));
    assert_eq!((line.ended_at, line.last_detail.as_str()), (Some(at(4)), "no such version"));
    assert_eq!(found.history, message(1).history, "as it is");
    assert_eq!(found.attempts[0].end, None, "as it is");
}
