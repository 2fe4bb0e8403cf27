//! Dates as HTTP writes them, and how far off they are.

use std::time::{Duration, SystemTime};

use ::http::{HeaderMap, HeaderName, header::DATE};
use httpdate::HttpDate;
use relent::Timestamp;

use super::text;

/// How far off an instant is that the server has named, as its own clock has it: measured from the response's
/// `Date` where that is valid, since the same clock set both and ours may differ, else from `now`.
pub(super) fn ahead(until: Duration, headers: &HeaderMap, now: impl Fn() -> Timestamp) -> Duration {
    let sent = sole(headers, DATE).and_then(|sent| date(text(sent)?, &now));
    let present = sent.map_or_else(|| Duration::from_nanos(now().as_nanos()), since_epoch);
    until.saturating_sub(present)
}

/// The only line of this name. Two `Date` lines contradict each other, so neither is believed.
fn sole(headers: &HeaderMap, name: HeaderName) -> Option<&::http::HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

/// Reads a date in any of the three forms.
pub(super) fn date(text: &str, now: impl Fn() -> Timestamp) -> Option<SystemTime> {
    match rfc850(text) {
        Some(parts) => parts.nearest(now()),
        None => instant(text),
    }
}

/// Reads a date with a whole year. `httpdate` knows no leap seconds, which RFC 9110 allows at the end of a day.
fn instant(text: &str) -> Option<SystemTime> {
    let read = |text: &str| text.parse::<HttpDate>().ok().map(SystemTime::from);
    read(text).or_else(|| Some(read(&text.replacen("23:59:60", "23:59:59", 1))? + Duration::from_secs(1)))
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
            instant(&text)
        });
        candidates.find(|date| since_epoch(*date) <= limit)
    }
}

/// Dates begin with 1970 (`httpdate` knows no earlier ones), so nothing is lost.
pub(super) fn since_epoch(date: SystemTime) -> Duration {
    date.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO)
}

const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// The mean Gregorian year of 365.2425 days.
const SECONDS_PER_YEAR: u64 = 31_556_952;
const FIFTY_YEARS: Duration = Duration::from_secs(50 * SECONDS_PER_YEAR);
