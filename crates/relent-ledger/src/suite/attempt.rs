//! Rules of the attempt log.

use relent_core::{Settlement, StopReason};

use super::{Fixture, words::*};
use crate::{Attempt, AttemptRecord, ErrorKind, Ledger, State};

const AGAIN: Settlement = Settlement::Defer { wait: relent_core::Wait::NONE };

pub(super) async fn an_attempt_is_recorded_before_anything_is_sent<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let id = accept(ledger, message(1)).await;
    let (ticket, _) = claim_one(ledger, at(1)).await;
    assert_eq!(ledger.begin_attempt(&ticket, at(2)).await.unwrap(), 1);
    let found = read(ledger, id).await;
    assert_eq!(found.attempts, [Attempt { number: 1, cycle: 0, began_at: at(2), end: None }]);
    assert_eq!((found.summary.state, found.summary.attempts), (State::InFlight, 1));
    assert_eq!(ledger.tally().await.unwrap().attempts, 1);
}

pub(super) async fn attempts_are_numbered_from_one_and_on_through_all_cycles<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let id = accept(ledger, message(1)).await;
    for number in 1..=4 {
        let (ticket, work) = claim_one(ledger, at(10)).await;
        assert_eq!(work.attempts, number - 1);
        assert_eq!(ledger.begin_attempt(&ticket, at(10)).await.unwrap(), number);
        let dead = Settlement::DeadLetter { reason: StopReason::AttemptsExhausted };
        let settlement = if number == 2 { dead } else { AGAIN };
        ledger.finish(&ticket, ended(at(10), failed(number), settlement)).await.unwrap();
        if number == 2 {
            assert_eq!(ledger.redrive(id, redrive(at(10), 0)).await.unwrap(), crate::Settled::Done);
        }
    }
    let log = read(ledger, id).await.attempts;
    let numbers: Vec<_> = log.iter().map(|attempt| (attempt.number, attempt.cycle)).collect();
    assert_eq!(numbers, [(1, 0), (2, 0), (3, 1), (4, 1)]);
}

pub(super) async fn a_second_attempt_is_not_begun_while_one_is_open<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let id = accept(ledger, message(1)).await;
    let (ticket, _) = claim_one(ledger, at(1)).await;
    assert_eq!(ledger.begin_attempt(&ticket, at(1)).await.unwrap(), 1);
    assert_failed(ledger.begin_attempt(&ticket, at(2)).await, ErrorKind::Misuse);
    assert_eq!(read(ledger, id).await.attempts.len(), 1);
}

pub(super) async fn the_end_of_an_attempt_that_is_not_under_way_is_refused<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let id = accept(ledger, message(1)).await;
    let (ticket, _) = claim_one(ledger, at(1)).await;
    assert_failed(ledger.finish(&ticket, ended(at(1), failed(1), Settlement::Ack)).await, ErrorKind::Misuse);
    assert_eq!(ledger.begin_attempt(&ticket, at(1)).await.unwrap(), 1);
    assert_failed(ledger.finish(&ticket, ended(at(1), failed(2), Settlement::Ack)).await, ErrorKind::Misuse);
    let found = read(ledger, id).await;
    assert_eq!(
        (found.summary.state, found.history),
        (State::InFlight, message(1).history),
        "nothing is written"
    );
}

pub(super) async fn the_end_of_an_attempt_is_kept_whole<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let id = accept(ledger, message(1)).await;
    for (number, end) in [(1, failed(1)), (2, succeeded(2))] {
        let (ticket, _) = claim_one(ledger, at(6)).await;
        assert_eq!(ledger.begin_attempt(&ticket, at(5)).await.unwrap(), number);
        ledger.finish(&ticket, ended(at(6), end.clone(), AGAIN)).await.unwrap();
        let found = read(ledger, id).await;
        let log = found.attempts.last().unwrap().end.clone().expect("it has ended");
        let expected = AttemptRecord {
            took: end.took,
            observed: end.observed,
            detail: end.detail.clone(),
            response: end.response,
            truncated: end.truncated,
        };
        assert_eq!(log, expected);
        assert_eq!(found.summary.last_observed, Some(end.observed));
        assert_eq!(found.summary.last_detail, end.detail);
    }
}

pub(super) async fn an_interrupted_attempt_can_be_ended_under_the_next_ticket<F: Fixture>(mut fixture: F) {
    let id = accept(fixture.ledger(), message(1)).await;
    let (ticket, _) = claim_one(fixture.ledger(), at(1)).await;
    assert_eq!(fixture.ledger().begin_attempt(&ticket, at(1)).await.unwrap(), 1);
    fixture.crash(at(5)).await;
    let ledger = fixture.ledger();
    let (ticket, _) = claim_one(ledger, at(5)).await;
    ledger.finish(&ticket, ended(at(5), failed(1), AGAIN)).await.unwrap();
    let (_, work) = claim_one(ledger, at(6)).await;
    assert_eq!(work.interrupted, None);
    assert!(read(ledger, id).await.attempts[0].end.is_some());
}
