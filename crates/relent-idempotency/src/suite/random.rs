//! Random work on a store and on the one in memory: the same answers throughout, and no work given twice.

use std::{collections::HashMap, time::Duration};

use relent::{ManualClock, SplitMix64, Timestamp};

use super::{Fixture, words::*};
use crate::{
    Claim, ClaimId, Claimed, End, Error, ErrorKind, Fingerprint, Finished, IfLost, Key, Lease, RecordId,
    Resolution, Resolved, Store, UnsharedMemory,
};

/// Does the work that a seed determines, on a store that stands at 1,800,000,000 s after the epoch and holds nothing.
pub async fn agrees_with_memory<F: Fixture>(fixture: &F, seed: u64) {
    let clock = ManualClock::starting_at(Timestamp::from_secs(1_800_000_000));
    let memory = UnsharedMemory::new(clock.clone());
    let (mut chance, mut books) = (Chance(SplitMix64::new(seed)), Books::default());
    for step in 0..STEPS {
        let what = format!("seed {seed}, step {step}");
        match chance.below(10) {
            0..=3 => {
                let claim = claim_by(&mut chance);
                let told = fixture.store().claim(&claim).await.expect("a store that works");
                assert_eq!(told, memory.claim(&claim).await.expect("memory works"), "{what}: {claim:?}");
                books.note_claim(&claim, &told, &clock, &what);
            }
            4 | 5 => {
                let length = Duration::from_secs(chance.below(40));
                fixture.advance(length);
                clock.advance(length);
            }
            6 => {
                let Some(lease) = books.any_lease(&mut chance) else { continue };
                let length = Duration::from_secs(chance.below(200));
                let told = fixture.store().renew(&lease, length).await;
                assert_eq!(kind(told), kind(memory.renew(&lease, length).await), "{what}: renew {lease:?}");
            }
            7 | 8 => {
                let Some(lease) = books.any_lease(&mut chance) else { continue };
                let end = end_by(&mut chance);
                let told = kind(fixture.store().finish(&lease, end.clone()).await);
                assert_eq!(
                    told,
                    kind(memory.finish(&lease, end.clone()).await),
                    "{what}: {end:?} of {lease:?}"
                );
                books.note_end(&lease, &end, told);
            }
            _ => {
                let (id, word) = (id_by(&mut chance), resolution_by(&mut chance));
                let told = fixture.store().resolve(&id, word.clone()).await.expect("a store that works");
                assert_eq!(
                    told,
                    memory.resolve(&id, word.clone()).await.expect("memory works"),
                    "{what}: {word:?}"
                );
                books.note_resolution(&id, &word, told);
            }
        }
        for number in 0..KEYS {
            let id = id(&format!("order-{number}"));
            let (read, expected) = (fixture.store().read(&id).await, memory.read(&id).await);
            assert_eq!(read.expect("a store that works"), expected.expect("memory works"), "{what}");
        }
    }
    let (unknown, expected) = (fixture.store().unknown(100).await, memory.unknown(100).await);
    assert_eq!(unknown.expect("a store that works"), expected.expect("memory works"), "seed {seed}");
}

/// What was given, and what may not be given.
#[derive(Default)]
struct Books {
    leases: Vec<Lease>,
    /// When the record of a claim that may not run again can be forgotten at the earliest; until it is taken back.
    taken: HashMap<RecordId, (ClaimId, Timestamp)>,
}

impl Books {
    /// Work is not given twice, unless its claim allowed it or it was taken back in between.
    fn note_claim(&mut self, claim: &Claim, told: &Claimed, clock: &ManualClock, what: &str) {
        let Claimed::Mine(lease) = told else { return };
        let now = relent::Clock::now(clock);
        if let Some((first, forgotten)) = self.taken.get(&claim.record) {
            assert!(now >= *forgotten, "{what}: {} was given to {first:?} and again", claim.record.key);
        }
        self.leases.push(lease.clone());
        self.taken.remove(&claim.record);
        if claim.if_lost == IfLost::Unknown {
            let forgotten = now.after(claim.lifetime).after(claim.tombstone);
            self.taken.insert(claim.record.clone(), (claim.id, forgotten));
        }
    }

    fn note_end(&mut self, lease: &Lease, end: &End, told: Result<Finished, ErrorKind>) {
        let of_holder = self.taken.get(&lease.record).is_some_and(|(holder, _)| *holder == lease.claim);
        if of_holder && *end == End::NoEffect && told == Ok(Finished::Done) {
            self.taken.remove(&lease.record);
        }
    }

    fn note_resolution(&mut self, id: &RecordId, word: &Resolution, told: Resolved) {
        if *word == Resolution::RunAgain && told == Resolved::Done {
            self.taken.remove(id);
        }
    }

    /// One of the last that were given.
    fn any_lease(&self, chance: &mut Chance) -> Option<Lease> {
        let back = usize::try_from(chance.below(4)).unwrap_or(0);
        self.leases.iter().rev().nth(back).cloned()
    }
}

fn kind<T>(told: Result<T, Error>) -> Result<T, ErrorKind> {
    told.map_err(|error| error.kind())
}

fn id_by(chance: &mut Chance) -> RecordId {
    RecordId { key: Key::new(&format!("order-{}", chance.below(KEYS))).expect("a key"), ..id("any") }
}

fn claim_by(chance: &mut Chance) -> Claim {
    let mut name = [0; 16];
    name[..8].copy_from_slice(&chance.0.bits().to_le_bytes());
    Claim {
        record: id_by(chance),
        fingerprint: Fingerprint([if chance.below(10) == 0 { 8 } else { 7 }; 32]),
        id: ClaimId(name),
        lease: Duration::from_secs(10 + 20 * chance.below(2)),
        lifetime: Duration::from_secs(60 + 40 * chance.below(2)),
        tombstone: Duration::from_secs(20 * chance.below(2)),
        if_lost: if chance.below(2) == 0 { IfLost::Unknown } else { IfLost::RunAgain },
    }
}

fn end_by(chance: &mut Chance) -> End {
    match chance.below(6) {
        0 => End::NoEffect,
        1 => End::Unknown,
        2 => End::NotKept(http::StatusCode::OK),
        text => answered(&format!("done {text}")),
    }
}

fn resolution_by(chance: &mut Chance) -> Resolution {
    if chance.below(2) == 0 { Resolution::RunAgain } else { Resolution::Answer(answer("it was done")) }
}

/// A stream of numbers that a seed determines.
struct Chance(SplitMix64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0.bits() % limit
    }
}

const STEPS: u32 = 60;
const KEYS: u64 = 3;
