//! What makes a policy impossible, refused with the field's name and the arithmetic; and what makes it doubtful.

mod controls;
mod doubt;
mod rules;

use alloc::{format, string::String, vec::Vec};
use core::{fmt, time::Duration};

use super::{Doubt, Policy, Severity};
use crate::{
    backoff::Backoff,
    exhausted::valid_alert,
    jitter::Jitter,
    retry::{RetryPolicy, ServerWaitMode},
    text::DurationText,
    verdict::Cause,
};

/// A setting that cannot be, with the field's name and the way out.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Invalid {
    /// The field, as it is written in TOML: `retry.max_attempts`.
    pub field: String,
    /// What is wrong with it and what would be right.
    pub reason: String,
}

/// A setting that works but is probably not what was meant, or what happens at its limits.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Warning {
    /// Which of the known doubts it is.
    pub doubt: Doubt,
    /// The field, as it is written in TOML.
    pub field: String,
    /// What happens, with the arithmetic.
    pub reason: String,
}

impl Warning {
    /// A doubt about a field.
    pub(crate) fn new(doubt: Doubt, field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { doubt, field: field.into(), reason: reason.into() }
    }

    /// How much it weighs.
    pub const fn severity(&self) -> Severity {
        self.doubt.severity()
    }
}

impl Invalid {
    /// A refusal of a field.
    pub fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into() }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.reason)
    }
}

impl core::error::Error for Invalid {}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.reason)
    }
}

impl Policy {
    /// Whether the policy can do what it says, and what about it is doubtful.
    ///
    /// # Errors
    ///
    /// [`Invalid`] names the first setting under which no attempt or no retry could ever begin, nothing would
    /// ever stop, or which contradicts another.
    pub fn validate(&self) -> Result<Vec<Warning>, Invalid> {
        self.attempts_begin_and_end()?;
        curve("retry.backoff", &self.retry.backoff, self.retry.max_wait)?;
        if let Some(throttled) = &self.retry.throttled_backoff {
            curve("retry.throttled_backoff", throttled, self.retry.max_wait)?;
        }
        jitter(&self.retry)?;
        server_wait(&self.retry)?;
        for (field, limit) in self.limits() {
            self.an_attempt_can_begin(field, limit)?;
            self.a_retry_can_begin(field, limit)?;
        }
        rules::check(&self.classify)?;
        for (number, route) in (1..).zip(&self.classify.routes) {
            if let Some(limit) = route.fresh_for {
                self.an_attempt_can_begin(&format!("classify.route[{number}].fresh_for"), limit)?;
            }
        }
        self.alert.as_deref().map_or(Ok(()), valid_alert)?;
        let mut doubts = self.doubts();
        doubts.extend(self.controls()?);
        Ok(doubts)
    }

    /// The policy's own limits of a whole call, with their fields.
    pub(super) fn limits(&self) -> impl Iterator<Item = (&'static str, Duration)> {
        [("total_timeout", self.total_timeout), ("business_deadline", self.business_deadline)]
            .into_iter()
            .filter_map(|(field, limit)| Some((field, limit?)))
    }

    fn attempts_begin_and_end(&self) -> Result<(), Invalid> {
        let retry = &self.retry;
        if retry.max_attempts == Some(0) {
            let reason = "0 attempts would never call anything; write 1 for no retry, or \"unlimited\"";
            return Err(Invalid::new("retry.max_attempts", reason));
        }
        not_zero("attempt_timeout", self.attempt_timeout)?;
        not_zero("retry.max_wait", retry.max_wait)?;
        if self.attempt_timeout < retry.min_attempt {
            let reason = format!(
                "{} is shorter than retry.min_attempt {}, the least worth starting with; \
                 lengthen the one or shorten the other",
                text(self.attempt_timeout),
                text(retry.min_attempt)
            );
            return Err(Invalid::new("attempt_timeout", reason));
        }
        if retry.max_attempts.is_none() && self.limits().next().is_none() {
            let reason = "unlimited attempts without total_timeout and business_deadline would never stop; \
                          set one of the three";
            return Err(Invalid::new("retry.max_attempts", reason));
        }
        Ok(())
    }

    /// Refuses a limit that the reserve and the least attempt use up.
    fn an_attempt_can_begin(&self, field: &str, limit: Duration) -> Result<(), Invalid> {
        let retry = &self.retry;
        not_zero(field, limit)?;
        let needed = retry.reserve.saturating_add(retry.min_attempt);
        if limit > needed {
            return Ok(());
        }
        let reason = format!(
            "{} leaves no room for an attempt: retry.reserve {} + retry.min_attempt {} = {}; it must be longer",
            text(limit),
            text(retry.reserve),
            text(retry.min_attempt),
            text(needed)
        );
        Err(Invalid::new(field, reason))
    }

