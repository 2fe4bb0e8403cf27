//! What a policy's arithmetic says of all calls at once, against what `RetryPolicy::decide` makes of single ones.

use std::time::Duration;

use proptest::{option, prelude::*};
use relent_core::{
    Attempts, Backoff, Cause, Decision, Hints, Idempotency, Jitter, Over, Policy, RetryPolicy, Sent,
    ServerWait, ServerWaitMode, Timestamp, Verdict,
};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// How one attempt goes: how long it would take, why it fails, what the dependency asks for.
type Attempt = (Duration, Cause, Option<Duration>);

/// What became of one call.
#[derive(Debug, PartialEq)]
struct Call {
    begun: u32,
    /// How many of them had their whole time-out.
    whole: u32,
    /// What was left to the last, where it was less.
    cut: Option<Duration>,
    took: Duration,
}

/// A call all of whose attempts fail, decided by the function itself; after the script its last entry repeats.
fn call(policy: &Policy, seed: u64, script: &[Attempt]) -> Call {
    let mut history = policy.begin(seed, Timestamp::ZERO, None, None);
    history.idempotency = Idempotency::Safe;
    let mut call = Call { begun: 0, whole: 0, cut: None, took: Duration::ZERO };
    let mut now = Timestamp::ZERO;
    for index in 0..MOST {
        let (takes, cause, server_wait) = script[index.min(script.len() - 1)];
        let give_up_at = policy.give_up_at(&history, now);
        call.begun += 1;
        match give_up_at.since(now) {
            left if left < policy.attempt_timeout => call.cut = Some(left),
            _ => call.whole += 1,
        }
        now = now.after(takes).min(give_up_at);
        call.took = now.since(Timestamp::ZERO);
        let verdict = Verdict::Failure { cause, sent: Sent::No, server_wait };
        match policy.retry.conclude(&mut history, verdict, now) {
            Decision::Retry(wait) => now = now.after(wait.length),
            Decision::Stop(_) => break,
        }
    }
    call
}

fn length(most: u64) -> impl Strategy<Value = Duration> {
    (1..=most).prop_map(ms)
}

fn curve() -> impl Strategy<Value = Backoff> {
    let ends = || (length(4_000), length(4_000)).prop_map(|(a, b)| (a.min(b), a.max(b)));
    prop_oneof![
        length(4_000).prop_map(Backoff::Constant),
        ends().prop_map(|(base, max)| Backoff::Linear { base, max }),
        (ends(), 1000..4_000u32).prop_map(|((base, max), factor_milli)| Backoff::Exponential {
            base,
            factor_milli,
            max
        }),
        prop::collection::vec(length(4_000), 1..6).prop_map(Backoff::Steps),
    ]
}

fn doubling() -> impl Strategy<Value = Backoff> {
    (length(2_000), length(8_000)).prop_map(|(a, b)| Backoff::Exponential {
        base: a.min(b),
        factor_milli: 2000,
        max: a.max(b),
    })
}

fn waits() -> impl Strategy<Value = (Jitter, Backoff, Option<Backoff>)> {
    let jitter = prop_oneof![
        2 => Just(Jitter::None),
        1 => Just(Jitter::Full),
        1 => Just(Jitter::Equal),
        1 => Just(Jitter::Decorrelated),
        1 => (0..=1000u32, 0..2000u32)
            .prop_map(|(below_milli, above_milli)| Jitter::Proportional { below_milli, above_milli }),
    ];
    prop_oneof![
        3 => (jitter, curve(), option::of(curve())),
        1 => (Just(Jitter::PollyV2), doubling(), option::of(doubling())),
    ]
}

fn server_wait() -> impl Strategy<Value = ServerWait> {
    let mode = prop_oneof![
        Just(ServerWaitMode::Above),
        Just(ServerWaitMode::Longer),
        Just(ServerWaitMode::Replace),
        length(3_000).prop_map(ServerWaitMode::Within),
        Just(ServerWaitMode::Ignore),
    ];
    let over = prop_oneof![Just(Over::Stop), Just(Over::Clamp)];
    (mode, length(6_000), over).prop_map(|(mode, limit, over)| ServerWait { mode, limit, over })
}

