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
    pub fn after(self, length: Duration) -> Self {
        Self(self.0.saturating_add(saturating_nanos(length)))
    }

    /// The instant `length` earlier, at least [`Timestamp::ZERO`].
    #[must_use]
    #[inline]
    pub fn before(self, length: Duration) -> Self {
        Self(self.0.saturating_sub(saturating_nanos(length)))
    }

    /// How long after `earlier` this is; zero if it is not after it.
    #[inline]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A duration in nanoseconds; what does not fit (over 584 years) is the largest that does.
#[inline]
pub(crate) const fn saturating_nanos(length: Duration) -> u64 {
    length.as_secs().saturating_mul(1_000_000_000).saturating_add(length.subsec_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_saturates_at_both_ends() {
        assert_eq!(Timestamp::MAX.after(Duration::from_secs(1)), Timestamp::MAX);
        assert_eq!(Timestamp::ZERO.after(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::ZERO.before(Duration::from_secs(1)), Timestamp::ZERO);
        assert_eq!(Timestamp::ZERO.since(Timestamp::MAX), Duration::ZERO);
        assert_eq!(Timestamp::from_secs(3).since(Timestamp::from_millis(500)), Duration::from_millis(2500));
    }
}
