//! Durations as people write them: `250ms`, `1.5s`, `1h30m`, `3d`.

use alloc::{
    format,
    string::{String, ToString},
};
use core::{fmt, time::Duration};

/// Reads a duration: one or more numbers each with a unit (`ns`, `us`, `ms`, `s`, `m`, `h`, `d`), largest
/// first by custom but in any order. A fraction is allowed down to a nanosecond. A bare `0` is zero; every
/// other number needs its unit, since nobody agrees on what a bare `5` is.
///
/// # Errors
///
/// A sentence that says what is wrong with the text.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong =
        |why: &str| format!("\"{text}\" is not a duration: {why} (write for example \"250ms\" or \"1h30m\")");
    let mut rest = text.trim();
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(wrong("it is empty"));
    }
    if rest.starts_with('-') {
        return Err(wrong("it is negative"));
    }
    let mut nanos: u128 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| !c.is_alphabetic() && c != 'µ').unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        if number.is_empty() {
            return Err(wrong("a number is missing"));
        }
        let scale = unit_nanos(unit).ok_or_else(|| match unit {
            "" => wrong("the unit is missing"),
            _ => wrong("the units are ns, us, ms, s, m, h and d"),
        })?;
        nanos = nanos.saturating_add(scaled(number, scale).ok_or_else(|| wrong("the number is not one"))?);
        rest = after.trim_start();
    }
    let nanos = u64::try_from(nanos).map_err(|_| wrong("it is longer than 584 years"))?;
    Ok(Duration::from_nanos(nanos))
}

/// Writes a duration so that [`parse_duration`] reads the same one, in the largest units that are exact.
pub fn format_duration(length: Duration) -> String {
    DurationText(length).to_string()
}

/// A duration that displays as [`format_duration`] writes it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DurationText(pub Duration);

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut nanos = self.0.as_nanos();
        if nanos == 0 {
            return f.write_str("0s");
        }
        for (unit, scale) in UNITS {
            let whole = nanos / scale;
            if whole > 0 {
                write!(f, "{whole}{unit}")?;
                nanos %= scale;
            }
        }
        Ok(())
    }
}

fn unit_nanos(unit: &str) -> Option<u128> {
    let unit = if unit == "µs" { "us" } else { unit };
    UNITS.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale)
}

/// `number × scale` for a decimal number, in integers; digits below a nanosecond are dropped.
fn scaled(number: &str, scale: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut total = whole.checked_mul(scale)?;
    let mut place = scale;
    for digit in fraction.bytes() {
        place /= 10;
        total = total.checked_add(u128::from(digit - b'0') * place)?;
    }
    Some(total)
}

/// The largest first.
const UNITS: [(&str, u128); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_write_them() {
        let read = |text| parse_duration(text).unwrap();
        assert_eq!(read("250ms"), Duration::from_millis(250));
        assert_eq!(read("1.5s"), Duration::from_millis(1500));
        assert_eq!(read("1h30m"), Duration::from_secs(5400));
        assert_eq!(read("2m 30s"), Duration::from_secs(150));
        assert_eq!(read("3d"), Duration::from_secs(259_200));
        assert_eq!(read("0"), Duration::ZERO);
        assert_eq!(read("0.000000001s"), Duration::from_nanos(1));
        assert_eq!(read("5µs"), Duration::from_micros(5));
    }

    #[test]
    fn what_is_not_a_duration_says_why() {
        for (text, why) in [
            ("", "empty"),
            ("5", "unit is missing"),
            ("-1s", "negative"),
            ("s", "number is missing"),
            ("1.2.3s", "not one"),
            ("1y", "units are"),
            ("99999999999999999999d", "584 years"),
        ] {
            let message = parse_duration(text).unwrap_err();
            assert!(message.contains(why), "{text}: {message}");
        }
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        for nanos in [0, 1, 999, 1_000, 1_500_000_000, 5_400_000_000_000, 90_061_001_002_003, u64::MAX] {
            let length = Duration::from_nanos(nanos);
            assert_eq!(parse_duration(&format_duration(length)), Ok(length), "{}", format_duration(length));
        }
    }
}
