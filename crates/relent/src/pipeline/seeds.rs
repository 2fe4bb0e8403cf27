//! Where the chance of calls comes from: drawn once for each, at its birth.

use std::{
    cell::Cell,
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
    thread_local,
};

use relent_core::SplitMix64;

/// The calls' supply of chance: a key from the operating system, so that processes which start together do not draw
/// alike, and numbers that each thread counts by itself. A draw takes no lock, no system call, and no write that
/// another thread would have to wait for.
#[derive(Debug)]
pub(super) struct Seeds {
    key: u64,
}

impl Seeds {
    pub(super) fn new() -> Self {
        Self { key: RandomState::new().hash_one(0) }
    }

    /// No seed comes twice, and neighbours have nothing in common.
    #[inline]
    pub(super) fn draw(&self) -> u64 {
        SplitMix64::at(self.key, next_number()).bits()
    }
}

/// A number that comes once in a process: the next of this thread's block, or the first of a new block.
#[inline]
fn next_number() -> u64 {
    thread_local! {
        static NEXT: Cell<u64> = const { Cell::new(0) };
    }
    NEXT.with(|next| {
        let number = match next.get() {
            used_up if used_up.is_multiple_of(BLOCK) => next_block(),
            number => number,
        };
        next.set(number + 1);
        number
    })
}

/// The first number of a block that no thread has had. None begins at zero, which says that there is no block yet;
/// 2⁴⁸ blocks outlast any process.
#[cold]
fn next_block() -> u64 {
    static BLOCKS: AtomicU64 = AtomicU64::new(1);
    BLOCKS.fetch_add(1, Ordering::Relaxed).wrapping_mul(BLOCK)
}

const BLOCK: u64 = 1 << 16;

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, thread};

    use super::*;

    #[test]
    fn no_number_comes_twice_whichever_thread_asks_and_however_often() {
        let draw = || (0..=BLOCK).map(|_| next_number()).collect::<Vec<_>>();
        let drawn = thread::scope(|scope| {
            let threads = [(); 3].map(|()| scope.spawn(draw));
            threads.map(|thread| thread.join().unwrap())
        });
        let apart: HashSet<u64> = drawn.iter().flatten().copied().collect();
        assert_eq!(apart.len() as u64, 3 * (BLOCK + 1));
    }
}
