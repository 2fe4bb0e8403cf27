//! From which share of failing attempts the AWS SDKs' retry quota drains.
//!
//! A call of three attempts that fail independently with probability p moves the quota on average by
//! (1 − p) − c · (p² + p³): the first success earns one, each retry is charged c, and the last charge comes back if it
//! succeeds. The share at which that is 0 is the threshold; the quota of `relent-core` is run against chance as well.

use relent_core::{
    BudgetPolicy, Cause, Timestamp,
    budget::{BudgetState, QuotaPolicy},
};

use super::{Figure, Setting};
use crate::chance::Chance;

pub(super) fn figures(_: &Setting) -> Vec<Figure> {
    [("transient failures", Cause::Error, 22.0, 14.0), ("throttling", Cause::Throttled, 32.0, 5.0)]
        .into_iter()
        .flat_map(|(name, cause, reported, charge)| {
            let worked_out = 100.0 * threshold(charge);
            let run = measured(cause);
            [
                Figure::about(format!("{name}: worked out"), reported, worked_out, 1.0, " %"),
                Figure::about(format!("{name}: the quota run against chance"), reported, run, 2.0, " %"),
            ]
        })
        .collect()
}

/// Where (1 − p) = c · (p² + p³), by halving.
fn threshold(charge: f64) -> f64 {
    let drift = |p: f64| (1.0 - p) - charge * (p * p + p * p * p);
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if drift(middle) > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// The least share, in half percents, at which one call in a hundred is refused a retry for want of quota.
fn measured(cause: Cause) -> f64 {
    (20..100u32)
        .map(|half| f64::from(half) / 2.0)
        .find(|percent| refused(cause, percent / 100.0) > CALLS / 100)
        .unwrap_or(f64::NAN)
}

/// How many of the calls are refused a retry.
fn refused(cause: Cause, p: f64) -> u32 {
    let mut quota = BudgetState::new(&BudgetPolicy::Quota(QuotaPolicy::AWS_2026));
    let mut chance = Chance::new(1);
    let now = Timestamp::ZERO;
    let mut refused = 0;
    for _ in 0..CALLS {
        if !chance.happens(p) {
            quota.on_first_success(now);
            continue;
        }
        for _ in 1..3 {
            let Ok(loan) = quota.try_retry(cause, now) else {
                refused += 1;
                break;
            };
            if !chance.happens(p) {
                quota.on_retry_success(loan, now);
                break;
            }
            quota.on_retry_failure(loan);
        }
    }
    refused
}

const CALLS: u32 = 100_000;
