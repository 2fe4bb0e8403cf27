//! The calls of the last so long: ten slices, kept several times over so that threads write to cells of their own.
//!
//! A thread adds to its own stripe; only after a failure or a slow call are the stripes summed. A cell's tag is
//! twelve bits of the generation and twenty of the lap, so time that goes by clears nothing either.

use std::time::Duration;

use relent_core::{
    Timestamp,
    breaker::Phase,
    window::{
        Counts, Mark,
        time::{SLICES, Slicing},
    },
};

use super::{Epoch, Tagged, tagged::Read};
use crate::sync::{parallelism, thread_number};

/// A time window that threads share.
#[derive(Debug)]
pub(crate) struct TimeWindow {
    slicing: Slicing,
    /// A power of two of them.
    stripes: Box<[Stripe]>,
}

#[derive(Debug)]
#[repr(align(128))]
struct Stripe {
    slices: [Cells; SLICES],
}

#[derive(Debug)]
struct Cells {
    calls: Tagged,
    failures: Tagged,
    slow: Tagged,
}

impl TimeWindow {
    pub(crate) fn new(window: Duration) -> Self {
        let stripes = parallelism().next_power_of_two().min(MOST_STRIPES);
        let cells = || Cells { calls: Tagged::new(), failures: Tagged::new(), slow: Tagged::new() };
        let stripe = |_| Stripe { slices: std::array::from_fn(|_| cells()) };
        Self { slicing: Slicing::new(window), stripes: (0..stripes).map(stripe).collect() }
    }

    #[inline(always)]
    pub(crate) fn add(&self, epoch: Epoch<'_>, mark: Mark, now: Timestamp) -> bool {
        let slice = self.slicing.slice(now);
        let tag = tag(epoch.phase, slice.lap);
        let stripe = &self.stripes[thread_number() & (self.stripes.len() - 1)];
        let cells = &stripe.slices[slice.place];
        // The call before its failure: whoever sums sees no failure without its call.
        one_more(&cells.calls, epoch, tag) && (!mark.is_bad() || cells.add_bad(epoch, tag, mark))
    }

    pub(crate) fn counts(&self, phase: Phase, now: Timestamp) -> Counts {
        let present = self.slicing.slice(now);
        let mut sum = Counts::default();
        for place in 0..SLICES {
            let oldest = present.oldest_lap(place);
            let next = oldest.map_or(0, |lap| lap + 1);
            let tags = [oldest.map(|lap| tag(phase, lap)), Some(tag(phase, next))];
            for stripe in &self.stripes {
                stripe.slices[place].add_to(&mut sum, tags);
            }
        }
        sum
    }
}

impl Cells {
    #[inline(never)]
    fn add_bad(&self, epoch: Epoch<'_>, tag: u32, mark: Mark) -> bool {
        (!mark.failed() || one_more(&self.failures, epoch, tag))
            && (!mark.slow || one_more(&self.slow, epoch, tag))
    }

    /// Adds what is there, if it belongs to one of the tags. The calls are read last and name the lap: what is of
    /// another has been left behind.
    fn add_to(&self, sum: &mut Counts, tags: [Option<u32>; 2]) {
        let (failures, slow, calls) = (self.failures.read(), self.slow.read(), self.calls.read());
        if tags.contains(&Some(calls.tag)) {
            let of_lap = |bad: Read| if bad.tag == calls.tag { u64::from(bad.value) } else { 0 };
            sum.calls += u64::from(calls.value);
            sum.failures += of_lap(failures);
            sum.slow += of_lap(slow);
        }
    }
}

/// Counts one more. `false`: it comes too late.
#[inline(always)]
fn one_more(cell: &Tagged, epoch: Epoch<'_>, tag: u32) -> bool {
    let may_take = move |its: u32| !is_later_lap(its, tag) && epoch.holds();
    cell.one_more(tag, may_take).is_ok()
}

#[expect(clippy::cast_possible_truncation, reason = "the low bits tell neighbours apart")]
const fn tag(phase: Phase, lap: u64) -> u32 {
    ((phase.generation() as u32) << LAP_BITS) | (lap as u32 & LAPS)
}

/// Whether `its` is of the same generation as `mine` and a few laps ahead, so that mine comes too late.
const fn is_later_lap(its: u32, mine: u32) -> bool {
    its >> LAP_BITS == mine >> LAP_BITS && its.wrapping_sub(mine) & LAPS <= LATE_LAPS
}

const LAP_BITS: u32 = 20;
const LAPS: u32 = (1 << LAP_BITS) - 1;
/// How late a call may be and still be known to be late. More would make a window that slept through all laps
/// but these refuse calls when it wakes.
const LATE_LAPS: u32 = 15;
const MOST_STRIPES: usize = 16;

#[cfg(test)]
mod tests {
    use relent_core::window::Grade;

    use super::*;
    use crate::sync::atomic::AtomicU64;

    const GOOD: Mark = Mark { grade: Grade::Success, slow: false };

    #[test]
    fn a_lap_up_to_fifteen_ahead_in_the_same_generation_is_a_later_one_and_no_other_is() {
        let later = Phase::START.opened();
        for (phase, its, mine, is_later) in [
            (Phase::START, 5, 4, true),
            (Phase::START, 19, 4, true),
            (Phase::START, 20, 4, false),
            (Phase::START, 4, 5, false),
            (Phase::START, 1 << LAP_BITS, (1 << LAP_BITS) - 1, true),
            (Phase::START, (1 << LAP_BITS) - 1, 1 << LAP_BITS, false),
            (later, 5, 4, false),
            (later, 4, 5, false),
        ] {
            let (its, mine) = (tag(phase, its), tag(Phase::START, mine));
            assert_eq!(is_later_lap(its, mine), is_later, "{its:x} {mine:x}");
        }
        assert!(is_later_lap(tag(later, 5), tag(later, 4)));
    }

    #[test]
    fn a_call_that_comes_a_window_late_clears_nothing_and_a_clock_that_is_behind_sees_what_is_ahead() {
        let secs = Timestamp::from_secs;
        let window = TimeWindow::new(Duration::from_secs(10));
        let state = AtomicU64::new(Phase::START.word());
        let epoch = Epoch { state: &state, phase: Phase::START };
        let calls = |now| window.counts(Phase::START, secs(now)).calls;
        assert!(window.add(epoch, GOOD, secs(5)));
        assert_eq!((calls(4), calls(5), calls(14), calls(15)), (1, 1, 1, 0), "on the first lap");
        assert!(window.add(epoch, GOOD, secs(25)));
        assert!(!window.add(epoch, GOOD, secs(15)));
        assert_eq!((calls(24), calls(25)), (1, 1));
        assert!(window.add(epoch, GOOD, secs(24)), "a little late still counts");
        assert_eq!((calls(24), calls(25), calls(34)), (2, 2, 1));
    }
}
