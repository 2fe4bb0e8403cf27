//! One word stepped by a pure function. A word that stands alone needs no order with other memory, so all is
//! relaxed: every step still sees the one before it.

use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Steps the word, and does not write where nothing changes.
#[inline]
pub(super) fn step(word: &AtomicU32, next: impl Fn(u32) -> u32) {
    let mut seen = word.load(Relaxed);
    loop {
        let new = next(seen);
        if new == seen {
            return;
        }
        match word.compare_exchange_weak(seen, new, Relaxed, Relaxed) {
            Ok(_) => return,
            Err(other) => seen = other,
        }
    }
}

/// Steps the word if it can be, and says what was taken.
pub(super) fn take<R>(word: &AtomicU32, next: impl Fn(u32) -> Option<(u32, R)>) -> Option<R> {
    let mut seen = word.load(Relaxed);
    loop {
        let (new, taken) = next(seen)?;
        match word.compare_exchange_weak(seen, new, Relaxed, Relaxed) {
            Ok(_) => return Some(taken),
            Err(other) => seen = other,
        }
    }
}

/// [`take`] for a word of 64 bits.
pub(super) fn take64<R>(word: &AtomicU64, next: impl Fn(u64) -> Option<(u64, R)>) -> Option<R> {
    let mut seen = word.load(Relaxed);
    loop {
        let (new, taken) = next(seen)?;
        match word.compare_exchange_weak(seen, new, Relaxed, Relaxed) {
            Ok(_) => return Some(taken),
            Err(other) => seen = other,
        }
    }
}
