//! Rate limits that let everybody through, and one that lets nobody.

use std::{hint::black_box, num::NonZeroU32, time::Duration};

use governor::{Quota, RateLimiter};
use relent::{RatePolicy, Timestamp, control::Rate};

use super::{HOUR, LONG, clock};
use crate::work::{Work, steps};

pub(crate) fn relent() -> Work {
    let rate = plenty();
    steps(move || take(&rate, black_box(HOUR)))
}

pub(crate) fn relent_with_clock() -> Work {
    let rate = plenty();
    let clock = clock();
    steps(move || take(&rate, clock()))
}

pub(crate) fn governor() -> Work {
    let quota = Quota::per_second(NonZeroU32::new(1_000_000_000).expect("not zero"));
    let limiter = RateLimiter::direct(quota.allow_burst(NonZeroU32::MAX));
    steps(move || assert!(black_box(limiter.check()).is_ok()))
}

pub(crate) fn relent_empty() -> Work {
    let rate = Rate::new(&RatePolicy { permits: 1, per: LONG, burst: 1 }).expect("a rate");
    take(&rate, HOUR);
    let clock = clock();
    steps(move || assert!(black_box(rate.try_take(clock())).is_err()))
}

pub(crate) fn governor_empty() -> Work {
    let limiter = RateLimiter::direct(Quota::with_period(LONG).expect("not zero"));
    assert!(limiter.check().is_ok());
    steps(move || assert!(black_box(limiter.check()).is_err()))
}

/// Told one and the same moment, it lets four billion through.
fn plenty() -> Rate {
    let policy = RatePolicy { permits: 1_000_000_000, per: Duration::from_secs(1), burst: u32::MAX };
    Rate::new(&policy).expect("a rate")
}

fn take(rate: &Rate, now: Timestamp) {
    rate.try_take(now).expect("a permit is there").spend();
}
