//! A scenario: a dependency, what goes wrong with it and when, who calls it, and what a good policy keeps.
//!
//! Whoever writes one writes TOML ([`Scenario::parse`] says how); the standard ones are such files too.

mod check;
mod set;
mod standard;
mod text;
mod written;

use std::{fmt, time::Duration};

use relent_core::{Idempotency, Timestamp};

pub(crate) use self::check::MEASURES;
pub use self::standard::{Standard, standard};

/// A whole scenario. Made by [`Scenario::parse`], so what it holds is possible.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Scenario {
    /// A short name, such as `S4`.
    pub id: String,
    /// One line: trigger, amplifier, what sustains it.
    pub title: String,
    /// How long it lasts.
    pub duration: Duration,
    /// What is called.
    pub dependency: Dependency,
    /// Who calls.
    pub callers: Callers,
    /// How many services stand between the callers and the dependency, the callers' own included, each with the
    /// whole policy. 1: the callers call it themselves.
    pub layers: u32,
    /// Whether a service that gives up an attempt stops what it asked of the next one.
    pub cancel_downwards: bool,
    /// What goes wrong.
    pub effects: Vec<Effect>,
    /// Stretches of time that are summed up apart.
    pub windows: Vec<Window>,
    /// What has to be well again for a recovery.
    pub recovery: RecoveryOf,
    /// What a good policy keeps.
    pub gates: Vec<Gate>,
    /// Why no retry policy can pass, where that is so: it shows the limit of what retries decide, and a failed gate
    /// does not count.
    pub control: Option<String>,
}

/// Workers behind one queue, first come first served.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Dependency {
    /// How many requests it works on at once.
    pub workers: u32,
    /// How long one takes, on average.
    pub service: Duration,
    /// How the lengths are spread.
    pub spread: Spread,
    /// How many may wait; one more is rejected at once.
    pub queue: u32,
    /// What a rejection costs: time of a worker, ahead of the queue.
    pub reject_cost: Duration,
    /// How long an answer takes that needs no work: a failure, a refusal, a rejection.
    pub answer: Duration,
    /// Whether it knows the caller's deadline and drops what has expired when its turn comes. Otherwise work is done
    /// that nobody waits for.
    pub drop_expired: bool,
    /// A cache in front of the work.
    pub cache: Option<Cache>,
    /// What a failure looks like.
    pub fail_status: u16,
    /// What a rejection looks like, of a full queue or in a maintenance.
    pub reject_status: u16,
}

/// How lengths of service are spread.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Spread {
    /// Exponentially: many short ones, a few long.
    Exponential,
    /// Not at all.
    Constant,
}

/// A cache: a hit is quick, and a miss that completes for a caller who still waits fills it a little.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cache {
    /// How long a hit takes, on average.
    pub hit: Duration,
    /// How long a miss takes, on average.
    pub miss: Duration,
    /// The share of hits at the start.
    pub ratio: f64,
    /// By what part of what is missing the share grows with each such miss.
    pub fill: f64,
}

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Callers {
    /// How calls begin.
    pub kind: CallersKind,
    /// How many processes they are in; each has a budget, a breaker and limits of its own.
    pub clients: u32,
    /// What the caller says of repeating; `None`: what the policy says.
    pub repeat: Option<Idempotency>,
    /// What a caller does whose call was given up.
    pub give_up: GiveUp,
}

/// How calls begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CallersKind {
    /// So many a second, whatever comes of them (Poisson).
    Open {
        /// Calls a second.
        rate: f64,
    },
    /// So many callers, each with one call at a time and a pause between two (exponential).
    Closed {
        /// How many.
        callers: u32,
        /// The pause, on average.
        think: Duration,
    },
    /// So many calls together, once.
    Herd {
        /// How many.
        callers: u32,
        /// When.
        at: Duration,
    },
}

/// What a caller does whose call was given up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum GiveUp {
    /// Goes on to the next piece of work.
    Next,
    /// Calls again for the same work at once, or after the wait that a refusal advises.
    Again,
    /// It is not given up: attempts, total time-out and budget of the policy do not apply, its curve and its jitter
    /// alone pace the caller.
    Never,
}

/// Something that goes wrong for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// From when.
    pub from: Timestamp,
    /// Until when; for a flush, the same.
    pub until: Timestamp,
    /// What.
    pub kind: EffectKind,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EffectKind {
    /// Workers work at this speed, in millionths of the normal; 0: they stand still.
    Speed(u32),
    /// Connections are refused at once.
    Refuse,
    /// So large a share of the requests gets no answer, ever.
    Hang(f64),
    /// So large a share of the requests fails at once.
    Fail(f64),
    /// So many times the calls (open callers only).
    Load(f64),
    /// The cache is empty.
    Flush,
    /// Every request is rejected and told to come back at its end.
    Maintenance,
}

/// A stretch of time that is summed up apart.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Window {
    /// Its name.
    pub name: String,
    /// From when.
    pub from: Timestamp,
    /// Until when.
    pub until: Timestamp,
}

/// What has to be as before, for ten seconds, for the dependency to have recovered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RecoveryOf {
    /// The share of the calls that succeed.
    Calls,
    /// The share of the attempts that succeed: where calls are never given up, all of them do in the end.
    Attempts,
}

/// What a good policy keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// What is measured.
    pub measure: Measure,
    /// In which window.
    pub over: String,
    /// The side that is good.
    pub side: Side,
    /// The bound, or the factor of it.
    pub bound: f64,
    /// What the bound is a multiple of.
    pub relative: Option<Relative>,
    /// Only for policies with or without a breaker. `None`: for all.
    pub breaker: Option<bool>,
}

/// The side of a bound that is good.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Side {
    /// The bound or less.
    AtMost,
    /// The bound or more.
    AtLeast,
}

/// What a bound may be a multiple of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Relative {
    /// The same measure under no retries at all, with the same seed.
    NoRetries,
}

/// What a gate measures.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Measure {
    /// Requests that reach the dependency, for each call that begins.
    ArrivalsPerCall,
    /// Of the calls that began, the share that succeeded, in percent.
    Success,
    /// Of the calls whose first attempt failed, the share that succeeded, in percent.
    Rescued,
    /// Seconds from the end of what goes wrong until all is as before; no window.
    Recovery,
    /// The most requests in ten milliseconds, as a multiple of the average before.
    Peak,
    /// How often a breaker opened.
    BreakersOpened,
}

impl Scenario {
    /// The first moment at which something goes wrong, and the last.
    pub fn trigger(&self) -> Option<(Timestamp, Timestamp)> {
        let from = self.effects.iter().map(|effect| effect.from).min()?;
        let until = self.effects.iter().map(|effect| effect.until).max()?;
        Some((from, until))
    }

    /// The end.
    pub fn end(&self) -> Timestamp {
        Timestamp::ZERO.after(self.duration)
    }
}

/// Why a scenario is refused: the field, what is wrong with it, and the way out.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Unusable {
    /// As it is written in the file, `dependency.workers`; empty where the text as a whole cannot be read.
    pub field: String,
    /// Lower case, no full stop.
    pub reason: String,
}

impl Unusable {
    pub(crate) fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into() }
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => f.write_str(&self.reason),
            field => write!(f, "{field}: {}", self.reason),
        }
    }
}

impl std::error::Error for Unusable {}
