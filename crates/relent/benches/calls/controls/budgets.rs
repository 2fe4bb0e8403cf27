//! Budgets, and a call whose first attempt succeeds.

use std::hint::black_box;

use relent::{BudgetPolicy, Cause, Timestamp, budget::LoanPolicy, control::Budget};
use tower::retry::budget::{Budget as _, TpsBudget};

use super::{HOUR, LONG, clock};
use crate::work::{Work, steps};

pub(crate) fn loan() -> Work {
    let budget = budget(LoanPolicy::default());
    steps(move || first_success(&budget, black_box(HOUR)))
}

pub(crate) fn loan_with_clock() -> Work {
    let budget = budget(LoanPolicy::default());
    let clock = clock();
    steps(move || first_success(&budget, clock()))
}

pub(crate) fn tower() -> Work {
    let budget = TpsBudget::default();
    steps(move || budget.deposit())
}

/// A retry is refused.
pub(crate) fn loan_empty() -> Work {
    let budget = budget(LoanPolicy { start_milli: 0, ..LoanPolicy::default() });
    steps(move || assert!(black_box(budget.try_retry(Cause::Error, black_box(HOUR))).is_err()))
}

/// A retry is refused.
pub(crate) fn tower_empty() -> Work {
    let budget = TpsBudget::new(LONG.min(MOST), 0, 0.2);
    steps(move || assert!(!black_box(budget.withdraw())))
}

fn budget(policy: LoanPolicy) -> Budget {
    Budget::new(&BudgetPolicy::Loan(policy)).expect("a policy that can be built")
}

fn first_success(budget: &Budget, now: Timestamp) {
    let call = black_box(budget.on_call(now));
    budget.on_first_success(now);
    drop(call);
}

/// As long as tower's budget can look back.
const MOST: std::time::Duration = std::time::Duration::from_secs(60);
