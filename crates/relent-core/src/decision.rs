//! What to do next, and why: the closed vocabulary of relent.
//!
//! Each name below is written once, here. The API, the metrics, the stored dead letters, the logs and the page
//! all use it; a new reason begins in this file and the compiler leads on from there.

use core::{fmt, time::Duration};

use crate::{text::Brief, time::Timestamp};

/// What to do after an attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub enum Decision {
    /// Try again after the wait.
    Retry(Wait),
    /// Do not try again.
    Stop(StopReason),
}

/// A wait with its whole derivation, so that "why did it wait?" has an answer.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Wait {
    /// How long to wait.
    pub length: Duration,
    /// Who asked for it.
    pub origin: WaitOrigin,
    /// What the dependency asked for, before any clamping.
    pub asked: Option<Duration>,
    /// The least the wait could have been; the draw is `length − floor`. Clamped when below `asked`.
    pub floor: Duration,
    /// The most that the draw could have been.
    pub ceiling: Duration,
}

impl Wait {
    /// No wait at all.
    pub const NONE: Self = Self::exactly(Duration::ZERO, WaitOrigin::Backoff);

    /// A wait without a draw.
    pub const fn exactly(length: Duration, origin: WaitOrigin) -> Self {
        Self { length, origin, asked: None, floor: length, ceiling: Duration::ZERO }
    }

    /// The longest that the wait could have been.
    pub fn longest(&self) -> Duration {
        self.floor.saturating_add(self.ceiling)
    }

    /// Whether the dependency asked for more than it was given.
    pub fn was_clamped(&self) -> bool {
        self.asked.is_some_and(|asked| self.floor < asked)
    }
}

impl fmt::Display for Wait {
    /// The length, then where it comes from: `2.6s (server asked 2s: 2s + 600ms of at most 1s)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}", Brief(self.length), self.origin.name())?;
        if let Some(asked) = self.asked {
            let by = if self.origin == WaitOrigin::Server { "" } else { ", server" };
            write!(f, "{by} asked {}", Brief(asked))?;
        }
        if self.was_clamped() {
            f.write_str(", clamped")?;
        }
        if !self.ceiling.is_zero() {
            let drawn = self.length.saturating_sub(self.floor);
            write!(f, ": {} + {} of at most {}", Brief(self.floor), Brief(drawn), Brief(self.ceiling))?;
        }
        f.write_str(")")
    }
}

/// A gate that was shut, and when to come back if that is known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub struct Refusal {
    /// Which gate.
    pub by: Gate,
    /// When it opens. `None`: when successes return; no time is known.
    pub until: Option<Timestamp>,
    /// A wait worth trying where no time is known; more than zero.
    pub advised: Duration,
}

/// Gives an enum its one table of serialized names, in both directions.
macro_rules! names {
    ($type:ident { $($variant:ident => $name:literal),+ $(,)? }) => {
        impl $type {
            /// Every value, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The one serialized name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The value with that name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}
pub(crate) use names;

/// Who asked for a wait.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum WaitOrigin {
    /// The policy's backoff.
    Backoff,
    /// The dependency's own hint, such as `Retry-After`.
    Server,
    /// A gate that was shut.
    Gate(Gate),
    /// The sender said not to start before.
    NotBefore,
    /// A failure on our own side, uncounted.
    OwnFault,
    /// Our shutdown put the work back, uncounted.
    Shutdown,
    /// A person sent it again.
    Redrive,
}

impl WaitOrigin {
    /// The one serialized name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Backoff => "backoff",
            Self::Server => "server",
            Self::Gate(gate) => gate.name(),
            Self::NotBefore => "not_before",
            Self::OwnFault => "own_fault",
            Self::Shutdown => "shutdown",
            Self::Redrive => "redrive",
        }
    }

    /// The origin with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "backoff" => Self::Backoff,
            "server" => Self::Server,
            "not_before" => Self::NotBefore,
            "own_fault" => Self::OwnFault,
            "shutdown" => Self::Shutdown,
            "redrive" => Self::Redrive,
            gate => Self::Gate(Gate::from_name(gate)?),
        })
    }
}

/// A control that may refuse.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Gate {
    /// Too much is in flight.
    Concurrency,
    /// Too many began lately.
    Rate,
    /// The breaker is open.
    Breaker,
    /// The retry budget is spent.
    Budget,
    /// The client throttles itself.
    Throttle,
    /// A person holds the destination.
    Hold,
    /// The destination is paused.
    Pause,
    /// The switch that stops all retries is thrown.
    Switch,
}

names!(Gate {
    Concurrency => "concurrency",
    Rate => "rate",
    Breaker => "breaker",
    Budget => "budget",
    Throttle => "throttle",
    Hold => "hold",
    Pause => "pause",
    Switch => "switch",
});

