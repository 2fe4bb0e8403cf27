//! The last so many calls: a ring of marks, its head, and totals that follow every change of a mark.
//!
//! A mark carries fourteen bits of its generation. Whoever replaces a mark adds the difference to the totals, so
//! the totals are at all times the sum of the generation's marks and of the differences on their way. Where a
//! success replaces a success, as it does in a healthy dependency's window, only the head is written.

use relent_core::{
    Window,
    breaker::Phase,
    window::{Counts, Mark, count::Head},
};

use super::{Epoch, Line, Tagged, tag};
use crate::sync::atomic::{AtomicU16, Ordering};

/// A count window that threads share.
#[derive(Debug)]
pub(crate) struct CountWindow {
    size: u32,
    ring: Box<[AtomicU16]>,
    head: Line<Tagged>,
    totals: Line<Totals>,
}

#[derive(Debug)]
struct Totals {
    failures: Tagged,
    slow: Tagged,
}

impl CountWindow {
    pub(crate) fn new(size: u32) -> Self {
        let size = size.clamp(1, Window::MOST_CALLS);
        Self {
            size,
            ring: (0..size).map(|_| AtomicU16::new(0)).collect(),
            head: Line(Tagged::new()),
            totals: Line(Totals { failures: Tagged::new(), slow: Tagged::new() }),
        }
    }

    #[inline]
    pub(crate) fn add(&self, epoch: Epoch<'_>, mark: Mark) -> bool {
        let next = |head| Head(head).next(self.size).0;
        let Ok(head) = self.head.0.step(epoch.tag(), |_| epoch.holds(), next) else {
            return false;
        };
        let place = Head(head).place(self.size);
        if let Some(left) = self.replace(place, epoch, mark) {
            self.totals.0.follow(epoch, left, mark);
        }
        true
    }

    pub(crate) fn counts(&self, phase: Phase) -> Counts {
        let tag = tag(phase);
        // The totals before the head: a failure is added after its call.
        let failures = at_least_zero(self.totals.0.failures.value(tag));
        let slow = at_least_zero(self.totals.0.slow.value(tag));
        let calls = Head(self.head.0.value(tag).unwrap_or(0)).filled(self.size);
        Counts { calls: calls.into(), failures, slow }
    }

    /// Puts a mark in its place, and returns which of its bits were there before if the totals must follow.
    fn replace(&self, place: u32, epoch: Epoch<'_>, mark: Mark) -> Option<u16> {
        let stamp = stamp(epoch.phase);
        let new = stamp | bits(mark);
        let cell = &self.ring[place as usize];
        #[cfg(test)]
        super::tagged::touched::one();
        let mut old = cell.load(Ordering::Acquire);
        while old != new {
            let same_generation = old & STAMP == stamp;
            if !same_generation && !epoch.holds() {
                return None;
            }
            match cell.compare_exchange_weak(old, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) if same_generation => return Some(old & !STAMP),
                Ok(_) => return Some(0),
                Err(present) => old = present,
            }
        }
        None
    }
}

impl Totals {
    fn follow(&self, epoch: Epoch<'_>, left: u16, mark: Mark) {
        let entered = bits(mark);
        for (total, bit) in [(&self.failures, FAILED), (&self.slow, SLOW)] {
            let change = match (left & bit != 0, entered & bit != 0) {
                (true, false) => -1,
                (false, true) => 1,
                _ => continue,
            };
            // Where the breaker has moved on meanwhile, the window that this belongs to is gone.
            let _gone = total.step(epoch.tag(), |_| epoch.holds(), |total| total.wrapping_add_signed(change));
        }
    }
}

/// A total may fall below zero for a moment, when a mark is replaced before whoever set it has added it.
fn at_least_zero(total: Option<u32>) -> u64 {
    u64::try_from(total.unwrap_or(0).cast_signed()).unwrap_or(0)
}

const fn bits(mark: Mark) -> u16 {
    (if mark.failed() { FAILED } else { 0 }) | (if mark.slow { SLOW } else { 0 })
}

#[expect(clippy::cast_possible_truncation, reason = "fourteen bits tell neighbours apart")]
const fn stamp(phase: Phase) -> u16 {
    (phase.generation() << 2) as u16
}

const FAILED: u16 = 1;
const SLOW: u16 = 2;
const STAMP: u16 = !3;

#[cfg(test)]
mod tests {
    use relent_core::window::Grade;

    use super::*;
    use crate::sync::atomic::AtomicU64;

    const GOOD: Mark = Mark { grade: Grade::Success, slow: false };
    const BAD: Mark = Mark { grade: Grade::Failure, slow: true };

    #[test]
    fn a_mark_whose_breaker_has_moved_on_replaces_none_of_what_came_after() {
        let (window, later) = (CountWindow::new(1), Phase::START.opened().half_opened().closed());
        let state = AtomicU64::new(later.word());
        let [before, after] = [Phase::START, later].map(|phase| Epoch { state: &state, phase });
        assert!(window.add(after, BAD));
        // Its head was taken before the change, and the mark comes after it.
        assert_eq!(window.replace(0, before, GOOD), None);
        assert!(window.add(after, GOOD), "and what was there leaves in its turn");
        assert_eq!(window.counts(later), Counts { calls: 1, failures: 0, slow: 0 });
    }

    #[test]
    fn what_came_of_a_call_and_the_generation_it_belongs_to_share_no_bit_of_a_mark() {
        let mut phase = Phase::START;
        for generation in 0..100 {
            assert_eq!(stamp(phase) & (FAILED | SLOW), 0, "{generation}");
            assert_eq!(stamp(phase), generation << 2);
            phase = phase.isolated();
        }
    }
}
