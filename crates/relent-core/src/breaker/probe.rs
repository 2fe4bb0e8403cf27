//! The places of a half-open breaker's probes: free, lent to a probe until it is taken for lost, or done.

use crate::{time::Timestamp, window::Mark};

/// A place for one probe, in one word.
///
/// A place that is lent holds the moment at which it may be lent again, down to 1,024 ns, and in the bits below
/// ten bits of the breaker's generation. So the word is the lease itself: whoever gives a place back or reports
/// names the word and is heard only if it is still there. Two leases are never the same word: a place is lent
/// again in the same generation only after it was given back, or later than the first lease's end.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Slot(u64);

/// What a place holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// Nothing.
    Free,
    /// A probe that is under way, and the moment from which the place may be lent to another.
    Lent(Timestamp),
    /// What a probe found.
    Done(Found),
}

/// What a probe found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Found {
    /// It failed.
    pub failed: bool,
    /// It was slow.
    pub slow: bool,
}

/// A probe's hold on its place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Probe {
    /// Which place.
    pub place: u8,
    /// What stands there as long as the probe holds it.
    pub lease: Slot,
}

impl Slot {
    /// A free place.
    pub const FREE: Self = Self(0);

    /// The place of that word.
    pub const fn from_word(word: u64) -> Self {
        Self(word)
    }

    /// The word.
    pub const fn word(self) -> u64 {
        self.0
    }

    /// A place lent until `expires` in that generation.
    pub fn lent(expires: Timestamp, generation: u64) -> Self {
        let until = (expires.as_nanos() & !LABEL).clamp(FIRST_END, LAST_END);
        Self(until | (generation & LABEL))
    }

    /// A place whose probe ended.
    pub fn done(mark: Mark) -> Self {
        Self(DONE | u64::from(mark.failed()) | (u64::from(mark.slow) << 1))
    }

    /// What it holds.
    pub const fn place(self) -> Place {
        match self.0 {
            0 => Place::Free,
            DONE.. => Place::Done(Found { failed: self.0 & 1 != 0, slow: self.0 & 2 != 0 }),
            lent => Place::Lent(Timestamp::from_nanos(lent & !LABEL)),
        }
    }

    /// What the next probe would take: `None` if the place is held or done, and otherwise since when it may be
    /// taken.
    const fn takeable_since(self, now: Timestamp) -> Option<u64> {
        match self.place() {
            Place::Free => Some(0),
            Place::Lent(until) if now.as_nanos() >= until.as_nanos() => Some(until.as_nanos()),
            Place::Lent(_) | Place::Done(_) => None,
        }
    }
}

/// The place that the next probe takes, and what stands there: the first that is free, or else that of the probe
/// that was taken for lost the longest time ago.
pub fn next_place(slots: impl Iterator<Item = Slot>, now: Timestamp) -> Option<(u8, Slot)> {
    (0..)
        .zip(slots)
        .filter_map(|(place, slot)| Some((slot.takeable_since(now)?, place, slot)))
        .min_by_key(|(since, ..)| *since)
        .map(|(_, place, slot)| (place, slot))
}

/// What the probes found so far.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Tally {
    /// Probes that ended.
    pub done: u32,
    /// Those that failed.
    pub failed: u32,
    /// Those that were slow.
    pub slow: u32,
    /// The first moment at which a place may be lent again, if one is lent.
    pub next_end: Option<Timestamp>,
}

impl Tally {
    /// Looks at every place.
    pub fn of(slots: impl Iterator<Item = Slot>) -> Self {
        slots.fold(Self::default(), |tally, slot| match slot.place() {
            Place::Free => tally,
            Place::Lent(until) => {
                let next_end = tally.next_end.map_or(until, |end| end.min(until));
                Self { next_end: Some(next_end), ..tally }
            }
            Place::Done(found) => Self {
                done: tally.done + 1,
                failed: tally.failed + u32::from(found.failed),
                slow: tally.slow + u32::from(found.slow),
                ..tally
            },
        })
    }
}

