//! What the stories are about: a clock that nobody can rely on, and an operation that does as it is told.

use std::{
    collections::VecDeque,
    fmt::Write,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

use relent::{
    Attempt, Cause, Classifier, Clock, Event, Neutral, Observe, Operation, Outcome, Report, Rulebook, Scene,
    Sent, StopReason, Timestamp, Verdict, Work,
};

/// A clock that reads what it is told to, also less than before, and whose sleeps may end early. It wakes nobody: a
/// story polls by itself.
#[derive(Clone, Default)]
pub(crate) struct Wayward(pub(crate) Arc<Hands>);

#[derive(Default)]
pub(crate) struct Hands {
    pub(crate) now: AtomicU64,
    pub(crate) ends_sleeps_early: AtomicBool,
}

impl Clock for Wayward {
    type Sleep = Nap;

    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.now.load(Relaxed))
    }

    fn sleep_until(&self, at: Timestamp) -> Nap {
        Nap { clock: self.clone(), at }
    }
}

pub(crate) struct Nap {
    clock: Wayward,
    at: Timestamp,
}

impl Future for Nap {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        match self.clock.now() >= self.at || self.clock.0.ends_sleeps_early.load(Relaxed) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

/// Hears everything and does nothing: its pipeline's calls take the long way.
pub(crate) struct Listener;

impl Observe for Listener {
    fn observe(&self, _: Scene<'_>, _: &Event<'_>) {}
}

/// Values and errors alike mean what their number says.
#[derive(Clone, Copy)]
pub(crate) struct ByNumber;

impl Classifier<u64, u64> for ByNumber {
    fn verdict(&self, outcome: Outcome<'_, u64, u64>, _: Rulebook<'_>) -> Verdict {
        let failure = |cause, sent| Verdict::Failure { cause, sent, server_wait: None };
        match outcome {
            Outcome::Ok(number) | Outcome::Err(number) => match number {
                0 => Verdict::Success,
                1 => Verdict::Permanent,
                2 => Verdict::Neutral(Neutral::OwnFault),
                3 => failure(Cause::Throttled, Sent::Maybe),
                _ => failure(Cause::Error, Sent::RefusedBefore),
            },
            _ => Verdict::TIMED_OUT,
        }
    }
}

/// What an attempt does next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    Give(Result<u64, u64>),
    Panic,
}

/// What a call's attempts are told, and what they tell.
#[derive(Default)]
pub(crate) struct Wire {
    pub(crate) orders: Mutex<VecDeque<Order>>,
    pub(crate) told: Mutex<String>,
    pub(crate) work: Mutex<Vec<Work>>,
}

impl Wire {
    fn tell(&self, what: &str) {
        write!(self.told.lock().unwrap(), "{what} ").unwrap();
    }
}

pub(crate) struct Trying {
    wire: Arc<Wire>,
    _work: Option<Work>,
    panics_when_dropped: bool,
}

impl Future for Trying {
    type Output = Result<u64, u64>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let order = self.wire.orders.lock().unwrap().pop_front();
        match order {
            None => Poll::Pending,
            Some(Order::Give(result)) => Poll::Ready(result),
            Some(Order::Panic) => panic!("as planned"),
        }
    }
}

impl Drop for Trying {
    fn drop(&mut self) {
        self.wire.tell("dropped");
        assert!(!self.panics_when_dropped, "as planned");
    }
}

/// What becomes of the work of a call's attempts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Overseen {
    NoWork,
    EndsWithItsAttempt,
    RunsOn,
}

pub(crate) struct Op {
    pub(crate) wire: Arc<Wire>,
    pub(crate) overseen: Overseen,
    pub(crate) can_repeat: bool,
    /// The attempt that panics before there is a future of it.
    pub(crate) panics_at: u32,
    pub(crate) panics_when_dropped: bool,
}

impl Operation for Op {
    type Value = u64;
    type Error = u64;
    type Future = Trying;

    fn begin(&mut self, attempt: Attempt, work: impl FnOnce() -> Work) -> Trying {
        self.wire.tell(&format!("{attempt:?}"));
        let work = match self.overseen {
            Overseen::NoWork => None,
            Overseen::EndsWithItsAttempt => Some(work()),
            Overseen::RunsOn => {
                let work = work();
                self.wire.work.lock().unwrap().push(work.clone());
                Some(work)
            }
        };
        assert_ne!(attempt.number, self.panics_at, "as planned");
        Trying { wire: Arc::clone(&self.wire), _work: work, panics_when_dropped: self.panics_when_dropped }
    }

    fn can_repeat(&self) -> bool {
        self.can_repeat
    }

    fn discard(&mut self, value: u64) {
        self.wire.tell(&format!("discarded {value}"));
    }

    fn finish(&mut self, value: &mut u64, stop: StopReason, report: impl FnOnce() -> Report) {
        self.wire.tell(&format!("{value} {stop:?} {:?}", report()));
    }
}
