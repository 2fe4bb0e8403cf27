//! From a policy to its complete text.

use alloc::{format, string::String};
use core::time::Duration;

use super::{
    BackoffText, ClassifyText, Pairs, PolicyText, ProportionText, RetryText, RouteText, Scalar,
    ServerWaitText, WithinText, WordOr, breaker::BreakerText, budget,
};
use crate::{
    classify::{Classification, Rules},
    jitter::Jitter,
    policy::Policy,
    retry::{RetryPolicy, ServerWait, ServerWaitMode},
    text::format_duration,
};

impl From<&Policy> for PolicyText {
    fn from(policy: &Policy) -> Self {
        Self {
            preset: None,
            repeat: Some(policy.repeat.name().into()),
            attempt_timeout: Some(length(policy.attempt_timeout)),
            total_timeout: Some(length_or_none(policy.total_timeout)),
            business_deadline: Some(length_or_none(policy.business_deadline)),
            on_exhausted: Some(policy.on_exhausted.name().into()),
            alert: Some(policy.alert.clone().unwrap_or_else(|| "none".into())),
            admission: (&policy.admission).into(),
            retry: (&policy.retry).into(),
            budget: Some(table_or_none(policy.budget.as_ref().map(budget::write))),
            attempt: (&policy.attempt).into(),
            breaker: Some(table_or_none(policy.breaker.as_ref().map(BreakerText::from))),
            classify: (&policy.classify).into(),
        }
    }
}

impl From<&RetryPolicy> for RetryText {
    fn from(retry: &RetryPolicy) -> Self {
        let unlimited = || Scalar::Text("unlimited".into());
        Self {
            max_attempts: Some(retry.max_attempts.map_or_else(unlimited, count)),
            min_attempt: Some(length(retry.min_attempt)),
            reserve: Some(length(retry.reserve)),
            max_losses: Some(count(retry.max_losses)),
            max_wait: Some(length(retry.max_wait)),
            jitter: Some(retry.jitter.into()),
            backoff: Some((&retry.backoff).into()),
            throttled_backoff: Some(table_or_none(retry.throttled_backoff.as_ref().map(BackoffText::from))),
            server_wait: retry.server_wait.into(),
        }
    }
}

impl From<Jitter> for WordOr<ProportionText> {
    fn from(jitter: Jitter) -> Self {
        let name = match jitter {
            Jitter::None => "none",
            Jitter::Full => "full",
            Jitter::Equal => "equal",
            Jitter::Decorrelated => "decorrelated",
            Jitter::PollyV2 => "polly_v2",
            Jitter::Proportional { below_milli, above_milli } => {
                return Self::Table(ProportionText {
                    below: Some(thousandths(below_milli)),
                    above: Some(thousandths(above_milli)),
                });
            }
        };
        Self::Word(name.into())
    }
}

impl From<ServerWait> for ServerWaitText {
    fn from(server_wait: ServerWait) -> Self {
        let mode = match server_wait.mode {
            ServerWaitMode::Above => WordOr::Word("above".into()),
            ServerWaitMode::Longer => WordOr::Word("longer".into()),
            ServerWaitMode::Replace => WordOr::Word("replace".into()),
            ServerWaitMode::Ignore => WordOr::Word("ignore".into()),
            ServerWaitMode::Within(most) => WordOr::Table(WithinText { within: length(most) }),
        };
        let over = Some(server_wait.over.name().into());
        Self { mode: Some(mode), limit: Some(length(server_wait.limit)), over }
    }
}

impl From<&Classification> for ClassifyText {
    fn from(classify: &Classification) -> Self {
        let routes = classify.routes.iter().map(|route| RouteText {
            method: route.method.clone(),
            path: Some(route.path.clone()),
            status: statuses(&route.rules),
            error: errors(&route.rules),
            repeat: route.repeat.map(|repeat| repeat.name().into()),
            fresh_for: route.fresh_for.map(length),
        });
        Self {
            table: Some(classify.table.name().into()),
            status: Some(statuses(&classify.rules)),
            error: Some(errors(&classify.rules)),
            route: Some(routes.collect()),
        }
    }
}

fn statuses(rules: &Rules) -> Pairs<String> {
    let key = |low: u16, high: u16| -> String {
        match (low, high) {
            _ if low == high => format!("{low}"),
            _ if low.is_multiple_of(100) && high == low.saturating_add(99) => format!("{}xx", low / 100),
            _ => format!("{low}-{high}"),
        }
    };
    Pairs(rules.statuses.iter().map(|&(low, high, answer)| (key(low, high), answer.name().into())).collect())
}

fn errors(rules: &Rules) -> Pairs<String> {
    Pairs(rules.errors.iter().map(|(class, answer)| (class.name().into(), answer.name().into())).collect())
}

pub(super) fn length(length: Duration) -> Scalar {
    Scalar::Text(format_duration(length))
}

pub(super) fn table_or_none<T>(table: Option<T>) -> WordOr<T> {
    table.map_or_else(|| WordOr::Word("none".into()), WordOr::Table)
}

fn length_or_none(limit: Option<Duration>) -> Scalar {
    limit.map_or_else(|| Scalar::Text("none".into()), length)
}

pub(super) fn count(count: u32) -> Scalar {
    Scalar::Whole(count.into())
}

pub(super) fn thousandths(milli: u32) -> Scalar {
    match milli % 1000 {
        0 => Scalar::Whole((milli / 1000).into()),
        _ => Scalar::Real(f64::from(milli) / 1000.0),
    }
}
