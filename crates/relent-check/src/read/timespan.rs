//! A .NET `TimeSpan` as its configuration reads it, traps included.
//!
//! # Source
//!
//! dotnet/runtime, `TimeSpanParse.cs`: one number is days, two are hours and minutes, three are hours, minutes and
//! seconds, or days, hours and minutes where the first is too large for an hour; four begin with days.

use std::time::Duration;

/// A time, and whether its reader takes for days what was hardly meant so.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct TimeSpan {
    pub length: Duration,
    /// What was probably meant, where that is something else.
    pub meant: Option<Duration>,
}

/// Reads a time span. `None`: it is none.
pub(super) fn parse(text: &str) -> Option<TimeSpan> {
    let text = text.trim();
    let (days, rest) = match text.split_once('.') {
        // `1.02:03:04`: what stands before a dot and has a colon after it is days.
        Some((days, rest)) if !days.contains(':') && rest.contains(':') => (Some(days), rest),
        _ => (None, text),
    };
    let fields: Vec<&str> = rest.split(':').collect();
    let whole: Vec<u64> =
        fields.iter().take(fields.len() - 1).map(|field| number(field)).collect::<Option<_>>()?;
    let (last, fraction) = rest.rsplit(':').next()?.split_once('.').unwrap_or((rest.rsplit(':').next()?, ""));
    let last = number(last)?;
    let nanos = fraction_nanos(fraction)?;
    let days = days.map_or(Some(0), number);
    let (days, hours, minutes, seconds) = match (whole.as_slice(), days?) {
        ([], 0) if fraction.is_empty() => {
            return Some(TimeSpan { length: of_days(last), meant: Some(Duration::from_secs(last)) });
        }
        ([hours], days) if fraction.is_empty() => (days, *hours, last, 0),
        ([hours, minutes], days) if *hours <= 23 => (days, *hours, *minutes, last),
        ([many, hours], 0) if fraction.is_empty() && *hours <= 23 && last <= 59 => {
            let length = of_days(*many) + Duration::from_secs(hours * 3600 + last * 60);
            let meant = Duration::from_secs(many.saturating_mul(3600).saturating_add(hours * 60 + last));
            return Some(TimeSpan { length, meant: Some(meant) });
        }
        ([days, hours, minutes], 0) => (*days, *hours, *minutes, last),
        _ => return None,
    };
    let within = hours <= 23 && minutes <= 59 && seconds <= 59;
    let length = of_days(days) + Duration::from_secs(hours * 3600 + minutes * 60 + seconds) + nanos;
    within.then_some(TimeSpan { length, meant: None })
}

/// Writes a time span.
pub(super) fn format(length: Duration) -> String {
    let secs = length.as_secs();
    let (days, hours, minutes, seconds) = (secs / 86_400, secs / 3600 % 24, secs / 60 % 60, secs % 60);
    let days = if days > 0 { format!("{days}.") } else { String::new() };
    let ticks = length.subsec_nanos() / 100;
    let fraction = match ticks {
        0 => String::new(),
        _ => format!(".{}", format!("{ticks:07}").trim_end_matches('0')),
    };
    format!("{days}{hours:02}:{minutes:02}:{seconds:02}{fraction}")
}

fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    text.parse().ok().filter(|number| digits && *number <= MOST_DAYS)
}

/// At most seven digits: ticks of 100 ns.
fn fraction_nanos(digits: &str) -> Option<Duration> {
    let plain = digits.bytes().all(|digit| digit.is_ascii_digit()) && digits.len() <= 7;
    let nanos: u64 = format!("{digits:0<9}").parse().ok()?;
    plain.then(|| Duration::from_nanos(nanos))
}

const fn of_days(days: u64) -> Duration {
    Duration::from_secs(days * 86_400)
}

/// The most that a time span holds.
const MOST_DAYS: u64 = 10_675_199;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_span_reads_as_dotnet_reads_it() {
        for (text, millis) in [
            ("00:00:02", 2_000),
            ("00:00:00.6", 600),
            ("00:00:00.100", 100),
            ("0:0:0.8", 800),
            ("00:01", 60_000),
            ("01:00:00", 3_600_000),
            ("1.02:03:04.5", 93_784_500),
            ("1:02:03:04", 93_784_000),
            ("23:59:59.9999999", 86_399_999),
        ] {
            let span = parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((span.length.as_millis(), span.meant), (millis, None), "{text}");
        }
        for text in
            ["", "2s", "-00:00:01", "00:60:00", "00:00:60", "1.2.3", "00:00:00.12345678", "a:b:c", "24:30:00"]
        {
            let read = parse(text).filter(|span| span.meant.is_none());
            assert_eq!(read, None, "{text}");
        }
    }

    #[test]
    fn what_dotnet_takes_for_days_is_told() {
        let days = |days: u64| Duration::from_secs(days * 86_400);
        let secs = Duration::from_secs;
        assert_eq!(parse("5"), Some(TimeSpan { length: days(5), meant: Some(secs(5)) }));
        assert_eq!(parse("24:00:00"), Some(TimeSpan { length: days(24), meant: Some(secs(86_400)) }));
        assert_eq!(parse("90:00:00").map(|span| span.length), Some(days(90)));
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        for millis in [0, 1, 570, 2_000, 90_061_001, 86_400_000] {
            let length = Duration::from_millis(millis);
            assert_eq!(parse(&format(length)), Some(TimeSpan { length, meant: None }), "{}", format(length));
        }
    }
}
