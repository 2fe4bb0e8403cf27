//! The store in memory with a fault around it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use http::StatusCode;
use relent::{Clock, ManualClock, Timestamp};
use relent_idempotency::{
    Answer, Caller, Claim, ClaimId, Claimed, End, Error, ErrorKind, Fingerprint, Finished, IfLost, Lease,
    Record, RecordId, Resolution, Resolved, State, Store, UnsharedMemory,
    suite::{Crashed, Fixture, MAX_RECORDS},
};

use crate::fault::Fault;

pub(crate) struct BrokenFixture {
    store: BrokenStore,
}

#[derive(Clone)]
pub(crate) struct BrokenStore {
    clock: ManualClock,
    sound: UnsharedMemory,
    fault: Option<Fault>,
    memory: Arc<Mutex<Memory>>,
}

/// What a fault needs to remember.
#[derive(Default)]
struct Memory {
    /// Every lease that was given.
    given: Vec<Lease>,
    resolved: Vec<RecordId>,
    /// Answers that were put in the place of others.
    overwritten: HashMap<RecordId, Answer>,
}

impl BrokenFixture {
    pub(crate) fn new(fault: Option<Fault>) -> Self {
        let clock = ManualClock::starting_at(Timestamp::from_secs(1_800_000_000));
        let store = BrokenStore { sound: memory(&clock, fault), clock, fault, memory: Arc::default() };
        Self { store }
    }
}

fn memory(clock: &ManualClock, fault: Option<Fault>) -> UnsharedMemory {
    let room = if fault == Some(Fault::KeepsAnyNumber) { u64::MAX } else { MAX_RECORDS };
    UnsharedMemory::new(clock.clone()).with_max_records(room)
}

#[async_trait]
impl Fixture for BrokenFixture {
    type Store = BrokenStore;

    fn store(&self) -> &BrokenStore {
        &self.store
    }

    async fn another(&self) -> BrokenStore {
        match self.store.fault {
            Some(Fault::ShowsNothingToOthers) => Self::new(self.store.fault).store,
            _ => self.store.clone(),
        }
    }

    fn advance(&self, length: Duration) {
        self.store.clock.advance(length);
    }

    async fn count(&self) -> u64 {
        let given = &self.store.memory.lock().unwrap().given;
        let newcomers = given.iter().filter(|lease| lease.record.key.as_str().starts_with("new-")).count();
        let ghosts = if self.store.has(Fault::NeverForgetsByItself) { newcomers } else { 0 };
        (self.store.sound.len() + ghosts) as u64
    }

    async fn crash(&mut self) -> Crashed {
        match self.store.fault {
            Some(Fault::LosesEverythingInACrash) => self.store.sound = memory(&self.store.clock, None),
            Some(Fault::FreesWhatRanInACrash) => {
                let given = self.store.memory.lock().unwrap().given.clone();
                for lease in given {
                    let running = self.store.sound.read(&lease.record).await.unwrap();
                    if running.is_some_and(|record| record.state == State::Running) {
                        assert_eq!(
                            self.store.sound.finish(&lease, End::NoEffect).await.unwrap(),
                            Finished::Done
                        );
                    }
                }
            }
            _ => {}
        }
        Crashed::Reopened
    }
}

impl BrokenStore {
    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    async fn state(&self, id: &RecordId) -> Option<State> {
        self.sound.read(id).await.unwrap().map(|record| record.state)
    }

    /// The name as the sound store is told it.
    fn id(&self, id: &RecordId) -> RecordId {
        let caller =
            if self.has(Fault::HasOneCaller) { Caller::named("everybody") } else { id.caller.clone() };
        RecordId { caller, ..id.clone() }
    }

    /// The lease as the sound store is told it.
    fn lease(&self, lease: &Lease) -> Lease {
        let record = self.id(&lease.record);
        let claim = if self.has(Fault::TakesAnyonesEnd) { self.holder(&record) } else { lease.claim };
        Lease { record, claim, ..lease.clone() }
    }

