//! What many copies do to a dependency that is down.

use std::time::Duration;

use super::{Check, Verdict, brief, silent};
use crate::{
    fit::{Curve, FirstRetry, Fit},
    suite::{
        Observations,
        plan::{Can, OUTAGE},
        waits,
    },
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "spreads-out",
        demands: "Copies that fail together do not come back together: at most half of them within a tenth of the \
                  median wait.",
        source: "Retry, Timeout, and Backoff: thousands of clients do not retry at identical instants",
        judge: spreads,
    },
    Check {
        name: "budgets-retries",
        demands: "In an outage, a process that makes many calls sends at most 1.2 requests for each.",
        source: "20 % is the largest retry budget in common use: Finagle, Envoy, Linkerd; the SRE book says 10 %",
        judge: budgets,
    },
];

/// How the first retries of many copies lie, their first failures laid over each other.
pub(crate) struct Crowd {
    /// How many lie in the densest window.
    pub(crate) most: usize,
    /// How many there are.
    pub(crate) copies: usize,
    /// A tenth of the median wait, or what can be measured.
    pub(crate) window: Duration,
    median: Duration,
}

pub(crate) fn densest(observed: &Observations) -> Option<Crowd> {
    let mut firsts: Vec<Duration> =
        observed.copies(OUTAGE).iter().filter_map(|seen| waits(&seen.arrivals).first().copied()).collect();
    firsts.sort();
    let median = *firsts.get(firsts.len() / 2)?;
    let window = (median / 10).max(NARROWEST).max(observed.lateness * 3);
    let within =
        |from: &Duration| firsts.iter().filter(|first| **first >= *from && **first - *from <= window).count();
    let most = firsts.iter().map(within).max()?;
    Some(Crowd { most, copies: firsts.len(), window, median })
}

impl Crowd {
    /// Whether most lie together.
    pub(crate) const fn is_in_step(&self) -> bool {
        self.most * 2 > self.copies
    }
}

fn spreads(observed: &Observations) -> Verdict {
    let Some(crowd) = densest(observed) else {
        return match observed.copies(OUTAGE) {
            [] => silent(observed, OUTAGE),
            _ => Verdict::Undecided("it did not try again".to_owned()),
        };
    };
    let Crowd { most, copies, window, median } = crowd;
    let seen = format!("{most} of {copies} copies came back within {}", brief(window));
    // On a busy machine a retry that goes at once takes longer than that; the fit tells it by the leap to the second.
    let goes_at_once = |fit: &Fit| fit.first == FirstRetry::AtOnce || fit.curve == Curve::AtOnce;
    let pauses = median > AT_ONCE && !observed.fit.as_ref().is_some_and(goes_at_once);
    match () {
        () if copies < FEWEST => {
            Verdict::Undecided(format!("{copies} copies are too few; {FEWEST} are needed"))
        }
        () if !crowd.is_in_step() => Verdict::Passed(seen),
        // Waits that are no longer than what can be measured look alike, unless they are none at all.
        () if window * 3 > median && pauses => {
            Verdict::Undecided(format!("{seen}, but they wait {} only", brief(median)))
        }
        () => Verdict::Failed(seen),
    }
}

fn budgets(observed: &Observations) -> Verdict {
    if observed.abilities.calls == Can::No {
        let why = "one process makes one call, so a budget over calls cannot be seen; write {calls} in the command, or \
                   let the program read RELENT_PROBE_CALLS";
        return Verdict::Undecided(why.to_owned());
    }
    let Some(seen) = observed.one("calls-outage") else { return silent(observed, "calls-outage") };
    if seen.exit == crate::trial::Exit::CutOff {
        return Verdict::Undecided("it was still calling when our patience ended".to_owned());
    }
    let each = seen.arrivals.len() as f64 / f64::from(observed.suite.calls);
    let told = format!("{} requests for {} calls, {each:.2} each", seen.arrivals.len(), observed.suite.calls);
    Verdict::of(each <= 1.2, told)
}

/// A window no narrower than what can be measured.
const NARROWEST: Duration = Duration::from_millis(20);
const FEWEST: usize = 8;
/// The time that a client needs for its next request where it does not wait.
const AT_ONCE: Duration = Duration::from_millis(15);
