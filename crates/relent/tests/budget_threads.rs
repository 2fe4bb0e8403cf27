//! Four threads on one budget: no charge is lost or made, and no limit is passed.

#![cfg(not(loom))]

use std::{
    sync::{
        Barrier,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use relent::{
    BudgetPolicy, Cause, Timestamp,
    budget::{LoanPolicy, Of, QuotaPolicy, RatioPolicy, SharePolicy},
    control::{Budget, budget::Loan},
};

const THREADS: u64 = 4;
const ROUNDS: u64 = 20_000;

/// Runs `work` on four threads that start together, each with its own supply of chance.
fn on_four_threads(work: impl Fn(u64, &mut dyn FnMut() -> u64) + Sync) {
    let start = Barrier::new(4);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (work, start) = (&work, &start);
            scope.spawn(move || {
                let mut state = thread + 1;
                let mut chance = || {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    state >> 33
                };
                start.wait();
                work(thread, &mut chance);
            });
        }
    });
}

#[test]
fn the_loan_budget_keeps_its_laws_on_four_threads() {
    let policy = LoanPolicy::default();
    let budget = Budget::new(&BudgetPolicy::Loan(policy)).expect("the default");
    let (firsts, kept, gained) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    on_four_threads(|_, chance| {
        for round in 0..ROUNDS {
            let now = Timestamp::from_millis(round);
            let call = budget.on_call(now);
            if chance() % 3 > 0 {
                firsts.fetch_add(1, Relaxed);
                budget.on_first_success(now);
                continue;
            }
            let cause = [Cause::Error, Cause::Timeout, Cause::Throttled][(chance() % 3) as usize];
            let Ok(mut loan) = budget.try_retry(cause, now) else { continue };
            let charge = u64::from(loan.charge_milli());
            match chance() % 3 {
                0 => drop(loan),
                1 => {
                    loan.sent();
                    kept.fetch_add(charge, Relaxed);
                    loan.failed();
                }
                _ => {
                    loan.sent();
                    let gain = if cause == Cause::Error { charge / 2 } else { 0 };
                    gained.fetch_add(gain, Relaxed);
                    loan.succeeded(now);
                }
            }
            drop(call);
        }
    });
    let now = Timestamp::from_millis(ROUNDS);
    let tokens = u64::from(budget.tokens_milli(now).expect("has tokens"));
    let income = u64::from(policy.start_milli) + 100 * firsts.load(Relaxed) + gained.load(Relaxed);
    assert!(kept.load(Relaxed) + tokens <= income);
    assert!(tokens <= 20 * THREADS * ROUNDS, "no more than every call of the minute makes room for");
    assert!(kept.load(Relaxed) > 0, "the test asked for retries");
}

#[test]
fn a_quota_hands_out_each_token_once() {
    let budget = Budget::new(&BudgetPolicy::Quota(QuotaPolicy::AWS_LEGACY)).expect("published");
    let granted = AtomicU64::new(0);
    on_four_threads(|_, chance| {
        for _ in 0..ROUNDS {
            let Ok(loan) = budget.try_retry(Cause::Error, Timestamp::ZERO) else { continue };
            match chance() % 2 {
                0 => drop(loan),
                _ => {
                    granted.fetch_add(1, Relaxed);
                    loan.failed();
                }
            }
        }
    });
    assert_eq!(granted.load(Relaxed), 100, "five hundred tokens at five each");
    assert_eq!(budget.tokens_milli(Timestamp::ZERO), Some(0));
}

#[test]
fn a_ratio_is_never_passed_while_slices_turn() {
    let policy = RatioPolicy {
        of: Of::Originals,
        share_milli: 200,
        window: Duration::from_secs(1),
        floor_per_second: 5,
    };
    let budget = Budget::new(&BudgetPolicy::Ratio(policy)).expect("possible");
    let (calls, granted) = (AtomicU64::new(0), AtomicU64::new(0));
    // One window long: nothing leaves it, so the whole is the limit.
    on_four_threads(|_, chance| {
        for round in 0..ROUNDS {
            let now = Timestamp::from_nanos(round * (1_000_000_000 / ROUNDS));
            if round % 4 == 0 {
                calls.fetch_add(1, Relaxed);
                drop(budget.on_call(now));
            }
            let Ok(loan) = budget.try_retry(Cause::Error, now) else { continue };
            match chance() % 8 {
                0 => drop(loan),
                _ => {
                    granted.fetch_add(1, Relaxed);
                    loan.failed();
                }
            }
        }
    });
    let limit = calls.load(Relaxed) / 5 + 5;
    let granted = granted.load(Relaxed);
    assert!(granted <= limit, "{granted} of {limit}");
    let end = Timestamp::from_nanos(999_999_999);
    let rest =
        (0..).take_while(|_| budget.try_retry(Cause::Error, end).map(Loan::failed).is_ok()).count() as u64;
    assert!(granted + rest <= limit);
    assert!(
        granted + rest + 10 * THREADS >= limit,
        "{granted} + {rest} of {limit}: a place is lost only where slices turn"
    );
}

#[test]
fn a_share_counts_every_retry_until_its_end_and_ends_at_nothing() {
    let policy = SharePolicy { share_milli: 0, floor: 3 };
    let budget = Budget::new(&BudgetPolicy::Share(policy)).expect("possible");
    let running = AtomicU64::new(0);
    on_four_threads(|_, chance| {
        for _ in 0..ROUNDS {
            let call = budget.on_call(Timestamp::ZERO);
            let mut held = Vec::new();
            for _ in 0..chance() % 3 {
                if let Ok(loan) = budget.try_retry(Cause::Error, Timestamp::ZERO) {
                    assert!(running.fetch_add(1, Relaxed) < 3, "at most three at once");
                    held.push(loan);
                }
            }
            for mut loan in held {
                running.fetch_sub(1, Relaxed);
                if chance().is_multiple_of(2) {
                    loan.sent();
                }
            }
            drop(call);
        }
    });
    let again =
        (0..10).filter_map(|_| budget.try_retry(Cause::Error, Timestamp::ZERO).ok()).collect::<Vec<_>>();
    assert_eq!(again.len(), 3, "nothing is left in flight");
}
