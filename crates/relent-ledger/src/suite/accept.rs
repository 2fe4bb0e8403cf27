//! Rules of taking in.

use std::time::Duration;

use relent_core::{Wait, WaitOrigin};

use super::{Fixture, words::*};
use crate::{Accepted, ErrorKind, Ledger, NewMessage, State, Stretch};

pub(super) async fn what_is_accepted_is_read_back_as_it_was_sent<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    for sent in [whole_message(1), message(2)] {
        accept(ledger, sent.clone()).await;
        let found = read(ledger, sent.id).await;
        assert_eq!(found.request, sent.request);
        assert_eq!(found.key, sent.key);
        assert_eq!(found.repeat, sent.repeat);
        assert_eq!(found.labels, sent.labels);
        assert_eq!(found.history, sent.history);
        assert_eq!((found.attempts.len(), found.waits.len()), (0, 0));
        let line = found.summary;
        assert_eq!((line.id, line.state, line.cycle, line.attempts), (sent.id, State::Waiting, 0, 0));
        assert_eq!((line.method, line.url), (sent.request.method, sent.request.url));
        assert_eq!((line.destination, line.policy), (sent.destination, sent.policy));
        assert_eq!((line.accepted_at, line.deadline), (sent.accepted_at, sent.deadline));
        assert_eq!((line.ended_at, line.reason, line.last_observed, line.wait), (None, None, None, None));
    }
}

fn keyed(number: u8, key: &str, fingerprint: u8) -> NewMessage {
    NewMessage { key: Some(key.into()), fingerprint: [fingerprint; 32], ..message(number) }
}

pub(super) async fn the_same_key_with_the_same_fingerprint_is_a_replay<F: Fixture>(mut fixture: F) {
    let first = accept(fixture.ledger(), keyed(1, "order-1", 7)).await;
    assert_eq!(fixture.ledger().accept(keyed(2, "order-1", 7)).await.unwrap(), Accepted::Replayed(first));
    assert_eq!(fixture.ledger().message(id(2), Stretch::NONE).await.unwrap(), None, "nothing is stored");
    assert_eq!(fixture.ledger().tally().await.unwrap().accepted, 1);
    fixture.crash(at(1)).await;
    assert_eq!(fixture.ledger().accept(keyed(3, "order-1", 7)).await.unwrap(), Accepted::Replayed(first));
}

pub(super) async fn the_same_key_with_another_fingerprint_is_a_conflict<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let first = accept(ledger, keyed(1, "order-1", 7)).await;
    assert_eq!(ledger.accept(keyed(2, "order-1", 8)).await.unwrap(), Accepted::Conflict(first));
    assert_eq!(ledger.message(id(2), Stretch::NONE).await.unwrap(), None, "nothing is stored");
    assert_eq!(read(ledger, first).await.request, message(1).request);
    assert_eq!(ledger.tally().await.unwrap().accepted, 1);
}

pub(super) async fn a_key_is_looked_up_and_nothing_is_stored<F: Fixture>(mut fixture: F) {
    let ledger = fixture.ledger();
    assert_eq!(ledger.replay("order-1", [7; 32]).await.unwrap(), None);
    let first = accept(ledger, keyed(1, "order-1", 7)).await;
    accept(ledger, NewMessage { fingerprint: [9; 32], ..message(2) }).await;
    fixture.crash(at(1)).await;
    let ledger = fixture.ledger();
    for (key, fingerprint, known) in [
        ("order-1", 7, Some(Accepted::Replayed(first))),
        ("order-1", 8, Some(Accepted::Conflict(first))),
        ("order-2", 7, None),
        ("", 9, None),
    ] {
        assert_eq!(ledger.replay(key, [fingerprint; 32]).await.unwrap(), known, "{key} {fingerprint}");
    }
    assert_eq!(ledger.tally().await.unwrap().accepted, 2);
}

pub(super) async fn messages_without_a_key_are_all_new<F: Fixture>(fixture: F) {
    for number in 1..=3 {
        accept(fixture.ledger(), NewMessage { fingerprint: [7; 32], ..message(number) }).await;
    }
    assert_eq!(fixture.ledger().tally().await.unwrap().accepted, 3);
}

pub(super) async fn a_message_without_a_not_before_is_due_at_once<F: Fixture>(fixture: F) {
    let id = accept(fixture.ledger(), message(1)).await;
    assert_eq!(read(fixture.ledger(), id).await.summary.due_at, Some(at(0)));
    assert_eq!(claimed_ids(fixture.ledger(), all(at(0))).await, [id]);
}

fn later(number: u8, secs: u64) -> NewMessage {
    NewMessage { not_before: Some(at(secs)), ..message(number) }
}

pub(super) async fn a_message_is_not_given_out_before_its_not_before<F: Fixture>(fixture: F) {
    let id = accept(fixture.ledger(), later(1, 60)).await;
    let just_before = at(60).before(Duration::from_nanos(1));
    assert!(claimed_ids(fixture.ledger(), all(just_before)).await.is_empty());
    assert_eq!(claimed_ids(fixture.ledger(), all(at(60))).await, [id]);
}

pub(super) async fn a_not_before_is_recorded_as_a_wait<F: Fixture>(fixture: F) {
    let id = accept(fixture.ledger(), later(1, 60)).await;
    let found = read(fixture.ledger(), id).await;
    let expected = Wait::exactly(Duration::from_secs(60), WaitOrigin::NotBefore);
    assert_eq!(found.waits.len(), 1);
    let recorded = found.waits[0];
    assert_eq!((recorded.decided_at, recorded.after_attempt, recorded.wait), (at(0), 0, expected));
    assert_eq!(found.summary.wait, Some(expected));
}

pub(super) async fn a_second_message_with_the_same_id_is_refused<F: Fixture>(fixture: F) {
    let id = accept(fixture.ledger(), message(1)).await;
    let other = NewMessage { id, ..keyed(2, "another", 9) };
    assert_failed(fixture.ledger().accept(other).await, ErrorKind::Misuse);
    assert_eq!(read(fixture.ledger(), id).await.request, message(1).request);
    accept(fixture.ledger(), keyed(3, "another", 9)).await;
}

pub(super) async fn what_was_accepted_survives_a_crash<F: Fixture>(mut fixture: F) {
    let id = accept(fixture.ledger(), whole_message(1)).await;
    let before = read(fixture.ledger(), id).await;
    fixture.crash(at(5)).await;
    assert_eq!(read(fixture.ledger(), id).await, before);
    assert_eq!(fixture.ledger().tally().await.unwrap().accepted, 1);
}
