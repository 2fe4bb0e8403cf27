//! The experiment of the article "Retries That Fail Better", to the digit: 10,000 calls, one after another,
//! against a dependency whose attempts fail at random, under every budget.
//!
//! The random numbers are those of .NET's `Random` with a seed (42, the article's), so that the figures are
//! equalities and not intervals. A hundred calls a second for the budgets that look at the clock: it moves
//! 10 ms before each call, and no wait takes time.

use std::time::Duration;

use relent_core::{
    Backoff, BreakerPolicy, BreakerState, Cause, Sent, Timestamp, Verdict, Window,
    budget::{BudgetPolicy, BudgetState, GrpcPolicy, LoanPolicy, QuotaPolicy, RatioPolicy, SharePolicy},
};

/// .NET's `Random` with a seed: Knuth's subtractive generator (*The Art of Computer Programming*, volume 2,
/// section 3.2.2, as published in *Numerical Recipes*, `ran3`), with the lag of 21 that .NET keeps.
struct NetRandom {
    table: [i32; 55],
    next: usize,
    lagged: usize,
}

impl NetRandom {
    const MODULUS: i32 = i32::MAX;
    const SEED: i32 = 161_803_398;

    fn new(seed: i32) -> Self {
        let mut table = [0; 55];
        let mut last = Self::SEED - seed;
        let mut value = 1;
        table[54] = last;
        for step in 1..55 {
            let place = 21 * step % 55 - 1;
            table[place] = value;
            value = Self::difference(last, value);
            last = table[place];
        }
        for _ in 0..4 {
            for place in 0..55 {
                table[place] = Self::difference(table[place], table[(place + 31) % 55]);
            }
        }
        Self { table, next: 0, lagged: 21 }
    }

    fn next_double(&mut self) -> f64 {
        let mut drawn = Self::difference(self.table[self.next], self.table[self.lagged]);
        if drawn == Self::MODULUS {
            drawn -= 1;
        }
        self.table[self.next] = drawn;
        self.next = (self.next + 1) % 55;
        self.lagged = (self.lagged + 1) % 55;
        f64::from(drawn) * (1.0 / f64::from(Self::MODULUS))
    }

    fn difference(left: i32, right: i32) -> i32 {
        let difference = left.wrapping_sub(right);
        if difference < 0 { difference.wrapping_add(Self::MODULUS) } else { difference }
    }
}

/// Calls each attempt of which fails with probability `p`: how many attempts, and how many calls gave up.
fn experiment(policy: Option<BudgetPolicy>, max_attempts: u32, p: f64) -> (u32, u32) {
    if let Some(policy) = &policy {
        policy.validate().expect("each budget of the table can be built");
    }
    let mut budget = policy.as_ref().map(BudgetState::new);
    let mut random = NetRandom::new(42);
    let (mut attempts, mut gave_up) = (0, 0);
    let mut seconds = 0.0;
    for _ in 0..10_000 {
        seconds += 0.01;
        let now = truncated(seconds);
        let (tried, succeeded) = call(budget.as_mut(), max_attempts, now, || random.next_double() < p);
        attempts += tried;
        gave_up += u32::from(!succeeded);
    }
    (attempts, gave_up)
}