    /// The claim as the sound store is told it.
    fn tampered(&self, claim: &Claim) -> Claim {
        let mut claim = Claim { record: self.id(&claim.record), ..claim.clone() };
        match self.fault {
            Some(Fault::IgnoresFingerprints) => claim.fingerprint = Fingerprint([0; 32]),
            Some(Fault::NeverRunsAgain) => claim.if_lost = IfLost::Unknown,
            _ => {}
        }
        claim
    }

    fn mine(claim: &Claim) -> Claimed {
        Claimed::Mine(Lease { record: claim.record.clone(), claim: claim.id, run: 1 })
    }

    /// What the claimant is told.
    async fn told(&self, claim: &Claim, told: Claimed) -> Claimed {
        match (self.fault, told) {
            (Some(Fault::CountsRunsFromZero), Claimed::Mine(lease)) if lease.run == 1 => {
                Claimed::Mine(Lease { run: 0, ..lease })
            }
            (Some(Fault::HasOneCaller), Claimed::Mine(lease)) => {
                Claimed::Mine(Lease { record: claim.record.clone(), ..lease })
            }
            (Some(Fault::ForgetsTheTimeLeft), Claimed::Running { .. }) => {
                Claimed::Running { left: claim.lease }
            }
            (Some(Fault::GivesTwiceAtOnce), Claimed::Running { .. }) if claim.id == ClaimId([63; 16]) => {
                Self::mine(claim)
            }
            (Some(Fault::EvictsByRunsNotRecords), Claimed::Answered(_))
                if self.runs_since(&claim.record) >= MAX_RECORDS =>
            {
                Self::mine(claim)
            }
            (Some(Fault::DropsAHeader), Claimed::Answered(mut answer)) => {
                answer.headers.remove("etag");
                Claimed::Answered(answer)
            }
            (Some(Fault::KeepsTheLastAnswer), Claimed::Answered(answer)) => {
                let overwritten = self.memory.lock().unwrap().overwritten.get(&claim.record).cloned();
                Claimed::Answered(overwritten.unwrap_or(answer))
            }
            (Some(Fault::NotKeptIsAlwaysOk), Claimed::NotKept(_)) => Claimed::NotKept(StatusCode::OK),
            (Some(Fault::AsksTheLaterClaimWhetherItMayRunAgain), Claimed::Unknown)
                if claim.if_lost == IfLost::RunAgain =>
            {
                Self::mine(claim)
            }
            (Some(Fault::LeasesOutliveRecords), Claimed::Running { left }) if left == claim.lifetime => {
                Claimed::Running { left: 2 * left }
            }
            (Some(Fault::ExpiresASecondEarly), Claimed::Answered(answer)) => {
                let record = self.sound.read(&claim.record).await.unwrap().unwrap();
                let early = self.clock.now().after(Duration::from_secs(1)) >= record.expires_at;
                if early { Claimed::Expired } else { Claimed::Answered(answer) }
            }
            (Some(Fault::HasNoTombstones), Claimed::Expired) => Self::mine(claim),
            (Some(Fault::LetsUnknownExpire), Claimed::Unknown) => {
                let record = self.sound.read(&claim.record).await.unwrap().unwrap();
                let old = self.clock.now() > record.expires_at;
                if old { Claimed::Expired } else { Claimed::Unknown }
            }
            (_, told) => told,
        }
    }

    /// Makes room by what must stay: the oldest that runs.
    async fn evict_what_runs(&self) {
        if self.sound.len() as u64 >= MAX_RECORDS {
            let given = self.memory.lock().unwrap().given.clone();
            for lease in given {
                if self.state(&lease.record).await == Some(State::Running) {
                    assert_eq!(self.sound.finish(&lease, End::NoEffect).await.unwrap(), Finished::Done);
                    return;
                }
            }
        }
    }

    /// How many runs there were since the record's own.
    fn runs_since(&self, id: &RecordId) -> u64 {
        let memory = self.memory.lock().unwrap();
        memory.given.iter().rev().take_while(|lease| lease.record != *id).count() as u64
    }

    /// The claim that has the record, whoever asks.
    fn holder(&self, id: &RecordId) -> ClaimId {
        let memory = self.memory.lock().unwrap();
        memory
            .given
            .iter()
            .rev()
            .find(|lease| lease.record == *id)
            .map_or(ClaimId([0; 16]), |lease| lease.claim)
    }
}

