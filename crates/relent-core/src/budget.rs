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
#[cfg(test)]
mod tests;
pub mod traffic;
mod validate;

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

/// The leave to make one retry. It comes to exactly one of three ends, each of which uses it up:
/// [`BudgetState::on_unsent`] gives it back, [`BudgetState::on_retry_success`] repays it,
/// [`BudgetState::on_retry_failure`] keeps it.
///
/// ```
/// # use relent_core::{Cause, Timestamp, budget::{BudgetPolicy, BudgetState}};
/// let mut budget = BudgetState::new(&BudgetPolicy::default());
/// budget.on_call(Timestamp::ZERO);
/// let loan = budget.try_retry(Cause::Error, Timestamp::ZERO)?;
/// budget.on_retry_success(loan, Timestamp::ZERO);
/// # Ok::<_, relent_core::Refusal>(())
/// ```
///
/// A loan cannot be used twice:
///
/// ```compile_fail,E0382
/// # use relent_core::{Cause, Timestamp, budget::{BudgetPolicy, BudgetState}};
/// let mut budget = BudgetState::new(&BudgetPolicy::default());
/// budget.on_call(Timestamp::ZERO);
/// let loan = budget.try_retry(Cause::Error, Timestamp::ZERO)?;
/// budget.on_retry_success(loan, Timestamp::ZERO);
/// budget.on_unsent(loan);
/// # Ok::<_, relent_core::Refusal>(())
/// ```
#[derive(Debug, Eq, PartialEq)]
#[must_use]
pub struct Loan {
    charge: u32,
    cause: Cause,
    /// The slice of the window that a ratio counted the retry in; 0 for the other kinds.
    slice: u64,
}

impl Loan {
    /// What was charged, in thousandths of a token; 0 for a kind without tokens, and for gRPC, which charges
    /// the failure.
    pub const fn charge_milli(&self) -> u32 {
        self.charge
    }

    /// The failure that it was taken for.
    pub const fn cause(&self) -> Cause {
        self.cause
    }
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
    /// A budget as it is before the first call. The policy is one that [`BudgetPolicy::validate`] lets pass.
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
        let taken = match &mut self.kind {
            Kind::Loan(policy, state) => state.try_retry(policy, cause, now).map(|charge| (charge, 0)),
            Kind::Grpc(policy, tokens) => policy.allows(*tokens).then_some((0, 0)),
            Kind::Ratio(policy, state) => state.try_retry(policy, now).map(|slice| (0, slice)),
            Kind::Share(policy, in_flight) => in_flight.try_retry(policy).then_some((0, 0)),
            Kind::Quota(policy, tokens) => policy.charge(*tokens, cause).map(|(left, charge)| {
                *tokens = left;
                (charge, 0)
            }),
        };
        taken.map(|(charge, slice)| Loan { charge, cause, slice }).ok_or(REFUSAL)
    }

    /// A loan was not used: its retry was never sent.
    pub fn on_unsent(&mut self, loan: Loan) {
        match &mut self.kind {
            Kind::Loan(policy, state) => state.give_back(policy, loan.charge),
            Kind::Ratio(_, state) => state.give_back(loan.slice),
            Kind::Share(_, in_flight) => in_flight.on_retry_end(),
            Kind::Quota(policy, tokens) => *tokens = policy.returned(*tokens, loan.charge),
            Kind::Grpc(..) => {}
        }
    }

    /// The retry that a loan was for succeeded.
    pub fn on_retry_success(&mut self, loan: Loan, now: Timestamp) {
        match &mut self.kind {
            Kind::Loan(policy, state) => state.on_retry_success(policy, loan.charge, loan.cause, now),
            Kind::Grpc(policy, tokens) => *tokens = policy.after_success(*tokens),
            Kind::Share(_, in_flight) => in_flight.on_retry_end(),
            Kind::Quota(policy, tokens) => *tokens = policy.returned(*tokens, loan.charge),
            Kind::Ratio(..) => {}
        }
    }

    /// The retry that a loan was for ended without success; the loan is kept. Where it ended in a failure worth
    /// retrying, [`BudgetState::on_failure`] is told as well.
    pub fn on_retry_failure(&mut self, _loan: Loan) {
        if let Kind::Share(_, in_flight) = &mut self.kind {
            in_flight.on_retry_end();
        }
    }

    /// An attempt (the first or a retry, the last one as well) failed in a way worth retrying. Told before the
    /// retry is asked for.
    pub fn on_failure(&mut self, _cause: Cause) {
        if let Kind::Grpc(policy, tokens) = &mut self.kind {
            *tokens = policy.after_failure(*tokens);
        }
    }

    /// A call ended, however, and no retry of it is out.
    pub fn on_end(&mut self) {
        if let Kind::Share(_, in_flight) = &mut self.kind {
            in_flight.calls = in_flight.calls.saturating_sub(1);
        }
    }

    /// Thousandths of a token that are there at `now`, where the kind has tokens.
    pub fn tokens_milli(&self, now: Timestamp) -> Option<u32> {
        match &self.kind {
            Kind::Loan(policy, state) => Some(state.tokens(policy, now)),
            Kind::Grpc(_, tokens) | Kind::Quota(_, tokens) => Some(*tokens),
            Kind::Ratio(..) | Kind::Share(..) => None,
        }
    }
}

/// What a budget says when it refuses. The advice is for loops that would otherwise call again at once: without
/// it a refusal takes away the only pacing there was.
pub const REFUSAL: Refusal = Refusal { by: Gate::Budget, until: None, advised: Duration::from_secs(1) };
