//! Failures of others' retry budgets, held against ours: each test cites its case.

#![cfg(not(loom))]

use std::time::Duration;

use relent::{
    BudgetPolicy, Cause, Gate, Timestamp,
    budget::{GrpcPolicy, LoanPolicy, Of, QuotaPolicy, RatioPolicy, SharePolicy},
    control::{Budget, budget::Loan},
};

const NOW: Timestamp = Timestamp::from_secs(1000);

/// A thousandth of a bucket that nothing but charges and returns moves.
fn quota_of(tokens: u32) -> Budget {
    let policy = QuotaPolicy {
        capacity_milli: tokens * 1000,
        transient_milli: 1000,
        timeout_milli: 1000,
        throttled_milli: 1000,
        first_success_milli: 0,
    };
    budget(BudgetPolicy::Quota(policy))
}

fn budget(policy: BudgetPolicy) -> Budget {
    Budget::new(&policy).expect("a policy that can be built")
}

/// Asks `times`, each retry sent and failed, and says how many were let through.
fn granted(budget: &Budget, times: usize, now: Timestamp) -> usize {
    (0..times).filter(|_| budget.try_retry(Cause::Error, now).map(Loan::failed).is_ok()).count()
}

// BU-01
#[test]
fn a_fractional_ratio_is_not_cut_to_a_whole_reciprocal() {
    for (share_milli, expected) in [(600, 6), (300, 3), (900, 9)] {
        let policy = RatioPolicy {
            of: Of::Originals,
            share_milli,
            window: Duration::from_secs(1),
            floor_per_second: 0,
        };
        let budget = budget(BudgetPolicy::Ratio(policy));
        for _ in 0..10 {
            drop(budget.on_call(NOW));
        }
        assert_eq!(granted(&budget, 10, NOW), expected, "{share_milli} thousandths");
    }
}

// BU-03
#[test]
fn a_window_without_traffic_does_not_freeze_the_budget() {
    let policy = RatioPolicy {
        of: Of::Originals,
        share_milli: 100,
        window: Duration::from_secs(1),
        floor_per_second: 0,
    };
    let budget = budget(BudgetPolicy::Ratio(policy));
    let first = Timestamp::from_secs(1);
    for _ in 0..100 {
        drop(budget.on_call(first));
    }
    let twelfth = Timestamp::from_secs(12);
    for _ in 0..100 {
        drop(budget.on_call(twelfth));
    }
    assert_eq!(granted(&budget, 20, twelfth), 10, "ten granted, ten denied");
}

// BU-05
#[test]
fn retries_that_wait_in_backoff_are_counted() {
    let budget = budget(BudgetPolicy::Share(SharePolicy::default()));
    let mut calls: Vec<_> = (0..1000).map(|_| budget.on_call(NOW)).collect();
    let failed_at = NOW.after(Duration::from_secs(1));
    let mut waiting = Vec::new();
    for _ in 0..1000 {
        match budget.try_retry(Cause::Error, failed_at) {
            Ok(loan) => waiting.push(loan),
            Err(_) => drop(calls.pop()), // this caller gets its failure now
        }
        assert!(waiting.len() <= 200, "waiting or in flight at any instant");
    }
    assert_eq!(calls.len(), 200, "800 callers got their failure at once");
    for (ended, mut loan) in waiting.into_iter().enumerate() {
        loan.sent();
        let room = budget.try_retry(Cause::Error, failed_at).is_ok();
        assert_eq!(room, 200 - ended < 3, "a retry in flight counts until it ends");
        loan.failed();
        drop(calls.pop());
    }
    assert_eq!(granted(&budget, 3, failed_at), 3, "and no longer");
}

// BU-07
#[test]
fn first_successes_refill_a_drained_quota() {
    let budget = budget(BudgetPolicy::Quota(QuotaPolicy::AWS_LEGACY));
    assert_eq!(granted(&budget, 1000, NOW), 100, "drained");
    for _ in 0..4 {
        budget.on_first_success(NOW);
    }
    assert_eq!(granted(&budget, 1, NOW), 0, "four tokens");
    budget.on_first_success(NOW);
    assert_eq!(granted(&budget, 1, NOW), 1, "five tokens");
}

// BU-07: and so do they every other kind that has tokens.
#[test]
fn after_an_outage_every_kind_of_budget_lets_retries_through_again() {
    let kinds = [
        BudgetPolicy::default(),
        BudgetPolicy::Grpc(GrpcPolicy::default()),
        BudgetPolicy::Quota(QuotaPolicy::AWS_2026),
    ];
    for policy in kinds {
        let budget = budget(policy);
        let refused = (0..1000).any(|_| {
            drop(budget.on_call(NOW));
            budget.on_failure(Cause::Error);
            budget.try_retry(Cause::Error, NOW).map(Loan::failed).is_err()
        });
        assert!(refused, "{policy:?} lets an outage through");
        for _ in 0..10_000 {
            drop(budget.on_call(NOW));
            budget.on_first_success(NOW);
        }
        budget.on_failure(Cause::Error);
        assert!(budget.try_retry(Cause::Error, NOW).is_ok(), "{policy:?} stays shut");
    }
}

// BU-09
#[test]
fn a_retry_that_succeeds_returns_its_charge() {
    let budget = budget(BudgetPolicy::Quota(QuotaPolicy::AWS_LEGACY));
    for _ in 0..150 {
        let call = budget.on_call(NOW);
        budget.on_failure(Cause::Error);
        let mut loan = budget.try_retry(Cause::Error, NOW).expect("every call makes two sends");
        loan.sent();
        loan.succeeded(NOW);
        drop(call);
        assert_eq!(budget.tokens_milli(NOW), Some(500_000));
    }
}

