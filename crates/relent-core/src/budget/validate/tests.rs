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

fn loan(change: fn(&mut LoanPolicy)) -> BudgetPolicy {
    let mut policy = LoanPolicy::default();
    change(&mut policy);
    BudgetPolicy::Loan(policy)
}

fn ratio(of: Of, share_milli: u32, floor_per_second: u32) -> BudgetPolicy {
    BudgetPolicy::Ratio(RatioPolicy { of, share_milli, floor_per_second, ..RatioPolicy::FINAGLE })
}

fn quota(change: fn(&mut QuotaPolicy)) -> BudgetPolicy {
    let mut policy = QuotaPolicy::AWS_2026;
    change(&mut policy);
    BudgetPolicy::Quota(policy)
}

/// Each pair differs by the least there is: the first is possible, the second refused.
#[test]
fn a_refusal_begins_at_the_number_that_it_names() {
    let grpc = |max_milli| BudgetPolicy::Grpc(GrpcPolicy { max_milli, ratio_milli: 100 });
    let share = |share_milli| BudgetPolicy::Share(SharePolicy { share_milli, floor: 0 });
    for (possible, refused, told) in [
        (
            loan(|policy| (policy.per_call_milli, policy.charge_milli) = (0, 3_000)),
            loan(|policy| (policy.per_call_milli, policy.charge_milli) = (0, 3_001)),
            "budget.charge: a retry costs 3.001, but the bucket never holds more than budget.floor 3",
        ),
        (
            loan(|policy| (policy.per_call_milli, policy.charge_milli) = (1, 3_001)),
            loan(|policy| (policy.earn_milli, policy.charge_milli) = (0, 1_001)),
            "budget.start: nothing is earned (budget.earn is 0) and the bucket starts with 1, less than the 1.001",
        ),
        (
            loan(|policy| (policy.earn_milli, policy.start_milli, policy.charge_milli) = (0, 5_000, 3_000)),
            loan(|policy| (policy.earn_milli, policy.start_milli, policy.charge_milli) = (0, 5_000, 3_001)),
            "budget.start: nothing is earned (budget.earn is 0) and the bucket starts with 3, less than the 3.001",
        ),
        (grpc(3_000), grpc(2_000), "budget.max_tokens: a full bucket has 2"),
        (grpc(1_000_000), grpc(1_001_000), "budget.max_tokens: 1001 is not"),
        (
            ratio(Of::All, 1_000_000, 0),
            ratio(Of::All, 1_000_001, 0),
            "budget.share: 1000.001 is more than 1000 retries for each call",
        ),
        (ratio(Of::All, 1, 0), ratio(Of::All, 0, 0), "budget.share: 0, and the floor is 0"),
        (ratio(Of::All, 0, 1), ratio(Of::Originals, 0, 0), "budget.share: 0, and the floor is 0"),
        (share(1), share(0), "budget.share: 0, and the floor is 0"),
        (
            quota(|policy| policy.capacity_milli = 5_000),
            quota(|policy| policy.capacity_milli = 4_999),
            "budget.capacity: 4.999 holds none",
        ),
    ] {
        possible.validate().unwrap_or_else(|refused| panic!("{possible:?}: {refused}"));
        let refusal = refusal(refused);
        assert!(refusal.starts_with(told), "{refusal}");
    }
}

/// Pairs that differ by the least there is: the first is beyond doubt, the second is told.
fn assert_edges(rows: &[(BudgetPolicy, BudgetPolicy, &str)]) {
    for (fine, doubtful, told) in rows {
        assert_eq!(doubted(*fine), [""; 0], "{fine:?}");
        assert_eq!(doubted(*doubtful), [*told], "{doubtful:?}");
    }
}

