//! What works but is probably not what was meant, with the arithmetic that shows it.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::{fmt, time::Duration};

use super::{Doubt, Policy, Warning, text};
use crate::{
    backoff::Backoff,
    exhausted::OnExhausted,
    jitter::Jitter,
    policy::{Attempts, fit::MOST_LISTED},
    text::Decimal,
};

impl Policy {
    /// Every doubt about a policy that is possible.
    pub(super) fn doubts(&self) -> Vec<Warning> {
        let mut doubts = Vec::new();
        let mut doubt = |doubt: Doubt, field: &str, reason: Option<String>| {
            doubts.extend(reason.map(|reason| Warning::new(doubt, field, reason)));
        };
        let losses = (self.retry.max_losses == 0).then(|| LOSSES.to_string());
        doubt(Doubt::TotalNeverReached, "total_timeout", self.total_beyond_business());
        let unbounded = self.limit().is_none().then(|| OWN_FAULTS.to_string());
        doubt(Doubt::NoDeadline, "total_timeout", unbounded);
        doubt(Doubt::AttemptTimeoutNeverReached, "attempt_timeout", self.attempt_beyond_limit());
        doubt(Doubt::NoCaller, "on_exhausted", self.nobody_waits());
        if let Some((kind, reason)) = self.worst_case() {
            doubt(kind, "retry.max_attempts", Some(reason));
        }
        doubt(Doubt::FirstLossIsPoison, "retry.max_losses", losses);
        if self.retry.max_attempts != Some(1) {
            let in_step = (!self.retry.jitter.draws()).then(|| IN_STEP.to_string());
            doubt(Doubt::NoJitter, "retry.jitter", in_step);
            for (field, curve) in self.retry.curves() {
                doubt(Doubt::CurveNeverReached, field, self.curve_beyond_max_wait(curve));
                doubt(Doubt::NoJitter, field, self.no_room_to_draw(curve));
            }
        }
        doubts
    }

    /// A business deadline is for work that outlives its sender.
    fn nobody_waits(&self) -> Option<String> {
        let business = self.business_deadline.filter(|_| self.on_exhausted == OnExhausted::Caller)?;
        Some(format!(
            "caller, but nobody waits for work with a business_deadline of {}: write dead_letter, or discard",
            text(business)
        ))
    }

    fn total_beyond_business(&self) -> Option<String> {
        let (total, business) = (self.total_timeout?, self.business_deadline?);
        (total > business).then(|| {
            format!("{} is never reached: business_deadline {} ends first", text(total), text(business))
        })
    }

    fn attempt_beyond_limit(&self) -> Option<String> {
        let (field, limit) = self.limit()?;
        (self.attempt_timeout > limit).then(|| {
            format!(
                "{} is never reached: {field} {} ends every attempt first",
                text(self.attempt_timeout),
                text(limit)
            )
        })
    }

    /// Every attempt runs into its time-out and every wait is as long as it can be: does it fit? And if not, do two
    /// whole attempts, and do all where each fails at once?
    fn worst_case(&self) -> Option<(Doubt, String)> {
        let attempts = self.retry.max_attempts.filter(|attempts| *attempts > 1)?;
        let (room, (_, limit)) = (self.room()?, self.limit()?);
        let (waits, waited) = self.longest_waits_before(attempts);
        let all = self.attempt_timeout.as_nanos() * u128::from(attempts) + waited;
        if self.attempt_timeout > room || all <= room.as_nanos() {
            return None;
        }
        let less = match self.retry.reserve.is_zero() {
            true => String::new(),
            false => format!(" ({} less retry.reserve {})", text(limit), text(self.retry.reserve)),
        };
        let at_worst = self.attempts_at_worst();
        let sum = format!(
            "{attempts} × {} s + {} s = {} s > {} s{less}: {}",
            Decimal(self.attempt_timeout.as_nanos()),
            Sum { waits: &waits, count: attempts - 1 },
            Decimal(all),
            Decimal(room.as_nanos()),
            what_fits(at_worst)
        );
        let all_begin = waited + self.retry.min_attempt.as_nanos() < room.as_nanos();
        let two_fit = at_worst.whole.is_none_or(|whole| whole >= 2);
        Some(match all_begin && two_fit {
            true => {
                let all = in_words(attempts);
                (Doubt::LateAttemptsAreCut, format!("{sum}, but all {all} where each fails at once"))
            }
            false => (Doubt::WorstCaseDoesNotFit, sum),
        })
    }

