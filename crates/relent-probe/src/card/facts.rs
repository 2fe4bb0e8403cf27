//! What is reported and not graded.

use std::time::Duration;

use relent::Brief;

use super::Fact;
use crate::{
    check::{ended, hints},
    fit::{Curve, FirstRetry, Fit, JitterKind},
    suite::{
        Observations,
        plan::{self, FAULTS, OTHER_FORMS, OUTAGE, STATUSES},
    },
    trial::Exit,
};

/// Everything that was seen, under its name.
pub(super) fn of(observed: &Observations) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut say = |name, value: Option<String>| facts.extend(value.map(|value| Fact { name, value }));
    let (repeated, left) = repeats(observed);
    say("repeats", Some(repeated));
    say("leaves", Some(left));
    say("attempts", attempts(observed));
    if let Some(fit) = &observed.fit {
        say("schedule", Some(schedule(fit)));
        say("jitter", Some(jitter(fit)));
        say("statistics", statistics(fit));
    }
    say("gives up a silent attempt", plan::silence(observed).map(brief));
    say("all attempts silent", silence(observed));
    say("in an outage", outage(observed));
    say("copies together", together(observed));
    say("waits as asked by", forms(observed));
    say("after Stripe-Should-Retry: false", should_not(observed));
    say("retries come on", connections(observed));
    facts
}

fn repeats(observed: &Observations) -> (String, String) {
    let (mut repeated, mut left) = (Vec::new(), Vec::new());
    for (trial, _) in STATUSES.iter().chain(&FAULTS) {
        let name = trial.trim_start_matches("once-");
        match observed.attempts(trial) {
            Some(1) => left.push(name),
            Some(_) => repeated.push(name),
            None => {}
        }
    }
    let list = |names: Vec<&str>| if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    (list(repeated), list(left))
}

fn attempts(observed: &Observations) -> Option<String> {
    let counts: Vec<usize> = observed.copies(OUTAGE).iter().map(|seen| seen.arrivals.len()).collect();
    let (least, most) = (counts.iter().min()?, counts.iter().max()?);
    let fault = &observed.trials.get(OUTAGE)?.script;
    let range = if least == most { most.to_string() } else { format!("{least} to {most}") };
    Some(format!("{range} when every answer is {fault}"))
}

/// A schedule in words.
pub(super) fn schedule(fit: &Fit) -> String {
    let capped = |cap: &Option<Duration>| match cap {
        Some(cap) => format!(", at most {}", brief(*cap)),
        None => ", no cap seen".to_owned(),
    };
    let list = |medians: &[Duration]| {
        let shown: Vec<String> = medians.iter().map(|median| brief(*median)).collect();
        shown.join(", ")
    };
    let curve = match &fit.curve {
        Curve::AtOnce => "every retry goes at once".to_owned(),
        Curve::Constant { wait } => format!("constant, {}", brief(*wait)),
        Curve::Linear { base, cap } => format!("linear, {} more each time{}", brief(*base), capped(cap)),
        Curve::Exponential { base, factor, factor_range: (low, high), cap } => {
            let doubt = if high - low > 0.005 { format!(" ({low:.2} to {high:.2})") } else { String::new() };
            format!("exponential, from {} times {factor:.2}{doubt}{}", brief(*base), capped(cap))
        }
        Curve::Irregular { medians } => format!("irregular, medians {}", list(medians)),
        Curve::Undecided { why, medians } if medians.is_empty() => format!("undecided: {why}"),
        Curve::Undecided { why, medians } => format!("undecided: {why}; medians {}", list(medians)),
    };
    match fit.first {
        FirstRetry::Waits => curve,
        FirstRetry::AtOnce => format!("the first retry at once, then {curve}"),
    }
}

/// A jitter in words.
pub(super) fn jitter(fit: &Fit) -> String {
    let kind = match &fit.jitter {
        JitterKind::None => "none that can be measured".to_owned(),
        JitterKind::Full => "full: from zero to the schedule".to_owned(),
        JitterKind::Equal => "equal: from half of the schedule to all of it".to_owned(),
        JitterKind::Proportional { share } => format!("proportional: the schedule ± {:.0} %", share * 100.0),
        JitterKind::Additive { span } => format!("additive: up to {} above the schedule", brief(*span)),
        JitterKind::Decorrelated => "decorrelated: from the base to three times the wait before".to_owned(),
        JitterKind::PollyV2 => "Polly's decorrelated jitter, second version".to_owned(),
        JitterKind::Irregular => "runs differ, but like no known kind".to_owned(),
        JitterKind::Undecided { why } => format!("undecided: {why}"),
    };
    match fit.pinned_at {
        Some(at) => format!("{kind}; lost at the cap of {}", brief(at)),
        None => kind,
    }
}

