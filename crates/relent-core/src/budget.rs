//! How much retry traffic is too much: budgets across all calls to a dependency.
//!
//! Attempts limit one call; five attempts on every call are still a fivefold flood, and it comes exactly when
//! the dependency is drowning. A budget sees past the single call. First attempts are never blocked by one.
//!
//! Every kind speaks the same verbs, by what happens: a call begins, its first attempt succeeds, a retry asks
//! to be let through, a retry succeeds, an attempt fails, a call ends. Tokens are integers in thousandths.
//! Each file holds one kind: its policy, and its transitions as pure functions of packed words. A
//! [`BudgetState`] keeps the words in plain fields, for simulations; the live driver keeps the same words in
//! atomics and steps them by compare-and-swap.

pub mod grpc;
pub mod loan;
pub mod quota;
pub mod ratio;
pub mod share;

use core::time::Duration;

pub use grpc::GrpcPolicy;
pub use loan::LoanPolicy;
pub use quota::QuotaPolicy;
pub use ratio::{Of, RatioPolicy};
pub use share::SharePolicy;

use crate::{
    decision::{Gate, Refusal},
    time::Timestamp,
    verdict::Cause,
};

/// A budget, as data.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum BudgetPolicy {
    /// Retries are loans that come back when they succeed: relent's own, and the default.
    Loan(LoanPolicy),
    /// gRPC's retry throttling: retries only while more than half of the tokens are there.
    Grpc(GrpcPolicy),
    /// Retries up to a share of the originals or of all requests in a sliding window.
    Ratio(RatioPolicy),
    /// Retries up to a share of what is in flight.
    Share(SharePolicy),
    /// The AWS SDKs' retry quota.
    Quota(QuotaPolicy),
}

impl Default for BudgetPolicy {
    fn default() -> Self {
        Self::Loan(LoanPolicy::default())
    }
}

/// The leave to make one retry. It must come to one of three ends: given back before the retry was sent, repaid
/// when the retry succeeds, or kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub struct Loan {
    /// What was charged, in thousandths of a token.
    pub charge: u32,
    /// The failure that it was taken for.
    pub cause: Cause,
}

/// A budget's state in plain fields: one thread, no atomics, the exact twin of the live one.
#[derive(Clone, Debug)]
pub struct BudgetState {
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Loan(LoanPolicy, loan::LoanState),
    Grpc(GrpcPolicy, u32),
    Ratio(RatioPolicy, ratio::RatioState),
    Share(SharePolicy, share::InFlight),
    Quota(QuotaPolicy, u32),
}

impl BudgetState {
    /// A budget as it is before the first call.
    pub fn new(policy: &BudgetPolicy) -> Self {
        let kind = match *policy {
            BudgetPolicy::Loan(policy) => Kind::Loan(policy, loan::LoanState::new(&policy)),
            BudgetPolicy::Grpc(policy) => Kind::Grpc(policy, policy.max_milli),
            BudgetPolicy::Ratio(policy) => Kind::Ratio(policy, ratio::RatioState::default()),
            BudgetPolicy::Share(policy) => Kind::Share(policy, share::InFlight::default()),
            BudgetPolicy::Quota(policy) => Kind::Quota(policy, policy.capacity_milli),
        };
        Self { kind }
    }

    /// A call begins.
    pub fn on_call(&mut self, now: Timestamp) {
        match &mut self.kind {
            Kind::Loan(_, state) => state.on_call(now),
            Kind::Ratio(policy, state) => state.on_call(policy, now),
            Kind::Share(_, in_flight) => in_flight.calls += 1,
            Kind::Grpc(..) | Kind::Quota(..) => {}
        }
    }

    /// A call's first attempt succeeded.
    pub fn on_first_success(&mut self, now: Timestamp) {
        match &mut self.kind {
            Kind::Loan(policy, state) => state.on_first_success(policy, now),
            Kind::Grpc(policy, tokens) => *tokens = policy.after_success(*tokens),
            Kind::Quota(policy, tokens) => *tokens = policy.after_first_success(*tokens),
            Kind::Ratio(..) | Kind::Share(..) => {}
        }
    }

    /// A retry asks to be let through after a failure of that cause.
    ///
    /// # Errors
    ///
    /// The refusal of [`Gate::Budget`]. No moment is known at which the answer changes: it changes when
    /// successes return.
    pub fn try_retry(&mut self, cause: Cause, now: Timestamp) -> Result<Loan, Refusal> {
        let charge = match &mut self.kind {
            Kind::Loan(policy, state) => state.try_retry(policy, cause, now),
            Kind::Grpc(policy, tokens) => policy.allows(*tokens).then_some(0),
            Kind::Ratio(policy, state) => state.try_retry(policy, now).then_some(0),
            Kind::Share(policy, in_flight) => in_flight.try_retry(policy).then_some(0),
            Kind::Quota(policy, tokens) => policy.charge(*tokens, cause).map(|(left, charge)| {
                *tokens = left;
                charge
            }),
        };
        charge.map(|charge| Loan { charge, cause }).ok_or(REFUSAL)
    }

    /// A loan was not used: its retry was never sent.
    pub fn on_unsent(&mut self, loan: Loan, now: Timestamp) {
        match &mut self.kind {
            Kind::Loan(policy, state) => state.give_back(policy, loan.charge, now),
            Kind::Ratio(_, state) => state.give_back(),
            Kind::Share(_, in_flight) => in_flight.retries = in_flight.retries.saturating_sub(1),
            Kind::Quota(policy, tokens) => *tokens = policy.after_retry_success(*tokens, loan.charge),
            Kind::Grpc(..) => {}
        }
    }

    /// The retry that a loan was for succeeded.
    pub fn on_retry_success(&mut self, loan: Loan, now: Timestamp) {
        match &mut self.kind {
            Kind::Loan(policy, state) => state.on_retry_success(policy, loan, now),
            Kind::Grpc(policy, tokens) => *tokens = policy.after_success(*tokens),
            Kind::Share(_, in_flight) => in_flight.retries = in_flight.retries.saturating_sub(1),
            Kind::Quota(policy, tokens) => *tokens = policy.after_retry_success(*tokens, loan.charge),
            Kind::Ratio(..) => {}
        }
    }

    /// A retry ended without success; its loan is kept.
    pub fn on_retry_failure(&mut self, _loan: Loan) {
        if let Kind::Share(_, in_flight) = &mut self.kind {
            in_flight.retries = in_flight.retries.saturating_sub(1);
        }
    }

    /// An attempt (the first or a retry) failed in a way worth retrying.
    pub fn on_failure(&mut self, _cause: Cause) {
        if let Kind::Grpc(policy, tokens) = &mut self.kind {
            *tokens = policy.after_failure(*tokens);
        }
    }

    /// A call ended, however.
    pub fn on_end(&mut self) {
        if let Kind::Share(_, in_flight) = &mut self.kind {
            in_flight.calls = in_flight.calls.saturating_sub(1);
        }
    }

    /// Thousandths of a token that are left, where the kind has tokens.
    pub fn tokens_milli(&self) -> Option<u32> {
        match &self.kind {
            Kind::Loan(_, state) => Some(state.tokens),
            Kind::Grpc(_, tokens) | Kind::Quota(_, tokens) => Some(*tokens),
            Kind::Ratio(..) | Kind::Share(..) => None,
        }
    }
}

/// What a budget says when it refuses. The advice is for loops that would otherwise call again at once: without
/// it a refusal takes away the only pacing there was.
pub const REFUSAL: Refusal = Refusal { by: Gate::Budget, until: None, advised: Duration::from_secs(1) };
