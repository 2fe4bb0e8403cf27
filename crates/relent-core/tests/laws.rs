//! What holds for every policy, every history and every seed.

mod chance;

use std::time::Duration;

use chance::cause;
use proptest::{option, prelude::*};
use relent_core::{
    Backoff, Cause, Deadlines, Decision, History, Idempotency, Jitter, Nesting, Neutral, Over, Policy,
    RetryPolicy, Sent, ServerWait, ServerWaitMode, StopReason, Timestamp, Verdict, Wait, WaitOrigin,
};

const DAY_NANOS: u64 = 86_400_000_000_000;

fn length(most: u64) -> impl Strategy<Value = Duration> {
    (1..=most).prop_map(Duration::from_nanos)
}

fn backoff() -> impl Strategy<Value = Backoff> {
    let ends = || (length(DAY_NANOS), length(DAY_NANOS)).prop_map(|(a, b)| (a.min(b), a.max(b)));
    prop_oneof![
        length(DAY_NANOS).prop_map(Backoff::Constant),
        ends().prop_map(|(base, max)| Backoff::Linear { base, max }),
        (ends(), 1000..20_000u32).prop_map(|((base, max), factor_milli)| Backoff::Exponential {
            base,
            factor_milli,
            max
        }),
        prop::collection::vec(length(DAY_NANOS), 1..6).prop_map(Backoff::Steps),
    ]
}

fn jitter() -> impl Strategy<Value = Jitter> {
    prop_oneof![
        Just(Jitter::Full),
        Just(Jitter::None),
        Just(Jitter::Equal),
        Just(Jitter::Decorrelated),
        Just(Jitter::PollyV2),
        (0..=1000u32, 0..2000u32)
            .prop_map(|(below_milli, above_milli)| Jitter::Proportional { below_milli, above_milli }),
    ]
}

fn server_wait() -> impl Strategy<Value = ServerWait> {
    let mode = prop_oneof![
        Just(ServerWaitMode::Above),
        Just(ServerWaitMode::Longer),
        Just(ServerWaitMode::Replace),
        length(DAY_NANOS).prop_map(ServerWaitMode::Within),
        Just(ServerWaitMode::Ignore),
    ];
    let over = prop_oneof![Just(Over::Stop), Just(Over::Clamp)];
    (mode, length(DAY_NANOS), over).prop_map(|(mode, limit, over)| ServerWait { mode, limit, over })
}

prop_compose! {
    fn policy()(
        max_attempts in option::of(1..20u32),
        backoff in backoff(),
        throttled_backoff in option::of(backoff()),
        jitter in jitter(),
        max_wait in length(DAY_NANOS),
        server_wait in server_wait(),
        min_attempt in length(10_000_000_000),
        reserve in length(10_000_000_000),
        max_losses in 0..5u32,
    ) -> RetryPolicy {
        RetryPolicy {
            max_attempts, backoff, throttled_backoff, jitter, max_wait, server_wait, min_attempt, reserve, max_losses,
        }
    }
}

fn failure() -> impl Strategy<Value = Verdict> {
    let sent = prop_oneof![Just(Sent::No), Just(Sent::Maybe), Just(Sent::RefusedBefore)];
    let asked = option::of((0..2 * DAY_NANOS).prop_map(Duration::from_nanos));
    (cause(), sent, asked).prop_map(|(cause, sent, server_wait)| Verdict::Failure {
        cause,
        sent,
        server_wait,
    })
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        1 => Just(Verdict::Success),
        1 => Just(Verdict::Permanent),
        1 => Just(Verdict::Neutral(Neutral::Cancelled)),
        2 => Just(Verdict::Neutral(Neutral::OwnFault)),
        8 => failure(),
    ]
}

fn instant() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        (0..10 * DAY_NANOS).prop_map(Timestamp::from_nanos),
        any::<u64>().prop_map(Timestamp::from_nanos),
    ]
}

prop_compose! {
    fn history()(
        seed in any::<u64>(),
        started in instant(),
        total in option::of(instant()),
        upstream in option::of(instant()),
        business in option::of(instant()),
        idempotency in prop::sample::select(Idempotency::ALL),
        nesting in prop::sample::select(Nesting::ALL),
        attempts in prop_oneof![0..30u32, any::<u32>()],
        losses in prop_oneof![0..6u32, any::<u32>()],
        last_wait in any::<u64>(),
        last_verdict in option::of(verdict()),
        cycle in any::<u32>(),
    ) -> History {
        History {
            seed, started, deadlines: Deadlines { total, upstream, business }, idempotency, nesting, attempts, losses,
            last_wait: Duration::from_nanos(last_wait), last_verdict, cycle,
        }
    }
}

