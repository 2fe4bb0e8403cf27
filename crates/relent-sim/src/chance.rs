//! Chance that a seed determines, the same on every machine.
//!
//! Each purpose draws from a stream of its own, so that two policies under one seed meet the same arrivals: what
//! differs between their reports is the policies' doing. Integers, and `libm` where a logarithm is needed; the
//! platform's would differ in the last bit from one machine to the next.

use std::time::Duration;

use relent_core::SplitMix64;

/// A stream of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Chance(SplitMix64);

/// What a stream is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// When calls begin.
    Arrivals,
    /// Whose they are.
    Clients,
    /// How long the dependency works.
    Service,
    /// Whether an attempt fails.
    Fate,
    /// The supply of chance of each call: its waits.
    Calls,
    /// How long a caller pauses between calls.
    Pauses,
}

impl Chance {
    /// The stream of that seed.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// The stream of a run's seed for one purpose.
    pub(crate) const fn of(seed: u64, purpose: Purpose) -> Self {
        Self::new(SplitMix64::at(seed, purpose as u64).bits())
    }

    /// The next number.
    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// Uniform on the integers below `end`; 0 if that is 0. Off by less than `end` ÷ 2⁶⁴ of itself.
    #[inline]
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        let wide = u128::from(self.bits()) * u128::from(end);
        u32::try_from(wide >> 64).unwrap_or_default()
    }

    /// Uniform on the multiples of 2⁻⁵³ from 0 up to, not including, 1.
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
        let numerator = (self.bits() >> 11) as f64;
        numerator * (1.0 / 9_007_199_254_740_992.0)
    }

    /// True with that probability. Draws nothing where the answer is certain.
    #[inline]
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && (probability >= 1.0 || self.unit() < probability)
    }

    /// Exponential with that mean, in whole nanoseconds.
    #[inline]
    pub(crate) fn exponential(&mut self, mean_nanos: f64) -> u64 {
        // From 1 − u, which is never 0. At most 36.8 means.
        nanos(-libm::log(1.0 - self.unit()) * mean_nanos)
    }

    /// Normal with mean 0 and standard deviation 1.
    ///
    /// # Source
    ///
    /// Box and Muller, "A Note on the Generation of Random Normal Deviates", 1958.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        radius * libm::cos(2.0 * std::f64::consts::PI * self.unit())
    }
}

/// Nanoseconds as an integer; below zero is zero, and what does not fit the largest that does.
#[inline]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts of floats saturate")]
pub(crate) fn nanos(value: f64) -> u64 {
    value as u64
}

/// A duration's nanoseconds as a number to multiply.
#[expect(clippy::cast_precision_loss, reason = "exact below 104 days, and a mean beyond")]
pub(crate) fn float_nanos(length: Duration) -> f64 {
    length.as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        let first = |purpose| Chance::of(7, purpose).bits();
        assert_ne!(first(Purpose::Arrivals), first(Purpose::Service));
        assert_eq!(first(Purpose::Fate), first(Purpose::Fate));
        assert_ne!(first(Purpose::Fate), Chance::of(8, Purpose::Fate).bits());
    }

    #[test]
    fn draws_have_the_mean_and_the_range_that_they_say() {
        let mut chance = Chance::new(1);
        let count = 100_000;
        let mean = (0..count).map(|_| chance.exponential(1e6)).sum::<u64>() / count;
        assert!(mean.abs_diff(1_000_000) < 15_000, "{mean}");
        let mut seen = [0u32; 5];
        (0..count).for_each(|_| seen[chance.below(5) as usize] += 1);
        assert!(seen.iter().all(|count| count.abs_diff(20_000) < 700), "{seen:?}");
        let hits = (0..count).filter(|_| chance.happens(0.2)).count();
        assert!(hits.abs_diff(20_000) < 700, "{hits}");
        let (sum, squares) = (0..count)
            .map(|_| chance.normal())
            .fold((0.0, 0.0), |(sum, squares), one| (sum + one, squares + one * one));
        assert!(sum.abs() < 1500.0 && (squares - 100_000.0).abs() < 2000.0, "{sum} {squares}");
    }

    #[test]
    fn nothing_is_drawn_where_the_answer_is_certain() {
        let mut chance = Chance::new(3);
        assert!(chance.happens(1.0) && !chance.happens(0.0) && chance.below(0) == 0);
        assert_eq!(nanos(-5.0), 0);
    }
}
