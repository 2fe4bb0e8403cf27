//! The ledger in memory with a fault around it.

use std::{collections::HashSet, sync::Mutex};

use async_trait::async_trait;
use relent_core::{Settlement, Timestamp, Wait, WaitOrigin};
use relent_ledger::{
    Accepted, Audit, ClaimQuery, Claims, Discard, Error, ErrorKind, Finish, Ledger, ListQuery, Message,
    MessageId, NewMessage, Page, Redrive, Settled, Shelve, State, Stretch, Summary, Tally, Ticket, Work,
    suite::{Fixture, MemoryLedger, Plant, Planted},
};

use crate::{
    fault::Fault,
    tamper::{self, tampered_page},
};

pub(crate) struct BrokenFixture {
    ledger: BrokenLedger,
}

pub(crate) struct BrokenLedger {
    pub(crate) sound: MemoryLedger,
    pub(crate) fault: Option<Fault>,
    memory: Mutex<Memory>,
}

/// What a fault needs to remember.
#[derive(Default)]
struct Memory {
    crashed: bool,
    spoiled: bool,
    lost: HashSet<MessageId>,
    begun: HashSet<Ticket>,
    last: Option<(Ticket, Work)>,
}

impl BrokenFixture {
    pub(crate) fn new(fault: Option<Fault>) -> Self {
        Self { ledger: BrokenLedger { sound: MemoryLedger::default(), fault, memory: Mutex::default() } }
    }
}

#[async_trait]
impl Fixture for BrokenFixture {
    type Ledger = BrokenLedger;

    fn ledger(&self) -> &BrokenLedger {
        &self.ledger
    }

    async fn crash(&mut self, now: Timestamp) {
        let ledger = &mut self.ledger;
        if ledger.has(Fault::LosesMessagesInACrash) {
            let all = ListQuery { states: vec![State::Waiting], ..ListQuery::newest(2) };
            let waiting = ledger.sound.list(all).await.unwrap().items;
            if let [only] = &waiting[..] {
                let unclaimed = only.attempts == 0 && only.policy == "patient";
                ledger.memory.get_mut().unwrap().lost.extend(unclaimed.then_some(only.id));
            }
        }
        ledger.memory.get_mut().unwrap().crashed = true;
        if !ledger.has(Fault::NeverRecovers) {
            ledger.sound.recover(now);
        }
    }

    async fn plant(&mut self, plant: Plant, id: MessageId) -> Planted {
        match (plant, self.ledger.fault) {
            (Plant::Content, Some(Fault::HandsOutSpoiledContent)) => return Planted::Done,
            (Plant::History, _) => self.ledger.memory.get_mut().unwrap().spoiled = true,
            _ => {}
        }
        assert!(self.ledger.sound.spoil(plant, id));
        Planted::Done
    }
}

impl BrokenLedger {
    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    async fn state(&self, id: MessageId) -> Option<State> {
        self.sound.message(id, Stretch::NONE).await.unwrap().map(|message| message.summary.state)
    }

    /// Claims, tampered with row by row.
    async fn tampered_claims(&self, mut claims: Claims, limit: usize) -> Claims {
        for claimed in &mut claims.claimed {
            if let relent_ledger::Claimed::Work(ticket, work) = claimed {
                let crashed = self.memory.lock().unwrap().crashed;
                tamper::work(self.fault, crashed, work);
                if self.has(Fault::RedriveKeepsTheOpenAttempt) && work.cycle > 0 {
                    let log = self.sound.message(ticket.id, Stretch::ALL).await.unwrap().unwrap().attempts;
                    let open = log.iter().find(|attempt| attempt.end.is_none());
                    work.interrupted = open.map(|attempt| attempt.number);
                }
            }
        }
        if self.has(Fault::GivesOutTwice) && limit == 3 {
            self.give_out_again(&mut claims);
        }
        tamper::claims(self.fault, &mut claims);
        claims
    }

