//! Chance that a seed determines, the same on every machine and in every version.
//!
//! What a seed means must not change: it stands in stored histories, in scenarios and in printed timelines. So the
//! generator is written here, once, and not taken from a crate that may change its own.

/// A stream of 64-bit numbers that its seed determines. Not for secrets: an output tells all that follow.
///
/// # Source
///
/// SplitMix64: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014 (variant 13 of
/// Stafford's mixers).
///
/// ```
/// use relent_core::SplitMix64;
///
/// let mut chance = SplitMix64::new(1_234_567);
/// assert_eq!(chance.bits(), 6_457_827_717_110_365_317);
/// ```
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The stream of that seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The stream of that seed from its output `nth` on, counted from 0: reached at once, however far it is.
    #[must_use]
    #[inline]
    pub const fn at(seed: u64, nth: u64) -> Self {
        Self(seed.wrapping_add(nth.wrapping_mul(GOLDEN)))
    }

    /// The next number: every bit of the seed moves about half of its bits.
    #[inline]
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        let z = self.0;
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// 2⁶⁴ divided by the golden ratio, odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_splitmix64() {
        // The first three outputs from state 1234567, a widely published vector.
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        let mut chance = SplitMix64::new(1_234_567);
        assert_eq!([(); 3].map(|()| chance.bits()), expected);
        assert_eq!([0, 1, 2].map(|nth| SplitMix64::at(1_234_567, nth).bits()), expected);
    }
}
