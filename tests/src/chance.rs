//! Chance for tests: small, the same on every machine, and repeated by its seed.

use std::env;

use crate::wall;

/// A stream of numbers that a seed determines.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The stream of that seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    ///
    /// # Source
    ///
    /// SplitMix64: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from `low` to `high`, both included.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.bits() % (high - low + 1)
    }
}

/// The seed of a run: `RELENT_SEED` if it is set, otherwise a new one. Printed, so that a failure can be
/// looked at again.
///
/// # Panics
///
/// If `RELENT_SEED` is not a number.
pub fn seed(what: &str) -> u64 {
    let seed = match env::var("RELENT_SEED") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("RELENT_SEED={text} is not a number")),
        Err(_) => Chance::new(wall::unix_millis()).bits(),
    };
    println!("{what}: RELENT_SEED={seed}");
    seed
}