/// A history that nothing but attempts, losses and deadlines can stop.
fn repeatable(seed: u64) -> History {
    History::new(seed, Timestamp::ZERO, Idempotency::Safe, Deadlines::default())
}

const fn failed(cause: Cause, server_wait: Option<Duration>) -> Verdict {
    Verdict::Failure { cause, sent: Sent::No, server_wait }
}

fn waited(decision: Decision) -> Option<Wait> {
    match decision {
        Decision::Retry(wait) => Some(wait),
        Decision::Stop(_) => None,
    }
}

proptest! {
    #[test]
    fn a_wait_of_our_own_never_exceeds_the_curve_or_the_longest_wait(policy in policy(), history in history()) {
        let decision = policy.decide(&history, Timestamp::ZERO);
        let Some(wait) = waited(decision).filter(|wait| wait.origin == WaitOrigin::Backoff) else {
            return Ok(());
        };
        let greatest = policy
            .throttled_backoff
            .as_ref()
            .map_or(Duration::ZERO, Backoff::greatest)
            .max(policy.backoff.greatest())
            .min(policy.max_wait);
        let above = match policy.jitter {
            Jitter::Proportional { above_milli, .. } => greatest * above_milli / 1000,
            _ => Duration::ZERO,
        };
        prop_assert!(wait.length <= greatest + above, "{wait:?}");
    }

    #[test]
    fn a_wait_lies_between_its_floor_and_the_most_that_it_could_be(policy in policy(), history in history()) {
        if let Some(wait) = waited(policy.decide(&history, Timestamp::ZERO)) {
            prop_assert!(wait.floor <= wait.length && wait.length <= wait.longest(), "{wait:?}");
        }
    }

    #[test]
    fn no_wait_is_begun_after_which_too_little_would_remain(
        policy in policy(), history in history(), now in instant(),
    ) {
        if let Some(wait) = waited(policy.decide(&history, now)) {
            let Deadlines { total, upstream, business } = history.deadlines;
            for deadline in [total, upstream, business].into_iter().flatten() {
                let began = now.after(wait.length).after(policy.reserve);
                prop_assert!(deadline.since(began) > policy.min_attempt, "{wait:?} before {deadline:?}");
            }
        }
    }

    #[test]
    fn the_same_history_at_the_same_time_gets_the_same_decision(
        policy in policy(), history in history(), now in instant(),
    ) {
        let stored = History::from_bytes(&history.to_bytes()).expect("what was written can be read");
        prop_assert_eq!(policy.decide(&history, now), policy.decide(&stored, now));
    }

    #[test]
    fn another_seed_another_cycle_or_another_number_draws_another_wait(seed in any::<u64>(), n in 1..1000u32) {
        let mut policy = Policy::durable().retry;
        policy.backoff = Backoff::Constant(Duration::from_secs(86_400));
        let draw = |seed: u64, cycle: u32, attempts: u32| {
            let last_verdict = Some(failed(Cause::Error, None));
            let history = History { cycle, attempts, last_verdict, ..repeatable(seed) };
            waited(policy.decide(&history, Timestamp::ZERO)).expect("nothing stops it").length
        };
        let wait = draw(seed, 0, n);
        prop_assert_ne!(wait, draw(seed.wrapping_add(1), 0, n));
        prop_assert_ne!(wait, draw(seed, 1, n));
        prop_assert_ne!(wait, draw(seed, 0, n + 1));
    }

    #[test]
    fn a_hint_is_never_undershot_up_to_its_limit(
        seed in any::<u64>(), jitter in jitter(), asked in length(2 * DAY_NANOS), limit in length(DAY_NANOS),
    ) {
        let mut policy = Policy::durable().retry;
        policy.jitter = jitter;
        policy.server_wait = ServerWait { mode: ServerWaitMode::Above, limit, over: Over::Clamp };
        let mut history = repeatable(seed);
        let verdict = failed(Cause::Throttled, Some(asked));
        let wait = waited(policy.conclude(&mut history, verdict, Timestamp::ZERO)).expect("nothing stops it");
        prop_assert!(wait.length >= asked.min(limit), "{wait:?}");
        prop_assert_eq!(wait.asked, Some(asked));
        if asked > limit && wait.origin == WaitOrigin::Server {
            prop_assert!(wait.was_clamped(), "{wait:?}");
        }
    }

    #[test]
    fn an_arbitrary_history_reads_back_as_it_was(history in history()) {
        prop_assert_eq!(History::from_bytes(&history.to_bytes()), Ok(history));
    }

    #[test]
    fn a_flipped_bit_in_stored_bytes_is_found(history in history(), bit in 0..History::LEN * 8) {
        let mut bytes = history.to_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(History::from_bytes(&bytes).is_err());
    }

    #[test]
    fn attempts_never_exceed_the_maximum(
        policy in policy(), seed in any::<u64>(), script in prop::collection::vec(failure(), 60),
    ) {
        let most = policy.max_attempts.unwrap_or(u32::MAX);
        let mut history = repeatable(seed);
        let (mut counted, mut lost, mut now) = (0u32, 0u32, Timestamp::ZERO);
        for verdict in script {
            match verdict {
                Verdict::Failure { cause: Cause::Lost, .. } => lost += 1,
                _ => counted += 1,
            }
            prop_assert!(counted <= most, "attempt {counted} of {most} was begun");
            prop_assert!(lost <= policy.max_losses + 1);
            let decision = policy.conclude(&mut history, verdict, now);
            prop_assert_eq!((history.attempts, history.losses), (counted, lost));
            match decision {
                Decision::Retry(wait) => now = now.after(wait.length),
                Decision::Stop(_) => break,
            }
        }
    }

    #[test]
    fn a_redriven_history_gets_the_whole_policy_again(history in history(), now in instant()) {
        let redriven = history.redriven(now, Deadlines::default());
        prop_assert_eq!((redriven.attempts, redriven.losses, redriven.last_verdict), (0, 0, None));
        prop_assert_eq!(redriven.cycle, history.cycle.saturating_add(1));
        prop_assert_eq!(redriven.seed, history.seed);
        prop_assert_eq!(redriven.idempotency, history.idempotency);
        prop_assert_eq!(Policy::live().retry.decide(&redriven, now), Decision::Retry(Wait::NONE));
    }

    #[test]
    fn a_curve_never_shrinks_or_wraps(curve in backoff(), n in any::<u32>()) {
        let (here, next) = (curve.ceiling(n), curve.ceiling(n.saturating_add(1)));
        prop_assert!(here <= curve.greatest());
        if !matches!(curve, Backoff::Steps(_)) {
            prop_assert!(here <= next);
        }
    }
}

