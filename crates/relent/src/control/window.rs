//! A breaker's window in force: counts that many threads write, each with compare-and-swap and without a lock.
//!
//! Every cell carries the generation it belongs to, so a change of the breaker's mode clears nothing: what is of
//! an earlier generation reads as empty, and the first call of a generation takes the cell over. A call takes a
//! cell over only while the breaker still stands where the call began, so none of an earlier state is ever
//! counted in a later one.

mod count;
mod moment;
mod tagged;
mod time;

use relent_core::{
    Timestamp, Window,
    breaker::Phase,
    window::{Counts, Mark},
};

pub(crate) use moment::Moment;
pub(crate) use tagged::{Line, Tagged};

use self::{count::CountWindow, time::TimeWindow};
use crate::sync::atomic::{AtomicU64, Ordering};

/// The state of the breaker that a call belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Epoch<'a> {
    pub(crate) state: &'a AtomicU64,
    pub(crate) phase: Phase,
}

impl Epoch<'_> {
    /// Whether the breaker still stands there.
    pub(crate) fn holds(self) -> bool {
        self.state.load(Ordering::Acquire) == self.phase.word()
    }

    /// The tag of what belongs to it.
    pub(crate) const fn tag(self) -> u32 {
        tag(self.phase)
    }
}

/// The low half of the generation.
#[expect(clippy::cast_possible_truncation, reason = "the low half tells neighbours apart")]
pub(crate) const fn tag(phase: Phase) -> u32 {
    phase.generation() as u32
}

/// A window's counts. `Off` where no rate is asked for.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one in a breaker, and a box would be one more hop")]
pub(crate) enum Counters {
    Time(TimeWindow),
    Count(CountWindow),
    Off,
}

impl Counters {
    pub(crate) fn new(window: Window) -> Self {
        match window {
            Window::Count(calls) => Self::Count(CountWindow::new(calls)),
            Window::Time(length) => Self::Time(TimeWindow::new(length)),
        }
    }

    /// Takes in one call. `false`: the breaker has moved on, or the call's slice of time has.
    #[inline(always)]
    pub(crate) fn add(&self, epoch: Epoch<'_>, mark: Mark, now: impl FnOnce() -> Timestamp) -> bool {
        match self {
            Self::Time(window) => window.add(epoch, mark, now()),
            _ => self.add_untimed(epoch, mark),
        }
    }

    #[inline(never)]
    fn add_untimed(&self, epoch: Epoch<'_>, mark: Mark) -> bool {
        match self {
            Self::Count(window) => window.add(epoch, mark),
            Self::Time(_) | Self::Off => true,
        }
    }

    /// What the generation's window holds.
    ///
    /// It reads one cell after the other, while other threads write: a call that is just being recorded may be
    /// missing, or be there as a call and not yet as a failure. So the counts are those of all calls whose record
    /// had ended, and of some of those under way, at most one for each other thread; and a failure is never
    /// counted without its call.
    pub(crate) fn counts<F: FnOnce() -> Timestamp>(&self, phase: Phase, now: &mut Moment<F>) -> Counts {
        match self {
            Self::Off => Counts::default(),
            Self::Count(window) => window.counts(phase),
            Self::Time(window) => window.counts(phase, now.get()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use relent_core::window::Grade;

    use super::*;

    const GOOD: Mark = Mark { grade: Grade::Success, slow: false };
    const BAD: Mark = Mark { grade: Grade::Failure, slow: true };

    /// The shared cells that a call touches in a window of that size that is full, good and bad.
    fn touched_when_full(window: Window, calls: u32) -> [u32; 2] {
        let counters = Counters::new(window);
        let state = AtomicU64::new(Phase::START.word());
        let epoch = Epoch { state: &state, phase: Phase::START };
        let now = Timestamp::from_secs(1);
        for _ in 0..=calls {
            assert!(counters.add(epoch, GOOD, || now));
        }
        [GOOD, BAD].map(|mark| {
            tagged::touched::by(|| {
                assert!(counters.add(epoch, mark, || now));
                let counts = counters.counts(Phase::START, &mut Moment::new(|| now));
                assert_eq!(counts.failures, u64::from(mark.failed()));
            })
        })
    }

    #[test]
    fn a_call_costs_the_same_whatever_the_window_holds_where_tower_resilience_goes_from_5_to_58_microseconds()
    {
        let count = |calls| touched_when_full(Window::Count(calls), calls);
        let time = |calls| touched_when_full(Window::Time(Duration::from_secs(10)), calls);
        assert_eq!(count(10), [5, 7], "head, mark, and the head and two totals that the test reads");
        for calls in [10, 1_000, 100_000, 1_000_000] {
            assert_eq!(count(calls), count(10), "{calls}");
            assert_eq!(time(calls), time(10), "{calls}");
        }
    }

    #[test]
    fn a_call_that_began_before_the_breaker_moved_on_takes_over_nothing_of_what_came_after() {
        let now = Timestamp::from_secs(1);
        for window in [Window::Count(10), Window::Time(Duration::from_secs(10))] {
            let counters = Counters::new(window);
            let closed_again = Phase::START.opened().half_opened().closed();
            let state = AtomicU64::new(closed_again.word());
            let [before, after] = [Phase::START, closed_again].map(|phase| Epoch { state: &state, phase });
            assert!(counters.add(after, BAD, || now));
            // It saw that the breaker stood where it began; then another thread changed that.
            assert!(!counters.add(before, GOOD, || now), "{window:?}");
            let counts = counters.counts(closed_again, &mut Moment::new(|| now));
            assert_eq!((counts.calls, counts.failures, counts.slow), (1, 1, 1), "{window:?}");
        }
    }
}