/// The published run kept its time as a floating-point sum of 0.01 s. Such a sum is a little short of some whole
/// seconds and a little beyond others, so the first call of a second falls into the slice before it now and then;
/// the ratio's row is to the digit with this clock, and in three cells off by one with an exact one.
fn truncated(seconds: f64) -> Timestamp {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "that is what it is for")]
    let nanos = (seconds * 1e9) as u64;
    Timestamp::from_nanos(nanos)
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
    for attempt in 1.. {
        if !fails() {
            match loan {
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
        loan = match attempt < max_attempts {
            true => budget.try_retry(Cause::Error, now).ok(),
            false => None,
        };
        if loan.is_none() {
            budget.on_end();
            return (attempt, false);
        }
    }
    unreachable!("a call ends")
}

fn row(policy: Option<BudgetPolicy>, max_attempts: u32) -> [(u32, u32); 6] {
    FAILING.map(|p| experiment(policy, max_attempts, p))
}

fn loan(per_call_milli: u32) -> Option<BudgetPolicy> {
    Some(BudgetPolicy::Loan(LoanPolicy { per_call_milli, ..LoanPolicy::default() }))
}

#[test]
fn the_generator_is_dot_nets() {
    let first = |seed| NetRandom::new(seed).next_double();
    assert!((first(0) - 0.726_243_269_967_96).abs() < 1e-14);
    assert!((first(42) - 0.668_106_465_911_54).abs() < 1e-14);
}

#[test]
fn without_a_budget_calls_fail_once_or_are_repeated_in_a_plain_loop() {
    let never = [(10000, 114), (10000, 521), (10000, 2038), (10000, 3006), (10000, 5029), (10000, 10000)];
    assert_eq!(row(None, 1), never);
    assert_eq!(row(None, 5), PLAIN_LOOP);
}

#[test]
fn the_grpc_budget_gives_up_on_what_it_gave_up_on_in_the_article() {
    let ten = [(10116, 0), (10516, 26), (10006, 2033), (10005, 3003), (10005, 5027), (10004, 10000)];
    assert_eq!(row(Some(BudgetPolicy::Grpc(GrpcPolicy::default())), 5), ten);
    let hundred = GrpcPolicy::new(100, "0.1").expect("within a thousand");
    let expected = [(10116, 0), (10545, 0), (10072, 1982), (10057, 2968), (10052, 5001), (10040, 10000)];
    assert_eq!(row(Some(BudgetPolicy::Grpc(hundred)), 5), expected);
}

#[test]
fn the_loan_budget_saves_what_the_grpc_budget_gives_up_on_and_stops_in_an_outage() {
    let at_2_percent = [(10116, 0), (10545, 0), (12556, 7), (14232, 93), (11957, 4051), (10001, 10000)];
    assert_eq!(row(Some(BudgetPolicy::default()), 5), at_2_percent);
    assert_eq!(row(loan(20), 5), at_2_percent);
    let at_1_percent = [(10116, 0), (10545, 0), (12556, 7), (14226, 98), (11941, 4060), (10001, 10000)];
    assert_eq!(row(loan(10), 5), at_1_percent);
    let at_5_percent = [(10116, 0), (10545, 0), (12562, 4), (14260, 70), (11957, 4051), (10001, 10000)];
    assert_eq!(row(loan(50), 5), at_5_percent);
}

#[test]
fn a_loan_budget_of_a_fixed_size_that_starts_full_costs_its_size_in_an_outage() {
    let fixed =
        LoanPolicy { per_call_milli: 0, floor_milli: 10_000, start_milli: 10_000, ..LoanPolicy::default() };
    let expected = [(10116, 0), (10545, 0), (12565, 1), (14316, 33), (11955, 4053), (10010, 10000)];
    assert_eq!(row(Some(BudgetPolicy::Loan(fixed)), 5), expected);
}

#[test]
fn the_sre_books_ratio_allows_a_tenth_of_all_requests() {
    let expected = [(10116, 0), (10537, 8), (11112, 1164), (11112, 2262), (11112, 4478), (11112, 10000)];
    assert_eq!(row(Some(BudgetPolicy::Ratio(RatioPolicy::SRE)), 3), expected);
}

#[test]
fn finagles_ratio_allows_a_fifth_of_the_originals_and_ten_a_second() {
    let expected = [(10116, 0), (10545, 0), (12565, 1), (12986, 967), (12995, 3547), (13002, 10000)];
    assert_eq!(row(Some(BudgetPolicy::Ratio(RatioPolicy::FINAGLE)), 5), expected);
}

#[test]
fn envoys_share_never_binds_where_calls_come_one_at_a_time() {
    assert_eq!(row(Some(BudgetPolicy::Share(SharePolicy::default())), 5), PLAIN_LOOP);
}

#[test]
fn the_aws_quotas_drain_at_their_own_rates() {
    let legacy = [(10116, 0), (10545, 0), (12565, 1), (14323, 27), (12182, 3937), (10100, 10000)];
    assert_eq!(row(Some(BudgetPolicy::Quota(QuotaPolicy::AWS_LEGACY)), 5), legacy);
    let new = [(10116, 0), (10545, 0), (12565, 1), (11654, 1890), (10768, 4663), (10035, 10000)];
    assert_eq!(row(Some(BudgetPolicy::Quota(QuotaPolicy::AWS_2026)), 5), new);
}

/// The plain loop behind a breaker that opens at a tenth of at least a hundred attempts in half a minute, for five
/// seconds.
fn behind_a_breaker(p: f64) -> (u32, u32) {
    let policy = BreakerPolicy {
        failure_rate_milli: Some(100),
        min_calls: 100,
        window: Window::Time(Duration::from_nanos(30 * FINE_SECOND)),
        break_time: Backoff::Constant(Duration::from_nanos(5 * FINE_SECOND)),
        break_jitter_milli: 0,
        probes: 1,
        ..BreakerPolicy::default()
    };
    let mut breaker = BreakerState::new(&policy, 0);
    let mut random = NetRandom::new(42);
    let (mut attempts, mut gave_up, mut seconds) = (0, 0, 0.0);
    for _ in 0..10_000 {
        seconds += 0.01;
        let now = finely(seconds);
        let mut attempt = || {
            let ticket = breaker.admit(now).ok()?;
            attempts += 1;
            let succeeds = random.next_double() >= p;
            let verdict = if succeeds { Verdict::Success } else { FAILURE };
            let _told = breaker.record(ticket, verdict, Duration::ZERO, now);
            Some(succeeds)
        };
        let succeeded = (0..5).map_while(|_| attempt()).any(|succeeds| succeeds);
        gave_up += u32::from(!succeeded);
    }
    (attempts, gave_up)
}

#[test]
fn a_breaker_alone_gives_up_on_what_it_gave_up_on_in_the_article() {
    let expected = [(10116, 0), (10020, 501), (1387, 8925), (1332, 9097), (963, 9523), (119, 10000)];
    assert_eq!(FAILING.map(behind_a_breaker), expected);
}

/// A clock on which the sum of 0.01 s reads as it is, to its last bit: whether a break of five seconds is over after
/// five hundred steps depends on it.
fn finely(seconds: f64) -> Timestamp {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number above zero")]
    let parts = (seconds * FINE_SECOND as f64) as u64;
    Timestamp::from_nanos(parts)
}

/// So many of the clock's units that every double-precision number of seconds up to 128 is a whole number of them.
const FINE_SECOND: u64 = 1 << 50;
const FAILURE: Verdict = Verdict::Failure { cause: Cause::Error, sent: Sent::Maybe, server_wait: None };

/// The columns: shares of attempts that fail, the last an outage.
const FAILING: [f64; 6] = [0.01, 0.05, 0.2, 0.3, 0.5, 1.0];

const PLAIN_LOOP: [(u32, u32); 6] =
    [(10116, 0), (10545, 0), (12565, 1), (14323, 27), (19357, 310), (50000, 10000)];
