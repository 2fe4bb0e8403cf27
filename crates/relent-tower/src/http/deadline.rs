//! How much time is left, and which attempt this is, from one hop to the next.

use std::time::Duration;

use ::http::{HeaderMap, HeaderName, HeaderValue};

/// A header that says how much time is left for a request.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use http::HeaderMap;
/// use relent_tower::http::deadline::TimeLeft;
///
/// let mut headers = HeaderMap::new();
/// TimeLeft::GRPC.write_to(&mut headers, Duration::from_millis(1_500));
/// assert_eq!(headers["grpc-timeout"], "1500000u");
/// assert_eq!(TimeLeft::GRPC.read(&headers), Some(Duration::from_millis(1_500)));
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TimeLeft {
    name: HeaderName,
    form: Form,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Form {
    Millis,
    Grpc,
}

impl TimeLeft {
    /// `grpc-timeout`: up to eight digits and a unit.
    ///
    /// # Source
    ///
    /// gRPC over HTTP/2, "Timeout".
    pub const GRPC: Self = Self { name: HeaderName::from_static("grpc-timeout"), form: Form::Grpc };

    /// `x-request-timeout-ms`: milliseconds.
    pub const REQUEST_TIMEOUT_MS: Self =
        Self { name: HeaderName::from_static("x-request-timeout-ms"), form: Form::Millis };

    /// A header of choice, in milliseconds, such as `x-envoy-expected-rq-timeout-ms`.
    pub const fn in_millis(name: HeaderName) -> Self {
        Self { name, form: Form::Millis }
    }

    /// The header's name.
    pub const fn name(&self) -> &HeaderName {
        &self.name
    }

    /// Writes it, rounded down to what the header can say.
    pub fn write_to(&self, headers: &mut HeaderMap, left: Duration) {
        headers.insert(self.name.clone(), self.value(left));
    }

    /// What a request says is left. `None`: nothing, or nothing that can be read. Where lines contradict each
    /// other the shortest counts.
    pub fn read(&self, headers: &HeaderMap) -> Option<Duration> {
        let lines = headers.get_all(&self.name).iter();
        lines.filter_map(|line| self.form.read(line.to_str().ok()?.trim_ascii())).min()
    }

    fn value(&self, left: Duration) -> HeaderValue {
        match self.form {
            Form::Millis => HeaderValue::from(u64::try_from(left.as_millis()).unwrap_or(u64::MAX)),
            Form::Grpc => HeaderValue::from_str(&grpc(left))
                .unwrap_or_else(|_| unreachable!("digits and a letter may stand in a header")),
        }
    }
}

impl Form {
    fn read(self, text: &str) -> Option<Duration> {
        match self {
            Self::Millis => Some(Duration::from_millis(digits(text)?)),
            Self::Grpc => {
                let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
                let (_, nanos) = UNITS.iter().find(|(letter, _)| *letter == unit)?;
                let number = digits(number).filter(|_| number.len() <= MOST_DIGITS)?;
                Some(Duration::from_nanos(*nanos).saturating_mul(u32::try_from(number).ok()?))
            }
        }
    }
}

/// The header that says which attempt of its sender a request is, from 1.
pub const ATTEMPT: HeaderName = HeaderName::from_static("x-relent-attempt");

/// Which attempt of its sender a request is. `None`: it does not say, or not from 1.
pub fn attempt(headers: &HeaderMap) -> Option<u32> {
    let lines = headers.get_all(ATTEMPT).iter();
    let numbers = lines.filter_map(|line| u32::try_from(digits(line.to_str().ok()?.trim_ascii())?).ok());
    numbers.filter(|number| *number > 0).max()
}

/// The value of that header. The usual ones cost nothing.
pub(crate) fn attempt_value(number: u32) -> HeaderValue {
    const FEW: [&str; 9] = ["1", "2", "3", "4", "5", "6", "7", "8", "9"];
    let known = number.checked_sub(1).and_then(|index| FEW.get(usize::try_from(index).ok()?));
    known.map_or_else(|| HeaderValue::from(number), |text| HeaderValue::from_static(text))
}

/// Digits and nothing else. A number too large for its type is the largest.
fn digits(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().unwrap_or(u64::MAX))
}

