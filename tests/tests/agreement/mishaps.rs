//! Explained and durable where more goes wrong than an answer: workers die in the middle of an attempt and the store
//! is opened anew, and what ended dead is sent again by a person, until it is delivered or the script is over.

use std::{sync::Arc, time::Duration};

use relent::{Clock, Decision, ManualClock, StopReason, Timeline, Timestamp, Wait, WaitOrigin, timeline};
use relent_deliver::{Deliverer, Limits, redrive};
use relent_ledger::{Accepted, Ledger, Message, MessageId, Settled, State, Stretch};
use relent_ledger_sqlite::{Options, SqliteLedger, Synchronous};
use tempfile::TempDir;
use tokio::{runtime::Builder, task::LocalSet};

use crate::{
    Course,
    case::Case,
    drivers::{End, ROUTE, START, Scripted, history, message, name_with_seed, pass, policies},
};

/// The way a message went: a course for each cycle, and every wait.
pub(crate) type Life = (Vec<Course>, Vec<Wait>);

/// What `relent explain` shows: a timeline for each cycle.
pub(crate) fn timelines(case: &Case) -> Vec<Timeline> {
    let (mut history, mut script) = (history(case), &case.script[..]);
    let mut timelines = Vec::new();
    loop {
        let timeline = timeline(&case.policy, history, ROUTE, script);
        script = &script[timeline.steps.len()..];
        let is_last = script.is_empty() || timeline.end == Some(StopReason::Succeeded);
        let at = timeline.at.after(UNTIL_SENT_AGAIN);
        let until = case.policy.business_deadline.map(|length| at.after(length));
        let mut fresh = case.policy.begin(case.seed, at, None, until);
        case.policy.classify.terms(ROUTE).apply(None, &mut fresh);
        history = timeline.history.redriven(at, fresh.deadlines);
        timelines.push(timeline);
        if is_last {
            return timelines;
        }
    }
}

/// The same as a life.
pub(crate) fn explained(case: &Case) -> Life {
    let timelines = timelines(case);
    let waits =
        timelines.iter().flat_map(|timeline| &timeline.steps).filter_map(|step| match step.decision {
            Decision::Retry(wait) => Some(wait),
            Decision::Stop(_) => None,
        });
    (timelines.iter().map(Course::of).collect(), waits.collect())
}

/// What the store says of it after the last cycle.
pub(crate) fn durable(case: &Case) -> Life {
    let runtime = Builder::new_current_thread().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let mut shop = Shop::open(case);
        shop.accept().await;
        let mut ends = Vec::new();
        loop {
            while shop.work().await == Fate::Died {
                shop.reopen();
            }
            let message = shop.message().await;
            let stop = match message.summary.state {
                State::Delivered => StopReason::Succeeded,
                State::Dead => message.summary.reason.expect("a dead letter has a reason"),
                other => panic!("not ended: {}", other.name()),
            };
            ends.push((shop.clock.now(), stop));
            if shop.transport.left() == 0 || stop == StopReason::Succeeded {
                return life(&message, &ends);
            }
            shop.send_again().await;
        }
    })
}

/// Reads a message's log. A lost attempt has no length, so when each ended is read from what was decided then; the
/// wish of a person is nobody's decision.
fn life(message: &Message, ends: &[(Timestamp, StopReason)]) -> Life {
    let decided: Vec<_> =
        message.waits.iter().filter(|record| record.wait.origin != WaitOrigin::Redrive).collect();
    let courses = (0..).zip(ends).map(|(cycle, &(end, stop))| {
        let attempts = message.attempts.iter().filter(|attempt| attempt.cycle == cycle).map(|attempt| {
            let then = decided.iter().find(|record| record.after_attempt == attempt.number);
            (attempt.began_at, then.map_or(end, |record| record.decided_at))
        });
        let attempts: Vec<_> = attempts.collect();
        let waits = attempts.windows(2).map(|pair| pair[1].0.since(pair[0].1)).collect();
        Course { attempts, waits, stop }
    });
    (courses.collect(), decided.iter().map(|record| record.wait).collect())
}

/// A worker and its store, which can be opened anew.
struct Shop<'c> {
    case: &'c Case,
    id: MessageId,
    clock: ManualClock,
    transport: Scripted,
    ledger: Option<Arc<SqliteLedger>>,
    folder: TempDir,
}

/// What became of a worker.
#[derive(Debug, PartialEq)]
enum Fate {
    /// Its message ended.
    Ended,
    /// It died over it.
    Died,
}

impl<'c> Shop<'c> {
    fn open(case: &'c Case) -> Self {
        let clock = ManualClock::starting_at(START);
        let transport = Scripted::new(clock.clone(), case.script.clone());
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut shop = Self { case, id: name_with_seed(case.seed), clock, transport, ledger: None, folder };
        shop.reopen();
        shop
    }

    /// Whoever opens a store finds what its last owner left.
    fn reopen(&mut self) {
        drop(self.ledger.take());
        let options = Options::default().with_synchronous(Synchronous::Off);
        let ledger = SqliteLedger::open(self.folder.path(), options, self.clock.now());
        self.ledger = Some(Arc::new(ledger.expect("nobody else has it")));
    }

    fn ledger(&self) -> Arc<dyn Ledger> {
        Arc::clone(self.ledger.as_ref().expect("the store is open")) as Arc<dyn Ledger>
    }

    async fn accept(&self) {
        let accepted = self.ledger().accept(message(self.case, self.id)).await;
        assert_eq!(accepted.expect("the store takes it"), Accepted::New);
    }

    async fn message(&self) -> Message {
        self.ledger()
            .message(self.id, Stretch::ALL)
            .await
            .expect("the store answers")
            .expect("the message is there")
    }

    /// Works until the message ends or the script has the worker die; then nothing of the worker is left.
    async fn work(&self) -> Fate {
        let ended = Arc::new(End::default());
        let (clock, transport) = (self.clock.clone(), self.transport.clone());
        let limits = Limits::default();
        let deliverer = Deliverer::new(
            self.ledger(),
            transport,
            clock.clone(),
            policies(self.case),
            limits,
            ended.clone(),
        );
        let time = tokio::task::spawn_local(pass(clock));
        // Dropping the run is the death: it aborts what is in flight.
        let fate = tokio::select! {
            _ = deliverer.run(ended.0.notified()) => Fate::Ended,
            () = self.transport.died.notified() => Fate::Died,
        };
        time.abort();
        drop(deliverer);
        while self.ledger.as_ref().is_some_and(|ledger| Arc::strong_count(ledger) > 1) {
            tokio::task::yield_now().await;
        }
        fate
    }

    async fn send_again(&self) {
        self.clock.advance(UNTIL_SENT_AGAIN);
        let (policies, now) = (policies(self.case), self.clock.now());
        let settled = redrive(&*self.ledger(), &policies, self.id, None, now).await;
        assert_eq!(settled.expect("the store answers"), Settled::Done);
    }
}

/// How long a dead letter lies.
const UNTIL_SENT_AGAIN: Duration = Duration::from_secs(3_600);
