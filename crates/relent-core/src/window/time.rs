//! The calls of the last so long: ten slices of the window, each of which is let go of as a whole.
//!
//! Time is cut into slices from the clock's origin. A slice is kept at the place of its number modulo ten, beside
//! its lap, the number divided by ten; what is at a place counts only while its lap is the present one for that
//! place, so nothing ever has to be cleared when time goes by.
//!
//! # Source
//!
//! Polly's rolling health metrics keep ten slices too.

use core::{num::NonZeroU64, time::Duration};

use super::{Counts, Mark};
use crate::time::{Timestamp, saturating_nanos};

/// How a window's time is cut.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Slicing {
    nanos: NonZeroU64,
    /// Its reciprocal, `2^(64 + shift) ÷ nanos` rounded up, by which every instant before `exact_until` is divided.
    reciprocal: u64,
    shift: u32,
    exact_until: u64,
}

/// A slice of time: the place that keeps it, and which lap around the places it belongs to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Slice {
    /// Below [`SLICES`].
    pub place: usize,
    /// Its number divided by [`SLICES`].
    pub lap: u64,
}

impl Slicing {
    /// Slices of a tenth of the window, rounded up to a nanosecond.
    pub fn new(window: Duration) -> Self {
        let nanos =
            NonZeroU64::new(saturating_nanos(window).div_ceil(SLICES as u64)).unwrap_or(NonZeroU64::MIN);
        // Of a slice of one nanosecond the reciprocal would not fit; it is divided by as it is.
        let shift = (u64::BITS - (nanos.get() - 1).leading_zeros()).saturating_sub(1);
        let reciprocal = (1u128 << (u64::BITS + shift)).div_ceil(u128::from(nanos.get()));
        match u64::try_from(reciprocal) {
            Ok(reciprocal) => Self { nanos, reciprocal, shift, exact_until: HALF },
            Err(_) => Self { nanos, reciprocal: 0, shift: 0, exact_until: 0 },
        }
    }

    /// The slice that an instant lies in.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a remainder of ten")]
    pub const fn slice(&self, at: Timestamp) -> Slice {
        let number = self.number(at.as_nanos());
        Slice { place: (number % SLICES as u64) as usize, lap: number / SLICES as u64 }
    }
}

impl Slicing {
    /// `at ÷ nanos`, by a multiplication where that is exact: every call asks, and a division costs several times more.
    ///
    /// # Source
    ///
    /// Granlund, Montgomery: Division by invariant integers using multiplication, 1994, for dividends of 63 bits.
    #[inline]
    const fn number(&self, at: u64) -> u64 {
        match at < self.exact_until {
            true => ((at as u128 * self.reciprocal as u128) >> u64::BITS) as u64 >> self.shift,
            false => at / self.nanos.get(),
        }
    }
}

impl Slice {
    /// The oldest lap at `place` that is still within the window when this is the present slice. What is kept
    /// there from this lap or the next one counts; the next one only where another thread's clock was ahead.
    pub const fn oldest_lap(self, place: usize) -> Option<u64> {
        if place <= self.place { Some(self.lap) } else { self.lap.checked_sub(1) }
    }
}

/// A time window in plain fields.
#[derive(Clone, Debug)]
pub struct TimeState {
    slicing: Slicing,
    kept: [Kept; SLICES],
}

#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    lap: u64,
    counts: Counts,
}

impl TimeState {
    /// An empty window.
    pub fn new(window: Duration) -> Self {
        Self { slicing: Slicing::new(window), kept: [Kept::default(); SLICES] }
    }

    /// Takes in one call. `false`: it came so late that it had left the window already.
    pub fn add(&mut self, mark: Mark, now: Timestamp) -> bool {
        let slice = self.slicing.slice(now);
        let kept = &mut self.kept[slice.place];
        if kept.lap < slice.lap {
            *kept = Kept { lap: slice.lap, counts: Counts::default() };
        } else if kept.lap > slice.lap {
            return false;
        }
        kept.counts.calls += 1;
        kept.counts.failures += u64::from(mark.failed());
        kept.counts.slow += u64::from(mark.slow);
        true
    }

    /// What it holds at `now`.
    pub fn counts(&self, now: Timestamp) -> Counts {
        let present = self.slicing.slice(now);
        let mut sum = Counts::default();
        for (place, kept) in self.kept.iter().enumerate() {
            let oldest = present.oldest_lap(place);
            if oldest == Some(kept.lap) || oldest.map_or(0, |lap| lap + 1) == kept.lap {
                sum.calls += kept.counts.calls;
                sum.failures += kept.counts.failures;
                sum.slow += kept.counts.slow;
            }
        }
        sum
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.kept = [Kept::default(); SLICES];
    }
}

/// Half of what an instant can be: the year 2262.
const HALF: u64 = 1 << 63;

/// How many slices a window is cut into.
pub const SLICES: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::Grade;

    const FAILED: Mark = Mark { grade: Grade::Failure, slow: false };

    #[test]
    fn a_call_is_remembered_for_nine_to_ten_slices() {
        let secs = Timestamp::from_secs;
        for (at, last) in [(0, 9), (5, 14), (99, 108)] {
            let mut state = TimeState::new(Duration::from_secs(10));
            state.add(FAILED, secs(at));
            assert_eq!(state.counts(secs(at)).failures, 1);
            assert_eq!(state.counts(secs(last)).failures, 1, "{at}");
            assert_eq!(state.counts(secs(last + 1)).failures, 0, "{at}");
            assert_eq!(state.counts(secs(last + 1000)).failures, 0, "{at}");
        }
    }

    #[test]
    fn a_call_that_comes_a_window_late_is_not_remembered() {
        let mut state = TimeState::new(Duration::from_secs(10));
        assert!(state.add(FAILED, Timestamp::from_secs(25)));
        assert!(!state.add(FAILED, Timestamp::from_secs(15)));
        assert_eq!(state.counts(Timestamp::from_secs(25)).calls, 1);
        assert!(state.add(FAILED, Timestamp::from_secs(24)));
        assert_eq!(state.counts(Timestamp::from_secs(25)).calls, 2, "a little late still counts");
        assert_eq!(state.counts(Timestamp::from_secs(24)).calls, 2, "also for a clock that is behind");
    }

    #[test]
    fn a_multiplication_gives_the_slice_that_a_division_gives() {
        let lengths =
            [1, 2, 3, 7, 1000, 999_999_937, 1 << 32, (1 << 32) + 1, 1 << 60, (1 << 60) + 1, u64::MAX / 10];
        for nanos in lengths {
            let slicing = Slicing::new(Duration::from_nanos(nanos * 10));
            assert_eq!(slicing.nanos.get(), nanos);
            let multiples = [1, 2, 3, 1000, HALF / nanos, HALF / nanos + 1, u64::MAX / nanos];
            let edges = multiples.into_iter().filter_map(|many| nanos.checked_mul(many));
            for at in edges.flat_map(|edge| [edge - 1, edge, edge.saturating_add(1)]).chain([
                0,
                HALF - 1,
                HALF,
                u64::MAX,
            ]) {
                assert_eq!(slicing.number(at), at / nanos, "{at} / {nanos}");
            }
        }
    }

    #[test]
    fn a_window_is_never_cut_shorter_than_told() {
        assert_eq!(Slicing::new(Duration::from_nanos(25)).nanos.get(), 3);
        assert_eq!(Slicing::new(Duration::from_nanos(1)).nanos.get(), 1);
        assert_eq!(Slicing::new(Duration::ZERO).nanos.get(), 1);
    }
}
