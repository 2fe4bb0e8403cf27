//! What a server says about the next try: how long to leave it alone, and whether there should be one.
//!
//! A wait is a floor for the next wait and nothing more. What a policy makes of it, its ceiling included,
//! is the core's part, so a value is never cut here: 30,000 years are as good an answer as 2 seconds. What
//! does not follow the grammar is as if it were not there; the policy's own schedule then counts.

mod date;
mod field;
mod number;
mod rate_limit;

use std::time::Duration;

use ::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header::RETRY_AFTER};
use relent::Timestamp;

/// How long the response asks its client to wait before the next request, or `None` where it does not ask or
/// nothing that it says follows the grammar.
///
/// Of the headers below the first that is there and can be read counts; one that is there and cannot be read
/// does not hide the next.
///
/// 1. `retry-after-ms`, `x-ms-retry-after-ms`, `x-amz-retry-after`: milliseconds. They come beside a
///    `Retry-After` that could only say it in whole seconds.
/// 2. `Retry-After`: seconds, or a date in any of the three forms of RFC 9110.
/// 3. `RateLimit`, where a quota is spent; then `RateLimit-Reset`, `X-RateLimit-Reset` and
///    `X-Rate-Limit-Reset`, unless the header beside them says that something remains. On 429 and 503 only.
///
/// Heard on every status that is not a success: RFC 9110 gives `Retry-After` a meaning for 503, 429 (RFC 6585)
/// and 3xx, and no meaning that would contradict it for the others. On 1xx and 2xx nothing is to be repeated.
///
/// Seconds are digits and nothing else, so `-1`, `+5`, `1.5` and the empty value are ignored; a number too
/// large for its type is the largest. A date that has passed asks for zero. A date is measured from the
/// response's own `Date` where that is valid, since the server's clock set both and ours may differ, else from
/// `now`: wall time since the Unix epoch. Time zones play no part: all three forms are GMT.
///
/// Of several lines of one header the longest counts: each is a floor, and waiting longer breaks none of them.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use http::{HeaderMap, StatusCode};
/// use relent::Timestamp;
/// use relent_tower::http::hints::server_wait;
///
/// let mut headers = HeaderMap::new();
/// headers.insert("retry-after", "120".parse()?);
/// let asked = server_wait(StatusCode::SERVICE_UNAVAILABLE, &headers, Timestamp::ZERO);
/// assert_eq!(asked, Some(Duration::from_secs(120)));
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
///
/// # Source
///
/// RFC 9110, sections 5.6.7 (dates) and 10.2.3 (`Retry-After`); draft-ietf-httpapi-ratelimit-headers-10, which
/// says that `Retry-After` wins; Azure's SDKs for `*-ms`, AWS's for `x-amz-retry-after`.
pub fn server_wait(status: StatusCode, headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    server_wait_by(status, headers, || now)
}

/// [`server_wait`], with a clock that is only read where a date has to be measured with it.
pub fn server_wait_by(
    status: StatusCode,
    headers: &HeaderMap,
    now: impl Fn() -> Timestamp,
) -> Option<Duration> {
    if status.is_informational() || status.is_success() {
        return None;
    }
    let millis = |name| longest(headers, name, number::decimal_millis);
    MILLIS
        .iter()
        .find_map(millis)
        .or_else(|| longest(headers, &RETRY_AFTER, |text| retry_after(text, headers, &now)))
        .or_else(|| rate_limit::reset(status, headers, &now))
}

/// What the server says about trying again at all.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Advice {
    /// Another attempt may succeed, whatever the status says.
    Retry,
    /// Another attempt would get the same, whatever the status says.
    Stop,
}

/// What `Stripe-Should-Retry` or `x-should-retry` says: `true` or `false`. Heard on every status that is not a
/// success. Where lines contradict each other, the one that stops counts.
///
/// # Source
///
/// Stripe's clients, in which this header wins over all; OpenAI's and Anthropic's read `x-should-retry` alike.
pub fn advice(status: StatusCode, headers: &HeaderMap) -> Option<Advice> {
    if status.is_informational() || status.is_success() {
        return None;
    }
    let said = SHOULD_RETRY.iter().flat_map(|name| headers.get_all(name)).filter_map(|value| {
        match value.as_bytes().trim_ascii() {
            b"true" => Some(Advice::Retry),
            b"false" => Some(Advice::Stop),
            _ => None,
        }
    });
    said.reduce(|one, other| if one == other { one } else { Advice::Stop })
}

/// Whether any header is named like those that say something about the next try. Most failures say nothing, and a glance at
/// the names that are there costs a fraction of a search for a dozen that are not.
pub(crate) fn may_be_there(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| {
        let name = name.as_str().as_bytes();
        match name.first() {
            Some(b'r') => name.starts_with(b"retry-") || name.starts_with(b"ratelimit"),
            Some(b's') => name.starts_with(b"stripe-"),
            Some(b'x') => {
                name.starts_with(b"x-rate")
                    || name.starts_with(b"x-ms-")
                    || name.starts_with(b"x-amz-")
                    || name.starts_with(b"x-should-")
            }
            _ => false,
        }
    })
}

fn retry_after(text: &str, headers: &HeaderMap, now: impl Fn() -> Timestamp) -> Option<Duration> {
    number::seconds(text).or_else(|| {
        let until = date::date(text, &now)?;
        Some(date::ahead(date::since_epoch(until), headers, now))
    })
}

/// The longest that any line of this header asks for.
fn longest(
    headers: &HeaderMap,
    name: &HeaderName,
    read: impl Fn(&str) -> Option<Duration>,
) -> Option<Duration> {
    headers.get_all(name).iter().filter_map(|value| read(text(value)?)).max()
}

fn text(value: &HeaderValue) -> Option<&str> {
    value.to_str().ok().map(str::trim_ascii)
}

static MILLIS: [HeaderName; 3] = [
    HeaderName::from_static("retry-after-ms"),
    HeaderName::from_static("x-ms-retry-after-ms"),
    HeaderName::from_static("x-amz-retry-after"),
];

static SHOULD_RETRY: [HeaderName; 2] =
    [HeaderName::from_static("stripe-should-retry"), HeaderName::from_static("x-should-retry")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glance_sees_every_name_that_is_searched_for() {
        let rate_limits = rate_limit::names();
        for name in MILLIS.iter().chain(&SHOULD_RETRY).chain([&RETRY_AFTER]).chain(rate_limits) {
            let headers = HeaderMap::from_iter([(name.clone(), HeaderValue::from_static("1"))]);
            assert!(may_be_there(&headers), "{name}");
        }
        let silent = ["content-type", "referrer-policy", "server", "set-cookie", "x-request-id", "date"];
        let silent = silent.map(|name| (HeaderName::from_static(name), HeaderValue::from_static("1")));
        assert!(!may_be_there(&HeaderMap::from_iter(silent)));
    }
}
