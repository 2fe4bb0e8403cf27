//! When it tries again, and whether it ever stops.

use super::{Check, Verdict, brief, silent};
use crate::{
    fit::{Curve, FirstRetry, Fit, JitterKind, ONCE},
    suite::{Observations, plan::OUTAGE},
    trial::Exit,
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "gives-up",
        demands: "A call that meets nothing but failures ends by itself.",
        source: "Retries That Fail Better, 2026: does it stop, by attempts and by time",
        judge: gives_up,
    },
    Check {
        name: "few-attempts",
        demands: "A call is tried at most five times.",
        source: "Retry, Timeout, and Backoff: keep attempts few; Retries That Fail Better, 2026: five",
        judge: few,
    },
    Check {
        name: "waits-before-retry",
        demands: "The first retry does not go at once: it would compete with the recovery it hopes for.",
        source: "Retry, Timeout, and Backoff: backoff reduces pressure",
        judge: waits,
    },
    Check {
        name: "backs-off",
        demands: "Waits grow from try to try.",
        source: "Retries That Fail Better, 2026: does it back off",
        judge: grows,
    },
    Check {
        name: "jitters",
        demands: "Chance spreads the waits, so that callers that failed together do not come back together.",
        source: "Marc Brooker, Exponential Backoff And Jitter, AWS Architecture Blog, 2015",
        judge: jitters,
    },
    Check {
        name: "keeps-jitter-at-the-cap",
        demands: "Chance spreads the longest waits as well.",
        source: "Marc Brooker, as above: the cap comes before the draw",
        judge: at_the_cap,
    },
];

fn gives_up(observed: &Observations) -> Verdict {
    let copies = observed.copies(OUTAGE);
    if copies.iter().all(|seen| seen.arrivals.is_empty()) {
        return silent(observed, OUTAGE);
    }
    let cut = copies.iter().filter(|seen| seen.exit == Exit::CutOff).count();
    let longest = copies.iter().filter_map(|seen| Some(seen.ended.since(seen.arrivals.first()?.at))).max();
    let longest = brief(longest.unwrap_or_default());
    match cut {
        0 => Verdict::Passed(format!("all {} copies ended within {longest}", copies.len())),
        // Patience is ours and not the client's: that it still tries is no proof that it always will.
        _ => {
            Verdict::Undecided(format!("{cut} of {} copies were still trying after {longest}", copies.len()))
        }
    }
}

fn few(observed: &Observations) -> Verdict {
    let copies = observed.copies(OUTAGE);
    let Some(most) = copies.iter().map(|seen| seen.arrivals.len()).max().filter(|most| *most > 0) else {
        return silent(observed, OUTAGE);
    };
    let cut = copies.iter().any(|seen| seen.exit == Exit::CutOff);
    match most {
        1..=5 if cut => Verdict::Undecided(format!("{most} attempts so far when our patience ended")),
        _ => Verdict::of(most <= 5, format!("at most {most} attempts a call")),
    }
}

/// The fit of the outage, if the client tried again at all.
fn fitted(observed: &Observations) -> Result<&Fit, Verdict> {
    let seen = observed.fit.as_ref().filter(|_| !observed.copies(OUTAGE).is_empty());
    let fit = seen.ok_or_else(|| silent(observed, OUTAGE))?;
    match fit.evidence.waits {
        0 => Err(Verdict::Undecided(ONCE.to_owned())),
        _ => Ok(fit),
    }
}

fn waits(observed: &Observations) -> Verdict {
    let fit = match fitted(observed) {
        Ok(fit) => fit,
        Err(verdict) => return verdict,
    };
    let at_once = fit.first == FirstRetry::AtOnce || fit.curve == Curve::AtOnce;
    let (median, _) = fit.evidence.each[0];
    Verdict::of(!at_once, format!("the median of the first waits is {}", brief(median)))
}

fn grows(observed: &Observations) -> Verdict {
    let fit = match fitted(observed) {
        Ok(fit) => fit,
        Err(verdict) => return verdict,
    };
    let each: Vec<_> = fit.evidence.each.iter().map(|(median, _)| *median).collect();
    let shown: Vec<String> = each.iter().map(|median| brief(*median)).collect();
    let shown = format!("medians {}", shown.join(", "));
    let [first, .., last] = each[..] else {
        return Verdict::Undecided("it tries again once: there is no second wait to compare with".to_owned());
    };
    match &fit.curve {
        Curve::AtOnce | Curve::Constant { .. } => Verdict::Failed(shown),
        Curve::Linear { .. } | Curve::Exponential { .. } => Verdict::Passed(shown),
        Curve::Irregular { .. } | Curve::Undecided { .. }
            if last.as_secs_f64() >= GROWN * first.as_secs_f64() =>
        {
            Verdict::Passed(shown)
        }
        Curve::Irregular { .. } | Curve::Undecided { .. } => {
            Verdict::Undecided(format!("{shown}: no growth that is clear"))
        }
    }
}

fn jitters(observed: &Observations) -> Verdict {
    let fit = match fitted(observed) {
        Ok(fit) => fit,
        Err(verdict) => return verdict,
    };
    let runs = fit.evidence.runs;
    match &fit.jitter {
        JitterKind::None => Verdict::Failed(format!("{runs} runs wait alike")),
        JitterKind::Undecided { why } => match fit.evidence.log_odds {
            // Which kind it is cannot be told, but that runs differ can.
            Some(_) => Verdict::Passed(format!("{runs} runs differ; {why}")),
            None => Verdict::Undecided(why.clone()),
        },
        kind => Verdict::Passed(format!("{runs} runs differ: {}", kind.name())),
    }
}

fn at_the_cap(observed: &Observations) -> Verdict {
    let fit = match fitted(observed) {
        Ok(fit) => fit,
        Err(verdict) => return verdict,
    };
    if let Some(at) = fit.pinned_at {
        return Verdict::Failed(format!("waits are pinned at {}", brief(at)));
    }
    let cap = match &fit.curve {
        Curve::Linear { cap, .. } | Curve::Exponential { cap, .. } => *cap,
        _ => None,
    };
    match (cap, &fit.jitter) {
        (None, _) => Verdict::Undecided("no cap was seen".to_owned()),
        (Some(_), JitterKind::Undecided { why }) => Verdict::Undecided(why.clone()),
        (Some(cap), kind) => Verdict::of(
            *kind != JitterKind::None,
            format!("the cap of {} with jitter {}", brief(cap), kind.name()),
        ),
    }
}

/// Growth that medians of drawn waits do not show by chance.
const GROWN: f64 = 1.4;
