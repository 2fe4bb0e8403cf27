//! Once it is built, a budget takes no memory from the heap, whatever happens to it.

#![cfg(not(loom))]

mod counting;

use relent::{
    BudgetPolicy, Cause, Timestamp,
    budget::{GrpcPolicy, QuotaPolicy, RatioPolicy, SharePolicy},
    control::{Budget, budget::Loan},
};

use counting::counted;

#[test]
fn calls_retries_and_refusals_allocate_nothing() {
    let kinds = [
        BudgetPolicy::default(),
        BudgetPolicy::Grpc(GrpcPolicy::default()),
        BudgetPolicy::Ratio(RatioPolicy::FINAGLE),
        BudgetPolicy::Share(SharePolicy::default()),
        BudgetPolicy::Quota(QuotaPolicy::AWS_2026),
    ];
    for policy in kinds {
        let budget = Budget::new(&policy).expect("published");
        let (refused, allocations) = counted(|| life(&budget));
        assert_eq!(allocations, 0, "{policy:?}");
        assert!(refused > 0, "{policy:?}: refusals were counted as well");
    }
}

/// Three minutes of calls: most succeed at once, then none does; loans come to every end.
fn life(budget: &Budget) -> u32 {
    let mut refused = 0;
    for step in 0..18_000 {
        let now = Timestamp::from_millis(10 * step);
        let call = budget.on_call(now);
        if step < 9_000 && step % 5 > 0 {
            budget.on_first_success(now);
            continue;
        }
        budget.on_failure(Cause::Error);
        match (budget.try_retry(Cause::Error, now), step % 3) {
            (Ok(loan), 0) => drop(loan),
            (Ok(mut loan), 1) if step < 9_000 => {
                loan.sent();
                loan.succeeded(now);
            }
            (Ok(loan), _) => loan.failed(),
            (Err(_), _) => refused += 1,
        }
        if step == 17_999 {
            // Many at once, for the share of what is in flight.
            let held: [_; 8] = core::array::from_fn(|_| budget.try_retry(Cause::Error, now));
            refused += held.iter().map(|answer| u32::from(answer.is_err())).sum::<u32>();
            held.into_iter().flatten().for_each(Loan::failed);
        }
        drop(call);
    }
    refused
}
