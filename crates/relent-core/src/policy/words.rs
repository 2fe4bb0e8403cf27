//! A policy in words: what its numbers come to, a line for each of its parts, from the outermost to the innermost.

#[cfg(test)]
mod tests;

use alloc::{
    borrow::ToOwned,
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::{fmt::Write as _, time::Duration};

use super::{Gates, Policy};
use crate::{
    backoff::Backoff,
    breaker::BreakerPolicy,
    budget::{BudgetPolicy, Of},
    exhausted::OnExhausted,
    history::Idempotency,
    jitter::Jitter,
    retry::{Over, RetryPolicy, ServerWaitMode},
    text::{Brief, Decimal},
    verdict::Cause,
    window::Window,
};

impl Policy {
    /// The policy in words, a line for each of its parts: for a log at the start, and for people.
    ///
    /// # Examples
    ///
    /// ```
    /// # use relent_core::Policy;
    /// let words = Policy::live().in_words();
    /// assert!(words.contains("waits     up to 200ms, 400ms, 800ms, 1.6s (full jitter)\n"));
    /// ```
    pub fn in_words(&self) -> String {
        let rows = self.rows();
        let width = rows.iter().map(|(what, _)| what.len()).max().unwrap_or_default();
        rows.iter().fold(String::new(), |mut lines, (what, text)| {
            let _infallible = writeln!(lines, "{what:<width$}  {text}");
            lines
        })
    }

    fn rows(&self) -> Vec<(&'static str, String)> {
        let retry = &self.retry;
        let mut rows = Vec::from([("ends", self.end_in_words())]);
        rows.extend(in_words(&self.admission).map(|limits| ("lets in", limits)));
        rows.push(("attempts", self.attempts_in_words()));
        if self.repeats() {
            rows.push(("waits", waits(retry, Cause::Error)));
            if retry.throttled_backoff.is_some() {
                rows.push(("throttled", waits(retry, Cause::Throttled)));
            }
            rows.push(("hints", hints(retry)));
            rows.push(("repeats", repeats(self.repeat).to_owned()));
            rows.push(("budget", self.budget.map_or_else(none, budget)));
        }
        rows.extend(in_words(&self.attempt).map(|limits| ("each", limits)));
        rows.push(("breaker", self.breaker.as_ref().map_or_else(none, breaker)));
        rows.push(("given up", self.given_up_in_words()));
        rows
    }

    fn given_up_in_words(&self) -> String {
        let goes = match self.on_exhausted {
            OnExhausted::Caller => "its caller is told",
            OnExhausted::DeadLetter => "it is kept as a dead letter",
            OnExhausted::Discard => "it is dropped",
        };
        match &self.alert {
            Some(who) => format!("{goes}, with the name of who is to know: {who}"),
            None => goes.to_owned(),
        }
    }

    fn repeats(&self) -> bool {
        self.retry.max_attempts != Some(1) && self.repeat != Idempotency::Never
    }

    fn end_in_words(&self) -> String {
        let mut ends = Vec::new();
        ends.extend(self.total_timeout.map(|limit| format!("{} after it began", Brief(limit))));
        ends.extend(self.business_deadline.map(|limit| format!("{} after it was accepted", Brief(limit))));
        if ends.is_empty() {
            return "when its attempts are used up; nothing bounds its time".to_owned();
        }
        let mut text = format!("at the latest {}", ends.join(", and "));
        let RetryPolicy { reserve, min_attempt, .. } = self.retry;
        if !reserve.is_zero() {
            text += &format!(", less {} for what follows", Brief(reserve));
        }
        if !min_attempt.is_zero() {
            text += &format!("; no attempt begins with {} or less to go", Brief(min_attempt));
        }
        text
    }

    fn attempts_in_words(&self) -> String {
        let timeout = Brief(self.attempt_timeout);
        match self.retry.max_attempts {
            _ if !self.repeats() => format!("one, given up after {timeout}"),
            Some(most) => format!("at most {most}, each given up after {timeout}"),
            None => format!("without limit, each given up after {timeout}"),
        }
    }
}

fn none() -> String {
    "none".to_owned()
}

/// The first waits, hints aside: `up to 200ms, 400ms, 800ms (full jitter)`.
fn waits(retry: &RetryPolicy, cause: Cause) -> String {
    let all = retry.max_attempts.map_or(u32::MAX, |attempts| attempts.saturating_sub(1));
    let ranges = ranges(retry, all.min(MOST_SHOWN), cause);
    let from_zero = retry.jitter.draws() && ranges.iter().all(|(least, _)| least.is_zero());
    let shown: Vec<String> = ranges
        .iter()
        .map(|(least, most)| match from_zero || least == most {
            true => Brief(*most).to_string(),
            false => format!("{} to {}", Brief(*least), Brief(*most)),
        })
        .collect();
    let up_to = if from_zero { "up to " } else { "" };
    let jitter = match retry.jitter {
        Jitter::None => "no jitter",
        Jitter::Full => "full jitter",
        Jitter::Equal => "equal jitter",
        Jitter::Decorrelated => "decorrelated jitter",
        Jitter::Proportional { .. } => "jitter in proportion",
        Jitter::PollyV2 => "Polly's second jitter",
    };
    let (more, cap) = match all > MOST_SHOWN {
        true => (", …", format!(", at most {}", Brief(curve(retry, cause).greatest().min(retry.max_wait)))),
        false => ("", String::new()),
    };
    format!("{up_to}{}{more} ({jitter}{cap})", shown.join(", "))
}

/// The shortest and the longest that each of the first `count` waits can be; of waits that lean on one another,
/// those of the sequence that takes longest as a whole.
fn ranges(retry: &RetryPolicy, count: u32, cause: Cause) -> Vec<(Duration, Duration)> {
    let mut last = Duration::ZERO;
    let range = |n| {
        let range = retry.own_range(n, last, cause);
        last = range.1;
        range
    };
    (1..=count).map(range).collect()
}

fn curve(retry: &RetryPolicy, cause: Cause) -> &Backoff {
    match (&retry.throttled_backoff, cause) {
        (Some(throttled), Cause::Throttled) => throttled,
        _ => &retry.backoff,
    }
}

fn hints(retry: &RetryPolicy) -> String {
    let limit = Brief(retry.server_wait.limit);
    let how = match retry.server_wait.mode {
        ServerWaitMode::Above => "obeyed, with jitter above".to_owned(),
        ServerWaitMode::Longer => "obeyed where longer than the wait".to_owned(),
        ServerWaitMode::Replace => "obeyed exactly, in place of the wait".to_owned(),
        ServerWaitMode::Within(most) => format!("obeyed as far as {} above the wait", Brief(most)),
        ServerWaitMode::Ignore => return "ignored".to_owned(),
    };
    let longer = match retry.server_wait.over {
        Over::Stop => "a longer one ends the call",
        Over::Clamp => "a longer one is cut",
    };
    format!("{how}, up to {limit}; {longer}")
}

const fn repeats(repeat: Idempotency) -> &'static str {
    match repeat {
        Idempotency::Safe => "whatever failed with \"not now\": repeating it changes nothing",
        Idempotency::Keyed => "whatever failed with \"not now\": the receiver honours its key",
        Idempotency::Unsafe => {
            "only what surely was not carried out, unless a call says that it is safe or keyed"
        }
        Idempotency::Never => "nothing",
    }
}

