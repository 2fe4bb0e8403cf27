//! The four drivers, each brought to the same table.

use std::{
    cell::RefCell,
    convert::Infallible,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use relent::{
    Attempt, BlockingClock, Calls, Clock, ErrorClass, History, ManualClock, Observed, Observing, Pipeline,
    Policy, Report, Route, ScriptedOutcome, Sighting, StopReason, Timeline, Timestamp, Wait, timeline,
};
use relent_deliver::{
    Answered, AttemptEnded, Deliverer, Ended, Limits, Observe, Outbound, Policies, Transport,
};
use relent_ledger::{
    Accepted, Destination, Ledger, Message, MessageId, NewMessage, Request, State, Stretch, Truncated,
};
use relent_ledger_sqlite::{Options, SqliteLedger, Synchronous};
use tempfile::TempDir;
use tokio::{
    runtime::{Builder, Runtime},
    sync::Notify,
    task::LocalSet,
};

use crate::{Course, case::Case};

/// What `relent explain` shows.
pub(crate) fn explained(case: &Case) -> (Course, Timeline) {
    let timeline = timeline(&case.policy, history(case), ROUTE, &case.script);
    (Course::of(&timeline), timeline)
}

/// A pipeline's classifier, for operations that return what the script says.
pub(crate) type Sighted = Observing<fn(Result<&ScriptedOutcome, &Infallible>) -> Sighting>;

/// The policy in force for callers of the library.
pub(crate) fn in_force(clock: &ManualClock, policy: &Policy) -> Pipeline<ManualClock, Sighted> {
    let pipeline = Pipeline::on(clock.clone(), policy.clone()).expect("the policy is possible");
    pipeline.observe_with(|result| match result {
        Ok(outcome) => Sighting { observed: outcome.observed, server_wait: outcome.server_wait },
        Err(never) => match *never {},
    })
}

/// What a caller of the library gets.
pub(crate) fn live(case: &Case) -> (Course, Report) {
    let clock = ManualClock::starting_at(START);
    let pipeline = in_force(&clock, &case.policy);
    let log = RefCell::new(Vec::new());
    let called = terms(&pipeline, case).run_with_report(|attempt| {
        let outcome = noted(case, attempt, &log);
        let clock = clock.clone();
        async move {
            clock.sleep(outcome.took).await;
            Ok(outcome)
        }
    });
    let (_, report) = clock.block_on(called);
    (course(log.into_inner(), report.stop), report)
}

/// What a caller gets whose thread waits. Its operation keeps to the time that it is given, as a socket does.
pub(crate) fn blocking(case: &Case) -> (Course, Report) {
    let clock = ManualClock::starting_at(START);
    let pipeline = in_force(&clock, &case.policy);
    let log = RefCell::new(Vec::new());
    let (_, report) = terms(&pipeline, case).run_blocking_with_report(|attempt| {
        let outcome = noted(case, attempt, &log);
        clock.pause_until(attempt.began.after(outcome.took.min(attempt.allowed())));
        Ok(match outcome.took > attempt.allowed() {
            true => ScriptedOutcome {
                observed: Observed::Error(ErrorClass::Timeout),
                server_wait: None,
                ..outcome
            },
            false => outcome,
        })
    });
    (course(log.into_inner(), report.stop), report)
}

fn terms<'a>(
    pipeline: &'a Pipeline<ManualClock, Sighted>,
    case: &Case,
) -> Calls<&'a Pipeline<ManualClock, Sighted>, Route<'static>> {
    let calls = pipeline.calls().with_seed(case.seed).on_route(ROUTE.method, ROUTE.path);
    match case.upstream {
        Some(length) => calls.with_deadline_in(length),
        None => calls,
    }
}

/// What the script says of an attempt, which is noted with its beginning and its end.
fn noted(case: &Case, attempt: Attempt, log: &RefCell<Vec<(Timestamp, Timestamp)>>) -> ScriptedOutcome {
    let outcome = case.script[attempt.number as usize - 1];
    log.borrow_mut().push((attempt.began, attempt.began.after(outcome.took).min(attempt.give_up_at)));
    outcome
}

fn course(attempts: Vec<(Timestamp, Timestamp)>, stop: StopReason) -> Course {
    let waits = attempts.windows(2).map(|pair| pair[1].0.since(pair[0].1)).collect();
    Course { attempts, waits, stop }
}

/// The driver of `relent serve`, on the store of `relent serve`.
pub(crate) struct Durable {
    runtime: Runtime,
    ledger: Arc<SqliteLedger>,
    _folder: TempDir,
}

