//! Every verb of every kind.

use super::*;

const NOW: Timestamp = Timestamp::from_secs(600);

fn lent(budget: &mut BudgetState, cause: Cause) -> Loan {
    budget.try_retry(cause, NOW).expect("there is room")
}

fn is_refused(budget: &mut BudgetState) -> bool {
    budget.try_retry(Cause::Error, NOW) == Err(REFUSAL)
}

#[test]
fn a_loan_is_charged_repaid_kept_or_given_back() {
    let mut budget = BudgetState::new(&BudgetPolicy::default());
    budget.on_call(NOW);
    let loan = lent(&mut budget, Cause::Error);
    assert_eq!((loan.charge_milli(), loan.cause(), budget.tokens_milli(NOW)), (1_000, Cause::Error, Some(0)));
    budget.on_unsent(loan);
    assert_eq!(budget.tokens_milli(NOW), Some(1_000));
    let loan = lent(&mut budget, Cause::Error);
    budget.on_retry_success(loan, NOW);
    budget.on_first_success(NOW);
    assert_eq!(budget.tokens_milli(NOW), Some(1_600));
    let loan = lent(&mut budget, Cause::Timeout);
    budget.on_failure(Cause::Timeout);
    budget.on_retry_failure(loan);
    assert!(budget.tokens_milli(NOW) == Some(600) && is_refused(&mut budget));
}

#[test]
fn the_bucket_of_loans_is_as_large_as_the_calls_make_it() {
    let mut budget = BudgetState::new(&BudgetPolicy::default());
    for (calls, holds) in [(0, 3_000), (150, 3_000), (1, 3_020), (49, 4_000)] {
        (0..calls).for_each(|_| budget.on_call(NOW));
        (0..100).for_each(|_| budget.on_first_success(NOW));
        assert_eq!(budget.tokens_milli(NOW), Some(holds), "after {calls} calls more");
    }
}

#[test]
fn grpc_charges_failures_and_lends_above_half() {
    let mut budget = BudgetState::new(&BudgetPolicy::Grpc(GrpcPolicy { max_milli: 4_000, ratio_milli: 300 }));
    budget.on_failure(Cause::Error);
    let loan = lent(&mut budget, Cause::Error);
    assert_eq!((loan.charge_milli(), budget.tokens_milli(NOW)), (0, Some(3_000)));
    budget.on_retry_success(loan, NOW);
    budget.on_first_success(NOW);
    assert_eq!(budget.tokens_milli(NOW), Some(3_600));
    budget.on_failure(Cause::Error);
    budget.on_failure(Cause::Error);
    assert!(budget.tokens_milli(NOW) == Some(1_600) && is_refused(&mut budget));
}

#[test]
fn a_quota_is_charged_by_cause_and_refilled_by_successes() {
    let policy = QuotaPolicy { capacity_milli: 30_000, ..QuotaPolicy::AWS_2026 };
    let mut budget = BudgetState::new(&BudgetPolicy::Quota(policy));
    let loan = lent(&mut budget, Cause::Throttled);
    assert_eq!((loan.charge_milli(), budget.tokens_milli(NOW)), (5_000, Some(25_000)));
    budget.on_unsent(loan);
    let loan = lent(&mut budget, Cause::Error);
    budget.on_retry_success(loan, NOW);
    assert_eq!(budget.tokens_milli(NOW), Some(30_000));
    for left in [16_000, 2_000] {
        let loan = lent(&mut budget, Cause::Error);
        budget.on_retry_failure(loan);
        assert_eq!(budget.tokens_milli(NOW), Some(left));
    }
    (0..11).for_each(|_| budget.on_first_success(NOW));
    assert!(is_refused(&mut budget), "13 of 14");
    budget.on_first_success(NOW);
    assert_eq!(lent(&mut budget, Cause::Error).charge_milli(), 14_000);
}

#[test]
fn a_ratio_counts_calls_and_the_retries_that_were_sent() {
    let policy = RatioPolicy { share_milli: 500, floor_per_second: 0, ..RatioPolicy::FINAGLE };
    let mut budget = BudgetState::new(&BudgetPolicy::Ratio(policy));
    (0..3).for_each(|_| budget.on_call(NOW));
    let loan = lent(&mut budget, Cause::Error);
    assert!(is_refused(&mut budget) && budget.tokens_milli(NOW).is_none());
    budget.on_unsent(loan);
    let loan = lent(&mut budget, Cause::Error);
    budget.on_retry_success(loan, NOW);
    assert!(is_refused(&mut budget), "a retry that was sent counts whatever came of it");
    budget.on_call(NOW);
    assert!(!is_refused(&mut budget));
}

#[test]
fn a_share_counts_what_is_under_way() {
    let mut budget = BudgetState::new(&BudgetPolicy::Share(SharePolicy { share_milli: 500, floor: 0 }));
    (0..6).for_each(|_| budget.on_call(NOW));
    let [first, second, third] = core::array::from_fn(|_| lent(&mut budget, Cause::Error));
    assert!(is_refused(&mut budget) && budget.tokens_milli(NOW).is_none());
    budget.on_retry_failure(first);
    let fourth = lent(&mut budget, Cause::Error);
    budget.on_unsent(second);
    budget.on_retry_success(third, NOW);
    (0..2).for_each(|_| budget.on_end());
    let fifth = lent(&mut budget, Cause::Error);
    assert!(is_refused(&mut budget), "two of four");
    (0..9).for_each(|_| budget.on_end());
    budget.on_retry_failure(fourth);
    budget.on_retry_failure(fifth);
    (0..2).for_each(|_| budget.on_call(NOW));
    assert!(!is_refused(&mut budget));
}
