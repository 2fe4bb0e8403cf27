//! Places booked ahead: reserved, given back, handed down.
//!
//! A reservation is a place in the sequence of permits, one interval from the next, and a moment at which it
//! may be used. The word runs ahead over all that is booked, so later callers queue up behind by themselves.

use super::Gcra;
use crate::{decision::Refusal, time::Timestamp};

/// A booked place in the sequence of permits.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Place(u64);

/// What a booking comes to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub struct Booked {
    /// The new word.
    pub word: u64,
    /// The place.
    pub place: Place,
    /// When it may be used: at once, or at its moment.
    pub at: Timestamp,
}

impl Gcra {
    /// Books the next place that is free.
    ///
    /// # Errors
    ///
    /// Its moment is after `latest`; the refusal names it. Nothing is booked: who cannot wait that long does not
    /// stand in anybody's way.
    pub fn reserve(&self, word: u64, now: Timestamp, latest: Timestamp) -> Result<Booked, Refusal> {
        let place = Place(word.max(self.tick_at(now)));
        let at = self.moment(place).max(now);
        if at > now && at > latest {
            return Err(self.refusal(word, now));
        }
        Ok(Booked { word: place.0.saturating_add(self.interval), place, at })
    }

    /// The place of a permit that was just taken, by the word that [`Gcra::take`] gave.
    #[inline]
    pub const fn place_taken(&self, word: u64) -> Place {
        Place(word.saturating_sub(self.interval))
    }

    /// The moment from which a place may be used.
    pub fn moment(&self, place: Place) -> Timestamp {
        self.moment_of(place.0)
    }

    /// Gives back a place that is not used, and the new word. `None`: it was not the last, and somebody has
    /// been let in or booked behind it on the reckoning that it is used; taking that back could let more
    /// through than the policy says.
    ///
    /// The new word is worth what the word was before the place was taken.
    #[inline]
    pub fn refund(&self, word: u64, place: Place) -> Option<u64> {
        (word == place.0.saturating_add(self.interval)).then_some(place.0)
    }

    /// Whether whoever holds the place `behind` may take over the place `freed`, which was in front of it, and
    /// free its own instead. Not if it is over: whoever took it then would go later than it says, and too close
    /// to the next.
    pub fn may_move_up(&self, behind: Place, freed: Place, now: Timestamp) -> bool {
        freed < behind && freed.0 >= self.tick_at(now)
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::rate::RatePolicy;

    const AT: fn(u64) -> Timestamp = Timestamp::from_secs;

    fn slow() -> Gcra {
        // One every two seconds, one at a time.
        Gcra::new(&RatePolicy { permits: 1, per: Duration::from_secs(2), burst: 1 }).unwrap()
    }

    fn booked(gcra: &Gcra, word: u64, now: Timestamp) -> (u64, Place, Timestamp) {
        let Booked { word, place, at } = gcra.reserve(word, now, Timestamp::MAX).unwrap();
        (word, place, at)
    }

    #[test]
    fn each_books_behind_the_one_before() {
        // LI-19
        let gcra = slow();
        let mut word = gcra.take(0, AT(0)).unwrap();
        for expected in [2, 4, 6] {
            let at;
            (word, _, at) = booked(&gcra, word, AT(0));
            assert_eq!(at, AT(expected));
        }
    }

    #[test]
    fn who_cannot_wait_that_long_books_nothing_and_is_told_when() {
        let gcra = slow();
        let word = gcra.take(0, AT(0)).unwrap();
        assert_eq!(gcra.reserve(word, AT(1), AT(2).before(NANO)).unwrap_err().until, Some(AT(2)));
        assert!(gcra.reserve(word, AT(1), AT(2)).is_ok());
        // A place that is there at once needs no patience, not even that until now.
        assert!(gcra.reserve(word, AT(2), AT(0)).is_ok());
    }

    #[test]
    fn only_the_last_place_comes_back_and_then_wholly() {
        let gcra = slow();
        let taken = gcra.take(0, AT(0)).unwrap();
        let (first_word, first, _) = booked(&gcra, taken, AT(0));
        let (word, second, _) = booked(&gcra, first_word, AT(0));
        assert_eq!(gcra.refund(word, first), None);
        assert_eq!(gcra.refund(word, second), Some(first_word));
        assert_eq!(gcra.refund(first_word, first), Some(taken));
        assert_eq!(gcra.refund(taken, gcra.place_taken(taken)), Some(0));
    }

    #[test]
    fn a_freed_place_may_be_taken_over_until_it_is_over() {
        let gcra = slow();
        let taken = gcra.take(0, AT(0)).unwrap();
        let (word, first, _) = booked(&gcra, taken, AT(0));
        let (_, second, _) = booked(&gcra, word, AT(0));
        assert!(gcra.may_move_up(second, first, AT(2)));
        assert!(!gcra.may_move_up(second, first, AT(2).after(NANO)));
        assert!(!gcra.may_move_up(first, second, AT(0)), "nobody moves back");
    }

    const NANO: Duration = Duration::from_nanos(1);
}
