//! Rules of what people want done.

use std::time::Duration;

use relent_core::{Settlement, Wait, WaitOrigin};

use super::{Fixture, together::at_once, words::*};
use crate::{Discard, Ledger, Settled, State, Stretch};

// RD-09: of any number of redrives of one dead letter, one is carried out.
pub(super) async fn a_dead_letter_is_redriven_once<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let id = dead(ledger, message(1), at(1)).await;
    let answers = at_once(8, |_| async { ledger.redrive(id, redrive(at(2), 0)).await.unwrap() });
    assert_eq!(answers.iter().filter(|answer| **answer == Settled::Done).count(), 1, "{answers:?}");
    let told = answers.iter().filter(|answer| **answer == Settled::Refused(State::Waiting)).count();
    assert_eq!(told, 7, "{answers:?}");
    assert_eq!(claimed_ids(ledger, all(at(2))).await, [id]);
    assert_eq!(ledger.redrive(id, redrive(at(3), 0)).await.unwrap(), Settled::Refused(State::InFlight));
}

pub(super) async fn a_redrive_of_another_cycle_is_refused<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let id = dead(ledger, message(1), at(1)).await;
    assert_eq!(ledger.redrive(id, redrive(at(2), 0)).await.unwrap(), Settled::Done);
    let (ticket, _) = claim_one(ledger, at(2)).await;
    bury(ledger, &ticket, at(3)).await;
    assert_eq!(ledger.redrive(id, redrive(at(4), 0)).await.unwrap(), Settled::Refused(State::Dead));
    assert_eq!(state(ledger, id).await, State::Dead);
    assert_eq!(ledger.redrive(id, redrive(at(4), 1)).await.unwrap(), Settled::Done);
}

// RD-01, RD-03: the new cycle begins with the decision state it is given; the totals go on.
pub(super) async fn a_redrive_begins_a_new_cycle_and_keeps_the_totals<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let id = dead(ledger, message(1), at(1)).await;
    assert_eq!(ledger.redrive(id, redrive(at(2), 0)).await.unwrap(), Settled::Done);
    let found = read(ledger, id).await;
    let line = found.summary;
    assert_eq!((line.state, line.due_at, line.cycle), (State::Waiting, Some(at(2)), 1));
    assert_eq!((line.ended_at, line.reason, line.deadline), (None, None, Some(at(62))));
    assert_eq!((line.attempts, found.attempts.len()), (1, 1));
    let (ticket, work) = claim_one(ledger, at(2)).await;
    assert_eq!((work.cycle, work.attempts, work.interrupted), (1, 1, None));
    assert_eq!(work.history, "redriven");
    assert_eq!(ledger.begin_attempt(&ticket, at(3)).await.unwrap(), 2);
    ledger.finish(&ticket, ended(at(4), succeeded(2), Settlement::Ack)).await.unwrap();
    let line = read(ledger, id).await.summary;
    assert_eq!((line.state, line.attempts), (State::Delivered, 2));
}

pub(super) async fn a_redrive_is_recorded_as_a_wait<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let id = dead(ledger, message(1), at(1)).await;
    assert_eq!(ledger.redrive(id, redrive(at(2), 0)).await.unwrap(), Settled::Done);
    let waits = read(ledger, id).await.waits;
    assert_eq!(waits.len(), 1);
    assert_eq!((waits[0].decided_at, waits[0].after_attempt), (at(2), 1));
    assert_eq!(waits[0].wait, Wait::exactly(Duration::ZERO, WaitOrigin::Redrive));
}

// RD-11: body bytes 00 FF 7B, no header invented.
pub(super) async fn a_redrive_changes_no_byte_of_the_content<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let sent = whole_message(1);
    let id = dead(ledger, sent.clone(), at(1)).await;
    assert_eq!(ledger.redrive(id, redrive(at(2), 0)).await.unwrap(), Settled::Done);
    let (_, work) = claim_one(ledger, at(2)).await;
    assert_eq!((work.request, work.destination), (sent.request, sent.destination));
    assert_eq!((work.key, work.labels, work.policy), (sent.key, sent.labels, sent.policy));
    assert_eq!(work.accepted_at, sent.accepted_at);
}

