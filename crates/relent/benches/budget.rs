//! What the budgets cost, beside tower's `TpsBudget` in the same run: a call whose first attempt succeeds, a retry
//! that is let through and repaid, a retry that is refused; by one thread and by two at once. The best of many
//! rounds.
//!
//! `TpsBudget` reads the clock itself; ours are told the time by the pipeline, which reads it once for all
//! controls. The row "with a clock read" adds that read, for a comparison of like with like.
//!
//! `cargo bench -p relent --bench budget`.

#![expect(clippy::disallowed_methods, reason = "a benchmark times real work")]

mod rows;

use std::{
    env,
    hint::black_box,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use relent::{
    BudgetPolicy, Cause, Timestamp,
    budget::{GrpcPolicy, LoanPolicy, QuotaPolicy, RatioPolicy, SharePolicy},
    control::{Budget, budget::Loan},
};
use tower::retry::budget::{Budget as _, TpsBudget};

use rows::row;

fn main() {
    // `cargo test --benches` runs it too, in a profile that would say nothing.
    if !env::args().any(|argument| argument == "--bench") {
        println!("budget: skipped, run it with `cargo bench -p relent --bench budget`");
        return;
    }
    println!("{:<48} {:>9} {:>14}", "ns an operation, best of rounds", "1 thread", "2 threads");
    calls();
    retries();
    refusals();
}

/// A call begins and its first attempt succeeds.
fn calls() {
    let ticking = AtomicU64::new(600_000_000_000);
    let read = || Timestamp::from_nanos(ticking.load(Ordering::Relaxed));
    for (name, policy) in kinds() {
        let budget = budget(policy);
        row(&format!("{name}: call + first success"), || first_success(&budget, read()));
    }
    let fixed = BudgetPolicy::Loan(LoanPolicy { per_call_milli: 0, ..LoanPolicy::default() });
    let fixed = budget(fixed);
    row("loan, bucket that stays full", || first_success(&fixed, read()));
    let timed = budget(BudgetPolicy::default());
    let origin = Instant::now();
    row("loan, with a clock read", || {
        let passed = u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        first_success(&timed, Timestamp::from_nanos(passed));
    });
    let theirs = TpsBudget::default();
    row("tower TpsBudget: deposit", || theirs.deposit());
}

/// A retry is let through, sent, and repaid.
fn retries() {
    let now = Timestamp::from_secs(600);
    for (name, policy) in kinds() {
        let budget = budget(policy);
        drop(budget.on_call(now));
        row(&format!("{name}: retry let through + repaid"), || {
            if let Ok(mut loan) = black_box(budget.try_retry(Cause::Timeout, now)) {
                loan.sent();
                loan.succeeded(now);
            }
        });
    }
    let theirs = TpsBudget::new(Duration::from_secs(10), 10, 1.0);
    row("tower TpsBudget: deposit + withdraw", || {
        theirs.deposit();
        black_box(theirs.withdraw());
    });
}

/// A retry is refused.
fn refusals() {
    let now = Timestamp::from_secs(600);
    for (name, policy) in kinds() {
        let budget = budget(policy);
        let call = budget.on_call(now);
        let mut held = Vec::new();
        loop {
            budget.on_failure(Cause::Error);
            match budget.try_retry(Cause::Error, now) {
                Ok(mut loan) => {
                    loan.sent();
                    held.push(loan);
                }
                Err(_) => break,
            }
        }
        row(&format!("{name}: retry refused"), || {
            black_box(budget.try_retry(Cause::Error, now).is_err());
        });
        held.into_iter().for_each(Loan::failed);
        drop(call);
    }
    let theirs = TpsBudget::new(Duration::from_secs(60), 0, 0.2);
    row("tower TpsBudget: withdraw, empty", || {
        black_box(theirs.withdraw());
    });
}

fn kinds() -> [(&'static str, BudgetPolicy); 5] {
    [
        ("loan", BudgetPolicy::default()),
        ("grpc", BudgetPolicy::Grpc(GrpcPolicy::default())),
        ("ratio", BudgetPolicy::Ratio(RatioPolicy { floor_per_second: 10, ..RatioPolicy::FINAGLE })),
        ("share", BudgetPolicy::Share(SharePolicy::default())),
        ("quota", BudgetPolicy::Quota(QuotaPolicy::AWS_2026)),
    ]
}

fn budget(policy: BudgetPolicy) -> Budget {
    Budget::new(&policy).expect("a policy that can be built")
}

fn first_success(budget: &Budget, now: Timestamp) {
    let call = black_box(budget.on_call(now));
    budget.on_first_success(now);
    drop(call);
}