prop_compose! {
    fn policy()(
        (jitter, backoff, throttled_backoff) in waits(),
        max_attempts in option::of(1..12u32),
        server_wait in server_wait(),
        min_attempt in 0..500u64,
        attempt_timeout in 500..3_000u64,
        total in option::of(1_500..40_000u64),
        reserve in 0..300u64,
        max_wait in 4_000..9_000u64,
    ) -> Policy {
        let retry = RetryPolicy {
            max_attempts: max_attempts.or_else(|| total.is_none().then_some(3)),
            backoff, throttled_backoff, jitter, server_wait,
            max_wait: ms(max_wait),
            min_attempt: ms(min_attempt),
            reserve: ms(reserve),
            max_losses: 3,
        };
        Policy {
            retry,
            attempt_timeout: ms(attempt_timeout),
            total_timeout: total.map(ms),
            ..Policy::live()
        }
    }
}

fn script() -> impl Strategy<Value = Vec<Attempt>> {
    let takes = prop_oneof![Just(Duration::ZERO), (0..4_000u64).prop_map(ms), Just(Duration::MAX)];
    let cause = prop_oneof![Just(Cause::Error), Just(Cause::Timeout), Just(Cause::Throttled)];
    let asked = option::of((0..9_000u64).prop_map(ms));
    prop::collection::vec((takes, cause, asked), 1..12)
}

/// The same script without what the dependency asks for.
fn unasked(script: &[Attempt]) -> Vec<Attempt> {
    script.iter().map(|&(takes, cause, _)| (takes, cause, None)).collect()
}

const AT_ONCE: &[Attempt] = &[(Duration::ZERO, Cause::Error, None)];
const HANGS: &[Attempt] = &[(Duration::MAX, Cause::Timeout, None)];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_call_has_more_attempts_than_at_best(policy in policy(), seed: u64, script in script()) {
        let begun = call(&policy, seed, &unasked(&script)).begun;
        prop_assert!(policy.attempts_at_best().is_none_or(|best| begun <= best), "{begun} of {policy:#?}");
    }

    #[test]
    fn no_call_that_is_not_throttled_has_fewer_attempts_than_at_worst(
        policy in policy(), seed: u64, script in script(),
    ) {
        let slow: Vec<Attempt> = script.iter().map(|&(takes, ..)| (takes, Cause::Error, None)).collect();
        let begun = call(&policy, seed, &slow).begun;
        let worst = policy.attempts_at_worst().begin.expect("few fit into 40 s of half seconds");
        prop_assert!(begun >= worst, "{begun} of {policy:#?}");
    }

    #[test]
    fn no_call_takes_longer_than_the_longest(policy in policy(), seed: u64, script in script()) {
        let longest = |hints| policy.longest_call(hints).expect("every policy here ends");
        let took = call(&policy, seed, &script).took;
        prop_assert!(took <= longest(Hints::Obeyed), "{took:?} of {policy:#?}");
        let took = call(&policy, seed, &unasked(&script)).took;
        prop_assert!(took <= longest(Hints::None), "unasked {took:?} of {policy:#?}");
    }

    /// Without chance there is one call of each kind, and the arithmetic is that call.
    #[test]
    fn without_jitter_the_arithmetic_is_the_call(policy in policy(), seed: u64) {
        let retry = RetryPolicy { jitter: Jitter::None, throttled_backoff: None, ..policy.retry };
        let policy = Policy { retry, ..policy };
        let fast = call(&policy, seed, AT_ONCE);
        prop_assert_eq!(policy.attempts_at_best(), Some(fast.begun).filter(|begun| *begun <= 1_000));
        let slow = call(&policy, seed, HANGS);
        let Call { begun, whole, cut, took } = slow;
        prop_assert_eq!(policy.attempts_at_worst(), Attempts { begin: Some(begun), whole: Some(whole), cut });
        if policy.total_timeout.is_none() {
            prop_assert_eq!(policy.longest_call(Hints::None), Some(took));
        }
    }
}

