//! From what was written to the policy that it means.

use alloc::{format, string::String, vec::Vec};
use core::time::Duration;

use super::{
    ClassifyText, Pairs, PolicyText, ProportionText, RetryText, RouteText, Scalar, ServerWaitText, WordOr,
    breaker::BreakerText, budget,
};
use crate::{
    classify::{Answer, Classification, ErrorClass, RouteRule, Rules, Table},
    exhausted::OnExhausted,
    history::Idempotency,
    jitter::Jitter,
    policy::{Invalid, Policy},
    preset::Preset,
    retry::{Over, RetryPolicy, ServerWait, ServerWaitMode},
    text::parse_duration,
};

impl PolicyText {
    /// The policy that this text means over `base`: what is left out is as in the base, or as in the preset if
    /// the text names one. A list or a table of answers that is there replaces the base's.
    ///
    /// The result is valid; [`Policy::validate`] tells what about it is doubtful.
    ///
    /// # Errors
    ///
    /// [`Invalid`] names the first field that cannot be read, or that makes the policy impossible.
    pub fn over(self, base: Policy) -> Result<Policy, Invalid> {
        let mut policy = match &self.preset {
            Some(name) => word("preset", name, Preset::ALL, Preset::name)?.policy(),
            None => base,
        };
        if let Some(name) = &self.repeat {
            policy.repeat = word("repeat", name, Idempotency::ALL, Idempotency::name)?;
        }
        set(&mut policy.attempt_timeout, "attempt_timeout", self.attempt_timeout, length)?;
        set(&mut policy.total_timeout, "total_timeout", self.total_timeout, length_or_none)?;
        set(&mut policy.business_deadline, "business_deadline", self.business_deadline, length_or_none)?;
        if let Some(name) = &self.on_exhausted {
            policy.on_exhausted = word("on_exhausted", name, OnExhausted::ALL, OnExhausted::name)?;
        }
        set(&mut policy.alert, "alert", self.alert, |_, name| Ok(Some(name).filter(|name| name != "none")))?;
        self.admission.write_to("admission", &mut policy.admission)?;
        self.retry.write_to(&mut policy.retry)?;
        match self.budget {
            Some(WordOr::Table(text)) => policy.budget = budget::over(text, policy.budget.as_ref())?,
            Some(WordOr::Word(written)) => policy.budget = only_none("budget", &written)?,
            None => {}
        }
        self.attempt.write_to("attempt", &mut policy.attempt)?;
        table_or_none("breaker", &mut policy.breaker, self.breaker, BreakerText::over)?;
        self.classify.write_to(&mut policy.classify)?;
        policy.validate()?;
        Ok(policy)
    }
}

impl RetryText {
    fn write_to(self, retry: &mut RetryPolicy) -> Result<(), Invalid> {
        set(&mut retry.max_attempts, "retry.max_attempts", self.max_attempts, count_or_unlimited)?;
        set(&mut retry.min_attempt, "retry.min_attempt", self.min_attempt, length)?;
        set(&mut retry.reserve, "retry.reserve", self.reserve, length)?;
        set(&mut retry.max_losses, "retry.max_losses", self.max_losses, count)?;
        set(&mut retry.max_wait, "retry.max_wait", self.max_wait, length)?;
        let was = retry.jitter;
        set(&mut retry.jitter, "retry.jitter", self.jitter, |_, text| jitter(text, was))?;
        if let Some(text) = self.backoff {
            retry.backoff = text.over("retry.backoff", &retry.backoff)?;
        }
        let field = "retry.throttled_backoff";
        let own = &retry.backoff;
        table_or_none(field, &mut retry.throttled_backoff, self.throttled_backoff, |text, base| {
            text.over(field, base.unwrap_or(own))
        })?;
        self.server_wait.write_to(&mut retry.server_wait)
    }
}

impl ServerWaitText {
    fn write_to(self, server_wait: &mut ServerWait) -> Result<(), Invalid> {
        set(&mut server_wait.mode, "retry.server_wait.mode", self.mode, server_wait_mode)?;
        set(&mut server_wait.limit, "retry.server_wait.limit", self.limit, length)?;
        if let Some(name) = &self.over {
            server_wait.over = word("retry.server_wait.over", name, Over::ALL, Over::name)?;
        }
        Ok(())
    }
}

