//! A world without real time: a clock that moves when told, a receiver with a script, the real store in a folder
//! of its own, and a log of everything that happened, on which a test can wait.

#![allow(dead_code, unreachable_pub, unused_imports, reason = "each test uses its own part of the world")]

pub mod faulty;
pub mod receiver;

use std::{
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use relent::{
    Backoff, Clock, ErrorClass, History, Jitter, ManualClock, Observed, Policy, Settlement, StopReason,
    Timestamp, Wait,
};
use relent_deliver::{
    AttemptEnded, Deliverer, Ended, IntakeLimits, Limits, Observe, Policies, RunReport, Submission,
    UnknownPolicy, prepare,
};
use relent_ledger::{Accepted, Ledger, Message, MessageId, NewMessage, State, Stretch};
use relent_ledger_sqlite::{Options, SqliteLedger};
use tokio::{
    sync::{oneshot, watch},
    task::JoinHandle,
};

pub use faulty::{Faulty, Op};
pub use receiver::{Receiver, Reply, Sent};

/// When every test begins.
pub const START: Timestamp = Timestamp::from_secs(1_800_000_000);

pub const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The durable policy with waits that are known: these, in turn.
pub fn steps(steps: &[Duration]) -> Policy {
    let mut policy = Policy::durable();
    policy.retry.backoff = Backoff::Steps(steps.to_vec());
    policy.retry.jitter = Jitter::None;
    policy
}

/// What happened, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Attempt { id: MessageId, number: u32, observed: Observed, settlement: Settlement },
    Ended { id: MessageId, state: State, reason: StopReason, observed: Option<Observed>, attempts: u32 },
    Deferred { id: MessageId, wait: Wait },
    LedgerFailed,
    PolicyMissing { id: MessageId, name: String },
    Stale { id: MessageId },
    TaskPanicked { id: MessageId },
}

/// The log, which observes.
pub struct Log {
    events: Mutex<Vec<Event>>,
    changed: watch::Sender<()>,
    panics: Mutex<bool>,
    alerts: Mutex<Vec<(MessageId, Option<String>)>>,
}

impl Log {
    fn put(&self, event: Event) {
        self.events.lock().unwrap().push(event);
        self.changed.send_replace(());
    }

    /// Who was to be told of the end of that message; `None` where nobody was.
    pub fn alert(&self, id: MessageId) -> Option<String> {
        let alerts = self.alerts.lock().unwrap();
        alerts.iter().find(|(of, _)| *of == id).and_then(|(_, alert)| alert.clone())
    }

    /// Makes the observer panic at the next end of an attempt.
    pub fn panic_once(&self) {
        *self.panics.lock().unwrap() = true;
    }
}

impl Observe for Log {
    fn attempt_ended(&self, attempt: &AttemptEnded<'_>) {
        let AttemptEnded { id, number, observed, settlement, .. } = *attempt;
        let panics = std::mem::take(&mut *self.panics.lock().unwrap());
        assert!(!panics, "the observer panics");
        self.put(Event::Attempt { id, number, observed, settlement });
    }

    fn message_ended(&self, message: &Ended<'_>) {
        let Ended { id, state, reason, observed, attempts, .. } = *message;
        self.alerts.lock().unwrap().push((id, message.alert.map(str::to_owned)));
        self.put(Event::Ended { id, state, reason, observed, attempts });
    }

    fn deferred(&self, id: MessageId, wait: &Wait) {
        self.put(Event::Deferred { id, wait: *wait });
    }

    fn ledger_failed(&self, _error: &relent_ledger::Error) {
        self.put(Event::LedgerFailed);
    }

    fn policy_missing(&self, id: MessageId, policy: &UnknownPolicy) {
        self.put(Event::PolicyMissing { id, name: policy.name.clone() });
    }

    fn ticket_stale(&self, id: MessageId) {
        self.put(Event::Stale { id });
    }

    fn task_panicked(&self, id: MessageId, _said: &str) {
        self.put(Event::TaskPanicked { id });
    }
}

pub struct World {
    pub clock: ManualClock,
    pub receiver: Receiver,
    pub log: Arc<Log>,
    pub policies: Policies,
    pub limits: Limits,
    faulty: Option<Arc<Faulty>>,
    folder: tempfile::TempDir,
    run: Option<Run>,
}

struct Run {
    deliverer: Deliverer<Receiver, ManualClock>,
    shutdown: oneshot::Sender<()>,
    task: JoinHandle<RunReport>,
}

impl World {
    pub fn new() -> Self {
        Self::under([])
    }

    /// A world with policies of its own.
    pub fn under<const N: usize>(policies: [(&str, Policy); N]) -> Self {
        let clock = ManualClock::starting_at(START);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let ledger = open(&folder, &clock);
        Self {
            receiver: Receiver::new(clock.clone()),
            log: Arc::new(Log {
                events: Mutex::default(),
                changed: watch::Sender::new(()),
                panics: Mutex::default(),
                alerts: Mutex::default(),
            }),
            policies: Policies::new(policies.map(|(name, policy)| (name.to_owned(), policy))),
            limits: Limits::default(),
            faulty: Some(Arc::new(Faulty::new(ledger))),
            folder,
            run: None,
            clock,
        }
    }

    pub fn faults(&self) -> Arc<Faulty> {
        Arc::clone(self.faulty.as_ref().expect("the store is open"))
    }

    pub fn ledger(&self) -> Arc<dyn Ledger> {
        self.faults()
    }

