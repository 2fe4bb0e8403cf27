//! The ratio budget's window in bucketed atomics: ten words of originals, ten of retries, and a gate.
//!
//! Every word is `slice << 26 | count`, so that a place of the ring says whose count it holds. The gate holds
//! the newest slice and the retries in it. A retry is let through by adding one to the gate, from the value
//! under which the window was summed; if another came first, the window is summed again. So two askers never
//! take the same last place. Before the gate turns to a new slice, the old slice's retries are left in their
//! place of the ring; while the gate still shows the old slice, nobody reads them there.
//!
//! # How far it may be off
//!
//! On one thread it is exact. With several it never allows more than the exact window does, but for a call that
//! stands still for a whole window between two of its instructions and is counted late. It may allow one retry
//! less until a slice leaves the window, for each loan that is given back at the very moment when its slice
//! ends. A slice counts 33 million calls and no further; beyond that the share is reckoned of what was counted.

use relent_core::{
    Timestamp,
    budget::{
        RatioPolicy,
        ratio::{SLICES, place},
    },
};

use super::word;
use crate::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed},
};

#[derive(Debug)]
pub(super) struct RatioCells {
    gate: AtomicU64,
    retries: [AtomicU64; SLICES],
    originals: [AtomicU64; SLICES],
}

impl RatioCells {
    pub(super) fn new() -> Self {
        let zeros = || core::array::from_fn(|_| AtomicU64::new(0));
        Self { gate: AtomicU64::new(0), retries: zeros(), originals: zeros() }
    }

    pub(super) fn on_call(&self, policy: &RatioPolicy, now: Timestamp) {
        let newest = slice_of(self.turn(policy, now));
        let word = &self.originals[place(newest)];
        let mut seen = word.load(Relaxed);
        while slice_of(seen) < newest {
            match word.compare_exchange_weak(seen, pack(newest) + 1, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(other) => seen = other,
            }
        }
        if count_of(seen) < MOST {
            word.fetch_add(1, Relaxed);
        }
    }

    /// The slice that the retry was counted in, if it was let through.
    pub(super) fn try_retry(&self, policy: &RatioPolicy, now: Timestamp) -> Option<u64> {
        let mut gate = self.turn(policy, now);
        loop {
            let (newest, taken) = (slice_of(gate), count_of(gate));
            let originals = sum(&self.originals, newest.saturating_sub(OLDER)..=newest);
            let older = match newest {
                0 => 0,
                _ => sum(&self.retries, newest.saturating_sub(OLDER)..=newest - 1),
            };
            if taken >= MOST || !policy.allows(originals, older + taken) {
                return None;
            }
            match self.gate.compare_exchange_weak(gate, gate + 1, AcqRel, Acquire) {
                Ok(_) => return Some(newest),
                Err(other) => gate = other,
            }
        }
    }

    /// Takes back a retry, unless the slice that it was counted in has left the window with it.
    pub(super) fn give_back(&self, slice: u64) {
        let mut gate = self.gate.load(Acquire);
        while slice_of(gate) == slice && count_of(gate) > 0 {
            match self.gate.compare_exchange_weak(gate, gate - 1, AcqRel, Acquire) {
                Ok(_) => return,
                Err(other) => gate = other,
            }
        }
        let still_there = |word| (slice_of(word) == slice && count_of(word) > 0).then(|| (word - 1, ()));
        if slice_of(gate) > slice {
            word::take64(&self.retries[place(slice)], still_there);
        }
    }

    /// Brings the gate to the slice of `now`, unless it is there or beyond, and returns it.
    fn turn(&self, policy: &RatioPolicy, now: Timestamp) -> u64 {
        let new = pack(policy.slice_at(now));
        let mut gate = self.gate.load(Acquire);
        while slice_of(gate) < slice_of(new) {
            // The greatest counts: of a later slice, or more of the same. Another that turns may be behind.
            self.retries[place(slice_of(gate))].fetch_max(gate, AcqRel);
            match self.gate.compare_exchange_weak(gate, new, AcqRel, Acquire) {
                Ok(_) => return new,
                Err(other) => gate = other,
            }
        }
        gate
    }
}

/// What the words of these slices count together.
fn sum(words: &[AtomicU64; SLICES], slices: core::ops::RangeInclusive<u64>) -> u64 {
    let counted = words.iter().map(|word| word.load(Relaxed));
    counted.filter(|word| slices.contains(&slice_of(*word))).map(count_of).sum()
}

const fn pack(slice: u64) -> u64 {
    slice << COUNT_BITS
}

const fn slice_of(word: u64) -> u64 {
    word >> COUNT_BITS
}

const fn count_of(word: u64) -> u64 {
    word & ((1 << COUNT_BITS) - 1)
}

/// A window is at least a second long, so that the last slice a timestamp can name needs 38 bits.
const COUNT_BITS: u32 = 26;
/// Half of what fits: as many threads as there can be may add one after having looked.
const MOST: u64 = 1 << (COUNT_BITS - 1);
/// Slices in the window beside the newest.
const OLDER: u64 = SLICES as u64 - 1;