fn statistics(fit: &Fit) -> Option<String> {
    let evidence = &fit.evidence;
    let odds = evidence.log_odds.zip(evidence.runner_up).map(|(odds, other)| {
        let distance = evidence.ks_distance.unwrap_or_default();
        format!("; e^{odds:.1} times as likely as {other}, Kolmogorov-Smirnov distance {distance:.3}")
    });
    (evidence.waits > 0)
        .then(|| format!("{} waits of {} runs{}", evidence.waits, evidence.runs, odds.unwrap_or_default()))
}

fn silence(observed: &Observations) -> Option<String> {
    let seen = observed.one("hang-always")?;
    let took = brief(seen.ended.since(seen.arrivals.first()?.at));
    let attempts = seen.arrivals.len();
    Some(match seen.exit {
        Exit::CutOff => format!("{attempts} attempts, still at work after {took}"),
        exit => format!("{attempts} attempts, {} after {took}{}", ended(exit), cut_short(observed)),
    })
}

/// Fewer attempts than when failures are fast, or a last one that was given less time: a total deadline.
fn cut_short(observed: &Observations) -> String {
    let Some(seen) = observed.one("hang-always") else { return String::new() };
    let held: Vec<Duration> =
        seen.arrivals.iter().filter_map(|arrival| Some(arrival.end.at()?.since(arrival.at))).collect();
    let most = observed.copies(OUTAGE).iter().map(|seen| seen.arrivals.len()).max().unwrap_or_default();
    match held[..] {
        [first, .., last] if last < first * 9 / 10 => {
            format!(": a deadline over all, it gave the last attempt {} only", brief(last))
        }
        _ if seen.arrivals.len() < most
            && observed.attempts("once-hang").is_some_and(|attempts| attempts > 1) =>
        {
            format!(": a deadline over all, fast failures get {most} attempts")
        }
        _ => String::new(),
    }
}

fn outage(observed: &Observations) -> Option<String> {
    let copies = observed.copies(OUTAGE);
    let arrivals: usize = copies.iter().map(|seen| seen.arrivals.len()).sum();
    let each = arrivals as f64 / copies.len().max(1) as f64;
    let calls = observed.one("calls-outage").filter(|seen| seen.exit != Exit::CutOff).map(|seen| {
        let each = seen.arrivals.len() as f64 / f64::from(observed.suite.calls);
        format!("; {each:.2} where one process makes {} calls", observed.suite.calls)
    });
    (arrivals > 0).then(|| format!("{each:.2} requests for each call{}", calls.unwrap_or_default()))
}

fn together(observed: &Observations) -> Option<String> {
    let crowd = crate::check::together::densest(observed)?;
    let step = if crowd.is_in_step() { "in step" } else { "spread" };
    Some(format!("{step}: {} of {} came back within {}", crowd.most, crowd.copies, brief(crowd.window)))
}

fn forms(observed: &Observations) -> Option<String> {
    let all = [
        ("asked-503", "Retry-After in seconds (503)"),
        ("asked-429", "Retry-After in seconds (429)"),
        ("asked-date", "Retry-After as a date (503)"),
    ];
    let others = OTHER_FORMS.map(|(trial, form)| (trial, form.name()));
    let all: Vec<_> =
        all.into_iter().chain(others).filter(|(trial, _)| observed.one(trial).is_some()).collect();
    let heard = |(trial, name): &(&str, &'static str)| {
        let heard = hints::heard(observed, trial)?.0;
        (heard == hints::Heard::Yes).then_some(*name)
    };
    let names: Vec<&str> = all.iter().filter_map(heard).collect();
    (!all.is_empty())
        .then(|| if names.is_empty() { "nothing that it was sent".to_owned() } else { names.join(", ") })
}

fn should_not(observed: &Observations) -> Option<String> {
    let attempts = observed.attempts("should-not")?;
    (observed.attempts("once-503")? > 1)
        .then(|| if attempts > 1 { "it tries again" } else { "it does not try again" }.to_owned())
}

fn connections(observed: &Observations) -> Option<String> {
    let seen = observed.one("once-503").filter(|seen| seen.arrivals.len() > 1)?;
    let same = seen.arrivals[0].connection == seen.arrivals[1].connection;
    Some(if same { "the same connection" } else { "a new connection" }.to_owned())
}

fn brief(length: Duration) -> String {
    Brief(Duration::from_millis(u64::try_from(length.as_millis()).unwrap_or(u64::MAX))).to_string()
}