/// BO-09
#[test]
fn full_jitter_at_the_cap_keeps_its_mean_and_its_spread() {
    let mut policy = Policy::live().retry;
    policy.max_attempts = None;
    let cap = Duration::from_secs(60);
    policy.backoff = Backoff::Exponential { base: Duration::from_secs(1), factor_milli: 2000, max: cap };
    let mut waits: Vec<Duration> = (0..10_000)
        .map(|seed| {
            let last_verdict = Some(failed(Cause::Error, None));
            let history = History { attempts: 20, last_verdict, ..repeatable(seed) };
            waited(policy.decide(&history, Timestamp::ZERO)).expect("nothing stops it").length
        })
        .collect();
    waits.sort_unstable();
    let at_the_cap = waits.iter().filter(|wait| **wait == cap).count();
    let mean = waits.iter().map(Duration::as_secs_f64).sum::<f64>() / 10_000.0;
    assert!(at_the_cap < 100, "{at_the_cap} of 10,000 draws are the cap");
    assert!((28.0..32.0).contains(&mean), "mean {mean}");
    assert!(waits[999] < Duration::from_secs(7), "the smallest tenth ends at {:?}", waits[999]);
    assert!(waits[9_000] > Duration::from_secs(53), "the largest tenth begins at {:?}", waits[9_000]);
}

/// Every history below satisfies its own reason and all that come after it.
#[test]
fn of_several_reasons_to_stop_the_first_in_the_order_counts() {
    let mut policy = Policy::live().retry;
    policy.max_attempts = Some(1);
    policy.max_losses = 0;
    let asked = Some(Duration::from_secs(3600));
    let maybe = |cause| Some(Verdict::Failure { cause, sent: Sent::Maybe, server_wait: asked });
    let past = Some(Timestamp::from_secs(1));
    let now = Timestamp::from_secs(2);
    let all = History {
        nesting: Nesting::SameDependency,
        attempts: 1,
        losses: 1,
        last_verdict: maybe(Cause::Lost),
        ..History::new(
            7,
            Timestamp::ZERO,
            Idempotency::Unsafe,
            Deadlines { total: past, upstream: past, business: past },
        )
    };
    let poison = History { nesting: Nesting::Within, ..all };
    let ambiguous = History { losses: 0, last_verdict: maybe(Cause::Timeout), ..poison };
    let exhausted = History { idempotency: Idempotency::Keyed, ..ambiguous };
    let told_to_wait = History { attempts: 0, ..exhausted };
    let total = History { last_verdict: Some(failed(Cause::Error, None)), ..told_to_wait };
    let upstream = History { deadlines: Deadlines { total: None, ..total.deadlines }, ..total };
    let business = History { deadlines: Deadlines { upstream: None, ..upstream.deadlines }, ..upstream };
    let with = |last_verdict| History { last_verdict: Some(last_verdict), ..all };
    for (history, reason) in [
        (with(Verdict::Success), StopReason::Succeeded),
        (with(Verdict::Permanent), StopReason::Permanent),
        (with(Verdict::Neutral(Neutral::Cancelled)), StopReason::Cancelled),
        (with(Verdict::Neutral(Neutral::OwnFault)), StopReason::Nested),
        (all, StopReason::Nested),
        (poison, StopReason::PoisonCrash),
        (ambiguous, StopReason::Ambiguous),
        (exhausted, StopReason::AttemptsExhausted),
        (told_to_wait, StopReason::ServerWaitTooLong),
        (total, StopReason::TotalTimeout),
        (upstream, StopReason::UpstreamDeadline),
        (business, StopReason::BusinessDeadline),
    ] {
        assert_eq!(policy.decide(&history, now), Decision::Stop(reason), "{}", reason.name());
    }
    let none = History { deadlines: Deadlines::default(), ..business };
    assert!(matches!(policy.decide(&none, now), Decision::Retry(_)));
}

