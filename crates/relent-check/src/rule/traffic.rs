//! What layers, load and capacity make of a policy: asked only where they are said.

use std::time::Duration;

use relent_core::{Backoff, Brief, BudgetPolicy, Window, budget::RatioPolicy};

use super::Fault;
use crate::{
    change::Change,
    figure::{
        outage::{of_one_call, thousandths, through_milli},
        recovery::{ClosedLoop, OpenLoop},
    },
    subject::{Part, Subject},
    world::World,
};

pub(super) fn check(subject: &Subject, world: &World, faults: &mut Vec<Fault>) {
    faults.extend(layers_multiply(subject, world));
    faults.extend(load_above_capacity(world));
    faults.extend(cannot_recover(subject, world));
    faults.extend(closed_loop(subject, world));
    faults.extend(breaker_never_opens(subject, world));
    faults.extend(one_host(subject, world));
}

fn layers_multiply(subject: &Subject, world: &World) -> Option<Fault> {
    let layers = world.layers.filter(|layers| *layers > 1)?;
    let one = of_one_call(subject).filter(|one| *one > 1)?;
    if subject.policy.budget.is_some() || !subject.knows(Part::Budget) {
        return None;
    }
    let all = through_milli(u64::from(one) * 1000, layers);
    Some(Fault {
        name: "layers_multiply",
        part: Part::Attempts,
        field: "retry.max_attempts",
        why: format!(
            "{one} attempts at each of {layers} layers are {} calls at the bottom for one at the top",
            thousandths(all)
        ),
        mends: vec![Change::Budget(BudgetPolicy::default()), Change::MaxAttempts(1)],
        advice: "let one layer retry and turn it off in the others",
    })
}

fn load_above_capacity(world: &World) -> Option<Fault> {
    let (load, capacity) = (world.load?, world.capacity?);
    (load >= capacity).then(|| Fault {
        name: "load_above_capacity",
        part: Part::Attempts,
        field: "",
        why: format!("{load} calls a second are no less than the capacity of {capacity}, without any retry"),
        mends: Vec::new(),
        advice: "no retry policy can help: add capacity, or shed first attempts",
    })
}

fn cannot_recover(subject: &Subject, world: &World) -> Option<Fault> {
    let figure = OpenLoop::of(subject, world)?;
    let opens = subject.policy.breaker.is_some() && subject.policy.budget.is_none();
    if figure.recovers() || figure.load >= figure.capacity || opens || !subject.retries() {
        return None;
    }
    Some(Fault {
        name: "cannot_recover",
        part: Part::Budget,
        field: "budget",
        why: format!(
            "with {} retries for each call {} calls a second stay {} attempts, no less than the capacity of {}: once \
             overloaded, it never recovers",
            thousandths(figure.retries_milli),
            figure.load,
            figure.arrivals,
            figure.capacity
        ),
        mends: smaller_share(subject, &figure)
            .into_iter()
            .chain([Change::Budget(BudgetPolicy::default())])
            .collect(),
        advice: "bound retries by a budget that drains on failed ones",
    })
}

/// The same ratio with a share that leaves a twentieth of the capacity free.
fn smaller_share(subject: &Subject, figure: &OpenLoop) -> Option<Change> {
    let Some(BudgetPolicy::Ratio(ratio)) = subject.policy.budget else {
        return None;
    };
    let aim = figure.capacity.milli() / 20 * 19;
    let floor = u64::from(ratio.floor_per_second) * 1000;
    let spare = aim.checked_sub(figure.load.milli())?.checked_sub(floor)?;
    let share = u32::try_from(spare * 1000 / figure.load.milli()).ok()? / 10 * 10;
    (share > 0).then_some(Change::Budget(BudgetPolicy::Ratio(RatioPolicy { share_milli: share, ..ratio })))
}

