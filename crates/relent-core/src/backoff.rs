//! How the ceiling of a wait grows with the number of waits: curves without chance.

use alloc::vec::Vec;
use core::time::Duration;

use crate::time::saturating_nanos;

/// The curve of a backoff. `ceiling(n)` is for the wait after the `n`-th failure, counted from 1.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Backoff {
    /// Always the same.
    Constant(Duration),
    /// `base`, `2 × base`, `3 × base` … up to `max`.
    Linear {
        /// The first wait, and each further step.
        base: Duration,
        /// The longest.
        max: Duration,
    },
    /// `base`, `base × factor`, `base × factor²` … up to `max`.
    Exponential {
        /// The first wait.
        base: Duration,
        /// The factor in thousandths: 2000 doubles.
        factor_milli: u32,
        /// The longest.
        max: Duration,
    },
    /// These waits in turn; the last one from then on.
    Steps(Vec<Duration>),
}

impl Backoff {
    /// The ceiling of the wait after the `n`-th failure. `n` = 0 is read as 1. Never wraps: at any `n` it is at
    /// most the curve's own maximum.
    pub fn ceiling(&self, n: u32) -> Duration {
        let n = n.max(1);
        match self {
            Self::Constant(length) => *length,
            Self::Linear { base, max } => base.saturating_mul(n).min(*max),
            Self::Exponential { base, factor_milli, max } => exponential(*base, *factor_milli, *max, n),
            Self::Steps(steps) => {
                let index = usize::try_from(n - 1).unwrap_or(usize::MAX);
                steps.get(index).or(steps.last()).copied().unwrap_or_default()
            }
        }
    }

    /// The curve's greatest value.
    pub fn greatest(&self) -> Duration {
        match self {
            Self::Constant(length) => *length,
            Self::Linear { max, .. } | Self::Exponential { max, .. } => *max,
            Self::Steps(steps) => steps.iter().max().copied().unwrap_or_default(),
        }
    }
}

/// `base × (factor_milli ÷ 1000)^(n−1)`, at most `max`, in integers: each step rounds down to a nanosecond.
///
/// The loop ends as soon as the cap is reached or the value stands still, so it is short at any `n`.
fn exponential(base: Duration, factor_milli: u32, max: Duration, n: u32) -> Duration {
    let cap = u128::from(saturating_nanos(max));
    let mut nanos = u128::from(saturating_nanos(base)).min(cap);
    for _ in 1..n {
        let next = (nanos * u128::from(factor_milli) / 1000).min(cap);
        if next == nanos {
            break;
        }
        nanos = next;
    }
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn each_curve_grows_as_its_name_says() {
        let exponential = |factor_milli| Backoff::Exponential { base: secs(4), factor_milli, max: secs(30) };
        for (curve, ceilings) in [
            (Backoff::Constant(secs(3)), [3, 3, 3, 3, 3]),
            (Backoff::Linear { base: secs(4), max: secs(14) }, [4, 8, 12, 14, 14]),
            (exponential(2000), [4, 8, 16, 30, 30]),
            (exponential(1500), [4, 6, 9, 13, 20]),
            (exponential(1000), [4, 4, 4, 4, 4]),
            (Backoff::Steps(vec![secs(1), secs(9), secs(5)]), [1, 9, 5, 5, 5]),
        ] {
            let drawn = [1, 2, 3, 4, 5].map(|n| curve.ceiling(n).as_secs());
            assert_eq!(drawn, ceilings, "{curve:?}");
            assert_eq!(curve.ceiling(0), curve.ceiling(1), "{curve:?}");
            assert!((0..100).all(|n| curve.ceiling(n) <= curve.greatest()), "{curve:?}");
        }
    }

    #[test]
    fn the_extremes_neither_panic_nor_wrap() {
        let longest = Duration::MAX;
        for curve in [
            Backoff::Constant(longest),
            Backoff::Linear { base: longest, max: longest },
            Backoff::Exponential { base: longest, factor_milli: u32::MAX, max: longest },
        ] {
            assert!(curve.ceiling(u32::MAX) >= curve.ceiling(1), "{curve:?}");
        }
        assert_eq!(Backoff::Steps(vec![]).ceiling(u32::MAX), Duration::ZERO);
        let shrinking = Backoff::Exponential { base: secs(8), factor_milli: 500, max: secs(9) };
        assert_eq!(shrinking.ceiling(u32::MAX), Duration::ZERO);
    }
}
