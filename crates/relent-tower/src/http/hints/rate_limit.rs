//! When a spent quota comes back: `RateLimit`, and the headers that came before it.

use std::time::Duration;

use ::http::{HeaderMap, HeaderName, StatusCode};
use relent::Timestamp;

use super::{
    date, field,
    number::{decimal_seconds, whole},
    text,
};

/// When the quota that is spent comes back. `None`: none is known to be.
///
/// Heard on 429 and 503 only, and only where the quota is not said to have something left: otherwise the refusal
/// has another reason, about which these headers say nothing.
pub(super) fn reset(
    status: StatusCode,
    headers: &HeaderMap,
    now: impl Fn() -> Timestamp,
) -> Option<Duration> {
    if !matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        return None;
    }
    structured(headers).or_else(|| FORMS.iter().find_map(|form| older(form, headers, &now)))
}

/// `RateLimit: "burst";r=0;t=30, "day";r=5;t=3600`; of several quotas that are spent, the one that takes longest.
/// An earlier draft wrote `RateLimit: limit=100, remaining=0, reset=30`.
fn structured(headers: &HeaderMap) -> Option<Duration> {
    let lines: Option<Vec<&str>> = headers.get_all(&RATE_LIMIT).iter().map(text).collect();
    let joined = lines?.join(", ");
    let members = field::members(&joined)?;
    let seconds = |t: i64| u64::try_from(t).ok().map(Duration::from_secs);
    let spent = members.iter().filter(|member| member.key.is_none() && member.integer("r") == Some(0));
    let quota = spent.filter_map(|member| seconds(member.integer("t")?)).max();
    quota.or_else(|| {
        let of = |key| members.iter().find(|member| member.key == Some(key))?.value.integer();
        of("reset").filter(|_| of("remaining").is_none_or(|left| left == 0)).and_then(seconds)
    })
}

/// A header that names the reset, and the one beside it that says what is left.
struct Form {
    reset: HeaderName,
    remaining: HeaderName,
}

fn older(form: &Form, headers: &HeaderMap, now: impl Fn() -> Timestamp) -> Option<Duration> {
    let remaining = headers.get(&form.remaining).and_then(text).and_then(whole);
    if remaining.is_some_and(|left| left > 0) {
        return None;
    }
    let said = decimal_seconds(text(headers.get(&form.reset)?)?)?;
    Some(match said.as_secs() {
        0..EPOCH_SECONDS => said,
        EPOCH_SECONDS..EPOCH_MILLIS => date::ahead(said, headers, now),
        millis => date::ahead(Duration::from_millis(millis), headers, now),
    })
}

static RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");

static FORMS: [Form; 3] = [
    Form {
        reset: HeaderName::from_static("ratelimit-reset"),
        remaining: HeaderName::from_static("ratelimit-remaining"),
    },
    Form {
        reset: HeaderName::from_static("x-ratelimit-reset"),
        remaining: HeaderName::from_static("x-ratelimit-remaining"),
    },
    Form {
        reset: HeaderName::from_static("x-rate-limit-reset"),
        remaining: HeaderName::from_static("x-rate-limit-remaining"),
    },
];

/// The names that are searched for.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static HeaderName> {
    FORMS.iter().flat_map(|form| [&form.reset, &form.remaining]).chain([&RATE_LIMIT])
}

/// Nobody agreed what the number is: seconds from now, seconds since 1970, or milliseconds since 1970. The three
/// lie far apart: no quota takes 30 years, and neither 2001 nor the year 5138 is the present.
const EPOCH_SECONDS: u64 = 1_000_000_000;
const EPOCH_MILLIS: u64 = 100_000_000_000;