fn closed_loop(subject: &Subject, world: &World) -> Option<Fault> {
    let figure = ClosedLoop::of(subject, world).filter(|figure| !figure.recovers())?;
    let mends = longer_waits(subject, world).into_iter().collect();
    let stuck = match figure.attempts {
        1 => format!("{} callers, an attempt each {}", figure.callers, Brief(figure.round)),
        attempts => format!("{} callers, {attempts} attempts each {}", figure.callers, Brief(figure.round)),
    };
    Some(Fault {
        name: "closed_loop_cannot_recover",
        part: Part::Backoff,
        field: "retry.backoff",
        why: format!(
            "{stuck}: {} attempts a second while all are stuck, no less than the capacity of {}",
            figure.arrivals, figure.capacity
        ),
        mends,
        advice: "let the callers wait longer, or have fewer of them",
    })
}

/// The curve stretched until the callers leave capacity free, if some stretch does.
fn longer_waits(subject: &Subject, world: &World) -> Option<Change> {
    let Backoff::Exponential { base, factor_milli, max } = subject.policy.retry.backoff else {
        return None;
    };
    let unlimited = subject.policy.retry.max_attempts.is_none();
    (2..=MOST_STRETCH).find_map(|halves| {
        let longer = |length: Duration| length.saturating_mul(halves) / 2;
        let (base, max) = if unlimited { (base, longer(max)) } else { (longer(base), longer(max)) };
        let change = Change::Backoff(Backoff::Exponential { base, factor_milli, max });
        let mut changed = subject.clone();
        change.apply(&mut changed);
        ClosedLoop::of(&changed, world).is_some_and(|figure| figure.recovers()).then_some(change)
    })
}

/// At that load its window never holds as many calls as it wants to see.
fn breaker_never_opens(subject: &Subject, world: &World) -> Option<Fault> {
    let (load, breaker) = (world.load?, subject.policy.breaker.as_ref()?);
    let Window::Time(window) = breaker.window else {
        return None;
    };
    if !breaker.has_rates() || breaker.consecutive_failures.is_some() {
        return None;
    }
    let held = u128::from(load.milli()) * window.as_nanos() / 1_000_000_000_000;
    let fewer = u32::try_from(held).ok().filter(|held| *held < breaker.min_calls)?;
    Some(Fault {
        name: "breaker_never_opens",
        part: Part::Breaker,
        field: "breaker.min_calls",
        why: format!(
            "{load} calls a second are {fewer} in its window of {}, and below {} it never opens",
            Brief(window),
            breaker.min_calls
        ),
        mends: vec![Change::BreakerMinCalls((fewer / 2).max(1))],
        advice: "look back further, or ask for fewer calls",
    })
}

/// Whether one bad host of the pool that was told reaches the rate.
fn one_host(subject: &Subject, world: &World) -> Option<Fault> {
    let hosts = world.hosts.filter(|hosts| *hosts > 0)?;
    let rate = subject.policy.breaker.as_ref()?.failure_rate_milli?;
    let bad = 1000 / hosts;
    (bad >= rate && hosts > 1).then(|| Fault {
        name: "breaker_trips_on_one_host",
        part: Part::Breaker,
        field: "breaker.failure_rate",
        why: format!(
            "one bad host of {hosts} fails {} % of the calls, and {} % open it: the healthy ones are shut out too",
            f64::from(bad) / 10.0,
            f64::from(rate) / 10.0
        ),
        mends: [600, (bad * 3 / 2).min(1000)].into_iter().filter(|milli| *milli > bad).map(Change::BreakerRate).collect(),
        advice: "leave a bad host to the retries, which meet another one",
    })
}

/// What is found here, and in `stop` of the caller's deadline.
pub(super) const NAMES: [&str; 6] = [
    "layers_multiply",
    "load_above_capacity",
    "cannot_recover",
    "closed_loop_cannot_recover",
    "breaker_never_opens",
    "outlasts_caller",
];
const MOST_STRETCH: u32 = 400;