#[test]
fn three_losses_are_rescued_and_the_fourth_is_poison() {
    let policy = Policy::durable();
    let mut history = policy.begin(7, Timestamp::ZERO, None, None);
    for loss in 1..=3 {
        let decision = policy.retry.conclude(&mut history, Verdict::LOST, Timestamp::ZERO);
        assert!(matches!(decision, Decision::Retry(_)), "loss {loss}: {decision:?}");
    }
    let fourth = policy.retry.conclude(&mut history, Verdict::LOST, Timestamp::ZERO);
    assert_eq!(fourth, Decision::Stop(StopReason::PoisonCrash));
    assert_eq!((history.attempts, history.losses), (0, 4));
}

/// A fault of our own is not counted, so the draw does not move on; it must not settle near zero.
#[test]
fn fault_after_fault_of_our_own_keeps_a_pause_and_counts_nothing() {
    let policy = Policy::durable();
    for seed in 0..1000 {
        let mut history = policy.begin(seed, Timestamp::ZERO, None, None);
        for _ in 0..3 {
            let fault = Verdict::Neutral(Neutral::OwnFault);
            let wait =
                waited(policy.retry.conclude(&mut history, fault, Timestamp::ZERO)).expect("it goes on");
            assert_eq!(wait.origin, WaitOrigin::OwnFault);
            assert!(
                wait.length >= Duration::from_millis(2500) && wait.length <= Duration::from_secs(5),
                "{wait}"
            );
        }
        assert_eq!((history.attempts, history.losses), (0, 0));
    }
}

/// Near BO-09: waits that lean on one another spread no better than waits without jitter. Of full jitter each wait is a
/// draw of its own: neither the last wait of a call nor the same wait of the call beside it says anything about it.
#[test]
fn one_draw_says_nothing_about_the_next() {
    let mut policy = Policy::live().retry;
    policy.backoff = Backoff::Constant(Duration::from_secs(1));
    let draw = |seed, attempts| {
        let history =
            History { attempts, last_verdict: Some(failed(Cause::Error, None)), ..repeatable(seed) };
        waited(policy.decide(&history, Timestamp::ZERO)).expect("nothing stops it").length.as_secs_f64()
    };
    let correlation = |other: fn(u64, u32) -> (u64, u32)| {
        let (mut sum, calls) = (0.0, 10_000);
        for seed in 0..calls {
            let (seed_beside, attempts) = other(seed, 1);
            sum += (draw(seed, 1) - 0.5) * (draw(seed_beside, attempts) - 0.5);
        }
        // A uniform draw's variance is a twelfth.
        sum * 12.0 / calls as f64
    };
    for (what, correlation) in [
        ("the next wait", correlation(|seed, attempts| (seed, attempts + 1))),
        ("the wait after that", correlation(|seed, attempts| (seed, attempts + 2))),
        ("the next seed's", correlation(|seed, attempts| (seed + 1, attempts))),
        ("that of a seed with one bit more", correlation(|seed, attempts| (seed | 1 << 40, attempts))),
    ] {
        // Of ten thousand pairs that have nothing in common the standard deviation is a hundredth.
        assert!(correlation.abs() < 0.04, "{what}: {correlation}");
    }
}

/// Near BO-01: a call that has no limit on attempts goes on for longer than they can be counted.
#[test]
fn attempts_beyond_all_counting_wait_for_the_cap_and_not_for_the_base() {
    let mut policy = Policy::live().retry;
    (policy.max_attempts, policy.jitter) = (None, Jitter::None);
    let mut history = History { attempts: u32::MAX - 2, ..repeatable(7) };
    for _ in 0..5 {
        let decided = policy.conclude(&mut history, failed(Cause::Error, None), Timestamp::ZERO);
        assert_eq!(waited(decided).expect("nothing stops it").length, Duration::from_secs(10));
    }
    assert_eq!(history.attempts, u32::MAX);
}
