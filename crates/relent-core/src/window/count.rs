//! The last so many calls: a ring, and totals that follow what enters and what leaves.

use alloc::{boxed::Box, vec};

use super::{Counts, Mark};

/// Where a count window stands: how many calls it has taken in, reckoned so that the number stays below twice the
/// window and still says both the place in the ring and how many places are filled.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Head(pub u32);

impl Head {
    /// The head after one more call, in a ring of `size` places.
    #[inline]
    #[must_use]
    pub const fn next(self, size: u32) -> Self {
        if self.0 + 1 == 2 * size { Self(size) } else { Self(self.0 + 1) }
    }

    /// The place that the next call takes.
    #[inline]
    pub const fn place(self, size: u32) -> u32 {
        if self.0 >= size { self.0 - size } else { self.0 }
    }

    /// How many places are filled.
    #[inline]
    pub const fn filled(self, size: u32) -> u32 {
        if self.0 >= size { size } else { self.0 }
    }
}

/// A count window in plain fields.
#[derive(Clone, Debug)]
pub struct CountState {
    ring: Box<[(bool, bool)]>,
    size: u32,
    head: Head,
    failures: u64,
    slow: u64,
}

impl CountState {
    /// An empty window of `size` calls; none at all is read as one.
    pub fn new(size: u32) -> Self {
        let size = size.clamp(1, super::Window::MOST_CALLS);
        Self { ring: vec![(false, false); size as usize].into(), size, head: Head(0), failures: 0, slow: 0 }
    }

    /// Takes in one call and lets go of the oldest, if the ring is full.
    pub fn add(&mut self, mark: Mark) {
        let place = &mut self.ring[self.head.place(self.size) as usize];
        if self.head.filled(self.size) == self.size {
            self.failures -= u64::from(place.0);
            self.slow -= u64::from(place.1);
        }
        *place = (mark.failed(), mark.slow);
        self.failures += u64::from(place.0);
        self.slow += u64::from(place.1);
        self.head = self.head.next(self.size);
    }

    /// What it holds.
    pub fn counts(&self) -> Counts {
        let calls = u64::from(self.head.filled(self.size));
        Counts { calls, failures: self.failures, slow: self.slow }
    }

    /// Forgets everything, without touching the ring.
    pub fn clear(&mut self) {
        (self.head, self.failures, self.slow) = (Head(0), 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_goes_round_and_remembers_that_the_ring_is_full() {
        let mut head = Head(0);
        let seen = [(); 9].map(|()| {
            let now = (head.place(3), head.filled(3));
            head = head.next(3);
            now
        });
        assert_eq!(seen, [(0, 0), (1, 1), (2, 2), (0, 3), (1, 3), (2, 3), (0, 3), (1, 3), (2, 3)]);
        let mut one = Head(0);
        for filled in [0, 1, 1, 1] {
            assert_eq!((one.place(1), one.filled(1)), (0, filled));
            one = one.next(1);
        }
    }
}
