//! Numbers as the headers have them: digits, and where a header is known to have it, a fraction.

use std::time::Duration;

/// Whole seconds: digits and nothing else. A number too large for its type is the largest.
pub(super) fn seconds(text: &str) -> Option<Duration> {
    whole(text).map(Duration::from_secs)
}

/// Seconds with or without a fraction, of which nine digits count.
pub(super) fn decimal_seconds(text: &str) -> Option<Duration> {
    let (whole, nanos) = decimal(text)?;
    Some(Duration::new(whole, nanos))
}

/// Milliseconds with or without a fraction, of which six digits count.
pub(super) fn decimal_millis(text: &str) -> Option<Duration> {
    let (whole, nanos) = decimal(text)?;
    Some(Duration::from_millis(whole).saturating_add(Duration::from_nanos(u64::from(nanos) / 1000)))
}

pub(super) fn whole(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

/// The whole part, and the fraction in billionths.
fn decimal(text: &str) -> Option<(u64, u32)> {
    let Some((before, after)) = text.split_once('.') else {
        return Some((whole(text)?, 0));
    };
    let before = whole(before)?;
    whole(after)?;
    let billionths = after.bytes().chain(std::iter::repeat(b'0')).take(9);
    Some((before, billionths.fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_counts_as_far_as_a_duration_can_tell() {
        for (text, nanos) in [
            ("0", 0),
            ("1", 1_000_000_000),
            ("0.5", 500_000_000),
            ("1.000000001", 1_000_000_001),
            ("1.0000000019", 1_000_000_001),
        ] {
            assert_eq!(decimal_seconds(text), Some(Duration::from_nanos(nanos)), "{text}");
        }
        assert_eq!(decimal_millis("1500"), Some(Duration::from_millis(1500)));
        assert_eq!(decimal_millis("0.5"), Some(Duration::from_micros(500)));
        assert_eq!(decimal_millis("99999999999999999999"), Some(Duration::from_millis(u64::MAX)));
        for junk in ["", ".", "1.", ".5", "-1", "+1", "1.5.5", "1e3", "1,5", "٣", " 1"] {
            assert_eq!(decimal_seconds(junk), None, "{junk:?}");
            assert_eq!(decimal_millis(junk), None, "{junk:?}");
        }
    }
}
