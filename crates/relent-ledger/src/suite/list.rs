//! Rules of lists.

use relent_core::{Settlement, StopReason, Wait, WaitOrigin};

use super::{Fixture, words::*};
use crate::{Destination, Ledger, ListQuery, MessageId, Older, State, Stretch};

pub(super) async fn a_log_is_read_in_stretches<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let id = accept(ledger, message(1)).await;
    let again = Settlement::Retry { wait: Wait::NONE };
    for number in 1..=5 {
        let (ticket, _) = claim_one(ledger, at(10)).await;
        assert_eq!(ledger.begin_attempt(&ticket, at(10)).await.unwrap(), number);
        ledger.finish(&ticket, ended(at(10), failed(number), again)).await.unwrap();
    }
    let before = |before, limit| Stretch { before: Some(before), limit };
    let cases: [(Stretch, &[u32], Older); 7] = [
        (Stretch::ALL, &[1, 2, 3, 4, 5], Older::Nothing),
        (Stretch::newest(5), &[1, 2, 3, 4, 5], Older::Nothing),
        (Stretch::newest(2), &[4, 5], Older::More),
        (before(4, 2), &[2, 3], Older::More),
        (before(2, 2), &[1], Older::Nothing),
        (Stretch::NONE, &[], Older::More),
        (before(1, 9), &[], Older::Nothing),
    ];
    for (stretch, shown, older) in cases {
        let found = ledger.message(id, stretch).await.unwrap().expect("the message is there");
        let numbers: Vec<u32> = found.attempts.iter().map(|attempt| attempt.number).collect();
        let followed: Vec<u32> = found.waits.iter().map(|wait| wait.after_attempt).collect();
        assert_eq!((&numbers[..], &followed[..], found.older), (shown, shown, older), "{stretch:?}");
        assert_eq!(found.summary.attempts, 5, "the totals are of the whole log");
    }
}

pub(super) async fn a_list_is_newest_first<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    for number in [3, 1, 2] {
        accept(ledger, message(number)).await;
    }
    assert_eq!(listed(ledger, &[]).await, [2, 1, 3].map(id), "by the order of acceptance");
}

pub(super) async fn a_list_shows_only_the_states_asked_for<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    dead(ledger, message(1), at(1)).await;
    let delivered = accept(ledger, message(2)).await;
    let (ticket, _) = claim_one(ledger, at(1)).await;
    ledger.finish(&ticket, settled(at(1), Settlement::Ack)).await.unwrap();
    accept(ledger, message(3)).await;
    assert_eq!(listed(ledger, &[State::Dead]).await, [id(1)]);
    assert_eq!(listed(ledger, &[State::Delivered]).await, [delivered]);
    assert_eq!(listed(ledger, &[State::Waiting, State::Dead]).await, [id(3), id(1)]);
    assert!(listed(ledger, &[State::Held]).await.is_empty());
}

pub(super) async fn a_list_shows_only_the_reasons_asked_for<F: Fixture>(fixture: F) {
    use StopReason::{Ambiguous, AttemptsExhausted, Permanent};
    let ledger = fixture.ledger();
    for (number, reason) in [(1, Permanent), (2, Ambiguous), (3, AttemptsExhausted), (4, Ambiguous)] {
        accept(ledger, message(number)).await;
        let (ticket, _) = claim_one(ledger, at(1)).await;
        bury_for(ledger, &ticket, at(1), reason).await;
    }
    accept(ledger, message(5)).await;
    let dead = |reasons: &[StopReason]| ListQuery {
        states: vec![State::Dead],
        reasons: reasons.to_vec(),
        ..ListQuery::newest(100)
    };
    assert_eq!(found(ledger, dead(&[Ambiguous])).await, [4, 2].map(id));
    assert_eq!(found(ledger, dead(&[Permanent, AttemptsExhausted])).await, [3, 1].map(id));
    assert_eq!(found(ledger, dead(&[StopReason::PoisonCrash])).await, []);
    assert_eq!(found(ledger, dead(&[])).await, [4, 3, 2, 1].map(id));
    let anywhere = ListQuery { states: Vec::new(), ..dead(&[Permanent]) };
    assert_eq!(found(ledger, anywhere).await, [id(1)], "what waits has no reason");
    assert_eq!(ledger.redrive(id(2), redrive(at(2), 0)).await.unwrap(), crate::Settled::Done);
    assert_eq!(found(ledger, dead(&[Ambiguous])).await, [id(4)], "a redrive takes the reason away");
}

