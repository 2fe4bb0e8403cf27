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

    #[inline]
    pub(super) fn on_call(&self, now: Timestamp) {
        let word = &self.calls[traffic::place(now)];
        let mut seen = word.load(Relaxed);
        loop {
            match traffic::count(seen, now) {
                Counted::SameSlot => {
                    word.fetch_add(1, Relaxed);
                    return;
                }
                Counted::NewSlot(new) => match word.compare_exchange_weak(seen, new, Relaxed, Relaxed) {
                    Ok(_) => return,
                    Err(other) => seen = other,
                },
            }
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