/// Why there is no further attempt.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum StopReason {
    /// The attempt succeeded.
    Succeeded,
    /// The dependency said "no", not "not now".
    Permanent,
    /// The policy's attempts are used up.
    AttemptsExhausted,
    /// Attempts and waits of this call have no room left in its total time-out.
    TotalTimeout,
    /// The caller's own deadline leaves no room.
    UpstreamDeadline,
    /// The work's durable deadline leaves no room.
    BusinessDeadline,
    /// The dependency asked for a longer wait than the policy allows.
    ServerWaitTooLong,
    /// The attempt may have been processed and the call is not safe to repeat.
    Ambiguous,
    /// An outer pipeline already retries the same dependency.
    Nested,
    /// What was sent cannot be sent again: the body of the request is gone.
    NotReplayable,
    /// A gate refused.
    Refused(Gate),
    /// Workers died on it too often.
    PoisonCrash,
    /// What is stored cannot be read.
    Unreadable,
    /// The caller gave up.
    Cancelled,
}

impl StopReason {
    /// Every reason, in the order of the table.
    pub const ALL: &'static [Self] = &[
        Self::Succeeded,
        Self::Permanent,
        Self::AttemptsExhausted,
        Self::TotalTimeout,
        Self::UpstreamDeadline,
        Self::BusinessDeadline,
        Self::ServerWaitTooLong,
        Self::Ambiguous,
        Self::Nested,
        Self::NotReplayable,
        Self::Refused(Gate::Concurrency),
        Self::Refused(Gate::Rate),
        Self::Refused(Gate::Breaker),
        Self::Refused(Gate::Budget),
        Self::Refused(Gate::Throttle),
        Self::Refused(Gate::Hold),
        Self::Refused(Gate::Pause),
        Self::Refused(Gate::Switch),
        Self::PoisonCrash,
        Self::Unreadable,
        Self::Cancelled,
    ];

    /// The one serialized name: a log field, a metric label, a dead letter's reason, a filter on the page.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Permanent => "permanent",
            Self::AttemptsExhausted => "attempts_exhausted",
            Self::TotalTimeout => "total_timeout",
            Self::UpstreamDeadline => "upstream_deadline",
            Self::BusinessDeadline => "business_deadline",
            Self::ServerWaitTooLong => "server_wait_too_long",
            Self::Ambiguous => "ambiguous",
            Self::Nested => "nested",
            Self::NotReplayable => "not_replayable",
            Self::Refused(Gate::Concurrency) => "refused_concurrency",
            Self::Refused(Gate::Rate) => "refused_rate",
            Self::Refused(Gate::Breaker) => "refused_breaker",
            Self::Refused(Gate::Budget) => "refused_budget",
            Self::Refused(Gate::Throttle) => "refused_throttle",
            Self::Refused(Gate::Hold) => "refused_hold",
            Self::Refused(Gate::Pause) => "refused_pause",
            Self::Refused(Gate::Switch) => "refused_switch",
            Self::PoisonCrash => "poison_crash",
            Self::Unreadable => "unreadable",
            Self::Cancelled => "cancelled",
        }
    }

    /// The reason with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| reason.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_wait_tells_its_whole_derivation() {
        let secs = Duration::from_secs;
        let exact = Wait::exactly(secs(5), WaitOrigin::NotBefore);
        let drawn = Wait { length: secs(3), floor: secs(0), ceiling: secs(4), ..Wait::NONE };
        let asked = Wait { origin: WaitOrigin::Server, asked: Some(secs(2)), floor: secs(2), ..drawn };
        let clamped = Wait { asked: Some(secs(90)), floor: secs(3), ceiling: secs(0), ..asked };
        let shorter = Wait { asked: Some(secs(1)), floor: secs(1), ..drawn };
        for (wait, text) in [
            (exact, "5s (not_before)"),
            (drawn, "3s (backoff: 0s + 3s of at most 4s)"),
            (asked, "3s (server asked 2s: 2s + 1s of at most 4s)"),
            (clamped, "3s (server asked 1m30s, clamped)"),
            (shorter, "3s (backoff, server asked 1s: 1s + 2s of at most 4s)"),
        ] {
            assert_eq!(wait.to_string(), text);
        }
    }

    #[test]
    fn every_name_reads_back_as_what_it_names() {
        for &reason in StopReason::ALL {
            assert_eq!(StopReason::from_name(reason.name()), Some(reason));
        }
        for &gate in Gate::ALL {
            assert_eq!(Gate::from_name(gate.name()), Some(gate));
            assert_eq!(WaitOrigin::from_name(gate.name()), Some(WaitOrigin::Gate(gate)));
            assert!(StopReason::ALL.contains(&StopReason::Refused(gate)));
        }
        for name in ["backoff", "server", "not_before", "own_fault", "shutdown", "redrive"] {
            assert_eq!(WaitOrigin::from_name(name).map(WaitOrigin::name), Some(name));
        }
        assert_eq!(StopReason::from_name("nonsense"), None);
    }
}