pub(super) async fn a_list_shows_only_the_destinations_asked_for<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let [shop, mail, other] =
        ["https://shop.example:443", "https://mail.example:443", "https://shop.example:44"]
            .map(Destination::new);
    for (number, destination) in [(1, &shop), (2, &mail), (3, &shop), (4, &other)] {
        accept(ledger, crate::NewMessage { destination: destination.clone(), ..message(number) }).await;
    }
    let to = |destinations: &[&Destination]| ListQuery {
        destinations: destinations.iter().copied().cloned().collect(),
        ..ListQuery::newest(100)
    };
    assert_eq!(found(ledger, to(&[&shop])).await, [3, 1].map(id), "the whole name, not its beginning");
    assert_eq!(found(ledger, to(&[&mail, &other])).await, [4, 2].map(id));
    assert_eq!(found(ledger, to(&[&Destination::new("https://shop.example:4")])).await, []);
    let dead = ListQuery { states: vec![State::Dead], ..to(&[&shop]) };
    assert_eq!(found(ledger, dead).await, [], "what fits one list and not the other is left out");
}

pub(super) async fn a_page_is_full_however_many_others_lie_between<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    let [shop, mail] = ["https://shop.example:443", "https://mail.example:443"].map(Destination::new);
    for number in 1..=9 {
        let destination = if number % 3 == 0 { shop.clone() } else { mail.clone() };
        accept(ledger, crate::NewMessage { destination, ..message(number) }).await;
    }
    let query = ListQuery { destinations: vec![shop], ..ListQuery::newest(2) };
    let page = ledger.list(query.clone()).await.unwrap();
    assert_eq!(page.items.iter().map(|line| line.id).collect::<Vec<_>>(), [9, 6].map(id));
    let rest = ledger.list(ListQuery { after: page.next, ..query }).await.unwrap();
    assert_eq!(rest.items.iter().map(|line| line.id).collect::<Vec<_>>(), [id(3)]);
    assert!(page.next.is_some() && rest.next.is_none(), "and the last page says that it is");
}

pub(super) async fn pages_are_stable_while_others_come_and_go<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    for number in 1..=7 {
        accept(ledger, message(number)).await;
    }
    let mut seen: Vec<MessageId> = Vec::new();
    let mut query = ListQuery::newest(3);
    for come in 8.. {
        let page = ledger.list(query.clone()).await.unwrap();
        assert!(page.items.len() <= 3);
        seen.extend(page.items.iter().map(|line| line.id));
        accept(ledger, message(come)).await;
        // The last one seen leaves its state, and one is settled that is still to be seen.
        let _ = ledger.cancel(*seen.last().unwrap(), at(1)).await.unwrap();
        let _ = ledger.cancel(id(2), at(1)).await.unwrap();
        query.after = page.next;
        if page.next.is_none() {
            break;
        }
        assert!(seen.len() < 100, "the pages have no end");
    }
    assert_eq!(seen, [7, 6, 5, 4, 3, 2, 1].map(id));
}

pub(super) async fn a_line_says_why_its_message_waits<F: Fixture>(fixture: F) {
    let ledger = fixture.ledger();
    accept(ledger, message(1)).await;
    let (ticket, _) = claim_one(ledger, at(1)).await;
    let wait = wait(20, WaitOrigin::Server);
    ledger.finish(&ticket, settled(at(2), Settlement::Defer { wait })).await.unwrap();
    let line = |states| ListQuery { states, ..ListQuery::newest(1) };
    let waiting = ledger.list(line(vec![State::Waiting])).await.unwrap().items;
    assert_eq!((waiting[0].due_at, waiting[0].wait), (Some(at(22)), Some(wait)));
    assert_eq!(waiting[0], read(ledger, ticket.id).await.summary, "the same line everywhere");
    claim_one(ledger, at(40)).await;
    let in_flight = ledger.list(line(vec![State::InFlight])).await.unwrap().items;
    assert_eq!((in_flight[0].due_at, in_flight[0].wait), (None, None), "it does not wait");
}
