//! Whether what must not be done twice is sent once, and what may be is sent the same.

use super::{Check, Verdict, silent, times};
use crate::{
    record::{Arrival, Whole},
    suite::{
        Observations,
        plan::{self, Can},
    },
    trial::{Exit, Seen},
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "post-503-once",
        demands: "A POST without an idempotency key is not repeated on a status alone: it may have been processed.",
        source: ONCE,
        judge: |observed| once(observed, "post-503"),
    },
    Check {
        name: "post-reset-once",
        demands: "A POST without an idempotency key is not repeated when its connection broke after it was read.",
        source: ONCE,
        judge: |observed| once(observed, "post-reset"),
    },
    Check {
        name: "post-hang-once",
        demands: "A POST without an idempotency key is not repeated when its answer did not come in time.",
        source: ONCE,
        judge: |observed| once(observed, "post-hang"),
    },
    Check {
        name: "same-key",
        demands: "Every attempt of one call carries the same idempotency key.",
        source: "Retries That Fail Better, 2026; the IETF draft \"The Idempotency-Key HTTP Header Field\", section 2",
        judge: same_key,
    },
    Check {
        name: "whole-body",
        demands: "Every attempt carries the whole body, byte for byte.",
        source: "RFC 9110, section 9.2.2: what is repeated is the request",
        judge: whole_body,
    },
    Check {
        name: "notices-half-a-body",
        demands: "An answer that breaks off in its body is no success: it is repeated, or the client fails.",
        source: "RFC 9112, section 8: a message whose body is shorter than its Content-Length is incomplete",
        judge: half,
    },
];

fn once(observed: &Observations, trial: &str) -> Verdict {
    let Some(seen) = observed.one(trial) else { return silent(observed, trial) };
    match seen.arrivals.len() {
        1 if seen.exit == Exit::CutOff => {
            Verdict::Undecided("it was still waiting for an answer when our patience ended".to_owned())
        }
        attempts => Verdict::of(attempts == 1, times(attempts)),
    }
}

/// The trials in which a keyed POST, or a PUT, was sent more than once.
fn repeated<'a>(observed: &'a Observations, trials: &'a [&str]) -> impl Iterator<Item = &'a Seen> {
    trials.iter().filter_map(|trial| observed.one(trial)).filter(|seen| seen.arrivals.len() > 1)
}

fn same_key(observed: &Observations) -> Verdict {
    if observed.abilities.post_keyed == Can::No {
        return silent(observed, KEYED[0]);
    }
    let keys: Vec<Vec<Option<&str>>> =
        repeated(observed, &KEYED).map(|seen| seen.arrivals.iter().map(plan::key).collect()).collect();
    let attempts: usize = keys.iter().map(Vec::len).sum();
    let same = |keys: &Vec<Option<&str>>| keys[0].is_some() && keys.iter().all(|key| *key == keys[0]);
    match attempts {
        0 => Verdict::Undecided("no POST with a key was sent twice".to_owned()),
        _ if keys.iter().all(same) => Verdict::Passed(format!("the same on {attempts} attempts")),
        _ => Verdict::Failed(format!("not the same, or missing, on {attempts} attempts")),
    }
}

fn whole_body(observed: &Observations) -> Verdict {
    let mut attempts = 0;
    for (well, trials) in [("post-keyed", &KEYED[..]), ("put", &PUT[..])] {
        let Some(right) = observed.one(well).and_then(|seen| seen.arrivals.first()) else { continue };
        for arrival in repeated(observed, trials).flat_map(|seen| &seen.arrivals) {
            if !is_same(arrival, right) {
                let (came, right) = (arrival.body.length, right.body.length);
                return Verdict::Failed(format!("an attempt brought {came} bytes of {right}, or others"));
            }
            attempts += 1;
        }
    }
    match attempts {
        0 => Verdict::Undecided("no request with a body was sent twice".to_owned()),
        _ => Verdict::Passed(format!("the same on {attempts} attempts")),
    }
}

/// Whether the body is the one that was sent when nothing failed. What was not read says nothing against it.
fn is_same(arrival: &Arrival, right: &Arrival) -> bool {
    arrival.read_at.is_none()
        || (arrival.body.whole == Whole::Yes && arrival.body.sha256 == right.body.sha256)
}

fn half(observed: &Observations) -> Verdict {
    let Some(seen) = observed.one("half-always") else { return silent(observed, "half-always") };
    let sent = times(seen.arrivals.len());
    match seen.exit {
        Exit::Code(0) => Verdict::Failed(format!("{sent}, and called a success (code 0)")),
        Exit::Code(code) => Verdict::Passed(format!("{sent}, and failed (code {code})")),
        Exit::Signal => Verdict::Passed(format!("{sent}, and died by a signal")),
        Exit::CutOff => Verdict::Undecided(format!("{sent}; {}", super::ended(seen.exit))),
    }
}

const KEYED: [&str; 3] = ["keyed-503", "keyed-reset", "keyed-hang"];
const PUT: [&str; 2] = ["put-503", "put-reset"];
const ONCE: &str =
    "RFC 9110, section 9.2.2; Retry, Timeout, and Backoff: an unsafe command produces no retry";