#[async_trait]
impl Store for BrokenStore {
    async fn claim(&self, claim: &Claim) -> Result<Claimed, Error> {
        if self.has(Fault::EvictsWhatRuns) {
            self.evict_what_runs().await;
        }
        let told = self.sound.claim(&self.tampered(claim)).await?;
        let told = self.told(claim, told).await;
        if let Claimed::Mine(lease) = &told {
            self.memory.lock().unwrap().given.push(lease.clone());
        }
        Ok(told)
    }

    async fn renew(&self, lease: &Lease, length: Duration) -> Result<(), Error> {
        let length = if self.has(Fault::RenewsForHalfTheTime) { length / 2 } else { length };
        let lease = Lease { record: self.id(&lease.record), ..lease.clone() };
        match self.sound.renew(&lease, length).await {
            Err(_) if self.has(Fault::RenewsLostLeases) => Ok(()),
            told => told,
        }
    }

    async fn finish(&self, lease: &Lease, end: End) -> Result<Finished, Error> {
        let state = self.state(&self.id(&lease.record)).await;
        let told_end = match (self.fault, &end) {
            (Some(Fault::NoEffectIsUnknown), End::NoEffect) => End::Unknown,
            (Some(Fault::RefusesLateAnswers), End::Answered(_)) if state == Some(State::Unknown) => {
                return Err(Error::new(ErrorKind::Stale, "late"));
            }
            _ => end.clone(),
        };
        let told = self.sound.finish(&self.lease(lease), told_end).await;
        match (self.fault, told) {
            (Some(Fault::RefusesASecondEnd), Ok(Finished::Already)) => {
                Err(Error::new(ErrorKind::Stale, "ended"))
            }
            (Some(Fault::KeepsTheLastAnswer), Ok(Finished::Already)) => {
                if let End::Answered(answer) = end {
                    self.memory.lock().unwrap().overwritten.insert(lease.record.clone(), answer);
                }
                Ok(Finished::Already)
            }
            (Some(Fault::TakesAnswersAfterTheLife), Err(_)) if state == Some(State::Unknown) => {
                Ok(Finished::Done)
            }
            (Some(Fault::TakesEndsOfResolvedRuns), Err(_))
                if self.memory.lock().unwrap().resolved.contains(&lease.record) =>
            {
                Ok(Finished::Done)
            }
            (_, told) => told,
        }
    }

    async fn read(&self, id: &RecordId) -> Result<Option<Record>, Error> {
        let read = self.sound.read(&self.id(id)).await?.map(|record| Record { id: id.clone(), ..record });
        Ok(read.map(|record| match self.fault {
            Some(Fault::ReadsEveryRunAsTheFirst) => Record { run: 1, ..record },
            Some(Fault::ReadsLostLeasesAsRunning) if record.state == State::Unknown => {
                Record { state: State::Running, ..record }
            }
            _ => record,
        }))
    }

    async fn unknown(&self, limit: usize) -> Result<Vec<Record>, Error> {
        let mut unknown = self.sound.unknown(limit).await?;
        if self.has(Fault::ListsTheNewestFirst) {
            unknown.reverse();
        }
        Ok(unknown)
    }

    async fn resolve(&self, id: &RecordId, resolution: Resolution) -> Result<Resolved, Error> {
        self.memory.lock().unwrap().resolved.push(id.clone());
        let resolution = match (self.fault, resolution) {
            (Some(Fault::RunAgainResolvesNothing), Resolution::RunAgain) => return Ok(Resolved::Done),
            (Some(Fault::ResolvesWithAnEmptyBody), Resolution::Answer(answer))
                if id.key.as_str() == "order-2" =>
            {
                Resolution::Answer(Answer { body: Default::default(), ..answer })
            }
            (_, resolution) => resolution,
        };
        match self.sound.resolve(&self.id(id), resolution).await? {
            Resolved::NotUnknown if self.has(Fault::ResolvesAnything) => Ok(Resolved::Done),
            told => Ok(told),
        }
    }

    async fn purge(&self, limit: usize) -> Result<u64, Error> {
        self.sound.purge(if self.has(Fault::PurgesWithoutALimit) { usize::MAX } else { limit }).await
    }
}
