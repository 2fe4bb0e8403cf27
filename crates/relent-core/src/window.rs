//! What a breaker remembers of the calls behind it: the last so many, or those of the last so long.
//!
//! Both windows keep totals that each call steps by a constant amount of work, so that a call costs the same
//! whether ten or a million are remembered. The arithmetic of places and slices stands here as pure functions;
//! the states in plain fields below and the live ones on atomics both step it.

pub mod count;
pub mod time;

use core::time::Duration;

use count::CountState;
use time::TimeState;

use crate::{time::Timestamp, verdict::Verdict};

/// How far back a breaker looks.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Window {
    /// The last so many calls, at most [`Window::MOST_CALLS`]. Two bytes each.
    Count(u32),
    /// The calls of the last so long, in ten slices: what is remembered reaches back between nine tenths of it
    /// and the whole.
    Time(Duration),
}

impl Window {
    /// The most calls that a count window remembers. Beyond it, a time window says more with less.
    pub const MOST_CALLS: u32 = 1_000_000;
}

/// How a call that counts ended.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Mark {
    /// What came of it.
    pub grade: Grade,
    /// Whether it took longer than a call may.
    pub slow: bool,
}

/// What came of a call that counts.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Grade {
    /// The dependency did what it was asked.
    Success,
    /// The dependency answered "no". It works, so the rates count a call that did not fail; but it has not shown
    /// that it can do what it is for, so a row of failures is not broken.
    Answer,
    /// "Not now", or a time-out of ours.
    Failure,
}

impl Mark {
    /// What a call counts as. `None`: it says nothing about the dependency.
    #[inline]
    pub const fn of(verdict: Verdict, slow: bool) -> Option<Self> {
        let grade = match verdict {
            Verdict::Success => Grade::Success,
            Verdict::Permanent => Grade::Answer,
            Verdict::Failure { .. } => Grade::Failure,
            Verdict::Neutral(_) => return None,
        };
        Some(Self { grade, slow })
    }

    /// Whether it failed.
    pub const fn failed(self) -> bool {
        matches!(self.grade, Grade::Failure)
    }

    /// Whether it can open a breaker: it failed, or was slow.
    pub const fn is_bad(self) -> bool {
        self.failed() || self.slow
    }
}

/// What a window holds.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Counts {
    /// Calls that count.
    pub calls: u64,
    /// Those that failed.
    pub failures: u64,
    /// Those that were slow, failed or not.
    pub slow: u64,
}

/// A window in plain fields. `Off` where no rate is asked for.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one in a breaker, and breakers are few")]
pub(crate) enum WindowState {
    Off,
    Count(CountState),
    Time(TimeState),
}

impl WindowState {
    pub(crate) fn new(window: Window) -> Self {
        match window {
            Window::Count(calls) => Self::Count(CountState::new(calls)),
            Window::Time(length) => Self::Time(TimeState::new(length)),
        }
    }

    /// Takes in one call. `false`: it came so late that it had left the window already.
    pub(crate) fn add(&mut self, mark: Mark, now: Timestamp) -> bool {
        match self {
            Self::Off => {}
            Self::Count(state) => state.add(mark),
            Self::Time(state) => return state.add(mark, now),
        }
        true
    }

    pub(crate) fn counts(&self, now: Timestamp) -> Counts {
        match self {
            Self::Off => Counts::default(),
            Self::Count(state) => state.counts(),
            Self::Time(state) => state.counts(now),
        }
    }

    pub(crate) fn clear(&mut self) {
        match self {
            Self::Off => {}
            Self::Count(state) => state.clear(),
            Self::Time(state) => state.clear(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_or_was_slow_is_bad_and_nothing_else() {
        for (grade, failed) in [(Grade::Success, false), (Grade::Answer, false), (Grade::Failure, true)] {
            assert_eq!(Mark { grade, slow: false }.is_bad(), failed);
            assert!(Mark { grade, slow: true }.is_bad());
        }
    }
}
