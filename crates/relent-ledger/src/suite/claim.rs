//! Rules of giving out.

use std::{collections::HashSet, time::Duration};

use relent_core::{Settlement, StopReason};

use super::{Fixture, Plant, Planted, together::at_once, words::*};
use crate::{ClaimQuery, Claimed, Destination, Ledger, MessageId, NewMessage, Shelve, State};

pub(super) async fn the_longest_due_is_claimed_first<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    for (number, due) in [(1, 30), (2, 10), (3, 20), (4, 10)] {
        accept(ledger, NewMessage { not_before: Some(at(due)), ..message(number) }).await;
    }
    assert_eq!(claimed_ids(ledger, all(at(60))).await, [2, 4, 3, 1].map(id));
}

pub(super) async fn a_claim_takes_no_more_than_its_limit<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    for number in 1..=3 {
        accept(ledger, message(number)).await;
    }
    let limit = |limit| ClaimQuery { limit, ..all(at(5)) };
    let none = ledger.claim(limit(0)).await.unwrap();
    assert!(none.claimed.is_empty());
    assert_eq!(none.next_due, Some(at(0)), "the limit cut the claim, so more is due");
    assert_eq!(claimed_ids(ledger, limit(2)).await, [id(1), id(2)]);
    assert_eq!(claimed_ids(ledger, limit(2)).await, [id(3)]);
    assert!(claimed_ids(ledger, limit(2)).await.is_empty());
}

pub(super) async fn a_claim_leaves_what_it_is_told_to_skip<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let to = |name: &str| Destination::new(format!("https://{name}.example:443"));
    for (number, name) in [(1, "a"), (2, "b"), (3, "a"), (4, "c")] {
        accept(ledger, NewMessage { destination: to(name), ..message(number) }).await;
    }
    let skip = vec![to("a"), to("nobody"), to("c")];
    let claims = ledger.claim(ClaimQuery { skip, ..all(at(1)) }).await.unwrap();
    assert_eq!(claims.claimed.iter().map(ticket).map(|ticket| ticket.id).collect::<Vec<_>>(), [id(2)]);
    assert_eq!(claims.next_due, None, "what is skipped is not waited for");
    assert_eq!(claimed_ids(ledger, all(at(1))).await, [id(1), id(3), id(4)]);
}

// JB-03: whoever sleeps until `next_due` is on time to the nanosecond.
pub(super) async fn the_next_due_is_exact<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    assert_eq!(ledger.claim(all(at(0))).await.unwrap().next_due, None);
    let due = at(1).after(Duration::from_nanos(500_000_001));
    accept(ledger, NewMessage { not_before: Some(at(70)), ..message(1) }).await;
    accept(ledger, message(2)).await;
    let claims = ledger.claim(all(at(0))).await.unwrap();
    assert_eq!(claims.next_due, Some(at(70)));
    let wait = wait(0, relent_core::WaitOrigin::Backoff);
    let wait = relent_core::Wait { length: due.since(at(1)), ..wait };
    ledger.finish(&ticket(&claims.claimed[0]), settled(at(1), Settlement::Retry { wait })).await.unwrap();
    let early = ledger.claim(all(due.before(Duration::from_nanos(1)))).await.unwrap();
    assert!(early.claimed.is_empty());
    assert_eq!(early.next_due, Some(due));
    assert_eq!(claimed_ids(ledger, all(due)).await, [id(2)]);
}

pub(super) async fn a_message_is_never_given_to_two_claims<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    for number in 0..40 {
        accept(ledger, message(number)).await;
    }
    let claimed = at_once(8, |_| async {
        let mut mine: Vec<MessageId> = Vec::new();
        loop {
            let query = ClaimQuery { limit: 3, ..all(at(1)) };
            match claimed_ids(ledger, query).await {
                none if none.is_empty() => return mine,
                some => mine.extend(some),
            }
            assert!(mine.len() <= 40, "more was given out than there is");
        }
    });
    let claimed: Vec<MessageId> = claimed.into_iter().flatten().collect();
    assert_eq!((claimed.len(), claimed.iter().collect::<HashSet<_>>().len()), (40, 40));
}

pub(super) async fn work_comes_as_it_was_accepted<F: Fixture>(fixture: F) {
    let sent = whole_message(1);
    accept(fixture.ledger(), sent.clone()).await;
    let (ticket, work) = claim_one(fixture.ledger(), at(3)).await;
    assert_eq!(ticket.id, sent.id);
    assert_eq!((work.request, work.destination), (sent.request, sent.destination));
    assert_eq!((work.key, work.policy, work.labels), (sent.key, sent.policy, sent.labels));
    assert_eq!((work.accepted_at, work.history), (sent.accepted_at, sent.history));
    assert_eq!((work.cycle, work.attempts, work.interrupted), (0, 0, None));
    assert_eq!(state(fixture.ledger(), sent.id).await, State::InFlight);
}

pub(super) async fn what_was_in_flight_is_due_at_once_after_a_crash<F: Fixture>(mut fixture: F) {
    let id = accept(fixture.ledger(), message(1)).await;
    let (before, _) = claim_one(fixture.ledger(), at(1)).await;
    fixture.crash(at(9)).await;
    let line = read(fixture.ledger(), id).await.summary;
    assert_eq!((line.state, line.due_at), (State::Waiting, Some(at(9))));
    let (after, work) = claim_one(fixture.ledger(), at(9)).await;
    assert_ne!(before, after, "a ticket of its own");
    assert_eq!((work.interrupted, work.attempts), (None, 0));
}

pub(super) async fn an_interrupted_attempt_comes_with_the_claim<F: Fixture>(mut fixture: F) {
    let id = accept(fixture.ledger(), message(1)).await;
    let (ticket, _) = claim_one(fixture.ledger(), at(1)).await;
    assert_eq!(fixture.ledger().begin_attempt(&ticket, at(2)).await.unwrap(), 1);
    fixture.crash(at(9)).await;
    assert_eq!(read(fixture.ledger(), id).await.attempts[0].end, None);
    let (_, work) = claim_one(fixture.ledger(), at(9)).await;
    assert_eq!((work.interrupted, work.attempts), (Some(1), 1));
}

pub(super) async fn spoiled_content_comes_as_unreadable_and_the_others_come<F: Fixture>(fixture: F) {
    spoiled(fixture, Plant::Content).await;
}

pub(super) async fn a_spoiled_history_comes_as_unreadable_and_the_others_come<F: Fixture>(fixture: F) {
    spoiled(fixture, Plant::History).await;
}

async fn spoiled<F: Fixture>(mut fixture: F, plant: Plant) {
    for number in 1..=3 {
        accept(fixture.ledger(), message(number)).await;
    }
    if fixture.plant(plant, id(2)).await == Planted::Unable {
        eprintln!("skipped: this store has no way to spoil a message's {plant:?}");
        return;
    }
    let ledger = fixture.ledger();
    let claims = ledger.claim(all(at(1))).await.unwrap().claimed;
    let kinds: Vec<_> = claims.iter().map(|claimed| (ticket(claimed).id, is_work(claimed))).collect();
    assert_eq!(kinds, [(id(1), true), (id(2), false), (id(3), true)]);
    let shelve = Shelve { at: at(2), reason: StopReason::Unreadable, detail: "spoiled".into() };
    ledger.shelve(&ticket(&claims[1]), shelve).await.unwrap();
    assert_eq!(listed(ledger, &[State::Dead]).await, [id(2)]);
    assert_eq!(listed(ledger, &[]).await.len(), 3, "lists go on");
}

fn is_work(claimed: &Claimed) -> bool {
    matches!(claimed, Claimed::Work(..))
}