/// The finest unit in which the number has no more than eight digits, rounded down.
fn grpc(left: Duration) -> String {
    let fits = UNITS.iter().find_map(|(letter, nanos)| {
        let number = left.as_nanos() / u128::from(*nanos);
        (number < TOO_MANY).then(|| format!("{number}{letter}"))
    });
    fits.unwrap_or_else(|| format!("{}H", TOO_MANY - 1))
}

/// From the finest to the coarsest.
const UNITS: [(&str, u64); 6] = [
    ("n", 1),
    ("u", 1_000),
    ("m", 1_000_000),
    ("S", 1_000_000_000),
    ("M", 60_000_000_000),
    ("H", 3_600_000_000_000),
];
const MOST_DIGITS: usize = 8;
const TOO_MANY: u128 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        headers
    }

    #[test]
    fn milliseconds_are_read_and_written() {
        let named = TimeLeft::in_millis(HeaderName::from_static("x-deadline"));
        for header in [TimeLeft::REQUEST_TIMEOUT_MS, named] {
            let mut written = HeaderMap::new();
            header.write_to(&mut written, Duration::from_micros(1_500_999));
            assert_eq!(written[header.name()], "1500", "rounded down: we never promise what is not there");
            assert_eq!(header.read(&written), Some(Duration::from_millis(1500)));
            let read = |values: &[&str]| header.read(&headers(header.name(), values));
            assert_eq!(read(&["0"]), Some(Duration::ZERO));
            assert_eq!(read(&["99999999999999999999"]), Some(Duration::from_millis(u64::MAX)));
            assert_eq!(read(&["900", "x", "300"]), Some(Duration::from_millis(300)));
            for junk in ["", "-1", "+1", "1.5", "1s", "soon", "1 2"] {
                assert_eq!(read(&[junk]), None, "{junk:?}");
            }
        }
    }

    #[test]
    fn grpcs_form_is_read_and_written() {
        for (left, text) in [
            (Duration::ZERO, "0n"),
            (Duration::from_nanos(99_999_999), "99999999n"),
            (Duration::from_nanos(100_000_999), "100000u"),
            (Duration::from_secs(99), "99000000u"),
            (Duration::from_secs(100), "100000m"),
            (Duration::from_secs(100_000), "100000S"),
            (Duration::from_secs(100_000_000), "1666666M"),
            (Duration::from_secs(6_000_000_000), "1666666H"),
            (Duration::MAX, "99999999H"),
        ] {
            let mut written = HeaderMap::new();
            TimeLeft::GRPC.write_to(&mut written, left);
            assert_eq!(written["grpc-timeout"], text);
            assert!(TimeLeft::GRPC.read(&written).unwrap() <= left, "{text}");
        }
        let read = |text| TimeLeft::GRPC.read(&headers(TimeLeft::GRPC.name(), &[text]));
        assert_eq!(read("1H"), Some(Duration::from_secs(3600)));
        assert_eq!(read("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        for junk in ["", "S", "1", "1s", "1h", "123456789m", "-1m", "1.5S", "1 m", "mm", "1é"] {
            assert_eq!(read(junk), None, "{junk:?}");
        }
    }

    #[test]
    fn an_attempt_is_a_number_from_one() {
        for number in [1, 2, 9, 10, u32::MAX] {
            let mut written = HeaderMap::new();
            written.insert(ATTEMPT, attempt_value(number));
            assert_eq!(attempt(&written), Some(number));
        }
        let read = |values: &[&str]| attempt(&headers(&ATTEMPT, values));
        assert_eq!(read(&["1", "3"]), Some(3), "a retry is a retry, whoever says so");
        for junk in ["", "0", "-1", "4294967296", "two"] {
            assert_eq!(read(&[junk]), None, "{junk:?}");
        }
    }
}