fn budget(budget: BudgetPolicy) -> String {
    match budget {
        BudgetPolicy::Loan(loan) => format!(
            "loan: a failed retry costs {}, or {} if throttled; one that succeeds is paid back; a first success earns {}",
            milli(loan.charge_milli),
            milli(loan.throttled_milli),
            milli(loan.earn_milli)
        ),
        BudgetPolicy::Grpc(grpc) => format!(
            "gRPC's: {} tokens; a failure costs 1, a success earns {}; at half of them or less, no retries",
            milli(grpc.max_milli),
            milli(grpc.ratio_milli)
        ),
        BudgetPolicy::Ratio(ratio) => {
            let of = match ratio.of {
                Of::Originals => "calls",
                Of::All => "requests",
            };
            let (share, window) = (percent(ratio.share_milli), Brief(ratio.window));
            format!("{share} % of the {of} of {window}, and {} retries a second", ratio.floor_per_second)
        }
        BudgetPolicy::Share(share) => {
            format!("{} % of what is in flight, {} retries at least", percent(share.share_milli), share.floor)
        }
        BudgetPolicy::Quota(quota) => format!(
            "quota of {}: a retry takes {}, after a time-out {}, if throttled {}, and brings it back if it succeeds; a \
             first success earns {}",
            milli(quota.capacity_milli),
            milli(quota.transient_milli),
            milli(quota.timeout_milli),
            milli(quota.throttled_milli),
            milli(quota.first_success_milli)
        ),
    }
}

/// What may be in flight and what may begin; nothing where neither is limited.
fn in_words(gates: &Gates) -> Option<String> {
    let at_once = gates.concurrency.map(|limit| match limit.queue {
        0 => format!("{} at once, and refuses the rest", limit.limit),
        queue => format!("{} at once, and {queue} may wait", limit.limit),
    });
    let rate =
        gates.rate.map(|rate| format!("{} in {}, {} together", rate.permits, Brief(rate.per), rate.burst));
    let both: Vec<String> = [at_once, rate].into_iter().flatten().collect();
    (!both.is_empty()).then(|| both.join("; "))
}

fn breaker(breaker: &BreakerPolicy) -> String {
    let window = match breaker.window {
        Window::Time(length) => format!("in {}", Brief(length)),
        Window::Count(calls) => format!("of the last {calls}"),
    };
    let mut rates = Vec::new();
    rates.extend(breaker.failure_rate_milli.map(|rate| format!("{} % fail", percent(rate))));
    rates.extend(
        breaker.slow_calls.map(|slow| {
            format!("{} % take longer than {}", percent(slow.rate_milli), Brief(slow.longer_than))
        }),
    );
    let mut rules = Vec::new();
    if !rates.is_empty() {
        rules.push(format!("{} of at least {} {window}", rates.join(" or "), breaker.min_calls));
    }
    rules.extend(breaker.consecutive_failures.map(|row| format!("{row} fail in a row")));
    let (first, most) = (breaker.break_time.ceiling(1), breaker.break_time.greatest());
    let breaks = match first == most {
        true => Brief(first).to_string(),
        false => format!("{} to {}", Brief(first), Brief(most)),
    };
    let probes = if breaker.probes == 1 { "probe" } else { "probes" };
    format!("opens where {}, for {breaks}; then {} {probes}", rules.join(", or "), breaker.probes)
}

/// Thousandths as a number.
const fn milli(milli: u32) -> Decimal {
    Decimal(milli as u128 * 1_000_000)
}

/// Thousandths as a percentage.
const fn percent(milli: u32) -> Decimal {
    Decimal(milli as u128 * 100_000_000)
}

/// More waits than that are no news.
const MOST_SHOWN: u32 = 6;
