//! What the controls refuse and doubt: each by itself, and where one makes nonsense of another.

use alloc::{format, string::String, vec::Vec};
use core::time::Duration;

use super::{Doubt, Invalid, Policy, Warning, text};
use crate::{
    breaker::BreakerPolicy,
    budget::BudgetPolicy,
    policy::Gates,
    rate::RatePolicy,
    text::{Decimal, DurationText},
    time::saturating_nanos,
    window::Window,
};

impl Policy {
    /// Every control's own word, and every doubt about how they go together.
    pub(super) fn controls(&self) -> Result<Vec<Warning>, Invalid> {
        for (slot, gates) in [("admission", &self.admission), ("attempt", &self.attempt)] {
            gates.validate(slot)?;
        }
        let mut doubts = Vec::new();
        if let Some(budget) = &self.budget {
            doubts.extend(budget.validate()?);
        }
        if let Some(breaker) = &self.breaker {
            doubts.extend(breaker.validate()?);
        }
        doubts.extend(self.doubts_between_controls());
        Ok(doubts)
    }

    fn doubts_between_controls(&self) -> Vec<Warning> {
        let breaker = self.breaker.as_ref();
        [
            (Doubt::MoreAttemptsThanCalls, "attempt.concurrency.limit", self.more_attempts_than_calls()),
            (Doubt::FirstAttemptsFallBehind, "attempt.rate", self.fewer_attempts_than_calls()),
            (Doubt::AttemptsWaitForPermits, "attempt.rate", self.attempts_of_one_call_do_not_fit()),
            (Doubt::ShareOfTooFew, "budget.share", self.share_of_too_few()),
            (
                Doubt::BreakerWindowTooShort,
                "breaker.window",
                breaker.and_then(|breaker| self.window_of_one_attempt(breaker)),
            ),
            (
                Doubt::SlowCallsNeverSeen,
                "breaker.slow_calls.longer_than",
                breaker.and_then(|breaker| self.no_time_to_be_slow(breaker)),
            ),
            (
                Doubt::ProbeOutlived,
                "breaker.probe_timeout",
                breaker.and_then(|breaker| self.probe_outlived(breaker)),
            ),
        ]
        .into_iter()
        .filter_map(|(doubt, field, reason)| Some(Warning::new(doubt, field, reason?)))
        .collect()
    }

    /// A call has one attempt at a time, so what is admitted bounds the attempts.
    fn more_attempts_than_calls(&self) -> Option<String> {
        let (calls, attempts) = (self.admission.concurrency?.limit, self.attempt.concurrency?.limit);
        (attempts > calls).then(|| {
            format!(
                "{attempts} is more than admission.concurrency.limit {calls}, and a call has one attempt at a time: \
                 only attempts that outlive their time-out could reach it"
            )
        })
    }

    /// Calls that are let in faster than their first attempts may begin.
    fn fewer_attempts_than_calls(&self) -> Option<String> {
        let (calls, attempts) = (self.admission.rate?, self.attempt.rate?);
        (interval(attempts) > interval(calls)).then(|| {
            format!(
                "{} an attempt is slower than admission.rate, {} a call: first attempts alone fall behind",
                DurationText(interval(attempts)),
                DurationText(interval(calls))
            )
        })
    }

    /// Even a call that is alone finds no time for its attempts.
    fn attempts_of_one_call_do_not_fit(&self) -> Option<String> {
        let rate = self.attempt.rate?;
        let (field, limit) = self.limits().min_by_key(|(_, limit)| *limit)?;
        let limit = limit.saturating_sub(self.retry.reserve);
        // Of attempts without limit, one retry is the least that was meant.
        let attempts = self.retry.max_attempts.unwrap_or(2);
        let spaced = attempts.saturating_sub(rate.burst);
        let needed = interval(rate).saturating_mul(spaced);
        let last = limit.saturating_sub(self.retry.min_attempt).as_nanos();
        let fit = last.saturating_sub(1) / interval(rate).as_nanos() + u128::from(rate.burst);
        (needed.as_nanos() >= last && spaced > 0).then(|| {
            format!(
                "{spaced} of {attempts} attempts wait {} s each behind a burst of {}: {spaced} × {} s = {} s, and \
                 {field} leaves {} s; {fit} begin, if no other call takes a permit",
                Decimal(interval(rate).as_nanos()),
                rate.burst,
                Decimal(interval(rate).as_nanos()),
                Decimal(needed.as_nanos()),
                Decimal(limit.as_nanos())
            )
        })
    }

    /// A share of what may be in flight that is less than one retry.
    fn share_of_too_few(&self) -> Option<String> {
        let (Some(BudgetPolicy::Share(share)), Some(calls)) = (self.budget, self.admission.concurrency)
        else {
            return None;
        };
        let allowed = u64::from(calls.limit) * u64::from(share.share_milli);
        (share.floor == 0 && allowed < 1000 && self.retry.max_attempts != Some(1)).then(|| {
            format!(
                "{} × admission.concurrency.limit {} = {} < 1, and budget.floor is 0: there is no retry unless the \
                 budget serves other pipelines too",
                thousandths(share.share_milli.into()),
                calls.limit,
                thousandths(allowed)
            )
        })
    }

    /// Microsoft's handler refuses this: attempts that time out leave the window almost as they enter it.
    fn window_of_one_attempt(&self, breaker: &BreakerPolicy) -> Option<String> {
        let Window::Time(window) = breaker.window else {
            return None;
        };
        let least = self.attempt_timeout.saturating_mul(2);
        (breaker.has_rates() && window < least).then(|| {
            format!(
                "{} is shorter than 2 × attempt_timeout {} = {}: while attempts hang it holds hardly any",
                text(window),
                text(self.attempt_timeout),
                text(least)
            )
        })
    }

    fn no_time_to_be_slow(&self, breaker: &BreakerPolicy) -> Option<String> {
        let slow = breaker.slow_calls?.longer_than;
        (slow >= self.attempt_timeout).then(|| {
            format!(
                "{} is not shorter than attempt_timeout {}: an attempt is given up, and counts as failed, before it \
                 is slow",
                text(slow),
                text(self.attempt_timeout)
            )
        })
    }

    fn probe_outlived(&self, breaker: &BreakerPolicy) -> Option<String> {
        (breaker.probe_timeout < self.attempt_timeout).then(|| {
            format!(
                "{} is shorter than attempt_timeout {}: a slow probe's place goes to another call while it runs, so \
                 that more than breaker.probes {} are under way",
                text(breaker.probe_timeout),
                text(self.attempt_timeout),
                breaker.probes
            )
        })
    }
}

impl Gates {
    fn validate(&self, slot: &str) -> Result<(), Invalid> {
        if let Some(concurrency) = self.concurrency {
            concurrency.validate(&format!("{slot}.concurrency"))?;
        }
        self.rate.map_or(Ok(()), |rate| rate.validate(&format!("{slot}.rate")))
    }
}

/// The time that one permit takes to come back; not zero in a rate that is possible.
fn interval(rate: RatePolicy) -> Duration {
    Duration::from_nanos(saturating_nanos(rate.per) / u64::from(rate.permits))
}

fn thousandths(milli: u64) -> Decimal {
    Decimal(u128::from(milli) * 1_000_000)
}
