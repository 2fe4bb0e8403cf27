//! What a call and a retry hold of a budget, and give back however they end.

use relent_core::{Cause, Timestamp};

use super::Budget;

/// A call that is under way: it counts as in flight until this is dropped.
#[derive(Debug)]
#[must_use = "the call ends when this is dropped"]
pub struct Underway<'a> {
    budget: &'a Budget,
}

impl<'a> Underway<'a> {
    pub(super) const fn of(budget: &'a Budget) -> Self {
        Self { budget }
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        self.budget.end();
    }
}

/// The leave to make one retry. Dropped before [`Loan::sent`] it gives back what was charged, because the retry
/// never left; dropped after it the charge is kept, as for a retry that failed.
#[derive(Debug)]
#[must_use = "a loan that is dropped is given back"]
pub struct Loan<'a> {
    budget: &'a Budget,
    lent: Lent,
    stage: Stage,
}

/// What was charged for a retry and why, as plain data: [`Budget::repay`], [`Budget::keep`] or
/// [`Budget::give_back`] ends it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lent {
    pub(super) charge: u32,
    pub(super) cause: Cause,
    pub(super) slice: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    Waiting,
    Sent,
    Repaid,
}

impl<'a> Loan<'a> {
    pub(super) const fn of(budget: &'a Budget, lent: Lent) -> Self {
        Self { budget, lent, stage: Stage::Waiting }
    }

    /// What was charged, in thousandths of a token; 0 for a kind that charges nothing at this point.
    pub const fn charge_milli(&self) -> u32 {
        self.lent.charge
    }

    /// The failure that it was taken for.
    pub const fn cause(&self) -> Cause {
        self.lent.cause
    }

    /// The retry is being sent: from here on its charge stays with the budget unless it succeeds. Charges
    /// nothing more.
    pub const fn sent(&mut self) {
        self.stage = Stage::Sent;
    }

    /// The retry succeeded: the loan is repaid.
    pub fn succeeded(mut self, now: Timestamp) {
        self.stage = Stage::Repaid;
        self.budget.repay(self.lent, now);
    }

    /// The retry was sent and did not succeed: the charge is kept. Where it ended in a failure worth retrying,
    /// [`Budget::on_failure`] is told as well.
    pub fn failed(mut self) {
        self.sent();
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        match self.stage {
            Stage::Waiting => self.budget.give_back(self.lent),
            Stage::Sent => self.budget.keep(self.lent),
            Stage::Repaid => {}
        }
    }
}
