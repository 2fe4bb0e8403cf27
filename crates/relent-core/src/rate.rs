//! How many may begin in a time: the generic cell rate algorithm, as pure functions of one word.
//!
//! The word is the moment at which the bucket will be full again (the "theoretical arrival time"). Each permit
//! moves it on by one interval; it may run ahead of the present by as much as the burst allows. Nothing ticks and
//! nothing is refilled: time itself does it, so an idle hour and an idle year cost the same, and there is no
//! window whose edge lets twice the number through.
//!
//! # Exactness
//!
//! The word counts in ticks, of which an interval has a whole number: one tick is `per / permits` divided by
//! its whole nanoseconds, that is a nanosecond or, where the period does not divide evenly, a little longer
//! (three a second: 1.000000001 ns; never two). So `permits` intervals are exactly `per`, and nothing drifts
//! however long it runs. A reading of the clock counts as the tick that it falls in; so who comes back exactly
//! when it was told is on time to the tick, and where the period does not divide evenly a window is measured
//! wrong by less than one tick, once, whatever happens in it.
//!
//! # Source
//!
//! ITU-T I.371 (2004), annex A, the virtual scheduling algorithm. Booking ahead is the same formula with a
//! later moment; the handing down of places is relent's own.

mod book;
mod policy;

use core::time::Duration;

pub use book::{Booked, Place};
pub use policy::RatePolicy;

use crate::{
    decision::{Gate, Refusal},
    policy::Invalid,
    time::Timestamp,
};

/// The algorithm with a policy's numbers worked out. Its state is one word, 0 at first: a full bucket.
///
/// `now` is never before one that was told earlier, by the promise of whoever reads the clock. Where it is all
/// the same, fewer are let through until the time catches up, never more.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Gcra {
    /// Ticks between two permits.
    interval: u64,
    /// How far ahead of the present a permit may be taken: the interval × (burst − 1).
    slack: u64,
    /// A nanosecond is `ticks / nanos` of a tick, at most one.
    ticks: u64,
    nanos: u64,
    burst: u32,
}

impl Gcra {
    /// Works out the numbers.
    ///
    /// # Errors
    ///
    /// Those of [`RatePolicy::validate`], for a table named `rate`.
    pub fn new(policy: &RatePolicy) -> Result<Self, Invalid> {
        policy.validate("rate")?;
        let nanos = crate::time::saturating_nanos(policy.per);
        let interval = nanos / u64::from(policy.permits);
        let slack = interval.saturating_mul(u64::from(policy.burst) - 1);
        Ok(Self { interval, slack, ticks: interval * u64::from(policy.permits), nanos, burst: policy.burst })
    }

    /// Takes a permit at `now`, and gives the new word.
    ///
    /// # Errors
    ///
    /// The refusal names the moment at which it would have been let in: exactly then, if nobody else comes in
    /// between, and not a nanosecond before.
    #[inline]
    pub fn take(&self, word: u64, now: Timestamp) -> Result<u64, Refusal> {
        let present = self.tick_at(now);
        if word.saturating_sub(self.slack) > present {
            return Err(self.refusal(word, now));
        }
        Ok(word.max(present).saturating_add(self.interval))
    }

    /// Whole permits that could be taken at `now`.
    pub fn available(&self, word: u64, now: Timestamp) -> u32 {
        let debt = word.saturating_sub(self.tick_at(now));
        let left = self.slack.saturating_add(self.interval).saturating_sub(debt);
        u32::try_from(left / self.interval).map_or(self.burst, |left| left.min(self.burst))
    }

    #[inline]
    fn refusal(&self, word: u64, now: Timestamp) -> Refusal {
        let until = self.moment_of(word);
        Refusal { by: Gate::Rate, until: Some(until), advised: until.since(now).max(Duration::from_nanos(1)) }
    }

    /// The first moment at which a permit may be taken at this place.
    #[inline]
    fn moment_of(&self, place: u64) -> Timestamp {
        let tick = place.saturating_sub(self.slack);
        if self.ticks == self.nanos {
            return Timestamp::from_nanos(tick);
        }
        let nanos = (u128::from(tick) * u128::from(self.nanos)).div_ceil(u128::from(self.ticks));
        Timestamp::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The tick that a reading falls in.
    #[inline]
    fn tick_at(&self, now: Timestamp) -> u64 {
        if self.ticks == self.nanos {
            return now.as_nanos();
        }
        let scaled = u128::from(now.as_nanos()) * u128::from(self.ticks);
        u64::try_from(scaled / u128::from(self.nanos)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gcra(permits: u32, per: Duration, burst: u32) -> Gcra {
        Gcra::new(&RatePolicy { permits, per, burst }).unwrap()
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_burst_goes_at_once_and_the_rest_at_the_rate() {
        let gcra = gcra(4, SECOND, 3);
        let now = Timestamp::from_secs(9);
        let mut word = 0;
        for left in [2, 1, 0] {
            word = gcra.take(word, now).unwrap();
            assert_eq!(gcra.available(word, now), left);
        }
        let refused = gcra.take(word, now).unwrap_err();
        assert_eq!(refused.until, Some(Timestamp::from_millis(9_250)));
        assert_eq!((refused.by, refused.advised), (Gate::Rate, Duration::from_millis(250)));
    }

    #[test]
    fn three_a_second_are_exactly_three_a_second_for_a_year() {
        let gcra = gcra(3, SECOND, 1);
        let start = Timestamp::from_secs(1_800_000_000);
        let mut word = gcra.take(0, start).unwrap();
        let began = gcra.take(word, start).unwrap_err().until.unwrap();
        // As if a permit had been taken at each moment of a year: the word moves on by one interval each.
        word += gcra.interval * 3 * 31_536_000;
        let ended = gcra.take(word, start).unwrap_err().until.unwrap();
        assert_eq!(ended.since(began), Duration::from_secs(31_536_000));
    }

    #[test]
    fn an_idle_century_fills_the_bucket_and_no_more() {
        let gcra = gcra(7, SECOND, 2);
        let mut word = gcra.take(0, Timestamp::from_secs(1)).unwrap();
        let later = Timestamp::from_secs(3_200_000_000);
        assert_eq!(gcra.available(word, later), 2);
        word = gcra.take(word, later).unwrap();
        word = gcra.take(word, later).unwrap();
        assert_eq!(gcra.available(word, later), 0);
        assert!(gcra.take(word, later).is_err());
    }

    #[test]
    fn the_ends_of_time_are_no_trouble() {
        let gcra = gcra(3, SECOND, 2);
        let word = gcra.take(0, Timestamp::ZERO).unwrap();
        assert_eq!(gcra.available(word, Timestamp::MAX), 2);
        assert!(gcra.take(word, Timestamp::MAX).is_ok());
        let refused = gcra.take(u64::MAX, Timestamp::ZERO).unwrap_err();
        assert!(refused.until > Some(Timestamp::from_secs(1)));
        assert_eq!(gcra.available(u64::MAX, Timestamp::ZERO), 0);
    }
}
