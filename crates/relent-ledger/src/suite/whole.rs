//! Rules of the store as a whole.

use std::collections::BTreeMap;

use relent_core::{Settlement, StopReason, Timestamp, WaitOrigin};

use super::{Fixture, words::*};
use crate::{Claimed, Ledger, MessageId, NewMessage, State, Tally};

pub(super) async fn the_tally_is_what_happened<F: Fixture>(mut fixture: F) {
    assert_eq!(fixture.ledger().tally().await.unwrap().accepted, 0);
    let ledger = fixture.ledger();
    dead(ledger, message(1), at(3)).await;
    dead(ledger, message(2), at(2)).await;
    for (number, settlement) in
        [(3, Settlement::Ack), (4, Settlement::DeadLetter { reason: StopReason::Ambiguous })]
    {
        accept(ledger, message(number)).await;
        let (ticket, _) = claim_one(ledger, at(4)).await;
        ledger.finish(&ticket, settled(at(5), settlement)).await.unwrap();
    }
    assert_eq!(ledger.discard(id(4), discard(at(6))).await.unwrap(), crate::Settled::Done);
    for (number, accepted) in [(5, 8), (6, 7)] {
        accept(ledger, NewMessage { accepted_at: at(accepted), ..message(number) }).await;
    }
    assert_eq!(ledger.cancel(id(5), at(8)).await.unwrap(), crate::Settled::Done);
    let states = [
        (State::Dead, 2),
        (State::Delivered, 1),
        (State::Discarded, 1),
        (State::Cancelled, 1),
        (State::Waiting, 1),
    ];
    let expected = Tally {
        accepted: 6,
        attempts: 2,
        states: BTreeMap::from(states),
        dead: BTreeMap::from([("permanent", 2)]),
        oldest_waiting: Some(at(7)),
        oldest_dead: Some(at(2)),
    };
    assert_eq!(without_zeros(ledger.tally().await.unwrap()), expected);
    fixture.crash(at(9)).await;
    assert_eq!(without_zeros(fixture.ledger().tally().await.unwrap()), expected);
}

pub(super) async fn a_store_is_sound_after_any_work<F: Fixture>(mut fixture: F) {
    let mut chance = Chance(0x9E37_79B9_7F4A_7C15);
    let mut known = Vec::new();
    for step in 0..400_u64 {
        work(fixture.ledger(), &mut chance, &mut known, at(step)).await;
        if step % 97 == 96 {
            fixture.crash(at(step)).await;
        }
        if step % 80 == 79 {
            let ledger = fixture.ledger();
            let audit = ledger.audit().await.unwrap();
            assert!(audit.is_sound(), "after step {step}: {:?}", audit.findings);
            let tally = without_zeros(ledger.tally().await.unwrap());
            assert_eq!(tally, without_zeros(audit.counted));
            assert_eq!(tally.accepted, known.len() as u64);
            assert_eq!(tally.accepted, tally.states.values().sum::<u64>());
        }
    }
}

/// One thing that somebody might do.
async fn work(ledger: &impl Ledger, chance: &mut Chance, known: &mut Vec<MessageId>, now: Timestamp) {
    match chance.below(10) {
        0..=3 => {
            let number = known.len().try_into().expect("few messages");
            let not_before = (chance.below(3) == 0).then(|| now.after(core::time::Duration::from_secs(20)));
            known.push(
                accept(ledger, NewMessage { accepted_at: now, not_before, ..whole_message(number) }).await,
            );
        }
        4..=7 => {
            let query = crate::ClaimQuery { limit: 2, ..all(now) };
            for claimed in ledger.claim(query).await.unwrap().claimed {
                attempt(ledger, chance, claimed, now).await;
            }
        }
        wish if !known.is_empty() => {
            let id = known[usize::try_from(chance.below(known.len() as u64)).expect("a place in a list")];
            let cycle = read(ledger, id).await.summary.cycle;
            let _ = match (wish, chance.below(4)) {
                (8, _) => ledger.redrive(id, redrive(now, cycle)).await.unwrap(),
                (_, 0) => ledger.cancel(id, now).await.unwrap(),
                _ => ledger.discard(id, discard(now)).await.unwrap(),
            };
        }
        _ => {}
    }
}

async fn attempt(ledger: &impl Ledger, chance: &mut Chance, claimed: Claimed, now: Timestamp) {
    let Claimed::Work(ticket, work) = claimed else { panic!("unreadable") };
    let settlement = match chance.below(6) {
        0 => Settlement::Ack,
        1 | 2 => Settlement::DeadLetter { reason: StopReason::Permanent },
        3 => Settlement::Leave,
        4 => Settlement::Retry { wait: wait(chance.below(9), WaitOrigin::Backoff) },
        _ => return,
    };
    let number = match work.interrupted {
        Some(number) => number,
        None => ledger.begin_attempt(&ticket, now).await.unwrap(),
    };
    let finish = match settlement {
        Settlement::Leave => settled(now, settlement),
        _ => ended(now, failed(number), settlement),
    };
    ledger.finish(&ticket, finish).await.unwrap();
}

fn without_zeros(mut tally: Tally) -> Tally {
    tally.states.retain(|_, count| *count > 0);
    tally.dead.retain(|_, count| *count > 0);
    tally
}

/// The same numbers in every run (splitmix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }
}