/// The bits of a lease that tell generations apart.
const LABEL: u64 = (1 << 10) - 1;
/// The earliest and the latest end of a lease: between what is free and what is done.
const FIRST_END: u64 = LABEL + 1;
const LAST_END: u64 = (DONE & !LABEL) - FIRST_END;
/// From here on a word says how a probe ended.
const DONE: u64 = u64::MAX - 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::Grade;

    #[test]
    fn a_slot_reads_back_as_what_it_was_made_of() {
        assert_eq!(Slot::FREE.place(), Place::Free);
        for failed in [false, true] {
            for slow in [false, true] {
                let grade = if failed { Grade::Failure } else { Grade::Answer };
                let done = Slot::done(Mark { grade, slow });
                assert_eq!(done.place(), Place::Done(Found { failed, slow }));
                assert_eq!(done.takeable_since(Timestamp::MAX), None);
                assert_eq!(Slot::from_word(done.word()), done);
            }
        }
    }

    #[test]
    fn a_lease_ends_at_its_moment_and_is_short_by_no_more_than_a_microsecond_and_a_bit() {
        for (end, generation) in [(2048, 77), (30_000_000_000, 1_000_077), (1_900_000_000_000_000_123, 77)] {
            let lent = Slot::lent(Timestamp::from_nanos(end), generation);
            let Place::Lent(until) = lent.place() else { panic!("it is lent") };
            assert!(until.as_nanos() <= end && end - until.as_nanos() < 1024);
            assert!(lent.takeable_since(Timestamp::from_nanos(end)).is_some());
            assert!(lent.takeable_since(Timestamp::from_nanos(end - 1024)).is_none());
        }
    }

    #[test]
    fn a_probe_takes_what_is_free_before_it_takes_what_was_lost() {
        let lent = |secs| Slot::lent(Timestamp::from_secs(secs), 2);
        let done = Slot::done(Mark { grade: Grade::Success, slow: false });
        for (slots, now, place) in [
            ([lent(3), Slot::FREE, Slot::FREE], 9, Some(1)),
            ([lent(3), lent(2), done], 9, Some(1)),
            ([lent(2), lent(2), done], 9, Some(0)),
            ([lent(3), done, lent(5)], 4, Some(0)),
            ([lent(3), done, lent(5)], 2, None),
            ([done, done, done], 9, None),
        ] {
            let next = next_place(slots.into_iter(), Timestamp::from_secs(now));
            assert_eq!(next.map(|next| next.0), place, "{slots:?}");
        }
    }

    #[test]
    fn the_ends_of_time_are_leases_too() {
        for end in [Timestamp::ZERO, Timestamp::from_nanos(1), Timestamp::MAX] {
            for generation in [0, 1023, u64::MAX] {
                assert!(
                    matches!(Slot::lent(end, generation).place(), Place::Lent(_)),
                    "{end:?} {generation}"
                );
            }
        }
    }

    #[test]
    fn leases_of_neighbouring_generations_differ_at_the_same_moment() {
        for at in [Timestamp::ZERO, Timestamp::from_secs(1), Timestamp::MAX] {
            assert_ne!(Slot::lent(at, 4), Slot::lent(at, 6));
            assert_ne!(Slot::lent(at, 4), Slot::lent(at, 8));
        }
    }

    #[test]
    fn a_tally_counts_what_ended_and_knows_the_first_lease_that_runs_out() {
        let done = |grade, slow| Slot::done(Mark { grade, slow });
        let lent = |secs| Slot::lent(Timestamp::from_secs(secs), 2);
        let slots = [
            done(Grade::Failure, true),
            done(Grade::Answer, true),
            done(Grade::Success, false),
            lent(3),
            lent(2),
            lent(4),
            Slot::FREE,
        ];
        let Place::Lent(first) = lent(2).place() else { panic!("it is lent") };
        let expected = Tally { done: 3, failed: 1, slow: 2, next_end: Some(first) };
        assert_eq!(Tally::of(slots.into_iter()), expected);
    }
}
