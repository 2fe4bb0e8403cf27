//! A number that belongs to a tag: of another tag, it does not count.

use crate::sync::atomic::{AtomicU64, Ordering};

/// `tag << 32 | value`.
#[derive(Debug)]
pub(crate) struct Tagged(AtomicU64);

/// What a cell holds.
#[derive(Clone, Copy)]
pub(crate) struct Read {
    pub(crate) tag: u32,
    pub(crate) value: u32,
}

impl Read {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the halves of a word")]
    const fn of(word: u64) -> Self {
        Self { tag: (word >> 32) as u32, value: word as u32 }
    }
}

/// A call that came too late: the number belongs to somebody later.
pub(crate) struct Late;

impl Tagged {
    /// Zero, of tag zero.
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// The value, if it belongs to the tag.
    #[inline]
    pub(crate) fn value(&self, tag: u32) -> Option<u32> {
        let read = self.read();
        (read.tag == tag).then_some(read.value)
    }

    /// The value and its tag.
    #[inline]
    pub(crate) fn read(&self) -> Read {
        Read::of(self.load())
    }

    /// Steps the value and returns what it was; a number of another tag counts as zero, and `may_take` says
    /// whether it may be taken over.
    #[inline(always)]
    pub(crate) fn step(
        &self,
        tag: u32,
        may_take: impl Fn(u32) -> bool,
        next: impl Fn(u32) -> u32,
    ) -> Result<u32, Late> {
        let mut word = self.load();
        loop {
            let its = Read::of(word);
            let value = match its.tag == tag {
                true => its.value,
                false if may_take(its.tag) => 0,
                false => return Err(Late),
            };
            let new = (u64::from(tag) << 32) | u64::from(next(value));
            match self.0.compare_exchange_weak(word, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(value),
                Err(present) => word = present,
            }
        }
    }

    /// One more, saturating; as [`Tagged::step`].
    #[inline(always)]
    pub(crate) fn one_more(&self, tag: u32, may_take: impl Fn(u32) -> bool) -> Result<(), Late> {
        let mut word = self.load();
        loop {
            let its = Read::of(word);
            let new = match its.tag == tag {
                // Added in place, where it does not carry into the tag.
                true if its.value < u32::MAX => word + 1,
                true => return Ok(()),
                false if may_take(its.tag) => (u64::from(tag) << 32) | 1,
                false => return Err(Late),
            };
            match self.0.compare_exchange_weak(word, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(()),
                Err(present) => word = present,
            }
        }
    }

    #[inline]
    fn load(&self) -> u64 {
        #[cfg(test)]
        touched::one();
        self.0.load(Ordering::Acquire)
    }
}

/// Keeps what is inside on cache lines of its own, two of them because processors fetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Line<T>(pub(crate) T);

/// How many shared cells this thread touched: what a call costs, where a stopwatch would be a matter of luck.
#[cfg(test)]
pub(crate) mod touched {
    use std::cell::Cell;

    std::thread_local! {
        static TOUCHED: Cell<u32> = const { Cell::new(0) };
    }

    pub(crate) fn one() {
        TOUCHED.set(TOUCHED.get() + 1);
    }

    pub(crate) fn by<T>(work: impl FnOnce() -> T) -> u32 {
        let before = TOUCHED.get();
        work();
        TOUCHED.get() - before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Tagged {
        fn parts(&self) -> (u32, u32) {
            let Read { tag, value } = self.read();
            (tag, value)
        }
    }

    #[test]
    fn a_number_that_cannot_grow_stays_and_leaves_its_tag_alone() {
        let cell = Tagged(AtomicU64::new((7 << 32) | u64::from(u32::MAX - 1)));
        for _ in 0..3 {
            assert!(cell.one_more(7, |_| unreachable!("it is of the tag")).is_ok());
            assert_eq!(cell.parts(), (7, u32::MAX));
        }
    }

    #[test]
    fn a_cell_of_another_tag_counts_as_zero_and_is_taken_over_only_where_it_may_be() {
        let cell = Tagged::new();
        assert!(cell.one_more(3, |its| its == 0).is_ok());
        assert_eq!(cell.parts(), (3, 1));
        assert!(matches!(cell.step(4, |its| its == 3, |value| value + 5), Ok(0)));
        assert_eq!(cell.parts(), (4, 5));
        assert!(cell.step(9, |its| its != 4, |value| value).is_err() && cell.one_more(9, |_| false).is_err());
        assert_eq!((cell.parts(), cell.value(4), cell.value(9)), ((4, 5), Some(5), None));
    }
}
