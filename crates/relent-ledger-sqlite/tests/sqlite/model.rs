//! Random work on the store and on the ledger in memory: the same answers, and the same messages at the end.

use std::time::Duration;

use proptest::prelude::*;
use relent_core::{Gate, Observed, Settlement, StopReason, Timestamp, Wait, WaitOrigin};
use relent_ledger::{
    AttemptEnd, ClaimQuery, Claimed, Destination, Discard, Finish, Ledger, ListQuery, NewMessage, Redrive,
    Shelve, State, Stretch, Summary, Ticket, Truncated,
    suite::{Fixture, MemoryLedger, block_on},
};
use relent_ledger_sqlite::{Options, Synchronous};

use crate::common::{Store, at, id, message};

#[derive(Clone, Debug)]
enum Step {
    Accept { number: u32, key: Option<u8>, fingerprint: u8, destination: u8, not_before: Option<u64> },
    Claim { limit: usize, skip: Option<u8> },
    Begin(usize),
    Finish { ticket: usize, attempt: Option<u32>, settlement: Settlement },
    Shelve(usize),
    Redrive { number: u32, seen_cycle: u32 },
    Discard { number: u32, seen_cycle: Option<u32> },
    Cancel(u32),
    Crash,
    Pass(u64),
}

fn wait() -> impl Strategy<Value = Wait> {
    let origin =
        prop_oneof![Just(WaitOrigin::Backoff), Just(WaitOrigin::Server), Just(WaitOrigin::Gate(Gate::Hold))];
    (0..20_u64, origin, proptest::option::of(0..9_u64)).prop_map(|(secs, origin, asked)| Wait {
        length: Duration::from_secs(secs),
        origin,
        asked: asked.map(Duration::from_secs),
        floor: Duration::from_nanos(secs),
        ceiling: Duration::from_secs(20),
    })
}

