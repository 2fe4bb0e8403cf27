//! The loan budget's words: its tokens, and the calls of this minute and the last.
//!
//! They need no order among each other. A reader that misses a call which another thread has just counted
//! reckons with a bucket smaller by that call.

use relent_core::{
    Cause, Timestamp,
    budget::{
        LoanPolicy,
        traffic::{self, Counted},
    },
};

use super::word;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

#[derive(Debug)]
pub(super) struct LoanCells {
    tokens: AtomicU32,
    /// [`traffic`]: the even minute and the odd one.
    calls: [AtomicU64; 2],
}

impl LoanCells {
    pub(super) fn new(policy: &LoanPolicy) -> Self {
        Self { tokens: AtomicU32::new(policy.start_milli), calls: [AtomicU64::new(0), AtomicU64::new(0)] }
    }

    /// It adds first and looks then: whoever looks first asks other processors for the word twice, to read it and to
    /// write it. The slot before last that is one too many for a moment is read by nobody but a clock that lags behind.
    #[inline]
    pub(super) fn on_call(&self, now: Timestamp) {
        let word = &self.calls[traffic::place(now)];
        let before = word.fetch_add(1, Relaxed);
        if let Counted::NewSlot(_) = traffic::count(before, now) {
            turn(word, before + 1, now);
        }
    }

    #[inline]
    pub(super) fn on_first_success(&self, policy: &LoanPolicy, now: Timestamp) {
        let cap = self.cap(policy, now);
        word::step(&self.tokens, |tokens| policy.after_first_success(tokens, cap));
    }

    pub(super) fn try_retry(&self, policy: &LoanPolicy, cause: Cause, now: Timestamp) -> Option<u32> {
        let cap = self.cap(policy, now);
        word::take(&self.tokens, |tokens| policy.lend(tokens, cap, cause))
    }

    pub(super) fn on_retry_success(&self, policy: &LoanPolicy, charge: u32, cause: Cause, now: Timestamp) {
        let cap = self.cap(policy, now);
        word::step(&self.tokens, |tokens| policy.repaid(tokens, cap, charge, cause));
    }

    pub(super) fn give_back(&self, policy: &LoanPolicy, charge: u32) {
        word::step(&self.tokens, |tokens| policy.given_back(tokens, charge));
    }

    pub(super) fn tokens(&self, policy: &LoanPolicy, now: Timestamp) -> u32 {
        self.tokens.load(Relaxed).min(self.cap(policy, now))
    }

    #[inline]
    fn cap(&self, policy: &LoanPolicy, now: Timestamp) -> u32 {
        let [even, odd] = &self.calls;
        policy.cap(traffic::calls_milli([even.load(Relaxed), odd.load(Relaxed)], now))
    }
}

/// A slot begins with this call, which was added to what stood in its place.
#[cold]
fn turn(word: &AtomicU64, mut seen: u64, now: Timestamp) {
    loop {
        match traffic::count(seen, now) {
            Counted::NewSlot(new) => match word.compare_exchange_weak(seen, new, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(other) => seen = other,
            },
            // Another call has begun it, and left this one behind.
            Counted::SameSlot => {
                word.fetch_add(1, Relaxed);
                return;
            }
        }
    }
}
