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

/// A duration as a person wants to read it: to the millisecond below a minute, to the second above. What is
/// written so does not read back the same; for that there is [`DurationText`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Brief(pub Duration);

impl fmt::Display for Brief {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |unit: u128| self.0.as_nanos() / unit * unit;
        let shown = match self.0.as_nanos() {
            0..1_000 => whole(1),
            1_000..1_000_000 => whole(1_000),
            1_000_000..1_000_000_000 => whole(1_000_000),
            1_000_000_000..60_000_000_000 => return write!(f, "{}s", Decimal(whole(1_000_000))),
            _ => whole(1_000_000_000),
        };
        DurationText(Duration::from_nanos(u64::try_from(shown).unwrap_or(u64::MAX))).fmt(f)
    }
}

/// Nanoseconds as seconds with as many decimals as they need: `5.4`.
pub(crate) struct Decimal(pub(crate) u128);

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        if fraction == 0 {
            return write!(f, "{whole}");
        }
        let digits = format!("{fraction:09}");
        write!(f, "{whole}.{}", digits.trim_end_matches('0'))
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
    fn a_brief_duration_drops_what_nobody_reads() {
        for (nanos, brief) in [
            (0, "0s"),
            (999, "999ns"),
            (1_999, "1us"),
            (137_482_913, "137ms"),
            (2_000_000_000, "2s"),
            (2_449_482_913, "2.449s"),
            (62_449_482_913, "1m2s"),
            (259_199_999_999_999, "2d23h59m59s"),
        ] {
            assert_eq!(Brief(Duration::from_nanos(nanos)).to_string(), brief);
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
