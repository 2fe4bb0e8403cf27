//! What waits are at their longest, at their shortest and on average, whatever is drawn: for arithmetic about a
//! policy, not for deciding.

use core::time::Duration;

use super::{Draw, Jitter, Spread, polly};

impl Jitter {
    /// The shortest that a wait can be and the longest, whatever is drawn; for waits that lean on one another,
    /// the longest of the sequence that takes longest as a whole.
    pub(crate) fn range(self, draw: &Draw) -> (Duration, Duration) {
        if self == Self::PollyV2 {
            return (Duration::ZERO, polly::longest(draw));
        }
        let Spread { least, span, .. } = self.spread(draw);
        (least, least.saturating_add(span))
    }

    /// The longest that this wait can be by itself, whatever was drawn before it.
    pub(crate) fn longest_alone(self, draw: &Draw) -> Duration {
        match self {
            Self::PollyV2 => polly::longest_alone(draw),
            _ => self.range(draw).1,
        }
    }

    /// The mean of this wait; `draw.last` is the mean of the one before it.
    pub(crate) fn mean(self, draw: &Draw) -> Duration {
        match self {
            Self::PollyV2 => polly::mean(draw),
            _ => {
                let Spread { least, span, .. } = self.spread(draw);
                least.saturating_add(span / 2)
            }
        }
    }
}

/// The least that the first waits can take together.
pub(crate) struct Shortest {
    jitter: Jitter,
    sum: Duration,
    ends: polly::Ends,
}

impl Shortest {
    /// Before the first wait.
    pub(crate) const fn new(jitter: Jitter) -> Self {
        Self { jitter, sum: Duration::ZERO, ends: polly::Ends::START }
    }

    /// With the `n`-th wait; each may be drawn by the curve that gives the shorter one.
    pub(crate) fn extend(&mut self, n: u32, draws: [Draw; 2]) -> Duration {
        if self.jitter == Jitter::PollyV2 {
            return self.ends.extend(n, &draws);
        }
        let least = draws.iter().map(|draw| self.jitter.range(draw).0).min().unwrap_or_default();
        self.sum = self.sum.saturating_add(least);
        self.sum
    }
}
