//! Every refusal and every doubt, by table.

use alloc::string::{String, ToString};

use super::*;

fn refusal(policy: BudgetPolicy) -> String {
    policy.validate().expect_err("no retry could ever be let through").to_string()
}

fn doubted(policy: BudgetPolicy) -> Vec<String> {
    policy.validate().expect("possible").into_iter().map(|doubt| doubt.to_string()).collect()
}

#[test]
fn what_comes_from_a_published_source_is_not_doubted() {
    let policies = [
        BudgetPolicy::default(),
        BudgetPolicy::Grpc(GrpcPolicy::default()),
        BudgetPolicy::Ratio(RatioPolicy::FINAGLE),
        BudgetPolicy::Ratio(RatioPolicy::SRE),
        BudgetPolicy::Share(SharePolicy::default()),
        BudgetPolicy::Quota(QuotaPolicy::AWS_2026),
        BudgetPolicy::Quota(QuotaPolicy::AWS_LEGACY),
    ];
    for policy in policies {
        assert_eq!(policy.validate(), Ok(Vec::new()), "{policy:?}");
    }
}

#[test]
fn a_budget_that_never_lets_a_retry_through_is_refused_with_the_arithmetic() {
    let loan = |change: fn(&mut LoanPolicy)| {
        let mut policy = LoanPolicy::default();
        change(&mut policy);
        refusal(BudgetPolicy::Loan(policy))
    };
    let small = loan(|policy| (policy.per_call_milli, policy.charge_milli) = (0, 3_500));
    assert!(small.starts_with("budget.charge: a retry costs 3.5, but"), "{small}");
    let poor = loan(|policy| (policy.earn_milli, policy.start_milli) = (0, 999));
    assert!(poor.starts_with("budget.start: nothing is earned"), "{poor}");

    let grpc = refusal(BudgetPolicy::Grpc(GrpcPolicy { max_milli: 2_000, ratio_milli: 100 }));
    assert!(
        grpc.contains("has 2, the first failure leaves 1, and a retry needs more than half, 1:"),
        "{grpc}"
    );

    let none = RatioPolicy { share_milli: 0, floor_per_second: 0, ..RatioPolicy::FINAGLE };
    assert!(refusal(BudgetPolicy::Ratio(none)).starts_with("budget.share: 0, and the floor is 0"));
    let none = SharePolicy { share_milli: 0, floor: 0 };
    assert!(refusal(BudgetPolicy::Share(none)).starts_with("budget.share: 0, and the floor is 0"));

    let quota = refusal(BudgetPolicy::Quota(QuotaPolicy { capacity_milli: 4_999, ..QuotaPolicy::AWS_2026 }));
    assert!(quota.starts_with("budget.capacity: 4.999 holds none of the charges 14, 14 and 5"), "{quota}");
}

#[test]
fn numbers_outside_of_what_the_source_allows_are_refused_by_name() {
    let grpc = |max_milli, ratio_milli| refusal(BudgetPolicy::Grpc(GrpcPolicy { max_milli, ratio_milli }));
    assert!(grpc(10_500, 100).starts_with("budget.max_tokens: 10.5 is not a whole number"));
    assert!(grpc(1_001_000, 100).starts_with("budget.max_tokens: 1001 is not"));
    assert!(grpc(10_000, 0).starts_with("budget.token_ratio"));
    let ratio = |change: fn(&mut RatioPolicy)| {
        let mut policy = RatioPolicy::FINAGLE;
        change(&mut policy);
        refusal(BudgetPolicy::Ratio(policy))
    };
    assert!(ratio(|policy| policy.window = Duration::from_millis(999)).starts_with("budget.window: 999ms"));
    assert!(ratio(|policy| policy.window = Duration::from_secs(3601)).starts_with("budget.window"));
    assert!(ratio(|policy| policy.share_milli = 1_000_001).starts_with("budget.share"));
}

#[test]
fn a_budget_that_does_little_of_what_it_is_for_is_doubted() {
    let loan = LoanPolicy { floor_milli: 500, start_milli: 800, earn_milli: 1_000, ..LoanPolicy::default() };
    let doubts = doubted(BudgetPolicy::Loan(loan));
    assert_eq!(
        doubts,
        [
            "budget.earn: a first success earns 1, a retry costs 1: ten successes buy 10 retries",
            "budget.floor: 0.5 is less than the 1 that a retry costs: below 50 calls a minute there is no retry",
            "budget.start: 0.8 is cut to budget.floor 0.5 at the first use",
            "budget.start: 0.8 is less than the 1 that a retry costs: the first comes after 1 first successes",
        ]
    );
    let free = LoanPolicy { charge_milli: 0, ..LoanPolicy::default() };
    assert_eq!(doubted(BudgetPolicy::Loan(free)).len(), 1);
    assert_eq!(doubted(BudgetPolicy::Grpc(GrpcPolicy { max_milli: 10_000, ratio_milli: 1_000 })).len(), 1);

    let ratio = RatioPolicy { floor_per_second: 0, ..RatioPolicy::FINAGLE };
    let expected =
        "budget.floor_per_second: 0: with fewer than 5 calls in 10s there is no retry (5 × 0.2 ≥ 1)";
    assert_eq!(doubted(BudgetPolicy::Ratio(ratio)), [expected]);
    let all = RatioPolicy { of: Of::All, share_milli: 1_000, ..ratio };
    assert_eq!(
        doubted(BudgetPolicy::Ratio(all)),
        ["budget.share: 1 of all requests: no retry is ever refused"]
    );
    assert_eq!(doubted(BudgetPolicy::Share(SharePolicy { share_milli: 300, floor: 0 })).len(), 1);
    assert_eq!(doubted(BudgetPolicy::Share(SharePolicy { share_milli: 1_000, floor: 3 })).len(), 1);

    let quota = QuotaPolicy { transient_milli: 501_000, throttled_milli: 0, ..QuotaPolicy::AWS_2026 };
    let doubts = doubted(BudgetPolicy::Quota(QuotaPolicy { first_success_milli: 0, ..quota }));
    assert_eq!(doubts.len(), 3, "{doubts:?}");
}
