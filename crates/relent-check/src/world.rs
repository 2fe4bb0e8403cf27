//! What a policy cannot know of itself: the traffic, the capacity, the callers and the layers around it.

use std::{fmt, str::FromStr, time::Duration};

/// What is known of the world around a policy. What is `None` is not asked about.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct World {
    /// How many layers retry, one inside the other, each by this policy.
    pub layers: Option<u32>,
    /// Calls a second, before any retry: λ.
    pub load: Option<PerSecond>,
    /// Attempts a second that the dependency can serve: C.
    pub capacity: Option<PerSecond>,
    /// Callers that call again as soon as their call has ended: N.
    pub callers: Option<u32>,
    /// Hosts behind the dependency's name, one of which may be bad.
    pub hosts: Option<u32>,
    /// How long the caller has.
    pub deadline: Option<Duration>,
}

/// A number a second, in thousandths, so that it adds up the same on every machine.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct PerSecond {
    milli: u64,
}

impl PerSecond {
    /// So many thousandths a second.
    pub const fn from_milli(milli: u64) -> Self {
        Self { milli }
    }

    /// Thousandths a second.
    pub const fn milli(self) -> u64 {
        self.milli
    }

    /// This many times so many thousandths.
    pub(crate) fn times(self, milli: u64) -> Self {
        let product = u128::from(self.milli) * u128::from(milli) / 1000;
        Self { milli: u64::try_from(product).unwrap_or(u64::MAX) }
    }
}

impl fmt::Display for PerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, milli) = (self.milli / 1000, self.milli % 1000);
        let digits = whole.to_string();
        for (place, digit) in digits.chars().enumerate() {
            if place > 0 && (digits.len() - place).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        match milli {
            0 => Ok(()),
            _ => write!(f, ".{}", format!("{milli:03}").trim_end_matches('0')),
        }
    }
}

impl FromStr for PerSecond {
    type Err = String;

    /// Reads a number above zero with at most three decimals: `850`, `0.5`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is not a number a second; write for example 850 or 0.5");
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let plain = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
        if whole.is_empty() || !plain(whole) || !plain(fraction) || fraction.len() > 3 {
            return Err(wrong());
        }
        let whole: u64 = whole.parse().map_err(|_| wrong())?;
        let fraction: u64 = format!("{fraction:0<3}").parse().map_err(|_| wrong())?;
        match whole.checked_mul(1000).and_then(|milli| milli.checked_add(fraction)) {
            Some(milli @ 1..) => Ok(Self { milli }),
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_reads_as_it_is_written() {
        for (text, milli, shown) in
            [("850", 850_000, "850"), ("0.5", 500, "0.5"), ("12345.678", 12_345_678, "12,345.678")]
        {
            let rate: PerSecond = text.parse().unwrap();
            assert_eq!((rate.milli(), rate.to_string().as_str()), (milli, shown));
        }
        for text in ["", "0", "-1", "1e3", "1.2345", ".5", "many", "99999999999999999999"] {
            assert!(text.parse::<PerSecond>().is_err(), "{text}");
        }
    }
}