    /// Refuses waits of which even the shortest is never followed by an attempt.
    fn a_retry_can_begin(&self, field: &str, limit: Duration) -> Result<(), Invalid> {
        let retry = &self.retry;
        if retry.max_attempts == Some(1) || retry.server_wait.mode == ServerWaitMode::Replace {
            return Ok(());
        }
        let shortest = |cause| retry.own_range(1, Duration::ZERO, cause).0;
        let shortest = shortest(Cause::Error).min(shortest(Cause::Throttled));
        let needed = shortest.saturating_add(retry.min_attempt).saturating_add(retry.reserve);
        if needed < limit {
            return Ok(());
        }
        let reason = format!(
            "no retry could ever begin: the shortest first wait {} + retry.min_attempt {} + retry.reserve {} = {} \
             ≥ {field} {}; shorten the wait, lengthen {field}, or write retry.max_attempts = 1",
            text(shortest),
            text(retry.min_attempt),
            text(retry.reserve),
            text(needed),
            text(limit)
        );
        Err(Invalid::new("retry.backoff", reason))
    }
}

impl RetryPolicy {
    /// The curves with their fields.
    fn curves(&self) -> impl Iterator<Item = (&'static str, &Backoff)> {
        let throttled = self.throttled_backoff.as_ref().map(|curve| ("retry.throttled_backoff", curve));
        core::iter::once(("retry.backoff", &self.backoff)).chain(throttled)
    }
}

pub(crate) fn curve(field: &str, curve: &Backoff, max_wait: Duration) -> Result<(), Invalid> {
    let inside = |name: &str| format!("{field}.{name}");
    let (first, first_field) = match curve {
        Backoff::Constant(wait) => (*wait, inside("wait")),
        Backoff::Linear { base, .. } | Backoff::Exponential { base, .. } => (*base, inside("base")),
        Backoff::Steps(waits) => {
            let field = inside("waits");
            let first =
                waits.first().ok_or_else(|| Invalid::new(&*field, "there is none; write at least one"))?;
            for wait in waits {
                not_zero(&field, *wait)?;
            }
            (*first, field)
        }
    };
    not_zero(&first_field, first)?;
    if let Backoff::Linear { max, .. } | Backoff::Exponential { max, .. } = curve {
        not_zero(&inside("max"), *max)?;
        if first > *max {
            let reason = format!("{} is longer than {} {}", text(first), inside("max"), text(*max));
            return Err(Invalid::new(first_field, reason));
        }
    }
    if let Backoff::Exponential { factor_milli: factor @ 0..1000, .. } = curve {
        let reason = format!("{} would shrink the waits; it is 1 or more", f64::from(*factor) / 1000.0);
        return Err(Invalid::new(inside("factor"), reason));
    }
    if first > max_wait {
        let reason = format!("{} is longer than retry.max_wait {}", text(first), text(max_wait));
        return Err(Invalid::new(first_field, reason));
    }
    Ok(())
}

fn jitter(retry: &RetryPolicy) -> Result<(), Invalid> {
    if let Jitter::Proportional { below_milli: below @ 1001.., .. } = retry.jitter {
        let reason = format!(
            "{} of the wait cannot be taken off it; at most 1, which is all of it",
            f64::from(below) / 1000.0
        );
        return Err(Invalid::new("retry.jitter.below", reason));
    }
    let doubles = |curve: &Backoff| matches!(curve, Backoff::Exponential { factor_milli: 2000, .. });
    match retry.curves().find(|(_, curve)| !doubles(curve)) {
        Some((field, _)) if retry.jitter == Jitter::PollyV2 => {
            let reason = format!(
                "polly_v2 doubles its waits itself, so {field} would count for nothing but its first and longest; \
                 write kind = \"exponential\" and factor = 2 there, or another jitter"
            );
            Err(Invalid::new("retry.jitter", reason))
        }
        _ => Ok(()),
    }
}

fn server_wait(retry: &RetryPolicy) -> Result<(), Invalid> {
    let way_out = "0s would obey no hint; write mode = \"ignore\" to say so, or a longer time";
    match retry.server_wait.mode {
        ServerWaitMode::Ignore => Ok(()),
        ServerWaitMode::Within(most) if most.is_zero() => {
            Err(Invalid::new("retry.server_wait.mode.within", way_out))
        }
        _ if retry.server_wait.limit.is_zero() => Err(Invalid::new("retry.server_wait.limit", way_out)),
        _ => Ok(()),
    }
}

fn not_zero(field: &str, length: Duration) -> Result<(), Invalid> {
    match length.is_zero() {
        true => Err(Invalid::new(field, "0s makes no sense here; write a time longer than zero")),
        false => Ok(()),
    }
}

const fn text(length: Duration) -> DurationText {
    DurationText(length)
}
