//! The experiment of the article "Retries That Fail Better": 10,000 calls, one after another, against a dependency whose
//! attempts fail at random, under every budget.
//!
//! The random numbers are those of .NET's `Random` with a seed (42, the article's), so that the figures are equalities
//! and not intervals. A hundred calls a second for the controls that look at the clock; no wait takes time.

use std::time::Duration;

use relent_core::{
    BreakerPolicy, BreakerState, BudgetPolicy, Cause, Sent, Timestamp, Verdict,
    budget::{BudgetState, GrpcPolicy},
};

use super::{Figure, NetRandom, Setting};

/// What came of the calls.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Outcome {
    /// All attempts.
    pub attempts: u64,
    /// Calls that did not succeed.
    pub gave_up: u64,
}

/// The calls of the experiment, each of whose attempts fails with probability `p`.
///
/// # Panics
///
/// If the budget is one that [`BudgetPolicy::validate`] refuses.
pub fn under_a_budget(policy: Option<BudgetPolicy>, max_attempts: u32, p: f64, seed: i32) -> Outcome {
    if let Some(policy) = &policy {
        assert!(policy.validate().is_ok(), "{policy:?} cannot be built");
    }
    let mut budget = policy.as_ref().map(BudgetState::new);
    let mut random = NetRandom::new(seed);
    let mut outcome = Outcome { attempts: 0, gave_up: 0 };
    let mut seconds = 0.0;
    for _ in 0..CALLS {
        seconds += 0.01;
        let now = truncated(seconds);
        let (tried, succeeded) = call(budget.as_mut(), max_attempts, now, || random.next_double() < p);
        outcome.attempts += u64::from(tried);
        outcome.gave_up += u64::from(!succeeded);
    }
    outcome
}

/// The same calls in a plain loop behind a breaker. The policy's lengths of time are in units of the clock's own:
/// [`FINE_SECOND`] of them are a second.
pub fn behind_a_breaker(policy: &BreakerPolicy, max_attempts: u32, p: f64, seed: i32) -> Outcome {
    let mut breaker = BreakerState::new(policy, 0);
    let mut random = NetRandom::new(seed);
    let mut outcome = Outcome { attempts: 0, gave_up: 0 };
    let mut seconds = 0.0;
    for _ in 0..CALLS {
        seconds += 0.01;
        let now = finely(seconds);
        let mut attempt = || {
            let ticket = breaker.admit(now).ok()?;
            outcome.attempts += 1;
            let succeeds = random.next_double() >= p;
            let verdict = if succeeds { Verdict::Success } else { FAILURE };
            let _told = breaker.record(ticket, verdict, Duration::ZERO, now);
            Some(succeeds)
        };
        let succeeded = (0..max_attempts).map_while(|_| attempt()).any(|succeeds| succeeds);
        outcome.gave_up += u64::from(!succeeded);
    }
    outcome
}

/// What the article reports.
pub(super) fn figures(setting: &Setting) -> Vec<Figure> {
    let seed = setting.seed;
    let plain = |p| under_a_budget(None, 5, p, seed);
    let budget = |p| under_a_budget(Some(BudgetPolicy::Grpc(GrpcPolicy::default())), 5, p, seed);
    let loan = |p| under_a_budget(Some(BudgetPolicy::default()), 5, p, seed);
    let held = |claim: &str, exact: u64, interval: (u64, u64), found: u64| match seed {
        42 => Figure::exactly(claim, exact, found),
        _ => Figure::within(claim, interval, found),
    };
    let (rare, half, fifth) = (plain(0.01), plain(0.5), plain(0.2));
    let one_in_a_hundred =
        held("1 % fail: attempts without a budget", 10_116, (10_070, 10_137), rare.attempts);
    let same = budget(0.01).attempts;
    vec![
        one_in_a_hundred,
        Figure::exactly("1 % fail: attempts with it", rare.attempts, same),
        held("50 % fail: attempts without", 19_357, (18_950, 19_750), half.attempts),
        held("50 % fail: attempts with", 10_005, (10_004, 10_006), budget(0.5).attempts),
        Figure::exactly("outage: attempts without", 50_000, plain(1.0).attempts),
        Figure::exactly("outage: attempts with", 10_004, budget(1.0).attempts),
        held("20 % fail: calls lost without", 1, (0, 9), fifth.gave_up),
        held("20 % fail: calls lost with", 2_033, (1_880, 2_096), budget(0.2).gave_up),
        held("relent's default, 20 % fail: calls lost", 7, (0, 20), loan(0.2).gave_up),
        Figure::exactly("relent's default, outage: attempts", 10_001, loan(1.0).attempts),
    ]
}

/// One call in the order of a driver: the failure is told before the retry is asked for.
fn call(
    budget: Option<&mut BudgetState>,
    max_attempts: u32,
    now: Timestamp,
    mut fails: impl FnMut() -> bool,
) -> (u32, bool) {
    let Some(budget) = budget else {
        let tried = (1..=max_attempts).find(|_| !fails());
        return (tried.unwrap_or(max_attempts), tried.is_some());
    };
    budget.on_call(now);
    let mut loan = None;
    for attempt in 1..=max_attempts {
        if !fails() {
            match loan.take() {
                Some(loan) => budget.on_retry_success(loan, now),
                None => budget.on_first_success(now),
            }
            budget.on_end();
            return (attempt, true);
        }
        if let Some(loan) = loan.take() {
            budget.on_retry_failure(loan);
        }
        budget.on_failure(Cause::Error);
        let is_last = attempt == max_attempts;
        if !is_last {
            loan = budget.try_retry(Cause::Error, now).ok();
        }
        if loan.is_none() {
            budget.on_end();
            return (attempt, false);
        }
    }
    (max_attempts, false)
}

/// The published run kept its time as a floating-point sum of 0.01 s. Such a sum is a little short of some whole
/// seconds and a little beyond others, so the first call of a second falls into the slice before it now and then;
/// the ratio's row is to the digit with this clock, and in three cells off by one with an exact one.
fn truncated(seconds: f64) -> Timestamp {
    Timestamp::from_nanos(crate::chance::nanos(seconds * 1e9))
}

/// A clock on which the sum of 0.01 s reads as it is, to its last bit: whether a break of five seconds is over after
/// five hundred steps depends on it.
fn finely(seconds: f64) -> Timestamp {
    Timestamp::from_nanos(crate::chance::nanos(seconds * crate::report::float(FINE_SECOND)))
}

/// So many of the fine clock's units are a second that every double-precision number of seconds up to 128 is a whole
/// number of them.
pub const FINE_SECOND: u64 = 1 << 50;
const CALLS: u32 = 10_000;
const FAILURE: Verdict = Verdict::Failure { cause: Cause::Error, sent: Sent::Maybe, server_wait: None };