impl ClassifyText {
    fn write_to(self, classify: &mut Classification) -> Result<(), Invalid> {
        if let Some(name) = &self.table {
            classify.table = word("classify.table", name, Table::ALL, Table::name)?;
        }
        set(&mut classify.rules.statuses, "classify.status", self.status, statuses)?;
        set(&mut classify.rules.errors, "classify.error", self.error, errors)?;
        if let Some(routes) = self.route {
            classify.routes = (1..)
                .zip(routes)
                .map(|(number, route)| route_rule(&format!("classify.route[{number}]"), route))
                .collect::<Result<_, _>>()?;
        }
        Ok(())
    }
}

fn route_rule(field: &str, text: RouteText) -> Result<RouteRule, Invalid> {
    let statuses = statuses(&format!("{field}.status"), text.status)?;
    let errors = errors(&format!("{field}.error"), text.error)?;
    let repeat = text
        .repeat
        .map(|name| word(&format!("{field}.repeat"), &name, Idempotency::ALL, Idempotency::name))
        .transpose()?;
    let fresh_for =
        text.fresh_for.map(|written| length(&format!("{field}.fresh_for"), written)).transpose()?;
    Ok(RouteRule {
        method: text.method,
        path: text.path.unwrap_or_else(|| "*".into()),
        rules: Rules { statuses, errors },
        repeat,
        fresh_for,
    })
}

/// In the order of the statuses, so that equal texts give equal policies.
fn statuses(field: &str, pairs: Pairs<String>) -> Result<Vec<(u16, u16, Answer)>, Invalid> {
    let mut rules = Vec::with_capacity(pairs.0.len());
    for (key, answer) in pairs.0 {
        let field = format!("{field}.{key}");
        let (low, high) = status_range(&key).ok_or_else(|| {
            Invalid::new(&*field, "write a status (404), a class of them (5xx) or a range (500-503)")
        })?;
        rules.push((low, high, word(&field, &answer, Answer::ALL, Answer::name)?));
    }
    rules.sort_unstable_by_key(|&(low, high, _)| (low, high));
    Ok(rules)
}

fn status_range(key: &str) -> Option<(u16, u16)> {
    let number = |text: &str| text.parse::<u16>().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
    if let Some(class) = key.strip_suffix("xx") {
        let hundred = number(class).filter(|hundred| *hundred < 10)? * 100;
        return Some((hundred, hundred + 99));
    }
    let (low, high) = key.split_once('-').unwrap_or((key, key));
    Some((number(low)?, number(high)?))
}

/// In the order of the classes, so that equal texts give equal policies.
fn errors(field: &str, pairs: Pairs<String>) -> Result<Vec<(ErrorClass, Answer)>, Invalid> {
    let mut rules = Vec::with_capacity(pairs.0.len());
    for (key, answer) in pairs.0 {
        let class = word(field, &key, ErrorClass::ALL, ErrorClass::name)?;
        rules.push((class, word(&format!("{field}.{key}"), &answer, Answer::ALL, Answer::name)?));
    }
    rules.sort_unstable_by_key(|(class, _)| ErrorClass::ALL.iter().position(|known| known == class));
    Ok(rules)
}

fn jitter(text: WordOr<ProportionText>, was: Jitter) -> Result<Jitter, Invalid> {
    let (mut below_milli, mut above_milli) = match was {
        Jitter::Proportional { below_milli, above_milli } => (below_milli, above_milli),
        _ => (0, 0),
    };
    match text {
        WordOr::Word(name) => {
            let words = [
                ("none", Jitter::None),
                ("full", Jitter::Full),
                ("equal", Jitter::Equal),
                ("decorrelated", Jitter::Decorrelated),
                ("polly_v2", Jitter::PollyV2),
            ];
            word("retry.jitter", &name, &words, |(name, _)| name).map(|(_, jitter)| jitter)
        }
        WordOr::Table(ProportionText { below, above }) => {
            set(&mut below_milli, "retry.jitter.below", below, thousandths)?;
            set(&mut above_milli, "retry.jitter.above", above, thousandths)?;
            Ok(Jitter::Proportional { below_milli, above_milli })
        }
    }
}

fn server_wait_mode(field: &str, text: WordOr<super::WithinText>) -> Result<ServerWaitMode, Invalid> {
    match text {
        WordOr::Word(name) => {
            let words = [
                ("above", ServerWaitMode::Above),
                ("longer", ServerWaitMode::Longer),
                ("replace", ServerWaitMode::Replace),
                ("ignore", ServerWaitMode::Ignore),
            ];
            word(field, &name, &words, |(name, _)| name).map(|(_, mode)| mode)
        }
        WordOr::Table(text) => length(&format!("{field}.within"), text.within).map(ServerWaitMode::Within),
    }
}

