//! Retries up to a share of the traffic in a sliding window.
//!
//! "20 %" is said of two things. Of the *originals*, as Finagle means it, it allows 1.2 requests for each call;
//! of *all* requests, as the SRE book means its 10 %, 1.11. The policy says which.
//!
//! The window is ten slices, the present one among them; what stood at its far end leaves slice by slice. Nothing is truncated: 60 % of ten
//! calls is six retries, and 25 % of ten is two. Of all requests a retry may go while the share is still below
//! its limit, which is how the SRE book puts it, so that one may pass it by a fraction.
//!
//! # Source
//!
//! Finagle's `RetryBudget` (10 s, 20 %, at least 10 a second); *Site Reliability Engineering*, chapter
//! "Handling Overload" (10 % of all requests, three attempts a call).

use core::time::Duration;

use crate::time::{Timestamp, saturating_nanos};

/// The ratio budget's numbers.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct RatioPolicy {
    /// Of what the share is.
    pub of: Of,
    /// Thousandths.
    pub share_milli: u32,
    /// How far back it counts.
    pub window: Duration,
    /// Retries a second that are always allowed, so that a quiet client can retry at all.
    pub floor_per_second: u32,
}

/// Of what a share is.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Of {
    /// Of first attempts.
    Originals,
    /// Of first attempts and retries together.
    All,
}

impl RatioPolicy {
    /// Finagle's numbers.
    pub const FINAGLE: Self =
        Self { of: Of::Originals, share_milli: 200, window: Duration::from_secs(10), floor_per_second: 10 };
    /// The SRE book's number, over two minutes.
    pub const SRE: Self =
        Self { of: Of::All, share_milli: 100, window: Duration::from_secs(120), floor_per_second: 0 };

    /// Whether one more retry may join what the window holds.
    pub fn allows(&self, originals: u64, retries: u64) -> bool {
        let milli = |requests: u64| requests.saturating_mul(u64::from(self.share_milli));
        let limit = |requests: u64| milli(requests).saturating_add(self.floor_milli());
        match self.of {
            Of::Originals => (retries + 1) * 1000 <= limit(originals),
            Of::All => retries * 1000 < limit(originals + retries),
        }
    }

    /// Retries that the window always has room for, in thousandths.
    pub fn floor_milli(&self) -> u64 {
        let micros = saturating_nanos(self.window) / 1000;
        u64::try_from(u128::from(micros) * u128::from(self.floor_per_second) / 1000).unwrap_or(u64::MAX)
    }

    /// The number of the slice that `now` lies in.
    pub fn slice_at(&self, now: Timestamp) -> u64 {
        now.as_nanos() / (saturating_nanos(self.window) / SLICES as u64).max(1)
    }
}

/// The place of a slice in a ring of [`SLICES`].
#[expect(clippy::cast_possible_truncation, reason = "below ten")]
pub const fn place(slice: u64) -> usize {
    (slice % SLICES as u64) as usize
}

/// What a sliding window of ten slices holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RatioState {
    slices: [Slice; SLICES],
    newest: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slice {
    originals: u64,
    retries: u64,
}

impl RatioState {
    pub(super) fn on_call(&mut self, policy: &RatioPolicy, now: Timestamp) {
        self.turn(policy, now).originals += 1;
    }

    /// The slice that the retry was counted in, if it was let through.
    pub(super) fn try_retry(&mut self, policy: &RatioPolicy, now: Timestamp) -> Option<u64> {
        self.turn(policy, now);
        let sum = |part: fn(&Slice) -> u64| self.slices.iter().map(part).sum();
        if !policy.allows(sum(|slice| slice.originals), sum(|slice| slice.retries)) {
            return None;
        }
        self.slices[place(self.newest)].retries += 1;
        Some(self.newest)
    }

    /// Takes back a retry, unless the slice that it was counted in has left the window with it.
    pub(super) fn give_back(&mut self, slice: u64) {
        if slice.saturating_add(SLICES as u64) > self.newest {
            let retries = &mut self.slices[place(slice)].retries;
            *retries = retries.saturating_sub(1);
        }
    }

