//! Laws of the budgets of every kind, and the thresholds that their sources publish.

mod chance;

use std::time::Duration;

use chance::cause;
use proptest::{collection::vec, prelude::*};
use relent_core::{
    Cause, Timestamp,
    budget::{
        BudgetPolicy, BudgetState, GrpcPolicy, Loan, LoanPolicy, Of, QuotaPolicy, RatioPolicy, SharePolicy,
        traffic,
    },
};

/// One thing that happens to a budget whose retries all fail.
#[derive(Clone, Copy, Debug)]
enum Event {
    Call,
    Ask(Cause),
    Pass(Duration),
}

fn event() -> impl Strategy<Value = Event> {
    let any_length = prop_oneof![0_u64..100, 0_u64..20_000, 0_u64..200_000].prop_map(Duration::from_millis);
    prop_oneof![
        6 => Just(Event::Call),
        6 => cause().prop_map(Event::Ask),
        3 => any_length.prop_map(Event::Pass),
    ]
}

proptest! {
    /// No budget blocks for good: whatever happened, enough first successes buy a retry again.
    #[test]
    fn successes_open_every_budget_again(policy in any_policy(), events in vec(event(), 0..200)) {
        let mut budget = BudgetState::new(&policy);
        let mut now = Timestamp::from_secs(600);
        for event in events {
            match event {
                Event::Call => budget.on_call(now),
                Event::Ask(cause) => {
                    budget.on_failure(cause);
                    if let Ok(loan) = budget.try_retry(cause, now) {
                        budget.on_retry_failure(loan);
                    }
                }
                Event::Pass(length) => now = now.after(length),
            }
        }
        for _ in 0..3_000 {
            budget.on_call(now);
            budget.on_first_success(now);
        }
        budget.on_call(now);
        budget.on_failure(Cause::Error);
        prop_assert!(budget.try_retry(Cause::Error, now).is_ok());
    }

    /// A clock that jumps back and forth never panics and never makes more of the minute's calls than there were.
    #[test]
    fn the_minute_never_holds_more_calls_than_were_made(steps in vec((any::<bool>(), 0_u64..400), 1..200)) {
        let mut words = [0; 2];
        let mut made = 0;
        for (call, second) in steps {
            let now = Timestamp::from_secs(second);
            if call {
                made += 1000;
                let word = &mut words[traffic::place(now)];
                match traffic::count(*word, now) {
                    traffic::Counted::SameSlot => *word += 1,
                    traffic::Counted::NewSlot(new) => *word = new,
                }
            }
            prop_assert!(traffic::calls_milli(words, now) <= made);
        }
    }
}

fn any_policy() -> impl Strategy<Value = BudgetPolicy> {
    prop_oneof![
        Just(BudgetPolicy::default()),
        Just(BudgetPolicy::Grpc(GrpcPolicy::default())),
        Just(BudgetPolicy::Ratio(RatioPolicy::FINAGLE)),
        Just(BudgetPolicy::Ratio(RatioPolicy { of: Of::All, floor_per_second: 0, ..RatioPolicy::FINAGLE })),
        Just(BudgetPolicy::Share(SharePolicy::default())),
        Just(BudgetPolicy::Quota(QuotaPolicy::AWS_2026)),
        Just(BudgetPolicy::Quota(QuotaPolicy::AWS_LEGACY)),
    ]
}

#[test]
fn ten_successes_buy_two_retries_at_a_fifth_where_a_token_for_each_success_buys_ten() {
    let ratio = RatioPolicy { floor_per_second: 0, ..RatioPolicy::FINAGLE };
    assert_eq!(retries_after_ten_successes(BudgetPolicy::Ratio(ratio)), 2);
    let loan = LoanPolicy { earn_milli: 200, start_milli: 0, ..LoanPolicy::default() };
    assert_eq!(retries_after_ten_successes(BudgetPolicy::Loan(loan)), 2);
}

fn retries_after_ten_successes(policy: BudgetPolicy) -> usize {
    let mut budget = BudgetState::new(&policy);
    for _ in 0..10 {
        budget.on_call(Timestamp::ZERO);
        budget.on_first_success(Timestamp::ZERO);
    }
    (0..100).filter(|_| budget.try_retry(Cause::Error, Timestamp::ZERO).map(drop_kept).is_ok()).count()
}

/// Keeps a loan: its retry was sent and failed.
fn drop_kept(_: Loan) {}

#[test]
fn in_steady_failure_every_kind_stops_where_its_source_says() {
    // The tipping points: below, the bucket stays as good as full over 60,000 calls; above, it is drained.
    let grpc = BudgetPolicy::Grpc(GrpcPolicy::new(1000, "0.1").expect("within a thousand"));
    let cases = [
        (BudgetPolicy::default(), Cause::Error, 5, 0.396),
        (BudgetPolicy::default(), Cause::Timeout, 5, 0.241),
        (BudgetPolicy::default(), Cause::Throttled, 5, 0.124),
        (BudgetPolicy::Quota(QuotaPolicy::AWS_2026), Cause::Error, 3, 0.215),
        (BudgetPolicy::Quota(QuotaPolicy::AWS_2026), Cause::Throttled, 3, 0.321),
        (BudgetPolicy::Quota(QuotaPolicy::AWS_LEGACY), Cause::Timeout, 3, 0.246),
        (grpc, Cause::Error, 5, 1.0 / 11.0),
    ];
    for (policy, cause, max_attempts, tips) in cases {
        let below = refused(policy, cause, max_attempts, tips - 0.02);
        let above = refused(policy, cause, max_attempts, tips + 0.02);
        assert!(below < 0.02, "{policy:?} after {cause:?} refuses {below} below {tips}");
        assert!(above > 0.04, "{policy:?} after {cause:?} refuses {above} above {tips}");
    }
}

/// The share of asks that are refused in the second half of 60,000 calls at a thousand a second, where attempts
/// fail independently with probability `p`.
fn refused(policy: BudgetPolicy, cause: Cause, max_attempts: u32, p: f64) -> f64 {
    let mut budget = BudgetState::new(&policy);
    let mut chance = 0x9E37_79B9_7F4A_7C15_u64;
    let mut fails = move || {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((chance >> 33) as f64) < p * f64::from(1_u32 << 31)
    };
    let (mut asked, mut denied) = (0.0, 0.0);
    for call in 0..60_000_u64 {
        let now = Timestamp::from_millis(call);
        budget.on_call(now);
        let mut loan = None;
        for attempt in 1..=max_attempts {
            if !fails() {
                match loan {
                    Some(loan) => budget.on_retry_success(loan, now),
                    None => budget.on_first_success(now),
                }
                break;
            }
            budget.on_failure(cause);
            if attempt == max_attempts {
                break;
            }
            let answer = budget.try_retry(cause, now);
            if call >= 30_000 {
                asked += 1.0;
                denied += f64::from(u8::from(answer.is_err()));
            }
            let Ok(taken) = answer else { break };
            loan = Some(taken);
        }
        budget.on_end();
    }
    denied / asked
}
