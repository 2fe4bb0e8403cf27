//! Every interleaving of two threads on a budget. Run with `RUSTFLAGS="--cfg loom" cargo test --release -p relent
//! --test loom_budget`.
#![cfg(loom)]

use std::time::Duration;

use loom::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
};
use relent::{
    BudgetPolicy, Cause, Timestamp,
    budget::{GrpcPolicy, LoanPolicy, Of, QuotaPolicy, RatioPolicy, SharePolicy},
    control::{Budget, budget::Loan},
};

/// Runs both on a thread of their own, and then `after`, in every order.
fn together(
    policy: BudgetPolicy,
    left: fn(&Budget, &AtomicUsize),
    right: fn(&Budget, &AtomicUsize),
    after: fn(&Budget, usize),
) {
    loom::model(move || {
        let shared = Arc::new((Budget::new(&policy).expect("possible"), AtomicUsize::new(0)));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || left(&other.0, &other.1));
        right(&shared.0, &shared.1);
        thread.join().expect("no assertion failed on the other thread");
        after(&shared.0, shared.1.load(SeqCst));
    });
}

fn ask(budget: &Budget, at: Timestamp, granted: &AtomicUsize) {
    if budget.try_retry(Cause::Error, at).map(Loan::failed).is_ok() {
        granted.fetch_add(1, SeqCst);
    }
}

/// A bucket with more than it holds: what is read is what the calls make room for, a token each.
fn sized_by_calls() -> BudgetPolicy {
    let all_by_calls = LoanPolicy { floor_milli: 0, per_call_milli: 1000, ..LoanPolicy::default() };
    BudgetPolicy::Loan(LoanPolicy { start_milli: 9_000, ..all_by_calls })
}

const fn ratio(floor_per_second: u32) -> BudgetPolicy {
    let window = Duration::from_secs(1);
    BudgetPolicy::Ratio(RatioPolicy { of: Of::Originals, share_milli: 0, window, floor_per_second })
}

#[test]
fn the_last_token_is_lent_once() {
    let policy = BudgetPolicy::Loan(LoanPolicy { earn_milli: 1, ..LoanPolicy::default() });
    let one = |budget: &Budget, granted: &AtomicUsize| ask(budget, Timestamp::ZERO, granted);
    together(policy, one, one, |budget, granted| {
        assert_eq!(granted, 1);
        assert_eq!(budget.tokens_milli(Timestamp::ZERO), Some(0));
    });
}

#[test]
fn a_charge_that_comes_back_is_neither_lost_nor_doubled() {
    let quota = QuotaPolicy { capacity_milli: 14_000, ..QuotaPolicy::AWS_2026 };
    let give_back = |budget: &Budget, _: &AtomicUsize| drop(budget.try_retry(Cause::Error, Timestamp::ZERO));
    let repay = |budget: &Budget, _: &AtomicUsize| {
        if let Ok(mut loan) = budget.try_retry(Cause::Error, Timestamp::ZERO) {
            loan.sent();
            loan.succeeded(Timestamp::ZERO);
        }
    };
    together(BudgetPolicy::Quota(quota), give_back, repay, |budget, _| {
        assert_eq!(budget.tokens_milli(Timestamp::ZERO), Some(14_000));
    });
}

#[test]
fn calls_of_two_threads_at_a_new_minute_are_all_counted() {
    let call = |budget: &Budget, _: &AtomicUsize| drop(budget.on_call(Timestamp::from_secs(60)));
    together(sized_by_calls(), call, call, |budget, _| {
        assert_eq!(budget.tokens_milli(Timestamp::from_secs(60)), Some(2_000), "one token for each call");
    });
}

#[test]
fn a_reader_never_sees_more_calls_than_were_made_while_minutes_turn() {
    let turn = |budget: &Budget, _: &AtomicUsize| {
        drop(budget.on_call(Timestamp::from_secs(60)));
        drop(budget.on_call(Timestamp::from_secs(120)));
    };
    let read = |budget: &Budget, _: &AtomicUsize| {
        let tokens = budget.tokens_milli(Timestamp::from_secs(120)).expect("has tokens");
        assert!(tokens <= 2_000, "two calls were made, the bucket held {tokens}");
    };
    together(sized_by_calls(), turn, read, |budget, _| {
        assert_eq!(budget.tokens_milli(Timestamp::from_secs(120)), Some(2_000));
    });
}