// BU-11, the budget's part: a wait of five seconds is paid for once.
#[test]
fn a_retry_is_charged_once_however_long_it_waits() {
    let budget = quota_of(1);
    let mut loan = budget.try_retry(Cause::Error, NOW).expect("one token");
    assert!(budget.try_retry(Cause::Error, NOW).is_err(), "it counts while it waits");
    let later = NOW.after(Duration::from_secs(5));
    assert_eq!(budget.tokens_milli(later), Some(0));
    loan.sent();
    assert_eq!(budget.tokens_milli(later), Some(0), "the send charges nothing more, and is not refused");
    loan.failed();
    assert_eq!(budget.tokens_milli(later), Some(0));
}

// BU-13
#[test]
fn a_token_that_led_to_no_send_goes_back() {
    let budget = quota_of(5);
    let cancelled: Vec<_> =
        (0..5).map(|_| budget.try_retry(Cause::Error, NOW).expect("five tokens")).collect();
    assert!(budget.try_retry(Cause::Error, NOW).is_err(), "all five are out");
    drop(cancelled);
    assert!(budget.try_retry(Cause::Error, NOW).is_ok(), "a sixth call is let through");
}

// BU-13: the same for the kinds without tokens; and after the send it is kept.
#[test]
fn an_unsent_retry_frees_its_place_and_a_sent_one_does_not() {
    let ratio = RatioPolicy {
        of: Of::Originals,
        share_milli: 0,
        window: Duration::from_secs(1),
        floor_per_second: 1,
    };
    let loan = LoanPolicy { floor_milli: 1000, per_call_milli: 0, ..LoanPolicy::default() };
    for policy in [BudgetPolicy::Ratio(ratio), BudgetPolicy::Loan(loan)] {
        let budget = budget(policy);
        drop(budget.try_retry(Cause::Timeout, NOW).expect("room for one"));
        let mut loan = budget.try_retry(Cause::Timeout, NOW).expect("the place is free again");
        loan.sent();
        drop(loan);
        assert!(budget.try_retry(Cause::Timeout, NOW).is_err(), "{policy:?} kept it");
    }
}

// BU-15
#[test]
fn a_refusal_says_who_refused_and_advises_a_wait_and_first_sends_go_on() {
    let budget = quota_of(1);
    assert_eq!(granted(&budget, 1, NOW), 1, "now it is empty");
    for _ in 0..256 {
        let _first_send = budget.on_call(NOW);
        budget.on_failure(Cause::Error);
        let refusal = budget.try_retry(Cause::Error, NOW).expect_err("empty");
        assert_eq!((refusal.by, refusal.until), (Gate::Budget, None));
        assert!(refusal.advised > Duration::ZERO);
    }
}

#[test]
fn a_call_is_remembered_for_a_window_and_not_a_slice_longer() {
    for (millis, expected) in [(9_999, 1), (10_000, 0)] {
        let policy = RatioPolicy { share_milli: 1_000, floor_per_second: 0, ..RatioPolicy::FINAGLE };
        let budget = budget(BudgetPolicy::Ratio(policy));
        drop(budget.on_call(NOW));
        assert_eq!(
            granted(&budget, 2, NOW.after(Duration::from_millis(millis))),
            expected,
            "after {millis} ms"
        );
    }
}

#[test]
fn a_retry_that_left_the_window_is_not_taken_back_from_what_stands_in_its_place() {
    let ten_at_once = RatioPolicy { share_milli: 0, floor_per_second: 1, ..RatioPolicy::FINAGLE };
    let budget = budget(BudgetPolicy::Ratio(ten_at_once));
    let late = budget.try_retry(Cause::Error, Timestamp::from_secs(5)).expect("room for ten");
    assert_eq!(granted(&budget, 20, Timestamp::from_secs(15)), 10);
    let then = Timestamp::from_secs(16);
    assert_eq!(granted(&budget, 1, then), 0);
    drop(late);
    assert_eq!(granted(&budget, 1, then), 0, "what left the window gives no room");
}

#[test]
fn an_impossible_budget_is_refused_when_it_is_put_in_force() {
    let never = BudgetPolicy::Grpc(GrpcPolicy { max_milli: 2_000, ratio_milli: 100 });
    assert_eq!(Budget::new(&never).expect_err("never lets a retry through").field, "budget.max_tokens");
}

#[test]
fn a_budget_says_what_policy_it_was_made_of() {
    let policy = BudgetPolicy::Ratio(RatioPolicy::SRE);
    assert_eq!(budget(policy).policy(), policy);
}

// tower-resilience's token bucket adds a whole token for each success: ten successes buy ten retries.
#[test]
fn ten_successes_buy_two_retries_at_twenty_percent_where_tower_resilience_sells_ten() {
    let ratio = RatioPolicy { floor_per_second: 0, ..RatioPolicy::FINAGLE };
    let loan = LoanPolicy { earn_milli: 200, start_milli: 0, ..LoanPolicy::default() };
    for policy in [BudgetPolicy::Ratio(ratio), BudgetPolicy::Loan(loan)] {
        let budget = budget(policy);
        for _ in 0..10 {
            drop(budget.on_call(NOW));
            budget.on_first_success(NOW);
        }
        assert_eq!(granted(&budget, 100, NOW), 2, "{policy:?}");
    }
}