    /// The longest waits between so many attempts, as far as the list goes, and what all of them add up to.
    fn longest_waits_before(&self, attempts: u32) -> (Vec<Duration>, u128) {
        let listed = usize::try_from((attempts - 1).min(MOST_LISTED)).unwrap_or(usize::MAX);
        let waits: Vec<Duration> = self.retry.longest_after_time_outs().take(listed).collect();
        let last = waits.last().copied().unwrap_or_default();
        // By the end of the list a curve has reached its cap, or grows so slowly that the sum is a little small.
        let unlisted = (attempts - 1).saturating_sub(MOST_LISTED);
        let waited =
            waits.iter().map(Duration::as_nanos).sum::<u128>() + last.as_nanos() * u128::from(unlisted);
        (waits, waited)
    }

    fn curve_beyond_max_wait(&self, curve: &Backoff) -> Option<String> {
        let (greatest, most) = (curve.greatest(), self.retry.max_wait);
        (greatest > most).then(|| {
            format!("it grows to {}, but retry.max_wait {} cuts every wait", text(greatest), text(most))
        })
    }

    fn no_room_to_draw(&self, curve: &Backoff) -> Option<String> {
        let first = curve.ceiling(1).min(self.retry.max_wait);
        let room = curve.greatest().min(self.retry.max_wait) > first;
        (self.retry.jitter == Jitter::Decorrelated && !room).then(|| {
            format!(
                "decorrelated jitter draws between the first wait and the longest, here both {}: {IN_STEP}",
                text(first)
            )
        })
    }
}

/// How many attempts of the worst case fit whole, and what is left for one more.
fn what_fits(attempts: Attempts) -> String {
    match attempts {
        Attempts { whole: Some(whole), cut: Some(left), .. } => {
            format!("{} and one cut to {} s", whole_attempts(whole), Decimal(left.as_nanos()))
        }
        Attempts { whole: Some(whole), cut: None, .. } => format!("{} and no more", whole_attempts(whole)),
        Attempts { whole: None, .. } => format!("the first {MOST_LISTED} fit"),
    }
}

/// The waits in seconds, the middle left out where there are many.
struct Sum<'a> {
    waits: &'a [Duration],
    count: u32,
}

impl fmt::Display for Sum<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.waits.len() <= MOST_SHOWN;
        let shown = if all { self.waits.len() } else { MOST_SHOWN - 1 };
        for (index, wait) in self.waits[..shown].iter().enumerate() {
            let plus = if index == 0 { "" } else { " + " };
            write!(f, "{plus}{}", Decimal(wait.as_nanos()))?;
        }
        match self.waits.last() {
            Some(last) if !all => write!(f, " + … ({} waits) … + {}", self.count, Decimal(last.as_nanos())),
            _ => Ok(()),
        }
    }
}

fn whole_attempts(count: u32) -> String {
    let plural = if count == 1 { "attempt" } else { "attempts" };
    format!("{} whole {plural}", in_words(count))
}

fn in_words(count: u32) -> String {
    const WORDS: [&str; 13] = [
        "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
        "twelve",
    ];
    let word = usize::try_from(count).ok().and_then(|index| WORDS.get(index));
    word.map_or_else(|| count.to_string(), ToString::to_string)
}

const LOSSES: &str = "0 gives up (poison_crash) on the first attempt that is lost with its worker, \
                      which any restart can cause";
const OWN_FAULTS: &str = "there is none, and no business_deadline: an attempt that fails by a fault of our own (no local \
                          port left, say) is not counted, so nothing ends a call that meets nothing else; set one";
const IN_STEP: &str = "callers that failed together come back together";
const MOST_SHOWN: usize = 6;