    /// Lets go of what left the window and returns the present slice. A clock that went back counts into the
    /// newest.
    fn turn(&mut self, policy: &RatioPolicy, now: Timestamp) -> &mut Slice {
        let present = policy.slice_at(now).max(self.newest);
        let passed = (present - self.newest).min(SLICES as u64);
        for slice in present - passed..present {
            self.slices[place(slice + 1)] = Slice::default();
        }
        self.newest = present;
        &mut self.slices[place(present)]
    }
}

/// Slices in a window. What the window holds is between nine and ten of them old.
pub const SLICES: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(share_milli: u32, originals: u64) -> u64 {
        let policy = RatioPolicy { share_milli, floor_per_second: 0, ..RatioPolicy::FINAGLE };
        (0..1000).take_while(|retries| policy.allows(originals, *retries)).count() as u64
    }

    #[test]
    fn no_ratio_is_cut_to_a_whole_reciprocal() {
        // BU-01: 60 % is not 100 %.
        for (share_milli, expected) in [(600, 6), (300, 3), (900, 9), (250, 2), (333, 3), (1, 0), (1000, 10)]
        {
            assert_eq!(granted(share_milli, 10), expected, "{share_milli} thousandths of ten calls");
        }
    }

    #[test]
    fn of_all_requests_a_retry_goes_while_the_share_is_below_its_limit() {
        let granted = |policy: RatioPolicy, originals| {
            (0..1000).take_while(|retries| policy.allows(originals, *retries)).count()
        };
        for (originals, expected) in [(0, 0), (1, 1), (90, 10), (91, 11), (900, 100)] {
            assert_eq!(granted(RatioPolicy::SRE, originals), expected, "a tenth, beside {originals} calls");
        }
        let floor = RatioPolicy { floor_per_second: 1, window: Duration::from_secs(9), ..RatioPolicy::SRE };
        assert_eq!(granted(floor, 0), 10, "nine of the floor, and the tenth that passes it");
    }

    #[test]
    fn a_floor_is_so_many_a_second_over_the_window() {
        assert_eq!(RatioPolicy::FINAGLE.floor_milli(), 100_000);
        let halves =
            RatioPolicy { floor_per_second: 1, window: Duration::from_millis(1500), ..RatioPolicy::FINAGLE };
        assert_eq!(halves.floor_milli(), 1_500);
        let endless = RatioPolicy { floor_per_second: u32::MAX, window: Duration::MAX, ..halves };
        assert!(endless.allows(u64::MAX / 2, 5), "saturates and does not overflow");
    }

    #[test]
    fn a_window_keeps_what_is_nine_slices_old_and_lets_go_of_what_is_ten() {
        let policy = RatioPolicy { share_milli: 1000, floor_per_second: 0, ..RatioPolicy::FINAGLE };
        for (millis, remembered) in
            [(0, true), (9_999, true), (10_000, false), (10_001, false), (1_000_000, false)]
        {
            let mut state = RatioState::default();
            state.on_call(&policy, Timestamp::ZERO);
            let answer = state.try_retry(&policy, Timestamp::from_millis(millis));
            assert_eq!(answer.is_some(), remembered, "after {millis} ms");
        }
    }

    #[test]
    fn a_retry_is_taken_back_from_its_own_slice_and_only_while_it_counts() {
        let policy = RatioPolicy { share_milli: 0, floor_per_second: 1, ..RatioPolicy::FINAGLE };
        let second = Timestamp::from_secs;
        let mut state = RatioState::default();
        let early = state.try_retry(&policy, second(0)).expect("room for ten");
        let late = state.try_retry(&policy, second(5)).expect("room for ten");
        state.give_back(early);
        assert_eq!(state.slices.map(|slice| slice.retries), [0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
        state.turn(&policy, second(15));
        state.try_retry(&policy, second(15)).expect("room for ten");
        state.give_back(late);
        assert_eq!(state.slices[5].retries, 1, "the slice of second 15 stands where that of second 5 stood");
    }

    #[test]
    fn a_clock_that_goes_back_counts_into_the_newest_slice() {
        let policy = RatioPolicy { share_milli: 1000, floor_per_second: 0, ..RatioPolicy::FINAGLE };
        let mut state = RatioState::default();
        state.on_call(&policy, Timestamp::from_secs(100));
        state.on_call(&policy, Timestamp::from_secs(3));
        let taken: [_; 3] = core::array::from_fn(|_| state.try_retry(&policy, Timestamp::from_secs(50)));
        assert_eq!(taken, [Some(100), Some(100), None]);
    }
}