#[test]
fn failures_and_successes_of_two_threads_all_count_for_grpc() {
    let policy = BudgetPolicy::Grpc(GrpcPolicy { max_milli: 4_000, ratio_milli: 100 });
    let fail = |budget: &Budget, _: &AtomicUsize| budget.on_failure(Cause::Error);
    let both = |budget: &Budget, _: &AtomicUsize| {
        budget.on_failure(Cause::Error);
        budget.on_first_success(Timestamp::ZERO);
    };
    together(policy, fail, both, |budget, _| {
        assert_eq!(budget.tokens_milli(Timestamp::ZERO), Some(2_100));
        assert!(budget.try_retry(Cause::Error, Timestamp::ZERO).is_ok());
    });
}

#[test]
fn the_last_place_of_a_share_is_taken_once_and_comes_free_again() {
    let policy = BudgetPolicy::Share(SharePolicy { share_milli: 0, floor: 1 });
    let hold = |budget: &Budget, held: &AtomicUsize| {
        let _call = budget.on_call(Timestamp::ZERO);
        if let Ok(mut loan) = budget.try_retry(Cause::Error, Timestamp::ZERO) {
            assert_eq!(held.fetch_add(1, SeqCst), 0, "two at once");
            loan.sent();
            held.fetch_sub(1, SeqCst);
        }
    };
    together(policy, hold, hold, |budget, held| {
        assert_eq!(held, 0);
        assert!(budget.try_retry(Cause::Error, Timestamp::ZERO).is_ok());
    });
}

#[test]
fn the_last_place_of_a_window_is_taken_once_while_the_slice_turns() {
    let early = |budget: &Budget, granted: &AtomicUsize| ask(budget, Timestamp::ZERO, granted);
    let late = |budget: &Budget, granted: &AtomicUsize| ask(budget, Timestamp::from_millis(100), granted);
    together(ratio(1), early, late, |_, granted| assert_eq!(granted, 1));
    together(ratio(1), late, late, |_, granted| assert_eq!(granted, 1));
}

#[test]
fn a_place_that_is_taken_stays_so_for_both_threads_that_turn_the_slice() {
    loom::model(|| {
        let budget = Arc::new(Budget::new(&ratio(1)).expect("possible"));
        assert!(budget.try_retry(Cause::Error, Timestamp::ZERO).map(Loan::failed).is_ok());
        let refused = |budget: &Budget| budget.try_retry(Cause::Error, Timestamp::from_millis(100)).is_err();
        let other = Arc::clone(&budget);
        let thread = thread::spawn(move || assert!(refused(&other)));
        assert!(refused(&budget));
        thread.join().expect("refused on the other thread as well");
    });
}

#[test]
fn retries_of_a_slice_that_ends_stay_in_the_window() {
    let early = |budget: &Budget, granted: &AtomicUsize| {
        ask(budget, Timestamp::ZERO, granted);
        ask(budget, Timestamp::ZERO, granted);
    };
    let late = |budget: &Budget, granted: &AtomicUsize| ask(budget, Timestamp::from_millis(100), granted);
    together(ratio(2), early, late, |budget, granted| {
        assert_eq!(granted, 2);
        assert!(budget.try_retry(Cause::Error, Timestamp::from_millis(200)).is_err());
    });
}

#[test]
fn a_retry_given_back_while_its_slice_ends_frees_at_most_its_own_place() {
    let give_back = |budget: &Budget, _: &AtomicUsize| drop(budget.try_retry(Cause::Error, Timestamp::ZERO));
    let late = |budget: &Budget, granted: &AtomicUsize| ask(budget, Timestamp::from_millis(100), granted);
    together(ratio(1), give_back, late, |budget, mut granted| {
        let end = Timestamp::from_millis(900);
        granted += usize::from(budget.try_retry(Cause::Error, end).map(Loan::failed).is_ok());
        assert!(granted <= 1, "one place, taken twice");
        let next_window = Timestamp::from_millis(2000);
        assert!(budget.try_retry(Cause::Error, next_window).is_ok(), "nothing stays behind");
    });
}

#[test]
fn originals_of_two_threads_at_a_new_slice_are_all_counted() {
    let policy = RatioPolicy {
        of: Of::Originals,
        share_milli: 500,
        window: Duration::from_secs(1),
        floor_per_second: 0,
    };
    let call = |budget: &Budget, _: &AtomicUsize| drop(budget.on_call(Timestamp::from_millis(100)));
    together(BudgetPolicy::Ratio(policy), call, call, |budget, _| {
        let now = Timestamp::from_millis(100);
        assert!(budget.try_retry(Cause::Error, now).map(Loan::failed).is_ok());
        assert!(budget.try_retry(Cause::Error, now).is_err());
    });
}
