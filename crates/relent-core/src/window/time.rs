//! The calls of the last so long: ten slices of the window, each of which is let go of as a whole.
//!
//! Time is cut into slices from the clock's origin. A slice is kept at the place of its number modulo ten, beside
//! its lap, the number divided by ten; what is at a place counts only while its lap is the present one for that
//! place, so nothing ever has to be cleared when time goes by.
//!
//! # Source
//!
//! Polly's rolling health metrics keep ten slices too.

use core::time::Duration;

use super::{Counts, Mark};
use crate::time::{Timestamp, saturating_nanos};

/// How a window's time is cut.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Slicing {
    nanos: u64,
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
        Self { nanos: saturating_nanos(window).div_ceil(SLICES as u64).max(1) }
    }

    /// The slice that an instant lies in.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a remainder of ten")]
    pub const fn slice(self, at: Timestamp) -> Slice {
        let number = at.as_nanos() / self.nanos;
        Slice { place: (number % SLICES as u64) as usize, lap: number / SLICES as u64 }
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
    fn a_window_is_never_cut_shorter_than_told() {
        assert_eq!(Slicing::new(Duration::from_nanos(25)).nanos, 3);
        assert_eq!(Slicing::new(Duration::from_nanos(1)).nanos, 1);
    }
}