pub(super) async fn a_redrive_leaves_an_open_attempt_behind<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let id = accept(ledger, message(1)).await;
    let (ticket, _) = claim_one(ledger, at(1)).await;
    assert_eq!(ledger.begin_attempt(&ticket, at(1)).await.unwrap(), 1);
    let dead = Settlement::DeadLetter { reason: relent_core::StopReason::Ambiguous };
    ledger.finish(&ticket, settled(at(1), dead)).await.unwrap();
    assert_eq!(ledger.redrive(id, redrive(at(2), 0)).await.unwrap(), Settled::Done);
    let (_, work) = claim_one(ledger, at(2)).await;
    assert_eq!(work.interrupted, None);
    assert_eq!(read(ledger, id).await.attempts[0].end, None);
}

pub(super) async fn a_discarded_dead_letter_is_off_the_list_and_readable<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let id = dead(ledger, message(1), at(1)).await;
    assert_eq!(ledger.discard(id, discard(at(2))).await.unwrap(), Settled::Done);
    assert!(listed(ledger, &[State::Dead]).await.is_empty());
    let found = read(ledger, id).await;
    assert_eq!((found.summary.state, found.summary.ended_at), (State::Discarded, Some(at(2))));
    assert_eq!(found.request, message(1).request);
    assert_eq!(ledger.discard(id, discard(at(3))).await.unwrap(), Settled::Refused(State::Discarded));
    assert_eq!(ledger.redrive(id, redrive(at(3), 0)).await.unwrap(), Settled::Refused(State::Discarded));
}

pub(super) async fn only_a_dead_letter_is_discarded<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let id = accept(ledger, message(1)).await;
    assert_eq!(ledger.discard(id, discard(at(1))).await.unwrap(), Settled::Refused(State::Waiting));
    let (ticket, _) = claim_one(ledger, at(1)).await;
    assert_eq!(ledger.discard(id, discard(at(1))).await.unwrap(), Settled::Refused(State::InFlight));
    ledger.finish(&ticket, settled(at(2), Settlement::Ack)).await.unwrap();
    assert_eq!(ledger.discard(id, discard(at(3))).await.unwrap(), Settled::Refused(State::Delivered));
}

pub(super) async fn a_discarding_of_another_cycle_is_refused<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let id = dead(ledger, message(1), at(1)).await;
    assert_eq!(ledger.redrive(id, redrive(at(2), 0)).await.unwrap(), Settled::Done);
    let (ticket, _) = claim_one(ledger, at(2)).await;
    bury(ledger, &ticket, at(3)).await;
    let seen = |cycle| Discard { at: at(4), seen_cycle: Some(cycle) };
    assert_eq!(ledger.discard(id, seen(0)).await.unwrap(), Settled::Refused(State::Dead));
    assert_eq!(state(ledger, id).await, State::Dead);
    assert_eq!(ledger.discard(id, seen(1)).await.unwrap(), Settled::Done);
}

pub(super) async fn what_waits_can_be_cancelled<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let id = accept(ledger, message(1)).await;
    assert_eq!(ledger.cancel(id, at(1)).await.unwrap(), Settled::Done);
    let line = read(ledger, id).await.summary;
    assert_eq!((line.state, line.ended_at, line.due_at), (State::Cancelled, Some(at(1)), None));
    assert!(claimed_ids(ledger, all(at(9))).await.is_empty());
    assert_eq!(ledger.cancel(id, at(2)).await.unwrap(), Settled::Refused(State::Cancelled));
}

pub(super) async fn what_is_in_flight_is_not_cancelled<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let id = accept(ledger, message(1)).await;
    let (ticket, _) = claim_one(ledger, at(1)).await;
    assert_eq!(ledger.cancel(id, at(1)).await.unwrap(), Settled::Refused(State::InFlight));
    ledger.finish(&ticket, settled(at(2), Settlement::Ack)).await.unwrap();
    assert_eq!(state(ledger, id).await, State::Delivered);
}

pub(super) async fn a_message_that_is_not_there_is_not_found<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    accept(ledger, message(1)).await;
    assert_eq!(ledger.message(id(9), Stretch::ALL).await.unwrap(), None);
    assert_eq!(ledger.redrive(id(9), redrive(at(1), 0)).await.unwrap(), Settled::NotFound);
    assert_eq!(ledger.discard(id(9), discard(at(1))).await.unwrap(), Settled::NotFound);
    assert_eq!(ledger.cancel(id(9), at(1)).await.unwrap(), Settled::NotFound);
}
