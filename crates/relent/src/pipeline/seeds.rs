//! Where the chance of calls comes from: drawn once for each, at its birth.

use std::{
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
};

/// The calls' supply of chance: a counter, and a key from the operating system, so that processes which start
/// together do not draw alike. A draw takes no lock and no system call.
#[derive(Debug)]
pub(super) struct Seeds {
    key: u64,
    drawn: AtomicU64,
}

impl Seeds {
    pub(super) fn new() -> Self {
        Self { key: RandomState::new().hash_one(0), drawn: AtomicU64::new(0) }
    }

    /// SplitMix64 from the key on: no seed comes twice, and neighbours have nothing in common. (Steele, Lea,
    /// Flood: Fast splittable pseudorandom number generators, 2014.)
    pub(super) fn draw(&self) -> u64 {
        let number = self.drawn.fetch_add(1, Ordering::Relaxed);
        let mut bits = self.key.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}