impl Durable {
    pub(crate) fn open() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let options = Options::default().with_synchronous(Synchronous::Off);
        let ledger = Arc::new(SqliteLedger::open(folder.path(), options, START).expect("a new store"));
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        Self { runtime, ledger, _folder: folder }
    }

    /// Delivers one message to its end; what the store says of it then.
    pub(crate) fn deliver(&self, case: &Case) -> (Course, Vec<Wait>) {
        let id = name_with_seed(case.seed);
        let message = LocalSet::new().block_on(&self.runtime, self.deliver_one(case, id));
        let attempts = message.attempts.iter().map(|attempt| {
            let end = attempt.end.as_ref().expect("every attempt ended");
            (attempt.began_at, attempt.began_at.after(end.took))
        });
        let stop = match message.summary.state {
            State::Delivered => StopReason::Succeeded,
            State::Dead => message.summary.reason.expect("a dead letter has a reason"),
            other => panic!("not ended: {}", other.name()),
        };
        (course(attempts.collect(), stop), message.waits.iter().map(|record| record.wait).collect())
    }

    async fn deliver_one(&self, case: &Case, id: MessageId) -> Message {
        let clock = ManualClock::starting_at(START);
        let accepted = self.ledger.accept(message(case, id)).await.expect("the store takes it");
        assert_eq!(accepted, Accepted::New);
        let transport = Scripted::new(clock.clone(), case.script.clone());
        let ended = Arc::new(End::default());
        let ledger: Arc<dyn Ledger> = self.ledger.clone();
        let limits = Limits::default();
        let deliverer =
            Deliverer::new(ledger, transport, clock.clone(), policies(case), limits, ended.clone());
        let time = tokio::task::spawn_local(pass(clock));
        deliverer.run(ended.0.notified()).await;
        time.abort();
        self.ledger.message(id, Stretch::ALL).await.expect("the store answers").expect("the message is there")
    }
}

/// Lets the time pass. Where there is one message there is one sleeper: the attempt, or the driver until the next.
/// The time moves on when it sleeps and not while the store works.
pub(crate) async fn pass(clock: ManualClock) {
    loop {
        clock.until_asleep(1).await;
        clock.advance_to_next();
        tokio::task::yield_now().await;
    }
}

/// Answers by the script, in the time of the clock. Clones go on with the same script.
#[derive(Clone)]
pub(crate) struct Scripted {
    clock: ManualClock,
    script: Arc<[ScriptedOutcome]>,
    sent: Arc<AtomicUsize>,
    /// Told when the script has the worker die; the attempt then never ends.
    pub(crate) died: Arc<Notify>,
}

impl Scripted {
    pub(crate) fn new(clock: ManualClock, script: Vec<ScriptedOutcome>) -> Self {
        Self { clock, script: script.into(), sent: Arc::default(), died: Arc::default() }
    }

    /// How much of the script is left.
    pub(crate) fn left(&self) -> usize {
        self.script.len() - self.sent.load(Ordering::SeqCst)
    }
}

impl Transport for Scripted {
    async fn send(&self, _: Outbound, limit: Duration) -> Answered {
        let outcome = self.script[self.sent.fetch_add(1, Ordering::SeqCst)];
        self.clock.sleep(outcome.took.min(limit)).await;
        let (observed, server_wait) = match outcome.took > limit {
            true => (Observed::Error(ErrorClass::Timeout), None),
            false => (outcome.observed, outcome.server_wait),
        };
        if observed == Observed::Error(ErrorClass::Lost) {
            self.died.notify_one();
            pending::<()>().await;
        }
        let (detail, response) = (String::new(), Bytes::new());
        Answered { observed, server_wait, detail, response, truncated: Truncated::No }
    }
}

/// Ends the run when its message has ended.
#[derive(Default)]
pub(crate) struct End(pub(crate) Notify);

impl Observe for End {
    fn attempt_ended(&self, _: &AttemptEnded<'_>) {}

    fn message_ended(&self, _: &Ended<'_>) {
        self.0.notify_one();
    }

    fn ledger_failed(&self, error: &relent_ledger::Error) {
        panic!("the store failed: {error}");
    }
}

pub(crate) fn policies(case: &Case) -> Policies {
    Policies::new([(POLICY.to_string(), case.policy.clone())])
}

pub(crate) fn history(case: &Case) -> History {
    let upstream = case.upstream.map(|length| START.after(length));
    let mut history = case.policy.begin(case.seed, START, upstream, None);
    case.policy.classify.terms(ROUTE).apply(None, &mut history);
    history
}

pub(crate) fn message(case: &Case, id: MessageId) -> NewMessage {
    let history = history(case);
    NewMessage {
        id,
        accepted_at: START,
        destination: Destination::new("http://receiver.invalid:80"),
        request: Request {
            method: ROUTE.method.to_string(),
            url: format!("http://receiver.invalid{}", ROUTE.path),
            headers: Vec::new(),
            body: Bytes::new(),
        },
        key: None,
        fingerprint: [0; 32],
        policy: POLICY.to_string(),
        repeat: history.idempotency,
        labels: Default::default(),
        not_before: None,
        deadline: history.deadlines.business,
        history: Bytes::copy_from_slice(&history.to_bytes()),
    }
}

/// A name that no other case has, though shrinking tries the same seed again.
pub(crate) fn name_with_seed(seed: u64) -> MessageId {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&MADE.fetch_add(1, Ordering::SeqCst).to_be_bytes());
    bytes[8..].copy_from_slice(&seed.to_be_bytes());
    MessageId::from_bytes(bytes)
}

/// Some moment of 2026: durable work counts from the Unix epoch.
pub(crate) const START: Timestamp = Timestamp::from_secs(1_796_000_000);
pub(crate) const ROUTE: Route<'static> = Route { method: "POST", path: "/orders" };
const POLICY: &str = "case";