    fn give_out_again(&self, claims: &mut Claims) {
        let last = &mut self.memory.lock().unwrap().last;
        let before = last.take();
        if let Some(relent_ledger::Claimed::Work(ticket, work)) = claims.claimed.first() {
            *last = Some((*ticket, (**work).clone()));
            if let Some((ticket, work)) = before {
                claims.claimed.push(relent_ledger::Claimed::Work(ticket, Box::new(work)));
            }
        }
    }
}

#[async_trait]
impl Ledger for BrokenLedger {
    async fn accept(&self, mut message: NewMessage) -> Result<Accepted, Error> {
        if self.has(Fault::AllFingerprintsAreOneKey) && message.key.is_none() {
            message.key = Some(format!("{}{:?}", tamper::INVENTED, message.fingerprint));
        }
        let accepted = self.sound.accept(message.clone()).await;
        match (accepted, self.fault) {
            (Ok(Accepted::Replayed(_)), Some(Fault::ReplaysAreStored)) => {
                self.sound.accept(NewMessage { key: None, ..message }).await
            }
            (Ok(Accepted::Conflict(id)), Some(Fault::ConflictsAreReplays)) => Ok(Accepted::Replayed(id)),
            (Err(_), Some(Fault::TakesAnIdTwice)) => Ok(Accepted::New),
            (accepted, _) => accepted,
        }
    }

    async fn replay(&self, key: &str, fingerprint: [u8; 32]) -> Result<Option<Accepted>, Error> {
        match self.sound.replay(key, fingerprint).await? {
            Some(Accepted::Conflict(id)) if self.has(Fault::LooksUpNoFingerprint) => {
                Ok(Some(Accepted::Replayed(id)))
            }
            known => Ok(known),
        }
    }

    async fn claim(&self, mut query: ClaimQuery) -> Result<Claims, Error> {
        let limit = query.limit;
        match self.fault {
            Some(Fault::ClaimsANanosecondEarly) => {
                query.now = query.now.after(std::time::Duration::from_nanos(1));
            }
            Some(Fault::IgnoresTheLimit) => query.limit = 100,
            Some(Fault::IgnoresSkip) => query.skip.clear(),
            Some(Fault::StopsAtASpoiledHistory) if self.memory.lock().unwrap().spoiled => {
                return Err(Error::new(ErrorKind::Corrupt, "a row cannot be read"));
            }
            _ => {}
        }
        let claims = self.sound.claim(query).await?;
        Ok(self.tampered_claims(claims, limit).await)
    }

    async fn begin_attempt(&self, ticket: &Ticket, at: Timestamp) -> Result<u32, Error> {
        let begun = self.sound.begin_attempt(ticket, at).await;
        self.memory.lock().unwrap().begun.insert(*ticket);
        match (begun, self.fault) {
            (Ok(number), Some(Fault::NumbersAnewInEachCycle)) if number > 2 => Ok(number - 2),
            (Err(error), Some(Fault::BeginsASecondAttempt)) if error.kind() == ErrorKind::Misuse => Ok(2),
            (begun, _) => begun,
        }
    }

    async fn finish(&self, ticket: &Ticket, mut finish: Finish) -> Result<(), Error> {
        tamper::finish(self.fault, &mut finish);
        if self.has(Fault::KeepsTheOldHistory) {
            finish.history = self.sound.message(ticket.id, Stretch::ALL).await?.unwrap().history;
        }
        let begun = self.memory.lock().unwrap().begun.contains(ticket);
        if self.has(Fault::RefusesTheEndOfAnInterruptedAttempt) && finish.attempt.is_some() && !begun {
            return Err(Error::new(ErrorKind::Misuse, "the attempt was begun under another ticket"));
        }
        let finished = self.sound.finish(ticket, finish.clone()).await;
        let Err(error) = finished else { return Ok(()) };
        match (error.kind(), self.fault) {
            (ErrorKind::Misuse, Some(Fault::EndsWhatIsNotUnderWay)) => {
                self.sound.finish(ticket, Finish { attempt: None, ..finish }).await
            }
            (ErrorKind::Stale, Some(Fault::AcceptsASecondSettlement))
                if self.state(ticket.id).await == Some(State::Delivered) =>
            {
                Ok(())
            }
            (ErrorKind::Stale, Some(Fault::AcceptsALateSettlement))
                if self.state(ticket.id).await == Some(State::InFlight) =>
            {
                Ok(())
            }
            _ => Err(error),
        }
    }

