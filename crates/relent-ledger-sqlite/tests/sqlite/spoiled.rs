//! A row that something has spoiled stays in people's hands: it is found, and it can be taken off the list.

use relent_core::{Settlement, StopReason};
use relent_ledger::{Discard, ErrorKind, Finish, Ledger, Redrive, Rule, Settled, State, suite::block_on};

use crate::common::{Store, at, claim, id, message};

/// A store with a dead letter in it, spoiled.
fn with_a_dead_letter(spoil: &str) -> Store {
    let store = Store::new();
    block_on(async {
        let _ = store.ledger.accept(message(1)).await.unwrap();
        let tickets = claim(&store.ledger, at(1)).await;
        let settlement = Settlement::DeadLetter { reason: StopReason::Permanent };
        let finish = Finish { at: at(2), attempt: None, settlement, history: Default::default() };
        store.ledger.finish(&tickets[0], finish).await.unwrap();
    });
    store.beside().execute_batch(spoil).unwrap();
    store
}

#[test]
fn a_dead_letter_with_spoiled_numbers_is_not_redriven_and_can_be_discarded() {
    for number in ["cycle", "attempts"] {
        let store = with_a_dead_letter(&format!("UPDATE message SET {number} = -1"));
        let redrive = Redrive { at: at(3), seen_cycle: 0, history: Default::default(), deadline: None };
        let error = block_on(store.ledger.redrive(id(1), redrive)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains(number) && error.to_string().contains("discarded"), "{error}");
        assert_eq!(
            block_on(store.ledger.discard(id(1), Discard { at: at(4), seen_cycle: None })).unwrap(),
            Settled::Done
        );
        let tally = block_on(store.ledger.tally()).unwrap();
        assert_eq!((tally.count(State::Dead), tally.count(State::Discarded)), (0, 1));
    }
}

#[test]
fn a_state_or_reason_that_is_no_text_is_a_finding_and_not_the_end_of_the_audit() {
    for column in ["state", "reason"] {
        let store = with_a_dead_letter(&format!("UPDATE message SET {column} = CAST(x'ff41' AS TEXT)"));
        let findings = block_on(store.ledger.audit()).unwrap().findings;
        let named = format!("no {column} is called");
        assert!(
            findings.iter().any(|finding| finding.rule == Rule::Ends && finding.detail.starts_with(&named)),
            "{findings:?}"
        );
    }
}
