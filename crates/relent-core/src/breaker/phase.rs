//! Where a breaker stands, in one word, and the steps from one standing to the next.

use crate::{decision::names, time::Timestamp, window::Counts};

use super::Tally;

/// What a breaker does with calls.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Mode {
    /// Lets them through and counts.
    Closed,
    /// Refuses them until its break is over.
    Open,
    /// Lets a bounded number through as probes.
    HalfOpen,
    /// Refuses them until told otherwise: isolated by hand.
    Isolated,
    /// Lets them through and counts nothing: forced closed by hand.
    ForcedClosed,
    /// Lets them through, counts, and only says when it would have opened.
    ObserveOnly,
}

names!(Mode {
    Closed => "closed",
    Open => "open",
    HalfOpen => "half_open",
    Isolated => "isolated",
    ForcedClosed => "forced_closed",
    ObserveOnly => "observe_only",
});

/// Where a breaker stands: what it does with calls, how often it has opened in a row, and a generation that each
/// change raises, so that a call's result can be told to belong to an earlier one.
///
/// It fits a word: `generation << 16 | opens << 3 | standing`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Phase(u64);

/// What a phase stands for.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Standing {
    /// At rest.
    Settled(Mode),
    /// A live breaker's thread is writing down until when it will be open. Calls are refused.
    Opening,
    /// A live breaker's thread is making the places of the probes ready. Calls are refused.
    HalfOpening,
}

impl Phase {
    /// Closed, before anything has happened.
    pub const START: Self = Self(0);

    /// The phase of that word.
    pub const fn from_word(word: u64) -> Self {
        Self(word)
    }

    /// The word.
    pub const fn word(self) -> u64 {
        self.0
    }

    /// What it stands for.
    pub const fn standing(self) -> Standing {
        match self.0 & STANDING {
            OPEN => Standing::Settled(Mode::Open),
            HALF_OPEN => Standing::Settled(Mode::HalfOpen),
            ISOLATED => Standing::Settled(Mode::Isolated),
            FORCED_CLOSED => Standing::Settled(Mode::ForcedClosed),
            OBSERVE_ONLY => Standing::Settled(Mode::ObserveOnly),
            OPENING => Standing::Opening,
            HALF_OPENING => Standing::HalfOpening,
            _ => Standing::Settled(Mode::Closed),
        }
    }

    /// What it does with calls; on the way to a mode, that mode.
    pub const fn mode(self) -> Mode {
        match self.standing() {
            Standing::Settled(mode) => mode,
            Standing::Opening => Mode::Open,
            Standing::HalfOpening => Mode::HalfOpen,
        }
    }

    /// Whether it lets every call through.
    #[inline]
    pub const fn lets_through(self) -> bool {
        self.0 & STANDING <= FORCED_CLOSED
    }

    /// Whether it lets every call through and counts how they end.
    #[inline]
    pub const fn counts_all(self) -> bool {
        self.0 & STANDING <= OBSERVE_ONLY
    }

    /// How often it has opened without closing in between; stops counting at 8,191.
    pub const fn opens(self) -> u32 {
        ((self.0 >> 3) & MOST_OPENS) as u32
    }

    /// How often it has changed.
    pub const fn generation(self) -> u64 {
        self.0 >> 16
    }

    /// Opened once more.
    #[must_use]
    pub const fn opened(self) -> Self {
        self.next(OPEN, if (self.0 >> 3) & MOST_OPENS < MOST_OPENS { self.opens() + 1 } else { self.opens() })
    }

    /// The break is over.
    #[must_use]
    pub const fn half_opened(self) -> Self {
        self.next(HALF_OPEN, self.opens())
    }

    /// The probes found it well, or somebody says so: the next break is a first one.
    #[must_use]
    pub const fn closed(self) -> Self {
        self.next(CLOSED, 0)
    }

    /// Set by hand.
    #[must_use]
    pub const fn isolated(self) -> Self {
        self.next(ISOLATED, self.opens())
    }

    /// Set by hand.
    #[must_use]
    pub const fn forced_closed(self) -> Self {
        self.next(FORCED_CLOSED, 0)
    }

    /// Set by hand, or begun afresh after it would have opened.
    #[must_use]
    pub const fn observing(self) -> Self {
        self.next(OBSERVE_ONLY, 0)
    }

    /// The same phase while a thread still writes what belongs to it.
    #[must_use]
    pub const fn unsettled(self) -> Self {
        match self.0 & STANDING {
            OPEN => Self(self.0 & !STANDING | OPENING),
            HALF_OPEN => Self(self.0 & !STANDING | HALF_OPENING),
            _ => self,
        }
    }

    const fn next(self, standing: u64, opens: u32) -> Self {
        Self((self.generation().wrapping_add(1) << 16) | ((opens as u64) << 3) | standing)
    }
}

