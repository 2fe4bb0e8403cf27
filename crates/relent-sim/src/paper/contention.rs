//! Marc Brooker's simulation of clients that contend for one row: each reads its version, writes if that is still the
//! version, and on a conflict waits and starts over. Which backoff does the least work, and which is done first?
//!
//! The waits are the core's. Decorrelated jitter differs from the original in one thing: there a draw above the cap
//! becomes the cap, here the cap is applied before the draw, so that waits do not collapse on it.
//!
//! # Source
//!
//! "Exponential Backoff And Jitter", AWS Architecture Blog, 2015, and the simulator published beside it: every hop takes
//! |N(10, 2)| ms, the base is 5 ms, the cap 2 s, the first ceiling 10 ms; work is the number of writes.

use std::time::Duration;

use relent_core::{
    Backoff, Cause, Deadlines, Decision, History, Idempotency, Jitter, Policy, RetryPolicy, Sent, Timestamp,
    Verdict,
};

use super::{Figure, Setting};
use crate::{
    agenda::{Agenda, Kind},
    chance::{Chance, nanos},
};

/// A backoff of the simulation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Variant {
    /// None at all.
    None,
    /// Exponential without jitter.
    Exponential,
    /// Half of it, and half drawn.
    Equal,
    /// All of it drawn.
    Full,
    /// Drawn from the last.
    Decorrelated,
}

/// What one backoff takes, on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Writes.
    pub work: f64,
    /// Until the last client is done, in milliseconds.
    pub millis: f64,
}

impl Variant {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::None, Self::Exponential, Self::Equal, Self::Full, Self::Decorrelated];

    fn policy(self) -> RetryPolicy {
        let millis = Duration::from_millis;
        let curve = |base| Backoff::Exponential { base: millis(base), factor_milli: 2000, max: millis(2000) };
        let (backoff, jitter) = match self {
            Self::None => (Backoff::Constant(Duration::ZERO), Jitter::None),
            Self::Exponential => (curve(10), Jitter::None),
            Self::Equal => (curve(10), Jitter::Equal),
            Self::Full => (curve(10), Jitter::Full),
            Self::Decorrelated => (curve(5), Jitter::Decorrelated),
        };
        RetryPolicy { max_attempts: None, backoff, jitter, ..Policy::live().retry }
    }
}

/// What so many clients need under that backoff, on average over trials.
pub fn effort(clients: u32, variant: Variant, trials: u32) -> Effort {
    let policy = variant.policy();
    let (work, last) = (0..trials).fold((0u64, 0u64), |(work, last), trial| {
        let (writes, end) = Contest::new(clients, &policy, u64::from(trial)).run();
        (work + writes, last + end.as_nanos())
    });
    let float = crate::report::float;
    Effort { work: float(work) / f64::from(trials), millis: float(last) / f64::from(trials) / 1e6 }
}

/// What the article says of it, at every size.
pub(super) fn figures(setting: &Setting) -> Vec<Figure> {
    // Few clients differ more from trial to trial, and cost less.
    let trials = |clients: u32| (setting.trials * 100 / clients).max(1);
    (1..=20).map(|tens| tens * 10).map(|clients| figure(clients, trials(clients))).collect()
}

fn figure(clients: u32, trials: u32) -> Figure {
    let [none, plain, equal, full, decorrelated] =
        Variant::ALL.map(|variant| effort(clients, variant, trials));
    let jittered = [equal, full, decorrelated];
    let plain_is_worst = jittered.iter().all(|one| plain.work > one.work && plain.millis > one.millis);
    // At twenty, full and decorrelated differ by one write in a hundred; that much is chance.
    let full_is_least = full.work <= equal.work && full.work <= 1.01 * decorrelated.work;
    let decorrelated_is_sooner = decorrelated.millis < full.millis;
    let show = |one: Effort| format!("{:.0} in {:.1} s", one.work, one.millis / 1e3);
    // Beyond a hundred clients the sentence no longer holds whole, in the original neither.
    let (reported, agrees) = match clients {
        20..=100 => (
            "plain worst, full least work, decorrelated sooner",
            plain_is_worst && full_is_least && decorrelated_is_sooner,
        ),
        _ => ("plain worst", plain_is_worst),
    };
    let found = format!(
        "none {}, plain {}, equal {}, full {}, decorrelated {}",
        show(none),
        show(plain),
        show(equal),
        show(full),
        show(decorrelated)
    );
    Figure::said(format!("{clients} clients: writes and time"), reported, found, agrees)
}

/// One trial.
struct Contest<'a> {
    policy: &'a RetryPolicy,
    agenda: Agenda,
    chance: Chance,
    clients: Vec<Client>,
    version: u64,
    writes: u64,
}

struct Client {
    history: History,
    step: Step,
    read: u64,
}

/// What a client's next event is.
#[derive(Clone, Copy)]
enum Step {
    /// Its question for the version arrives at the row.
    Read,
    /// The version arrives at the client, who writes.
    Know,
    /// Its write arrives at the row.
    Write,
    /// The answer arrives: done.
    Done,
    /// The answer arrives: a conflict.
    Conflict,
    /// The wait is over.
    Again,
}

impl<'a> Contest<'a> {
    fn new(clients: u32, policy: &'a RetryPolicy, trial: u64) -> Self {
        let mut chance = Chance::new(trial);
        let client = |_| Client {
            history: History::new(chance.bits(), Timestamp::ZERO, Idempotency::Safe, Deadlines::default()),
            step: Step::Again,
            read: 0,
        };
        let clients: Vec<Client> = (0..clients).map(client).collect();
        let mut agenda = Agenda::default();
        for client in (0..).take(clients.len()) {
            agenda.put(Timestamp::ZERO, Kind::Retry, client, 0);
        }
        Self { policy, agenda, chance, clients, version: 0, writes: 0 }
    }

    /// How many writes, and when the last client was done.
    fn run(mut self) -> (u64, Timestamp) {
        let mut last = Timestamp::ZERO;
        while let Some(event) = self.agenda.next() {
            last = event.at;
            self.step(event.whom, event.at);
        }
        (self.writes, last)
    }

    fn step(&mut self, whom: u32, now: Timestamp) {
        let client = &mut self.clients[whom as usize];
        let (next, wait) = match client.step {
            Step::Again => (Step::Read, None),
            Step::Read => {
                client.read = self.version;
                (Step::Know, None)
            }
            Step::Know => (Step::Write, None),
            Step::Write => {
                self.writes += 1;
                let wins = client.read == self.version;
                self.version += u64::from(wins);
                (if wins { Step::Done } else { Step::Conflict }, None)
            }
            Step::Conflict => {
                let conflict = Verdict::Failure { cause: Cause::Error, sent: Sent::No, server_wait: None };
                match self.policy.conclude(&mut client.history, conflict, now) {
                    Decision::Retry(wait) => (Step::Again, Some(wait.length)),
                    Decision::Stop(_) => return,
                }
            }
            Step::Done => return,
        };
        client.step = next;
        let length = wait.unwrap_or_else(|| Duration::from_nanos(hop(&mut self.chance)));
        self.agenda.put(now.after(length), Kind::Retry, whom, 0);
    }
}

/// A message's way, one direction.
fn hop(chance: &mut Chance) -> u64 {
    nanos((10.0 + 2.0 * chance.normal()).abs() * 1e6)
}
