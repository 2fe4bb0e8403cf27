//! How much may be in flight at once, and how many may wait for their turn.
//!
//! The whole account is one word, [`Occupancy`], stepped by pure functions: the live driver keeps it in an
//! atomic and steps it by compare-and-swap, a simulation keeps it in a plain variable. Whoever frees a place
//! while somebody waits passes it on in order of arrival; nobody who comes later takes it from under them.

use alloc::format;
use core::time::Duration;

use crate::{
    decision::{Gate, Refusal},
    policy::Invalid,
};

/// A fixed limit with a bounded queue, as data.
///
/// # Choosing a value
///
/// Calls in flight are calls per second × seconds a call takes: 200/s of 50 ms each are 10. Set the limit to what
/// the dependency bears, some way above that. A queue of half the limit evens out a burst; a longer one only
/// makes callers wait for what will be late, and the deadline cuts it anyway.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ConcurrencyPolicy {
    /// How many may be in flight. At least 1.
    pub limit: u32,
    /// How many may wait for their turn. 0: whoever finds no place is refused at once.
    pub queue: u32,
}

impl ConcurrencyPolicy {
    /// Whether the limit lets anything through and can be counted. `slot` is where it stands in a policy, as in
    /// `admission.concurrency`.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with the field's name.
    pub fn validate(&self, slot: &str) -> Result<(), Invalid> {
        if self.limit == 0 {
            let reason =
                "0 would let nothing through, ever; write 1 or more, or leave the table out for no limit";
            return Err(Invalid::new(format!("{slot}.limit"), reason));
        }
        if self.limit > Occupancy::MOST {
            let reason = format!("{} is more than can be counted; at most {}", self.limit, Occupancy::MOST);
            return Err(Invalid::new(format!("{slot}.limit"), reason));
        }
        Ok(())
    }
}

/// What a concurrency limit says when it refuses. A place comes free when a call ends, and nobody knows when
/// that is. The advice is for loops that would otherwise ask again at once: long against the loop, short
/// against most calls.
pub const REFUSAL: Refusal =
    Refusal { by: Gate::Concurrency, until: None, advised: Duration::from_millis(100) };

/// Who is in flight, under which limit, and whether somebody waits: one word, so that it is judged as a whole.
///
/// From the top: 31 bits of limit, one bit that says that somebody waits, 32 bits of count. The count may stand
/// above the limit after the limit was lowered; nobody is let in until it is below again.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Occupancy(u64);

impl Occupancy {
    /// The highest limit that fits.
    pub const MOST: u32 = (1 << 31) - 1;

    /// Nobody in flight, nobody waiting. A limit of 0 counts as 1, one above [`Occupancy::MOST`] as that.
    pub fn new(limit: u32) -> Self {
        Self(0).with_limit(limit)
    }

    /// The state that such a word stands for.
    pub const fn from_word(word: u64) -> Self {
        Self(word)
    }

    /// The word.
    pub const fn word(self) -> u64 {
        self.0
    }

    /// The limit.
    pub const fn limit(self) -> u32 {
        low_half(self.0 >> LIMIT_SHIFT)
    }

    /// How many are in flight.
    pub const fn in_flight(self) -> u32 {
        low_half(self.0)
    }

    /// Whether somebody waits.
    pub const fn is_awaited(self) -> bool {
        self.0 & AWAITED != 0
    }

    /// Whether one more may be in flight, whoever waits.
    pub const fn has_room(self) -> bool {
        self.in_flight() < self.limit()
    }

    /// Lets a newcomer in, unless it is full or somebody was there before.
    #[inline]
    pub fn enter(self) -> Option<Self> {
        if self.is_awaited() { None } else { self.pass_on() }
    }

    /// Lets in the one who has waited longest, unless it is full.
    #[inline]
    pub fn pass_on(self) -> Option<Self> {
        self.has_room().then_some(Self(self.0 + ONE))
    }

    /// One in flight has ended. At none in flight it stays there.
    #[must_use]
    pub const fn leave(self) -> Self {
        if self.in_flight() == 0 { self } else { Self(self.0 - ONE) }
    }

    /// Somebody waits from now on.
    #[must_use]
    pub const fn awaited(self) -> Self {
        Self(self.0 | AWAITED)
    }

    /// Nobody waits any more.
    #[must_use]
    pub const fn not_awaited(self) -> Self {
        Self(self.0 & !AWAITED)
    }

    /// Under another limit. 0 counts as 1, what is above [`Occupancy::MOST`] as that.
    #[must_use]
    pub fn with_limit(self, limit: u32) -> Self {
        let limit = limit.clamp(1, Self::MOST);
        Self(self.0 & !(u64::MAX << LIMIT_SHIFT) | u64::from(limit) << LIMIT_SHIFT)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the upper half is what it takes off")]
const fn low_half(word: u64) -> u32 {
    word as u32
}

const ONE: u64 = 1;
const AWAITED: u64 = 1 << 32;
const LIMIT_SHIFT: u32 = 33;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_nothing_or_of_more_than_fits_is_refused_by_name() {
        // LI-05
        let refused = |limit| ConcurrencyPolicy { limit, queue: 0 }.validate("attempt.concurrency");
        assert_eq!(refused(0).unwrap_err().field, "attempt.concurrency.limit");
        assert_eq!(refused(1 << 31).unwrap_err().field, "attempt.concurrency.limit");
        assert_eq!((refused(1), refused((1 << 31) - 1)), (Ok(()), Ok(())));
    }

    #[test]
    fn the_limit_is_reached_and_not_passed() {
        // LI-03
        for limit in [1, 10] {
            let mut state = Occupancy::new(limit);
            for _ in 0..limit {
                state = state.enter().unwrap();
            }
            assert_eq!((state.enter(), state.in_flight()), (None, limit));
            assert!(state.leave().enter().is_some());
        }
    }

    #[test]
    fn nobody_overtakes_those_who_wait() {
        let awaited = Occupancy::new(2).enter().unwrap().awaited();
        assert_eq!(awaited.enter(), None, "there is room, but not for a newcomer");
        assert_eq!(awaited.pass_on().unwrap().in_flight(), 2);
        assert!(awaited.not_awaited().enter().is_some());
    }

    #[test]
    fn the_parts_of_the_word_do_not_touch_each_other() {
        let full = Occupancy::new(Occupancy::MOST).awaited().enter().is_none();
        assert!(full);
        let state = Occupancy::new(3).enter().unwrap().awaited().with_limit(u32::MAX);
        assert_eq!((state.limit(), state.in_flight(), state.is_awaited()), (Occupancy::MOST, 1, true));
        let lowered = state.with_limit(0);
        assert_eq!((lowered.limit(), lowered.in_flight(), lowered.has_room()), (1, 1, false));
        assert_eq!(Occupancy::new(1).leave(), Occupancy::new(1));
        assert_eq!(Occupancy::from_word(state.word()), state);
    }
}
