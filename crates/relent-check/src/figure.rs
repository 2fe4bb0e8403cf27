//! The arithmetic of a policy: how many attempts fit, how long a caller can wait, what retries make of the load, and
//! whether the dependency can recover under it.

pub mod outage;
pub mod recovery;
pub mod sample;

use std::time::Duration;

use relent_core::{Attempts, Hints, Idempotency};

use crate::{
    subject::{Part, Subject},
    world::World,
};
use outage::Outage;
use recovery::{ClosedLoop, OpenLoop};
use sample::{Pace, Tally};

/// Every figure that the file and what was said of the world allow.
#[derive(Clone, Debug)]
pub struct Figures {
    /// What the figures leave aside, where they leave something aside.
    pub counts: Option<&'static str>,
    /// The bound of a whole call and where it is set; `None`: there is none, or the file does not say.
    pub limit: Option<(String, Duration)>,
    /// Attempts that begin if each fails at once after the shortest waits. `None`: without limit, or not known.
    pub at_best: Option<u32>,
    /// Attempts that begin if each takes its whole time-out after the longest waits. `None`: not known.
    pub at_worst: Option<Attempts>,
    /// How often how many attempts begin if each fails at once, where that differs from call to call.
    pub at_once: Option<Tally>,
    /// The same if each takes its whole time-out.
    pub timing_out: Option<Tally>,
    /// The longest that a caller can wait, hints left aside. `None`: nothing bounds it, or not known.
    pub longest: Option<Duration>,
    /// The same with the longest hints that are obeyed.
    pub longest_with_hints: Option<Duration>,
    /// Attempts of one call. `None`: without limit, or not known.
    pub one_call: Option<u32>,
    /// Attempts for each call in an outage.
    pub outage: Outage,
    /// Attempts at the bottom for each call at the top, in thousandths.
    pub through_layers: Option<(u32, u64)>,
    /// Calls that come whatever becomes of them.
    pub open_loop: Option<OpenLoop>,
    /// Callers that call again as soon as their call has ended.
    pub closed_loop: Option<ClosedLoop>,
    /// The largest pool in which one bad host opens the breaker. `None`: no breaker by a rate of failures.
    pub one_host_in: Option<u32>,
}

impl Figures {
    /// The figures of a subject.
    pub fn of(subject: &Subject, world: &World) -> Self {
        let policy = &subject.policy;
        let timed = subject.knows(Part::AttemptTimeout) || policy.room().is_none();
        let readable = ![Part::Deadline, Part::Backoff, Part::Jitter, Part::Cap]
            .iter()
            .any(|part| subject.is_unreadable(*part));
        let known = subject.knows(Part::Attempts) && readable;
        let bounded = subject.knows(Part::AttemptTimeout) || policy.limit().is_some();
        let sampled = |pace| {
            Some(Tally::of(policy, pace)).filter(|_| {
                policy.limit().is_some() && timed && readable && !subject.is_unreadable(Part::Attempts)
            })
        };
        let limit = policy.limit().map(|(field, length)| {
            (subject.origin(Part::Deadline).path().unwrap_or(field).to_owned(), length)
        });
        let outage = outage::of_service(subject);
        let one_call = outage::of_one_call(subject);
        let each = outage.attempts_milli.or(one_call.map(|one| u64::from(one) * 1000));
        let through = |layers| Some((layers, outage::through_milli(each?, layers)));
        let ends_at_once = policy.repeat == Idempotency::Unsafe && subject.retries();
        Self {
            counts: ends_at_once.then_some(FOR_SAFE_CALLS),
            limit,
            at_best: known.then(|| one(subject).or_else(|| policy.attempts_at_best())).flatten(),
            at_worst: (known && timed && subject.retries()).then(|| policy.attempts_at_worst()),
            at_once: sampled(Pace::AtOnce).filter(|_| subject.retries()),
            timing_out: sampled(Pace::TimingOut).filter(|_| subject.retries()),
            longest: (known && bounded).then(|| policy.longest_call(Hints::None)).flatten(),
            longest_with_hints: (known && bounded).then(|| policy.longest_call(Hints::Obeyed)).flatten(),
            one_call,
            through_layers: world.layers.and_then(through),
            open_loop: OpenLoop::of(subject, world),
            closed_loop: ClosedLoop::of(subject, world),
            one_host_in: policy
                .breaker
                .as_ref()
                .and_then(|breaker| breaker.failure_rate_milli)
                .map(one_host_in),
            outage,
        }
    }
}

const FOR_SAFE_CALLS: &str =
    "of calls that may be repeated: as it stands (repeat = \"unsafe\") a time-out ends a call at once";

/// A client that never retries makes one attempt.
fn one(subject: &Subject) -> Option<u32> {
    (!subject.retries()).then_some(1)
}

/// The most hosts of which one that fails every call reaches the rate.
const fn one_host_in(rate_milli: u32) -> u32 {
    match rate_milli {
        0 => u32::MAX,
        rate => 1000 / rate,
    }
}
