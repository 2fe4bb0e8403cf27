//! How chance spreads a wait, so that callers that failed together do not come back together.
//!
//! Chance enters once: a call's seed, hashed with the number of the wait. The same seed gives the same wait on
//! every machine, in every driver; integers throughout, so nothing depends on a platform's floating point.

mod extent;
mod polly;

use core::time::Duration;

pub(crate) use extent::Shortest;

use crate::{SplitMix64, time::saturating_nanos};

/// How a wait is drawn below its ceiling.
///
/// # Source
///
/// Full, equal and decorrelated jitter: Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog,
/// 2015. There full jitter did the least work of all.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Jitter {
    /// Uniform from zero to the ceiling.
    #[default]
    Full,
    /// The ceiling itself. Callers that failed together retry together.
    None,
    /// Half the ceiling, and uniform from zero to the other half.
    Equal,
    /// Uniform from the base to three times the last wait, or to the cap if that is less. The cap is applied
    /// before the draw, so waits do not collapse on it.
    Decorrelated,
    /// Uniform from the ceiling less `below_milli` thousandths of it to the ceiling plus `above_milli`.
    Proportional {
        /// Thousandths of the ceiling that the wait may be shorter by, at most 1000.
        below_milli: u32,
        /// Thousandths of the ceiling that the wait may be longer by.
        above_milli: u32,
    },
    /// Polly's decorrelated jitter, second version: for exponential curves that double, and only for those. The
    /// `n`-th wait is between zero and 1.41 × base × 2^(n−1), as a rule about half of the curve; where it lies in
    /// that range leans on the wait before it. What would be over the curve's `max` is exactly that: choose one
    /// that is not met, since callers that wait for the cap come back together.
    PollyV2,
}

/// What one draw needs to know.
pub(crate) struct Draw {
    /// The call's seed, its redrive cycle, and which wait this is.
    pub seed: u64,
    pub cycle: u32,
    pub number: u32,
    /// The curve's value for this wait.
    pub ceiling: Duration,
    /// The curve's first value and its greatest, and the wait before this one: for decorrelated jitter.
    pub base: Duration,
    pub cap: Duration,
    pub last: Duration,
}

impl Jitter {
    /// Whether this jitter draws at all.
    pub const fn draws(self) -> bool {
        !matches!(self, Self::None | Self::Proportional { below_milli: 0, above_milli: 0 })
    }

    /// One draw, and the range it came from.
    pub(crate) fn spread(self, draw: &Draw) -> Spread {
        let (low, high) = match self {
            Self::None => (draw.ceiling, draw.ceiling),
            Self::Full => (Duration::ZERO, draw.ceiling),
            Self::Equal => (draw.ceiling / 2, draw.ceiling),
            Self::Decorrelated => {
                let last = draw.last.max(draw.base);
                (draw.base, last.saturating_mul(3).min(draw.cap))
            }
            Self::Proportional { below_milli, above_milli } => {
                let nanos = saturating_nanos(draw.ceiling);
                let low = nanos.saturating_sub(thousandths(nanos, below_milli));
                let high = nanos.saturating_add(thousandths(nanos, above_milli));
                (Duration::from_nanos(low), Duration::from_nanos(high))
            }
            Self::PollyV2 => {
                let [least, wait, most] = polly::waits(draw);
                return Spread { least, drawn: wait.saturating_sub(least), span: most.saturating_sub(least) };
            }
        };
        let span = high.saturating_sub(low);
        let drawn = Duration::from_nanos(below(draw.bits(), saturating_nanos(span)));
        Spread { least: low, drawn, span }
    }
}

/// A draw and its range: the wait is `least + drawn`, and `drawn` is at most `span`.
pub(crate) struct Spread {
    pub least: Duration,
    pub drawn: Duration,
    pub span: Duration,
}

impl Draw {
    /// Sixty-four bits that belong to this wait of this call alone.
    pub(crate) fn bits(&self) -> u64 {
        let place = (u64::from(self.cycle) << 32) | u64::from(self.number);
        SplitMix64::at(SplitMix64::new(self.seed).bits(), place).bits()
    }
}

/// Uniform on the integers from zero to `span`, both included.
///
/// # Source
///
/// Multiply-shift: Daniel Lemire, "Fast Random Integer Generation in an Interval", 2019; without its rejection
/// step. Each value is met by ⌊2⁶⁴ ÷ (span + 1)⌋ of all inputs or by one more, so for a span of a day (2⁴⁷ ns)
/// no value's chance is off by more than 2⁻¹⁷ of itself.
pub(crate) fn below(bits: u64, span: u64) -> u64 {
    let wide = u128::from(bits) * (u128::from(span) + 1);
    u64::try_from(wide >> 64).unwrap_or(span)
}

/// `value × milli ÷ 1000`, saturating.
fn thousandths(value: u64, milli: u32) -> u64 {
    u64::try_from(u128::from(value) * u128::from(milli) / 1000).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_jitter_draws_from_its_own_range() {
        let secs = Duration::from_secs;
        let proportional = |below_milli, above_milli| Jitter::Proportional { below_milli, above_milli };
        for (jitter, last, least, span) in [
            (Jitter::Full, 0, 0, 10),
            (Jitter::None, 0, 10, 0),
            (Jitter::Equal, 0, 5, 5),
            (Jitter::Decorrelated, 0, 2, 4),
            (Jitter::Decorrelated, 4, 2, 10),
            (Jitter::Decorrelated, 3600, 2, 58),
            (proportional(200, 500), 0, 8, 7),
            (proportional(1000, 0), 0, 0, 10),
            (proportional(0, 0), 0, 10, 0),
        ] {
            let draw = |seed| Draw {
                seed,
                cycle: 0,
                number: 3,
                ceiling: secs(10),
                base: secs(2),
                cap: secs(60),
                last: secs(last),
            };
            let drawn = (0..1000).map(|seed| {
                let spread = jitter.spread(&draw(seed));
                assert_eq!((spread.least, spread.span), (secs(least), secs(span)), "{jitter:?}");
                spread.drawn
            });
            let (low, high) =
                drawn.fold((Duration::MAX, Duration::ZERO), |(low, high), one| (low.min(one), high.max(one)));
            assert!(low <= secs(span) / 100 && high <= secs(span), "{jitter:?} {low:?} {high:?}");
            assert!(high >= secs(span) * 99 / 100, "{jitter:?} reaches the end of its range: {high:?}");
            assert_eq!(jitter.draws(), span > 0, "{jitter:?}");
        }
    }

    #[test]
    fn a_draw_reaches_both_ends_and_no_further() {
        assert_eq!(below(0, 9), 0);
        assert_eq!(below(u64::MAX, 9), 9);
        assert_eq!(below(u64::MAX, u64::MAX), u64::MAX);
        assert_eq!(below(u64::MAX, 0), 0);
    }
}