/// A wait on one curve may lean on a longer one of the other.
#[test]
fn the_longest_call_leans_on_whichever_wait_was_longest() {
    let live = Policy::live();
    let policy = Policy {
        total_timeout: None,
        attempt_timeout: ms(500),
        retry: RetryPolicy {
            max_attempts: Some(3),
            backoff: Backoff::Linear { base: ms(277), max: ms(551) },
            throttled_backoff: Some(Backoff::Linear { base: ms(1), max: ms(1_597) }),
            jitter: Jitter::Decorrelated,
            ..live.retry
        },
        ..live
    };
    // Up to 551 ms on the first curve, and on the second up to three times that, cut at its 1,597 ms.
    assert_eq!(policy.longest_call(Hints::None), Some(ms(3 * 500 + 551 + 1_597)));
}

/// Bounds that nothing reaches would be of no use.
#[test]
fn the_best_and_the_worst_are_met_by_some_calls() {
    let plain = Policy { total_timeout: Some(ms(5_000)), ..Policy::live() };
    let with = |jitter, base, attempts| {
        let backoff = Backoff::Exponential { base: ms(base), factor_milli: 2000, max: ms(60_000) };
        let retry = RetryPolicy { jitter, backoff, max_attempts: Some(attempts), ..plain.retry.clone() };
        Policy { retry, ..plain.clone() }
    };
    let proportional = Jitter::Proportional { below_milli: 200, above_milli: 200 };
    for (jitter, base, attempts, timeout) in [
        (Jitter::Full, 200, 5, 2_000),
        (Jitter::Full, 1_500, 3, 2_000),
        (Jitter::Equal, 700, 9, 600),
        (Jitter::Decorrelated, 400, 9, 600),
        (proportional, 700, 9, 1_000),
        (Jitter::PollyV2, 2_000, 4, 2_000),
        (Jitter::PollyV2, 100, 3, 600),
        (Jitter::PollyV2, 400, 9, 300),
    ] {
        let policy = Policy { attempt_timeout: ms(timeout), ..with(jitter, base, attempts) };
        let begun = |script| (0..5_000).map(move |seed| call(&policy.clone(), seed, script).begun);
        let policy = Policy { attempt_timeout: ms(timeout), ..with(jitter, base, attempts) };
        assert_eq!(begun.clone()(AT_ONCE).max(), policy.attempts_at_best(), "{jitter:?} {base}");
        assert_eq!(begun(HANGS).min(), policy.attempts_at_worst().begin, "{jitter:?} {base}");
    }
}

#[test]
fn the_mean_waits_are_those_of_many_calls() {
    let base = Policy::live().retry;
    let proportional = Jitter::Proportional { below_milli: 100, above_milli: 300 };
    for jitter in
        [Jitter::None, Jitter::Full, Jitter::Equal, Jitter::Decorrelated, proportional, Jitter::PollyV2]
    {
        let backoff = Backoff::Exponential { base: ms(200), factor_milli: 2000, max: ms(3_600_000) };
        let retry = RetryPolicy { jitter, backoff, ..base.clone() };
        let policy = Policy { retry, total_timeout: None, ..Policy::live() };
        let mut sums = [0.0; 4];
        for seed in 0..SEEDS {
            let mut history = policy.begin(seed, Timestamp::ZERO, None, None);
            for sum in &mut sums {
                let failed = Verdict::Failure { cause: Cause::Error, sent: Sent::No, server_wait: None };
                match policy.retry.conclude(&mut history, failed, Timestamp::ZERO) {
                    Decision::Retry(wait) => *sum += wait.length.as_secs_f64(),
                    Decision::Stop(reason) => panic!("{}", reason.name()),
                }
            }
        }
        for (mean, sum) in policy.retry.mean_waits(4).iter().zip(sums) {
            let (mean, sampled) = (mean.as_secs_f64(), sum / SEEDS as f64);
            assert!((mean - sampled).abs() < 0.015 * sampled, "{jitter:?}: {mean} for {sampled}");
        }
    }
}

const SEEDS: u64 = 20_000;
const MOST: usize = 1_200;