    /// Starts the driver.
    pub fn start(&mut self) {
        let deliverer = Deliverer::new(
            self.ledger(),
            self.receiver.clone(),
            self.clock.clone(),
            self.policies.clone(),
            self.limits,
            Arc::clone(&self.log) as Arc<dyn Observe>,
        );
        let (shutdown, told) = oneshot::channel();
        let running = deliverer.clone();
        let task = tokio::spawn(async move { running.run(async { told.await.unwrap_or_default() }).await });
        self.run = Some(Run { deliverer, shutdown, task });
    }

    pub fn started(mut self) -> Self {
        self.start();
        self
    }

    pub fn wake(&self) {
        self.run.as_ref().expect("running").deliverer.wake();
    }

    /// Says that the driver shall stop, and returns what to wait on.
    pub fn shut_down(&mut self) -> impl Future<Output = RunReport> + use<> {
        let run = self.run.take().expect("running");
        run.shutdown.send(()).expect("it still runs");
        async move { soon(run.task).await.expect("the driver does not panic") }
    }

    /// Stops the driver when nothing is in flight.
    pub async fn stop(&mut self) -> RunReport {
        self.shut_down().await
    }

    /// Kills the process, as far as the store can tell: the driver is gone, and the store is opened anew.
    pub async fn crash_and_reopen(&mut self) {
        if let Some(Run { task, .. }) = self.run.take() {
            task.abort();
            assert!(task.await.is_err_and(|error| error.is_cancelled()));
        }
        let faulty = self.faulty.take().expect("the store is open");
        soon(async {
            // The driver's tasks are aborted with it, and give the store up when the executor drops them.
            while Arc::strong_count(&faulty) > 1 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        drop(faulty);
        self.faulty = Some(Arc::new(Faulty::new(open(&self.folder, &self.clock))));
    }

    pub fn prepare(&self, submission: Submission) -> NewMessage {
        prepare(&submission, &self.policies, &IntakeLimits::default(), self.clock.now()).expect("valid")
    }

    /// Takes a message in and wakes the driver, if it runs.
    pub async fn accept(&self, submission: Submission) -> MessageId {
        self.accept_as_is(self.prepare(submission)).await
    }

    pub async fn accept_as_is(&self, message: NewMessage) -> MessageId {
        let id = message.id;
        assert_eq!(soon(self.ledger().accept(message)).await.expect("accepted"), Accepted::New);
        if let Some(run) = &self.run {
            run.deliverer.wake();
        }
        id
    }

    pub async fn message(&self, id: MessageId) -> Message {
        soon(self.ledger().message(id, Stretch::ALL)).await.expect("readable").expect("it is there")
    }

    pub async fn history(&self, id: MessageId) -> History {
        History::from_bytes(&self.message(id).await.history).expect("readable")
    }

    /// The store's own check, which every test may end with.
    pub async fn assert_sound(&self) {
        let audit = soon(self.ledger().audit()).await.expect("readable");
        assert!(audit.is_sound(), "{:?}", audit.findings);
    }

    pub fn events(&self) -> Vec<Event> {
        self.log.events.lock().unwrap().clone()
    }

    /// Waits until the log holds `count` events like this, without moving the time.
    pub async fn until(&self, count: usize, like: impl Fn(&Event) -> bool) {
        let mut changed = self.log.changed.subscribe();
        let seen = || self.events().iter().filter(|event| like(event)).count();
        soon(async {
            while seen() < count {
                changed.changed().await.expect("the log lives");
            }
        })
        .await;
    }

    /// Waits until `count` attempts of this message have ended.
    pub async fn attempts_ended(&self, id: MessageId, count: usize) {
        self.until(count, |event| matches!(event, Event::Attempt { id: of, .. } if *of == id)).await;
    }

    /// Waits until this message has ended, `count` times in all, and says how it ended last.
    pub async fn ended(&self, id: MessageId, count: usize) -> (State, StopReason) {
        self.until(count, |event| matches!(event, Event::Ended { id: of, .. } if *of == id)).await;
        let of_it = |event: &Event| match event {
            Event::Ended { id: of, state, reason, .. } if *of == id => Some((*state, *reason)),
            _ => None,
        };
        self.events().iter().rev().find_map(of_it).expect("it has ended")
    }

    /// Moves the time to the instant at which this message is due, and says how long that took.
    pub async fn advance_until_due(&self, id: MessageId) -> Duration {
        let due = self.message(id).await.summary.due_at.expect("it waits");
        let wait = due.since(self.clock.now());
        self.clock.advance(wait);
        wait
    }

    /// Waits until so many sleep on the clock.
    pub async fn asleep(&self, count: usize) {
        soon(self.clock.until_asleep(count)).await;
    }

    /// Sends a message elsewhere and waits for its delivery: whatever was due before has been looked at by then.
    pub async fn probe(&self) {
        let id = self.accept(Submission::new("http://probe.example/")).await;
        assert_eq!(self.ended(id, 1).await, (State::Delivered, StopReason::Succeeded));
    }

    /// When each request to this host was sent, from the start.
    pub fn sent_at(&self, host: &str) -> Vec<Duration> {
        self.receiver.to(host).iter().map(|sent| sent.at.since(START)).collect()
    }
}

/// Waits in real time, but not for ever: a test that hangs fails.
pub async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(secs(60), future).await.expect("it hangs")
}

pub fn order() -> Submission {
    Submission::new("http://shop.example/orders")
}

/// An order under a policy of this name.
pub fn order_under(policy: &str) -> Submission {
    Submission { policy: Some(policy.to_owned()), ..order() }
}

pub const UNKNOWN: Observed = Observed::Error(ErrorClass::Lost);

fn open(folder: &tempfile::TempDir, clock: &ManualClock) -> Arc<dyn Ledger> {
    Arc::new(SqliteLedger::open(folder.path(), Options::default(), clock.now()).expect("the store opens"))
}
