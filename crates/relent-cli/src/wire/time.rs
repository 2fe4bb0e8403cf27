//! Instants and durations as the API writes them.

use std::{fmt, time::Duration};

use relent_core::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// An instant since the Unix epoch, as `2026-11-30T13:45:07.123Z`.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct At(pub(crate) Timestamp);

/// A duration as a number of seconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Seconds(pub(crate) Duration);

impl At {
    /// Reads RFC 3339, with any offset and any fraction (digits below a nanosecond are dropped).
    ///
    /// # Errors
    ///
    /// A sentence that says what is wrong with the text. Times before 1970 are refused.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        read(text).map(|at| Self(Timestamp::from_nanos(at))).ok_or_else(|| {
            format!("\"{text}\" is not a time (write it as RFC 3339, for example \"2026-11-30T13:45:07Z\")")
        })
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secs = self.0.as_secs();
        let (year, month, day) = date_of(secs / DAY);
        let (hour, minute, second) = (secs / 3600 % 24, secs / 60 % 60, secs % 60);
        let millis = self.0.as_nanos() / 1_000_000 % 1000;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
    }
}

impl Serialize for At {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for At {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0.as_secs_f64())
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(deserializer)?).map(Self).map_err(de::Error::custom)
    }
}

/// Nanoseconds since the epoch of an RFC 3339 text (section 5.6; a leap second counts as the one after it).
fn read(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let separators =
        bytes.len() >= 20 && bytes[4] == b'-' && bytes[7] == b'-' && bytes[13] == b':' && bytes[16] == b':';
    if !separators || !matches!(bytes[10], b'T' | b't' | b' ') {
        return None;
    }
    let number = |from: usize, to: usize| digits(bytes.get(from..to)?);
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let in_range = (1..=12).contains(&month) && (1..=days_of(year, month)).contains(&day);
    if !in_range || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (nanos, zone) = fraction(&bytes[19..])?;
    let local =
        i64::try_from(days_since_epoch(year, month, day)? * DAY + hour * 3600 + minute * 60 + second).ok()?;
    let secs = u64::try_from(local.checked_sub(offset(zone)?)?).ok()?;
    secs.checked_mul(1_000_000_000)?.checked_add(nanos)
}

/// The fraction of a second at the start, in nanoseconds, and what follows it.
fn fraction(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let Some(rest) = bytes.strip_prefix(b".") else { return Some((0, bytes)) };
    let end = rest.iter().position(|byte| !byte.is_ascii_digit())?;
    if end == 0 {
        return None;
    }
    let mut nanos = 0;
    for place in 0..9 {
        nanos = nanos * 10 + rest[..end].get(place).map_or(0, |digit| u64::from(digit - b'0'));
    }
    Some((nanos, &rest[end..]))
}

/// Seconds east of UTC.
fn offset(zone: &[u8]) -> Option<i64> {
    match zone {
        b"Z" | b"z" => Some(0),
        [sign @ (b'+' | b'-'), hours @ .., b':', m1, m2] if hours.len() == 2 => {
            let (hours, minutes) = (digits(hours)?, digits(&[*m1, *m2])?);
            let length = i64::try_from(hours * 3600 + minutes * 60).ok()?;
            let real = hours <= 23 && minutes <= 59;
            real.then_some(if *sign == b'+' { length } else { -length })
        }
        _ => None,
    }
}

fn digits(bytes: &[u8]) -> Option<u64> {
    bytes
        .iter()
        .try_fold(0, |sum: u64, byte| byte.is_ascii_digit().then(|| sum * 10 + u64::from(byte - b'0')))
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

const fn days_of(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01; `None` before it. Source: Howard Hinnant, "chrono-compatible low-level date
/// algorithms", `days_from_civil`.
fn days_since_epoch(year: u64, month: u64, day: u64) -> Option<u64> {
    let year = if month <= 2 { year.checked_sub(1)? } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    (era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year).checked_sub(719_468)
}

/// The date of a day since 1970-01-01. Source: as above, `civil_from_days`.
const fn date_of(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, of_year - (153 * shifted + 2) / 5 + 1)
}

const DAY: u64 = 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc_with_milliseconds() {
        for (nanos, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000_000_000, "2000-02-29T00:00:00.000Z"),
            (1_796_046_307_123_999_999, "2026-11-30T13:45:07.123Z"),
            (4_102_444_799_999_000_000, "2099-12-31T23:59:59.999Z"),
            (u64::MAX, "2554-07-21T23:34:33.709Z"),
        ] {
            assert_eq!(At(Timestamp::from_nanos(nanos)).to_string(), text);
        }
    }

    #[test]
    fn every_day_reads_back_as_written() {
        for day in 0..100_000 {
            let at = At(Timestamp::from_secs(day * DAY + 3_661));
            assert_eq!(At::parse(&at.to_string()), Ok(at));
        }
    }

    #[test]
    fn offsets_and_fractions_are_read() {
        let nanos = |text| At::parse(text).unwrap().0.as_nanos();
        let base = nanos("2026-11-30T13:45:07Z");
        assert_eq!(nanos("2026-11-30T15:45:07+02:00"), base);
        assert_eq!(nanos("2026-11-30t08:15:07-05:30"), base);
        assert_eq!(nanos("2026-11-30 13:45:07.5z"), base + 500_000_000);
        assert_eq!(nanos("2026-11-30T13:45:07.1234567899Z"), base + 123_456_789);
    }

    #[test]
    fn what_is_not_a_time_is_refused() {
        for text in [
            "",
            "soon",
            "2026-11-30",
            "2026-11-30T13:45:07",
            "2026-11-31T13:45:07Z",
            "2025-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-30T24:00:00Z",
            "2026-11-30T13:45:07.Z",
            "2026-11-30T13:45:07+2:00",
            "2026-11-30T13:45:07Zulu",
            "1969-12-31T23:59:59Z",
            "9999-12-31T23:59:59Z",
            "２026-11-30T13:45:07Z",
        ] {
            assert!(At::parse(text).is_err(), "{text}");
        }
    }
}
