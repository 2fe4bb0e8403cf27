//! The numbers of a rate limit, and which of them are impossible.

use alloc::format;
use core::time::Duration;

use crate::{policy::Invalid, text::DurationText, time::saturating_nanos};

/// A rate limit, as data: `permits` in every `per`, of which `burst` may go at once.
///
/// # Choosing a value
///
/// Over any length of time at most `burst + length × permits / per` begin. A burst of 1 spaces them evenly; a
/// burst of `permits` lets a whole period's go at once after a quiet time, and then up to twice `permits` begin
/// within one period.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct RatePolicy {
    /// How many in each period, in the long run exactly. At least 1.
    pub permits: u32,
    /// The period.
    pub per: Duration,
    /// How many at once when it was quiet before. At least 1.
    pub burst: u32,
}

impl RatePolicy {
    /// Whether the limit lets anything through and can be reckoned with. `slot` is where it stands in a policy,
    /// as in `attempt.rate`.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with the field's name and the arithmetic.
    pub fn validate(&self, slot: &str) -> Result<(), Invalid> {
        let refused = |field: &str, reason| Err(Invalid::new(format!("{slot}.{field}"), reason));
        let nothing = |what: &str| {
            format!(
                "{what} would let nothing through, ever; write 1 or more, or leave the table out for no limit"
            )
        };
        if self.permits == 0 {
            return refused("permits", nothing("0"));
        }
        if self.burst == 0 {
            return refused("burst", nothing("a burst of 0"));
        }
        let nanos = saturating_nanos(self.per);
        if nanos < u64::from(self.permits) {
            let reason = format!(
                "{} permits in {} are more than one a nanosecond; lengthen {slot}.per or lower {slot}.permits",
                self.permits,
                DurationText(self.per)
            );
            return refused("per", reason);
        }
        let fills = u128::from(nanos) * u128::from(self.burst) / u128::from(self.permits);
        if fills > u128::from(LONGEST_FILL) {
            let reason = format!(
                "a burst of {} at {} permits per {} takes over a century to come back; lower it",
                self.burst,
                self.permits,
                DurationText(self.per)
            );
            return refused("burst", reason);
        }
        Ok(())
    }
}

/// A century in nanoseconds: far below what a word counts (584 years), so that sums of the two do not reach the
/// end of time.
const LONGEST_FILL: u64 = 100 * 31_557_600 * 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lets_nothing_through_or_cannot_be_counted_is_refused_by_name() {
        let fine = RatePolicy { permits: 10, per: Duration::from_secs(1), burst: 1 };
        let field = |policy: RatePolicy| policy.validate("attempt.rate").map_err(|invalid| invalid.field);
        let refused = |name: &str| Err(format!("attempt.rate.{name}"));
        assert_eq!(field(fine), Ok(()));
        assert_eq!(field(RatePolicy { permits: 0, ..fine }), refused("permits"));
        assert_eq!(field(RatePolicy { burst: 0, ..fine }), refused("burst"));
        assert_eq!(field(RatePolicy { per: Duration::ZERO, ..fine }), refused("per"));
        assert_eq!(field(RatePolicy { per: Duration::from_nanos(9), ..fine }), refused("per"));
        assert_eq!(field(RatePolicy { per: Duration::from_nanos(10), ..fine }), Ok(()));
        let yearly = RatePolicy { permits: 1, per: Duration::from_secs(31_557_600), burst: 100 };
        assert_eq!(field(yearly), Ok(()));
        assert_eq!(field(RatePolicy { burst: 101, ..yearly }), refused("burst"));
        assert_eq!(field(RatePolicy { per: Duration::MAX, ..yearly }), refused("burst"));
    }
}
