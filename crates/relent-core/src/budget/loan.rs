//! The loan budget: a retry is a loan.
//!
//! A failed retry keeps its token. A successful one pays it back, with interest when the failure looked
//! independent of load and without when it looked like overload. First successes earn a little, and the bucket
//! is sized by the traffic of the last minute, not by a constant. First attempts are never blocked and failed
//! first attempts are never charged.
//!
//! For any pattern of failures:
//!
//! 1. failed retries ≤ start + earn × first successes + gain × rescued calls (where a charge is one token);
//! 2. in an outage, failed retries ≤ the tokens at its start + loans already out: at steady traffic 1.2 seconds'
//!    worth of calls, however long it lasts;
//! 3. 0 ≤ tokens ≤ cap.
//!
//! It tips at 40 % failing attempts for errors, 24 % for time-outs and 12 % for overload answers (independent
//! failures, five attempts).
//!
//! # Source
//!
//! relent's own. The idea of charging a retry and returning the charge is the AWS SDKs' retry quota; sizing by
//! recent traffic and interest by cause are not.

use crate::{time::Timestamp, verdict::Cause};

use super::Loan;

/// The loan budget's numbers, in thousandths of a token.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct LoanPolicy {
    /// Earned by a first attempt that succeeds.
    pub earn_milli: u32,
    /// Earned, on top of the charge that comes back, by a retry that succeeds after an error.
    pub gain_milli: u32,
    /// The least that the bucket holds when full.
    pub floor_milli: u32,
    /// What each call of the last minute adds to the bucket's size.
    pub per_call_milli: u32,
    /// What is there before the first call: so that the very first failure may be retried.
    pub start_milli: u32,
    /// The charge after an error or a time-out of ours.
    pub charge_milli: u32,
    /// The charge after an overload answer; never more than the bucket holds.
    pub throttled_milli: u32,
}

impl Default for LoanPolicy {
    fn default() -> Self {
        Self {
            earn_milli: 100,
            gain_milli: 500,
            floor_milli: 3_000,
            per_call_milli: 20,
            start_milli: 1_000,
            charge_milli: 1_000,
            throttled_milli: 5_000,
        }
    }
}

impl LoanPolicy {
    /// What the bucket holds when full, given the calls of the last minute in thousandths.
    pub fn cap(&self, calls_milli: u64) -> u32 {
        let sized = calls_milli.saturating_mul(u64::from(self.per_call_milli)) / 1000;
        u32::try_from(sized).unwrap_or(u32::MAX).max(self.floor_milli)
    }

    /// The tokens after a first success.
    pub fn after_first_success(&self, tokens: u32, cap: u32) -> u32 {
        tokens.saturating_add(self.earn_milli).min(cap)
    }

    /// The tokens after a retry was let through, and its charge. `None`: too few are left.
    pub fn lend(&self, tokens: u32, cap: u32, cause: Cause) -> Option<(u32, u32)> {
        let charge = match cause {
            Cause::Throttled => self.throttled_milli.min(cap),
            Cause::Error | Cause::Timeout | Cause::Lost => self.charge_milli,
        };
        Some((tokens.checked_sub(charge)?, charge))
    }

    /// The tokens after a retry succeeded.
    pub fn repaid(&self, tokens: u32, cap: u32, loan: Loan) -> u32 {
        let gain = match loan.cause {
            Cause::Error => u64::from(loan.charge) * u64::from(self.gain_milli) / 1000,
            Cause::Timeout | Cause::Throttled | Cause::Lost => 0,
        };
        let back = loan.charge.saturating_add(u32::try_from(gain).unwrap_or(u32::MAX));
        tokens.saturating_add(back).min(cap)
    }
}

/// Calls of about the last minute, in two words: this slot of a minute with its calls, and the calls of the slot
/// before.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Traffic {
    /// `slot << 32 | calls`.
    pub word: u64,
    /// Calls in the slot before `slot`.
    pub last: u32,
}

/// What counting one call does to the traffic.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Counted {
    /// The same slot goes on: add one to the word.
    SameSlot,
    /// A new slot begins with this word and this many calls in the slot before.
    NewSlot {
        /// The new word.
        word: u64,
        /// Calls in the slot before it.
        last: u32,
    },
}

impl Traffic {
    /// Counting one call at `now`. A clock that went back counts into the present slot.
    pub fn count(self, now: Timestamp) -> Counted {
        let (slot, calls) = (self.word >> 32, self.word & CALLS);
        let present = now.as_nanos() / SLOT;
        if present <= slot {
            return Counted::SameSlot;
        }
        let last = if present == slot + 1 { u32::try_from(calls).unwrap_or(u32::MAX) } else { 0 };
        Counted::NewSlot { word: (present << 32) | 1, last }
    }

    /// Calls within the last minute, in thousandths: this slot's, and of the last slot's the share that is still
    /// within a minute.
    pub fn calls_milli(self, now: Timestamp) -> u64 {
        let (slot, calls) = (self.word >> 32, self.word & CALLS);
        let present = now.as_nanos() / SLOT;
        let (calls, last) = match present.saturating_sub(slot) {
            0 => (calls, u64::from(self.last)),
            1 => (0, calls),
            _ => (0, 0),
        };
        let left_milli = (SLOT - now.as_nanos() % SLOT) / (SLOT / 1000);
        calls * 1000 + last * left_milli
    }
}

/// The loan budget in plain fields.
#[derive(Clone, Copy, Debug)]
pub struct LoanState {
    /// Thousandths of a token.
    pub tokens: u32,
    /// Calls of the last minute.
    pub traffic: Traffic,
}

impl LoanState {
    /// Before the first call.
    pub fn new(policy: &LoanPolicy) -> Self {
        Self { tokens: policy.start_milli, traffic: Traffic::default() }
    }

    pub(super) fn on_call(&mut self, now: Timestamp) {
        match self.traffic.count(now) {
            Counted::SameSlot => self.traffic.word += 1,
            Counted::NewSlot { word, last } => self.traffic = Traffic { word, last },
        }
    }

    pub(super) fn on_first_success(&mut self, policy: &LoanPolicy, now: Timestamp) {
        self.tokens = policy.after_first_success(self.tokens, self.cap(policy, now));
    }

    pub(super) fn try_retry(&mut self, policy: &LoanPolicy, cause: Cause, now: Timestamp) -> Option<u32> {
        let (left, charge) = policy.lend(self.tokens, self.cap(policy, now), cause)?;
        self.tokens = left;
        Some(charge)
    }

    pub(super) fn on_retry_success(&mut self, policy: &LoanPolicy, loan: Loan, now: Timestamp) {
        self.tokens = policy.repaid(self.tokens, self.cap(policy, now), loan);
    }

    pub(super) fn give_back(&mut self, policy: &LoanPolicy, charge: u32, now: Timestamp) {
        self.tokens = self.tokens.saturating_add(charge).min(self.cap(policy, now));
    }

    fn cap(&self, policy: &LoanPolicy, now: Timestamp) -> u32 {
        policy.cap(self.traffic.calls_milli(now))
    }
}

/// A slot of traffic: one minute.
const SLOT: u64 = 60_000_000_000;
const CALLS: u64 = 0xffff_ffff;