fn settlement() -> impl Strategy<Value = Settlement> {
    prop_oneof![
        Just(Settlement::Ack),
        Just(Settlement::Leave),
        wait().prop_map(|wait| Settlement::Retry { wait }),
        wait().prop_map(|wait| Settlement::Defer { wait }),
        proptest::sample::select(StopReason::ALL).prop_map(|reason| Settlement::DeadLetter { reason }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let number = 0..12_u32;
    prop_oneof![
        4 => (number.clone(), proptest::option::of(0..6_u8), 0..2_u8, 0..3_u8, proptest::option::of(0..40_u64))
            .prop_map(|(number, key, fingerprint, destination, not_before)| Step::Accept {
                number, key, fingerprint, destination, not_before
            }),
        4 => (0..4_usize, proptest::option::of(0..3_u8)).prop_map(|(limit, skip)| Step::Claim { limit, skip }),
        4 => (0..8_usize).prop_map(Step::Begin),
        5 => (0..8_usize, proptest::option::of(1..4_u32), settlement())
            .prop_map(|(ticket, attempt, settlement)| Step::Finish { ticket, attempt, settlement }),
        1 => (0..8_usize).prop_map(Step::Shelve),
        2 => (number.clone(), 0..2_u32).prop_map(|(number, seen_cycle)| Step::Redrive { number, seen_cycle }),
        1 => (number.clone(), proptest::option::of(0..2_u32))
            .prop_map(|(number, seen_cycle)| Step::Discard { number, seen_cycle }),
        1 => number.prop_map(Step::Cancel),
        1 => Just(Step::Crash),
        3 => (0..15_u64).prop_map(Step::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_store_answers_as_the_ledger_in_memory(steps in proptest::collection::vec(step(), 1..80)) {
        let mut store = Store::with(Options::default().with_synchronous(Synchronous::Off));
        let memory = MemoryLedger::default();
        let (mut now, mut tickets) = (at(0), Vec::new());
        for step in steps {
            match step {
                Step::Crash => {
                    block_on(store.crash(now));
                    memory.recover(now);
                }
                Step::Pass(secs) => now = now.after(Duration::from_secs(secs)),
                step => {
                    let on_disk = block_on(take(&store.ledger, &step, now, &tickets));
                    let in_memory = block_on(take(&memory, &step, now, &tickets));
                    prop_assert_eq!(&on_disk.0, &in_memory.0, "{:?}", step);
                    tickets.extend(on_disk.1);
                }
            }
        }
        same(&store, &memory)?;
    }
}

/// Takes a step; the answer in words, and the tickets it gave.
async fn take(
    ledger: &impl Ledger,
    step: &Step,
    now: Timestamp,
    tickets: &[Ticket],
) -> (String, Vec<Ticket>) {
    let ticket =
        |place: usize| tickets.iter().rev().nth(place).copied().unwrap_or(Ticket { id: id(99), epoch: 1 });
    let history = || format!("history at {}", now.as_nanos()).into();
    let answer = match *step {
        Step::Accept { .. } => kind(ledger.accept(new_message(step, now)).await),
        Step::Claim { limit, skip } => {
            let skip = skip.map(destination).into_iter().collect();
            let claims = ledger.claim(ClaimQuery { now, limit, skip }).await.unwrap();
            let given = claims
                .claimed
                .iter()
                .map(|(Claimed::Work(ticket, _) | Claimed::Unreadable(ticket, _))| *ticket);
            return (format!("{claims:?}"), given.collect());
        }
        Step::Begin(place) => kind(ledger.begin_attempt(&ticket(place), now).await),
        Step::Finish { ticket: place, attempt, settlement } => {
            let finish = Finish { at: now, attempt: attempt.map(end), settlement, history: history() };
            kind(ledger.finish(&ticket(place), finish).await)
        }
        Step::Shelve(place) => {
            let shelve = Shelve { at: now, reason: StopReason::Unreadable, detail: "unreadable".into() };
            kind(ledger.shelve(&ticket(place), shelve).await)
        }
        Step::Redrive { number, seen_cycle } => {
            let redrive = Redrive { at: now, seen_cycle, history: history(), deadline: Some(now) };
            kind(ledger.redrive(id(number), redrive).await)
        }
        Step::Discard { number, seen_cycle } => {
            kind(ledger.discard(id(number), Discard { at: now, seen_cycle }).await)
        }
        Step::Cancel(number) => kind(ledger.cancel(id(number), now).await),
        Step::Crash | Step::Pass(_) => unreachable!("nobody is asked"),
    };
    (answer, Vec::new())
}

fn kind<T: std::fmt::Debug>(answer: Result<T, relent_ledger::Error>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(error) => format!("{:?}", error.kind()),
    }
}

fn new_message(step: &Step, now: Timestamp) -> NewMessage {
    let Step::Accept { number, key, fingerprint, destination: to, not_before } = *step else {
        unreachable!()
    };
    NewMessage {
        accepted_at: now,
        destination: destination(to),
        key: key.map(|key| format!("key {key}")),
        fingerprint: [fingerprint; 32],
        not_before: not_before.map(at),
        ..message(number)
    }
}

fn destination(number: u8) -> Destination {
    Destination::new(format!("https://{number}.example:443"))
}

fn end(number: u32) -> AttemptEnd {
    AttemptEnd {
        number,
        took: Duration::from_millis(u64::from(number)),
        observed: Observed::Status(503),
        detail: "not now".into(),
        response: vec![0; number as usize].into(),
        truncated: Truncated::Yes,
    }
}

/// The pages of a list to its end. Whatever a place in it is called, they are the same.
fn pages(ledger: &impl Ledger, mut query: ListQuery) -> Vec<Vec<Summary>> {
    let mut pages = Vec::new();
    loop {
        let page = block_on(ledger.list(query.clone())).unwrap();
        pages.push(page.items);
        query.after = page.next;
        if query.after.is_none() {
            return pages;
        }
    }
}

/// Every message, every list and every count is the same, and the store is sound.
fn same(store: &Store, memory: &MemoryLedger) -> Result<(), TestCaseError> {
    let ledger = &store.ledger;
    for number in 0..12 {
        let on_disk = block_on(ledger.message(id(number), Stretch::ALL)).unwrap();
        prop_assert_eq!(on_disk, block_on(memory.message(id(number), Stretch::ALL)).unwrap());
    }
    let states = State::ALL.map(|state| vec![state]).into_iter();
    for states in states.chain([vec![], vec![State::Dead, State::Waiting]]) {
        let query = ListQuery { states, ..ListQuery::newest(100) };
        let on_disk = block_on(ledger.list(query.clone())).unwrap();
        prop_assert_eq!(on_disk, block_on(memory.list(query)).unwrap());
    }
    for states in [vec![], vec![State::Dead], vec![State::Dead, State::Discarded]] {
        for reasons in
            [vec![], vec![StopReason::Unreadable], vec![StopReason::Permanent, StopReason::Ambiguous]]
        {
            for destinations in [vec![], vec![destination(0)], vec![destination(1), destination(9)]] {
                let (states, reasons) = (states.clone(), reasons.clone());
                let query = ListQuery { states, reasons, destinations, ..ListQuery::newest(2) };
                let (on_disk, in_memory) = (pages(ledger, query.clone()), pages(memory, query.clone()));
                prop_assert_eq!(on_disk, in_memory, "{:?}", query);
            }
        }
    }
    let tally = block_on(ledger.tally()).unwrap();
    prop_assert_eq!(&tally, &block_on(memory.tally()).unwrap());
    let audit = block_on(ledger.audit()).unwrap();
    prop_assert!(audit.is_sound(), "{:?}", audit.findings);
    prop_assert_eq!(tally, audit.counted);
    Ok(())
}
