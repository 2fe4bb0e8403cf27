//! What works but is probably not what was meant, with the arithmetic that shows it.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::{fmt, time::Duration};

use super::{Policy, Warning, text};
use crate::{backoff::Backoff, jitter::Jitter, text::Decimal};

impl Policy {
    /// Every doubt about a policy that is possible.
    pub(super) fn doubts(&self) -> Vec<Warning> {
        let mut doubts = Vec::new();
        let mut doubt = |field: &str, reason: Option<String>| {
            doubts.extend(reason.map(|reason| Warning { field: field.to_string(), reason }));
        };
        doubt("total_timeout", self.total_beyond_business());
        doubt("attempt_timeout", self.attempt_beyond_limit());
        doubt("retry.max_attempts", self.worst_case());
        doubt("retry.max_losses", (self.retry.max_losses == 0).then(|| LOSSES.to_string()));
        if self.retry.max_attempts != Some(1) {
            doubt("retry.jitter", (!self.retry.jitter.draws()).then(|| IN_STEP.to_string()));
            for (field, curve) in self.retry.curves() {
                doubt(field, self.curve_beyond_max_wait(curve));
                doubt(field, self.no_room_to_draw(curve));
            }
        }
        doubts
    }

    fn total_beyond_business(&self) -> Option<String> {
        let (total, business) = (self.total_timeout?, self.business_deadline?);
        (total > business).then(|| {
            format!("{} is never reached: business_deadline {} ends first", text(total), text(business))
        })
    }

    fn attempt_beyond_limit(&self) -> Option<String> {
        let (field, limit) = self.limits().min_by_key(|(_, limit)| *limit)?;
        (self.attempt_timeout > limit).then(|| {
            format!(
                "{} is never reached: {field} {} ends every attempt first",
                text(self.attempt_timeout),
                text(limit)
            )
        })
    }

    /// Every attempt runs into its time-out and every wait is as long as its ceiling: does it fit?
    fn worst_case(&self) -> Option<String> {
        let attempts = self.retry.max_attempts.filter(|attempts| *attempts > 1)?;
        let (_, limit) = self.limits().min_by_key(|(_, limit)| *limit)?;
        let limit = limit.saturating_sub(self.retry.reserve);
        if self.attempt_timeout > limit {
            return None;
        }
        let wait = |n: u32| self.retry.backoff.ceiling(n).min(self.retry.max_wait).as_nanos();
        let waits = attempts - 1;
        // By then a curve has reached its cap or grows so slowly that the sum is a little too small.
        let summed = waits.min(MOST_SUMMED);
        let rest = u128::from(waits - summed) * wait(summed);
        let waited = (1..=summed).map(wait).sum::<u128>().saturating_add(rest);
        let all = u128::from(attempts).saturating_mul(self.attempt_timeout.as_nanos()).saturating_add(waited);
        (all > limit.as_nanos()).then(|| {
            format!(
                "{attempts} × {} s + {} s = {} s > {} s: {}",
                Decimal(self.attempt_timeout.as_nanos()),
                Sum { wait: &wait, waits },
                Decimal(all),
                Decimal(limit.as_nanos()),
                self.what_fits(limit, attempts)
            )
        })
    }

    /// How many attempts of the worst case fit whole, and what is left for one more.
    fn what_fits(&self, limit: Duration, attempts: u32) -> String {
        let (mut whole, mut spent) = (0, Duration::ZERO);
        let mut cut = Duration::ZERO;
        while whole < attempts {
            let remaining = limit.saturating_sub(spent);
            if remaining < self.attempt_timeout {
                cut = remaining;
                break;
            }
            whole += 1;
            let wait = self.retry.backoff.ceiling(whole).min(self.retry.max_wait);
            spent = spent.saturating_add(self.attempt_timeout).saturating_add(wait);
            if spent.saturating_add(self.retry.min_attempt) >= limit {
                break;
            }
            if whole == MOST_SUMMED {
                return format!("the first {whole} attempts fit");
            }
        }
        let plural = if whole == 1 { "attempt" } else { "attempts" };
        match cut.is_zero() {
            true => format!("{} whole {plural} and no more", in_words(whole)),
            false => {
                format!("{} whole {plural} and one cut to {} s", in_words(whole), Decimal(cut.as_nanos()))
            }
        }
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

/// The ceilings of the waits, in seconds, the middle left out where there are many.
struct Sum<'a> {
    wait: &'a dyn Fn(u32) -> u128,
    waits: u32,
}

impl fmt::Display for Sum<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.waits <= MOST_SHOWN;
        for n in 1..=if all { self.waits } else { MOST_SHOWN - 1 } {
            let plus = if n == 1 { "" } else { " + " };
            write!(f, "{plus}{}", Decimal((self.wait)(n)))?;
        }
        match all {
            true => Ok(()),
            false => write!(f, " + … ({} waits) … + {}", self.waits, Decimal((self.wait)(self.waits))),
        }
    }
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
const IN_STEP: &str = "callers that failed together come back together";
const MOST_SHOWN: u32 = 6;
const MOST_SUMMED: u32 = 10_000;
