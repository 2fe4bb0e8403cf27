//! How long a server asks to be left alone: `Retry-After`.
//!
//! The value is a floor for the next wait and nothing more. What a policy makes of it, its ceiling included,
//! is the core's part, so a value is never cut here: 30,000 years are as good an answer as 2 seconds. What
//! does not follow the grammar is as if it were not there; the policy's own schedule then counts.

use std::time::{Duration, SystemTime};

use ::http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{DATE, RETRY_AFTER},
};
use httpdate::HttpDate;
use relent::Timestamp;

/// How long the response asks its client to wait before the next request, or `None` where it does not ask or
/// nothing that it says follows the grammar.
///
/// Heard on every status that is not a success: RFC 9110 gives it a meaning for 503, 429 (RFC 6585) and 3xx,
/// and no meaning that would contradict it for the others. On 1xx and 2xx nothing is to be repeated.
///
/// Seconds are digits and nothing else, so `-1`, `+5`, `1.5` and the empty value are ignored; a number too
/// large for its type is the largest. Dates may have each of the three forms of RFC 9110; one that has passed
/// asks for zero. A date is measured from the response's own `Date` where that is valid, since the server's
/// clock set both and ours may differ, else from `now`: wall time since the Unix epoch. Time zones play no
/// part: all three forms are GMT.
///
/// Of several `Retry-After` lines the longest counts: each is a floor, and waiting longer breaks none of them.
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
/// RFC 9110, sections 5.6.7 (dates) and 10.2.3 (`Retry-After`).
pub fn server_wait(status: StatusCode, headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    if status.is_informational() || status.is_success() {
        return None;
    }
    let values = headers.get_all(RETRY_AFTER);
    values.iter().filter_map(|value| read(value, headers, now)).max()
}

fn read(value: &HeaderValue, headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let asked = text(value)?;
    if !asked.is_empty() && asked.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(asked.parse().unwrap_or(u64::MAX)));
    }
    let until = date(asked, now)?;
    Some(match sole(headers, DATE).and_then(|sent| date(text(sent)?, now)) {
        Some(sent) => until.duration_since(sent).unwrap_or(Duration::ZERO),
        None => since_epoch(until).saturating_sub(Duration::from_nanos(now.as_nanos())),
    })
}

/// The only line of this name. Two `Date` lines contradict each other, so neither is believed.
fn sole(headers: &HeaderMap, name: HeaderName) -> Option<&HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

fn text(value: &HeaderValue) -> Option<&str> {
    value.to_str().ok().map(str::trim_ascii)
}

/// Reads a date in any of the three forms.
fn date(text: &str, now: Timestamp) -> Option<SystemTime> {
    match rfc850(text) {
        Some(parts) => parts.nearest(now),
        None => text.parse::<HttpDate>().ok().map(SystemTime::from),
    }
}

/// The obsolete form `Sunday, 06-Nov-94 08:49:37 GMT`, whose year lacks its century.
struct TwoDigitYear<'a> {
    weekday: &'a str,
    day: &'a str,
    month: &'a str,
    year: u64,
    time: &'a str,
}

fn rfc850(text: &str) -> Option<TwoDigitYear<'_>> {
    let (weekday, rest) = text.split_once(", ")?;
    let (date, time) = rest.split_once(' ')?;
    let mut parts = date.split('-');
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    let two_digits = year.len() == 2 && year.bytes().all(|byte| byte.is_ascii_digit());
    let whole = WEEKDAYS.contains(&weekday) && two_digits && parts.next().is_none();
    whole.then_some(TwoDigitYear { weekday, day, month, year: year.parse().ok()?, time })
}

impl TwoDigitYear<'_> {
    /// The latest date that these digits can mean without being more than 50 years ahead.
    ///
    /// `httpdate` takes 70 to 99 for the last century whatever the time is; RFC 9110 counts from the present.
    fn nearest(&self, now: Timestamp) -> Option<SystemTime> {
        let limit = Duration::from_nanos(now.as_nanos()) + FIFTY_YEARS;
        let century = (1970 + now.as_secs() / SECONDS_PER_YEAR) / 100;
        let mut candidates = (century - 1..=century + 1).rev().filter_map(|century| {
            let Self { weekday, day, month, year, time } = self;
            let text = format!("{}, {day} {month} {:04} {time}", &weekday[..3], century * 100 + year);
            text.parse::<HttpDate>().ok().map(SystemTime::from)
        });
        candidates.find(|date| since_epoch(*date) <= limit)
    }
}

/// Dates begin with 1970 (`httpdate` knows no earlier ones), so nothing is lost.
fn since_epoch(date: SystemTime) -> Duration {
    date.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO)
}

const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// The mean Gregorian year of 365.2425 days.
const SECONDS_PER_YEAR: u64 = 31_556_952;
const FIFTY_YEARS: Duration = Duration::from_secs(50 * SECONDS_PER_YEAR);