/// A change of a breaker's mode, for whoever tells observers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use = "observers want to hear of it"]
pub struct Transition {
    /// Before.
    pub from: Mode,
    /// After. The same as before only where a breaker that merely observes would have opened.
    pub to: Mode,
    /// What opened it, if that is what happened and nobody's hand did it.
    pub trip: Option<Trip>,
    /// Until when it is open.
    pub until: Option<Timestamp>,
}

/// What opened a breaker.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Trip {
    /// Too large a share of the calls failed.
    FailureRate(Counts),
    /// Too large a share of the calls was slow.
    SlowRate(Counts),
    /// So many failed in a row.
    Consecutive(u32),
    /// The probes failed or were slow.
    Probes(Tally),
}

impl Trip {
    /// The one serialized name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::FailureRate(_) => "failure_rate",
            Self::SlowRate(_) => "slow_rate",
            Self::Consecutive(_) => "consecutive",
            Self::Probes(_) => "probes",
        }
    }
}

/// What became of a call's result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use = "observers want to hear of a transition"]
pub enum Recorded {
    /// It was counted.
    Counted,
    /// It was counted and changed the breaker's mode.
    Changed(Transition),
    /// It says nothing about the dependency, or the breaker counts nothing at present.
    Uncounted,
    /// It belongs to an earlier state of the breaker, or came after its place or its slice of time was given
    /// away, and changed nothing.
    Stale,
}

impl Recorded {
    /// The change of mode, if there was one.
    pub const fn transition(self) -> Option<Transition> {
        match self {
            Self::Changed(transition) => Some(transition),
            _ => None,
        }
    }
}

/// Where a breaker stands, for people.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Status {
    /// What it does with calls.
    pub mode: Mode,
    /// How often it has opened without closing in between.
    pub opens: u32,
    /// Until when it is open.
    pub until: Option<Timestamp>,
}

const STANDING: u64 = 0b111;
const MOST_OPENS: u64 = (1 << 13) - 1;
// The modes that let calls through come first, and of these the ones that count: a call asks for no more.
const CLOSED: u64 = 0;
const OBSERVE_ONLY: u64 = 1;
const FORCED_CLOSED: u64 = 2;
const OPEN: u64 = 3;
const HALF_OPEN: u64 = 4;
const ISOLATED: u64 = 5;
const OPENING: u64 = 6;
const HALF_OPENING: u64 = 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_raises_the_generation_and_says_its_mode() {
        let open = Phase::START.opened();
        let half = open.half_opened();
        let again = half.opened();
        for (phase, mode, opens, generation) in [
            (Phase::START, Mode::Closed, 0, 0),
            (open, Mode::Open, 1, 1),
            (half, Mode::HalfOpen, 1, 2),
            (again, Mode::Open, 2, 3),
            (again.closed(), Mode::Closed, 0, 4),
            (again.isolated(), Mode::Isolated, 2, 4),
            (again.forced_closed(), Mode::ForcedClosed, 0, 4),
            (again.observing(), Mode::ObserveOnly, 0, 4),
        ] {
            assert_eq!((phase.mode(), phase.opens(), phase.generation()), (mode, opens, generation));
            assert_eq!(phase.standing(), Standing::Settled(mode));
            assert_eq!(Phase::from_word(phase.word()), phase);
            let through = matches!(mode, Mode::Closed | Mode::ForcedClosed | Mode::ObserveOnly);
            assert_eq!(phase.lets_through(), through, "{mode:?}");
            assert_eq!(phase.counts_all(), through && mode != Mode::ForcedClosed, "{mode:?}");
            assert!(!through || phase.unsettled() == phase);
        }
    }

    #[test]
    fn only_what_has_something_to_write_down_is_ever_unsettled() {
        let open = Phase::START.opened();
        assert_eq!(open.unsettled().standing(), Standing::Opening);
        assert_eq!(open.half_opened().unsettled().standing(), Standing::HalfOpening);
        assert_eq!(open.half_opened().unsettled().mode(), Mode::HalfOpen);
        for phase in [open, open.half_opened()] {
            let apart = |phase: Phase| (phase.generation(), phase.opens());
            assert_eq!(apart(phase.unsettled()), apart(phase));
        }
        assert!(!open.unsettled().lets_through() && !open.half_opened().unsettled().lets_through());
        for settled in [Phase::START, open.closed(), open.isolated(), open.observing()] {
            assert_eq!(settled.unsettled(), settled);
        }
    }

    #[test]
    fn opens_in_a_row_stop_counting_before_they_reach_the_generation() {
        let mut phase = Phase::START;
        for _ in 0..10_000 {
            phase = phase.opened();
        }
        assert_eq!((phase.opens(), phase.generation(), phase.mode()), (8191, 10_000, Mode::Open));
    }
}