/// Sets `slot` to what was written, if anything was.
pub(super) fn set<S, T>(
    slot: &mut S,
    field: &str,
    written: Option<T>,
    read: impl FnOnce(&str, T) -> Result<S, Invalid>,
) -> Result<(), Invalid> {
    if let Some(written) = written {
        *slot = read(field, written)?;
    }
    Ok(())
}

/// Sets `slot` to the table that was written, if anything was; `read` is also given what was there.
pub(super) fn table_or_none<S, T>(
    field: &str,
    slot: &mut Option<S>,
    written: Option<WordOr<T>>,
    read: impl FnOnce(T, Option<&S>) -> Result<S, Invalid>,
) -> Result<(), Invalid> {
    match written {
        None => {}
        Some(WordOr::Word(written)) => *slot = only_none(field, &written)?,
        Some(WordOr::Table(text)) => *slot = Some(read(text, slot.as_ref())?),
    }
    Ok(())
}

/// Of words, only `none` may stand for a table.
fn only_none<S>(field: &str, written: &str) -> Result<Option<S>, Invalid> {
    match written {
        "none" => Ok(None),
        _ => Err(Invalid::new(field, format!("\"{written}\" is not known; write none, or a table"))),
    }
}

/// The one of `all` with that name.
pub(super) fn word<'a, T: Copy>(
    field: &str,
    written: &str,
    all: &'a [T],
    name: impl Fn(T) -> &'a str,
) -> Result<T, Invalid> {
    all.iter().copied().find(|one| name(*one) == written).ok_or_else(|| {
        let known: Vec<&str> = all.iter().map(|one| name(*one)).collect();
        Invalid::new(field, format!("\"{written}\" is not known; write one of {}", known.join(", ")))
    })
}

pub(super) fn length(field: &str, written: Scalar) -> Result<Duration, Invalid> {
    parse_duration(&format!("{written}")).map_err(|reason| Invalid::new(field, reason))
}

fn length_or_none(field: &str, written: Scalar) -> Result<Option<Duration>, Invalid> {
    none_or(field, written, length)
}

/// `none`, or what `read` makes of it.
pub(super) fn none_or<T>(
    field: &str,
    written: Scalar,
    read: impl FnOnce(&str, Scalar) -> Result<T, Invalid>,
) -> Result<Option<T>, Invalid> {
    match written {
        Scalar::Text(text) if text == "none" => Ok(None),
        written => read(field, written).map(Some),
    }
}

pub(super) fn count(field: &str, written: Scalar) -> Result<u32, Invalid> {
    let whole = match &written {
        Scalar::Whole(number) => u32::try_from(*number).ok(),
        _ => None,
    };
    whole.ok_or_else(|| {
        Invalid::new(
            field,
            format!("{} is not a count; write a whole number from 0 to {}", written.as_written(), u32::MAX),
        )
    })
}

fn count_or_unlimited(field: &str, written: Scalar) -> Result<Option<u32>, Invalid> {
    match written {
        Scalar::Text(text) if text == "unlimited" => Ok(None),
        Scalar::Whole(number) if number > 0 => count(field, written).map(Some),
        written => {
            let reason = format!(
                "{} is not a number of attempts; write 1 or more, or \"unlimited\"",
                written.as_written()
            );
            Err(Invalid::new(field, reason))
        }
    }
}

/// A number to three decimals, in thousandths. Read from its digits, so that 0.2 is 200 and not 199.
pub(super) fn thousandths(field: &str, written: Scalar) -> Result<u32, Invalid> {
    let digits = match &written {
        Scalar::Text(_) => None,
        number => decimal(&format!("{number}")),
    };
    digits.ok_or_else(|| {
        let reason =
            format!("{} is not a number from 0 to 4000000 with at most three decimals", written.as_written());
        Invalid::new(field, reason)
    })
}

fn decimal(digits: &str) -> Option<u32> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !plain(whole) || !plain(fraction) || fraction.len() > 3 {
        return None;
    }
    let padded: String = format!("{fraction:0<3}");
    whole.parse::<u32>().ok()?.checked_mul(1000)?.checked_add(padded.parse().ok()?)
}