    async fn shelve(&self, ticket: &Ticket, mut shelve: Shelve) -> Result<(), Error> {
        if self.has(Fault::ShelvesWithoutItsDetail) {
            shelve.detail.clear();
        }
        self.sound.shelve(ticket, shelve).await
    }

    async fn redrive(&self, id: MessageId, mut redrive: Redrive) -> Result<Settled, Error> {
        if self.has(Fault::IgnoresTheSeenCycle)
            && let Some(message) = self.sound.message(id, Stretch::ALL).await?
        {
            redrive.seen_cycle = message.summary.cycle;
        }
        match self.sound.redrive(id, redrive).await? {
            Settled::Refused(State::Waiting) if self.has(Fault::RedrivesTwice) => Ok(Settled::Done),
            settled => Ok(settled),
        }
    }

    async fn discard(&self, id: MessageId, discard: Discard) -> Result<Settled, Error> {
        match self.sound.discard(id, discard).await? {
            Settled::Refused(State::Waiting) if self.has(Fault::DiscardsWhatWaits) => {
                self.sound.cancel(id, discard.at).await
            }
            Settled::Refused(State::Dead) if self.has(Fault::DiscardsWhateverCycle) => {
                self.sound.discard(id, Discard { seen_cycle: None, ..discard }).await
            }
            settled => Ok(settled),
        }
    }

    async fn cancel(&self, id: MessageId, at: Timestamp) -> Result<Settled, Error> {
        if self.has(Fault::CancelsNothing) && self.state(id).await == Some(State::Waiting) {
            return Ok(Settled::Done);
        }
        match (self.sound.cancel(id, at).await?, self.fault) {
            (Settled::Refused(State::InFlight), Some(Fault::CancelsInFlight)) => Ok(Settled::Done),
            (Settled::NotFound, Some(Fault::FindsWhatIsNotThere)) => Ok(Settled::Done),
            (settled, _) => Ok(settled),
        }
    }

    async fn message(&self, id: MessageId, log: Stretch) -> Result<Option<Message>, Error> {
        if self.memory.lock().unwrap().lost.contains(&id) {
            return Ok(None);
        }
        let log = if self.has(Fault::ReadsTheWholeLog) { Stretch::ALL } else { log };
        let mut found = self.sound.message(id, log).await?;
        if let Some(message) = &mut found {
            tamper::message(self.fault, message);
        }
        Ok(found)
    }

    async fn list(&self, mut query: ListQuery) -> Result<Page<Summary>, Error> {
        if self.has(Fault::ListsEveryState) && query.states.len() == 2 {
            query.states.clear();
        }
        match self.fault {
            Some(Fault::ListsEveryReason) => query.reasons.clear(),
            // Those that cut a page by what lies between list no others.
            Some(Fault::ListsEveryDestination) if query.limit > 2 => query.destinations.clear(),
            _ => {}
        }
        tampered_page(&self.sound, self.fault, query).await
    }

    async fn room(&self) -> Result<(), Error> {
        self.sound.room().await
    }

    async fn tally(&self) -> Result<Tally, Error> {
        let mut tally = self.sound.tally().await?;
        tamper::tally(self.fault, &mut tally);
        if self.has(Fault::KeepsAWrongSum) && tally.accepted > 20 {
            tally.attempts += 1;
        }
        Ok(tally)
    }

    async fn audit(&self) -> Result<Audit, Error> {
        let mut audit = self.sound.audit().await?;
        tamper::tally(self.fault, &mut audit.counted);
        Ok(audit)
    }
}

/// A wait of a minute, for what should not wait.
pub(crate) const A_MINUTE: Settlement =
    Settlement::Defer { wait: Wait::exactly(std::time::Duration::from_secs(60), WaitOrigin::Shutdown) };
