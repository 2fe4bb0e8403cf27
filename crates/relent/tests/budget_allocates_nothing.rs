//! Once it is built, a budget takes no memory from the heap, whatever happens to it.

#![cfg(not(loom))]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use relent::{
    BudgetPolicy, Cause, Timestamp,
    budget::{GrpcPolicy, QuotaPolicy, RatioPolicy, SharePolicy},
    control::{Budget, budget::Loan},
};

thread_local! {
    static ALLOCATIONS: Cell<u32> = const { Cell::new(0) };
}

/// The system's allocator, counting what this thread asks for.
struct Counting;

// SAFETY: every method hands its arguments to the system's allocator unchanged and returns what it answers.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `alloc` above, that is from the system's allocator, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn the_counter_counts() {
    let before = ALLOCATIONS.get();
    drop(std::hint::black_box(Box::new([0u8; 64])));
    assert_eq!(ALLOCATIONS.get() - before, 1);
}

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
        let before = ALLOCATIONS.get();
        let refused = life(&budget);
        assert_eq!(ALLOCATIONS.get() - before, 0, "{policy:?}");
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