#[test]
fn a_doubt_about_a_loan_begins_at_the_number_that_it_names() {
    assert_edges(&[
        (
            loan(|policy| (policy.earn_milli, policy.charge_milli) = (0, 1)),
            loan(|policy| policy.charge_milli = 0),
            "budget.charge: 0: a retry after an error or a time-out is never refused",
        ),
        (
            loan(|policy| policy.earn_milli = 999),
            loan(|policy| policy.earn_milli = 1_000),
            "budget.earn: a first success earns 1, a retry costs 1: ten successes buy 10 retries",
        ),
        (
            loan(|policy| policy.start_milli = 3_000),
            loan(|policy| policy.start_milli = 3_001),
            "budget.start: 3.001 is cut to budget.floor 3 at the first use",
        ),
        (
            loan(|policy| (policy.charge_milli, policy.start_milli) = (3_000, 3_000)),
            loan(|policy| (policy.charge_milli, policy.start_milli) = (3_000, 2_790)),
            "budget.start: 2.79 is less than the 3 that a retry costs: the first comes after 3 first successes",
        ),
        (
            loan(|policy| (policy.earn_milli, policy.start_milli) = (0, 1_000)),
            loan(|policy| policy.start_milli = 999),
            "budget.start: 0.999 is less than the 1 that a retry costs: the first comes after 1 first successes",
        ),
    ]);
}

#[test]
fn a_doubt_about_another_budget_begins_at_the_number_that_it_names() {
    let grpc = |ratio_milli| BudgetPolicy::Grpc(GrpcPolicy { max_milli: 10_000, ratio_milli });
    let share = |share_milli, floor| BudgetPolicy::Share(SharePolicy { share_milli, floor });
    assert_edges(&[
        (
            grpc(999),
            grpc(1_000),
            "budget.token_ratio: a success returns 1 and a failure costs 1: it holds back only while more than 50 \
             in 100 attempts fail",
        ),
        (
            ratio(Of::Originals, 999, 1),
            ratio(Of::Originals, 1_000, 1),
            "budget.share: 1 retries for each call: the traffic may double and more",
        ),
        (
            ratio(Of::All, 999, 0),
            ratio(Of::All, 1_000, 0),
            "budget.share: 1 of all requests: no retry is ever refused",
        ),
        (
            ratio(Of::Originals, 0, 1),
            ratio(Of::Originals, 999, 0),
            "budget.floor_per_second: 0: with fewer than 2 calls in 10s there is no retry (2 × 0.999 ≥ 1)",
        ),
        (
            share(999, 1),
            share(1_000, 1),
            "budget.share: 1 of the calls in flight: a call has one retry at a time, so none is ever refused",
        ),
        (share(0, 1), share(300, 0), "budget.floor: 0: with fewer than 4 calls in flight there is no retry"),
        (
            quota(|policy| policy.capacity_milli = 14_000),
            quota(|policy| policy.throttled_milli = 500_001),
            "budget.throttled: 500.001 is more than budget.capacity 500: after such a failure there is never a retry",
        ),
        (
            quota(|policy| policy.timeout_milli = 1),
            quota(|policy| policy.timeout_milli = 0),
            "budget.timeout: 0: after such a failure a retry is never refused",
        ),
        (
            quota(|policy| policy.first_success_milli = 1),
            quota(|policy| policy.first_success_milli = 0),
            "budget.first_success: 0: what failed retries took never comes back, and after one outage there is no \
             retry",
        ),
    ]);
}

/// Doubts that come together, and the arithmetic of each.
#[test]
fn doubts_count_what_they_say() {
    let grpc = doubted(BudgetPolicy::Grpc(GrpcPolicy { max_milli: 10_000, ratio_milli: 3_000 }));
    assert!(grpc[0].ends_with("while more than 75 in 100 attempts fail"), "{grpc:?}");
    let dear = loan(|policy| (policy.charge_milli, policy.start_milli) = (3_001, 3_000));
    assert_eq!(
        doubted(dear),
        [
            "budget.floor: 3 is less than the 3.001 that a retry costs: below 151 calls a minute there is no retry",
            "budget.start: 3 is less than the 3.001 that a retry costs: the first comes after 1 first successes",
        ]
    );
    let generous = loan(|policy| policy.earn_milli = 2_500);
    assert!(doubted(generous)[0].ends_with("ten successes buy 25 retries"));
    let whole = ratio(Of::Originals, 1_000, 0);
    assert_eq!(doubted(whole).len(), 1, "a share that doubles needs no floor");
    assert_eq!(doubted(BudgetPolicy::Share(SharePolicy { share_milli: 1_000, floor: 0 })).len(), 1);
}
