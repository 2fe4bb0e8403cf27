//! An instant as a number, so that a decision can be stored, replayed and simulated.
//!
//! `std::time::Instant` cannot be made from a number and starts at an unknown place; a generic clock leaks
//! into every signature. One `u64` of nanoseconds is `Copy`, ordered, serialisable and starts at zero.

use core::time::Duration;

/// Nanoseconds since the origin of whichever clock read it: the start of the process for live calls, the Unix
/// epoch for durable work (which lasts until the year 2554), the start of the run in a simulation.
///
/// All arithmetic saturates: a wait that would pass the end of time ends there and never wraps into the past.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The origin of the clock.
    pub const ZERO: Self = Self(0);
    /// The last instant that can be named.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The instant `millis` milliseconds after the origin.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// The instant `secs` seconds after the origin.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole seconds since the origin.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1_000_000_000
    }

    /// The instant `length` later, at most [`Timestamp::MAX`].
    #[must_use]
    #[inline]
    pub const fn after(self, length: Duration) -> Self {
        self.after_nanos(saturating_nanos(length))
    }

    /// The instant `length` earlier, at least [`Timestamp::ZERO`].
    #[must_use]
    #[inline]
    pub const fn before(self, length: Duration) -> Self {
        self.before_nanos(saturating_nanos(length))
    }

    #[inline]
    pub(crate) const fn after_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }

    #[inline]
    pub(crate) const fn before_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_sub(nanos))
    }

    /// How long after `earlier` this is; zero if it is not after it.
    #[inline]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A duration in nanoseconds; what does not fit (over 584 years) is the largest that does.
///
/// Every call converts several, and for five centuries there is nothing to saturate.
#[inline]
pub(crate) const fn saturating_nanos(length: Duration) -> u64 {
    match length.as_secs() {
        secs if secs < 1 << 34 => secs * NANOS + length.subsec_nanos() as u64,
        secs => secs.saturating_mul(NANOS).saturating_add(length.subsec_nanos() as u64),
    }
}

/// Nanoseconds in a second.
const NANOS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_saturates_at_both_ends() {
        assert_eq!(Timestamp::MAX.after(Duration::from_secs(1)), Timestamp::MAX);
        assert_eq!(Timestamp::ZERO.after(Duration::MAX), Timestamp::MAX);
        let most = Duration::from_nanos(u64::MAX);
        for length in [Duration::new((1 << 34) - 1, 999_999_999), Duration::new(1 << 34, 7), most] {
            assert_eq!(u128::from(saturating_nanos(length)), length.as_nanos());
        }
        assert_eq!(saturating_nanos(most + Duration::from_nanos(1)), u64::MAX);
        assert_eq!(Timestamp::ZERO.before(Duration::from_secs(1)), Timestamp::ZERO);
        assert_eq!(Timestamp::ZERO.since(Timestamp::MAX), Duration::ZERO);
        assert_eq!(Timestamp::from_secs(3).since(Timestamp::from_millis(500)), Duration::from_millis(2500));
    }
}
