//! Each preset against its source: its numbers one by one, and the vectors that the source, or a simulation of
//! the source's own code, is known by. None of the expected values comes from relent.

use std::time::Duration;

use relent_core::{
    Answer, Cause, ConcurrencyPolicy, Decision, ErrorClass, Gates, Idempotency, Observed, Policy, PolicyText,
    Preset, Route, Sent, StopReason, Timestamp, Verdict, Wait,
    budget::{BudgetPolicy, BudgetState, GrpcPolicy, QuotaPolicy, SharePolicy},
};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn failure(cause: Cause, server_wait: Option<Duration>) -> Verdict {
    Verdict::Failure { cause, sent: Sent::No, server_wait }
}

/// What the policy does after each of these verdicts, all of which come at once.
fn decisions(policy: &Policy, seed: u64, verdicts: &[Verdict]) -> Vec<Decision> {
    let mut history = policy.begin(seed, Timestamp::ZERO, None, None);
    let conclude = |verdict: &Verdict| policy.retry.conclude(&mut history, *verdict, Timestamp::ZERO);
    verdicts.iter().map(conclude).collect()
}

/// The waits between attempts that all fail of that cause.
fn waits(policy: &Policy, seed: u64, cause: Cause) -> Vec<Wait> {
    let decisions = decisions(policy, seed, &[failure(cause, None); 20]);
    let wait = |decision| match decision {
        Decision::Retry(wait) => Some(wait),
        Decision::Stop(reason) => {
            assert_eq!(reason, StopReason::AttemptsExhausted);
            None
        }
    };
    decisions.into_iter().map_while(wait).collect()
}

/// The range of each wait: its least and its most, as the policy reports them, reached within a hundredth.
fn ranges(policy: &Policy, cause: Cause) -> Vec<(Duration, Duration)> {
    let drawn: Vec<_> = (0..2_000).map(|seed| waits(policy, seed, cause)).collect();
    let range = |place: usize| {
        let (floor, most) = (drawn[0][place].floor, drawn[0][place].longest());
        let (low, high) = drawn
            .iter()
            .map(|waits| waits[place].length)
            .fold((Duration::MAX, Duration::ZERO), |(low, high), wait| (low.min(wait), high.max(wait)));
        let near = (most - floor) / 100;
        assert!(low >= floor && low <= floor + near, "{low:?} for {floor:?}");
        assert!(high <= most && high + near >= most, "{high:?} for {most:?}");
        (floor, most)
    };
    (0..drawn[0].len()).map(range).collect()
}

fn with_attempts(preset: Preset, attempts: u32) -> Policy {
    let mut policy = preset.policy();
    policy.retry.max_attempts = Some(attempts);
    policy
}

/// Every status and class that means another answer than "no", or success.
fn repeated(policy: &Policy) -> (Vec<(u16, Answer)>, Vec<&'static str>) {
    let answer = |observed| policy.classify.answer(observed, Route::default());
    let statuses = (100..600).map(|status| (status, answer(Observed::Status(status))));
    let statuses = statuses.filter(|(_, answer)| !matches!(answer, Answer::No | Answer::Success)).collect();
    // A lost attempt and a fault of our own are no matter of any table.
    let classes =
        ErrorClass::ALL.iter().filter(|class| !matches!(class, ErrorClass::Lost | ErrorClass::OwnFault));
    let errors =
        classes.filter(|class| answer(Observed::Error(**class)) != Answer::No).map(|class| class.name());
    (statuses, errors.collect())
}

fn not_now(statuses: impl IntoIterator<Item = u16>) -> Vec<(u16, Answer)> {
    statuses.into_iter().map(|status| (status, Answer::NotNow)).collect()
}

const NETWORK: [&str; 11] = [
    "dns",
    "connect",
    "connect_timeout",
    "tls",
    "not_sent",
    "unprocessed",
    "reset",
    "header_timeout",
    "body_timeout",
    "timeout",
    "protocol",
];

#[test]
fn every_preset_builds_by_its_name_and_repeats_nothing_that_nobody_said_may_be() {
    for preset in Preset::ALL {
        let text: PolicyText = toml::from_str(&format!("preset = \"{}\"", preset.name())).expect("a preset");
        assert_eq!(text.over(Policy::live()), Ok(preset.policy()), "{}", preset.name());
        let printed = toml::to_string(&PolicyText::from(&preset.policy())).expect("a policy can be printed");
        let again: PolicyText = toml::from_str(&printed).expect("what is printed can be read");
        assert_eq!(again.over(Policy::live()), Ok(preset.policy()), "{printed}");
        if *preset != Preset::Durable {
            assert_eq!(preset.policy().repeat, Idempotency::Unsafe, "{}", preset.name());
        }
    }
}

#[test]
fn the_microsoft_handler_has_its_documented_numbers() {
    let policy = Preset::MicrosoftStandard.policy();
    let permits = ConcurrencyPolicy { limit: 1000, queue: 0 };
    assert_eq!(policy.admission, Gates { concurrency: Some(permits), rate: None });
    assert_eq!((policy.total_timeout, policy.attempt_timeout), (Some(ms(30_000)), ms(10_000)));
    assert_eq!((policy.retry.max_attempts, policy.budget), (Some(4), None));
    let breaker = policy.breaker.as_ref().expect("it has one");
    assert_eq!((breaker.failure_rate_milli, breaker.min_calls, breaker.probes), (Some(100), 100, 1));
    assert_eq!(breaker.window, relent_core::Window::Time(ms(30_000)));
    let breaks = (1..9).map(|opens| breaker.break_time.ceiling(opens));
    assert!(breaks.into_iter().all(|length| length == ms(5_000)) && breaker.break_jitter_milli == 0);

    let (statuses, errors) = repeated(&policy);
    let mut expected = not_now([408]);
    expected.push((429, Answer::Throttled));
    expected.extend(not_now(500..600));
    assert_eq!((statuses, errors), (expected, NETWORK.to_vec()));
}

#[test]
fn the_microsoft_handler_waits_as_long_as_it_is_told_instead_of_its_own_wait() {
    let policy = Preset::MicrosoftStandard.policy();
    for asked in [ms(0), ms(1), ms(29_999)] {
        let told = decisions(&policy, 7, &[failure(Cause::Throttled, Some(asked))]);
        assert!(matches!(told[..], [Decision::Retry(wait)] if wait.length == asked), "{told:?}");
    }
    // There it would wait until the total ends it; the answer is the same and comes at once.
    let told = decisions(&policy, 7, &[failure(Cause::Throttled, Some(ms(30_000)))]);
    assert_eq!(told, [Decision::Stop(StopReason::TotalTimeout)]);
}

/// Its validation on start does not look at waits; against a backend that hangs, the third attempt is cut and
/// there is no fourth.
#[test]
fn the_microsoft_handlers_fourth_attempt_never_begins_against_a_backend_that_hangs() {
    let policy = Preset::MicrosoftStandard.policy();
    for seed in 0..500 {
        let mut history = policy.begin(seed, Timestamp::ZERO, None, None);
        history.idempotency = Idempotency::Safe;
        let mut now = Timestamp::ZERO;
        let reason = loop {
            now = policy.give_up_at(&history, now);
            match policy.retry.conclude(&mut history, Verdict::TIMED_OUT, now) {
                Decision::Retry(wait) => now = now.after(wait.length),
                Decision::Stop(reason) => break reason,
            }
        };
        assert_eq!((reason, history.attempts), (StopReason::TotalTimeout, 3), "seed {seed}");
    }
}

#[test]
fn grpc_spreads_a_fifth_to_either_side_of_its_capped_curve() {
    let policy = with_attempts(Preset::GrpcA6, 7);
    let expected = [(80, 120), (160, 240), (320, 480), (640, 960), (800, 1200), (800, 1200)];
    assert_eq!(ranges(&policy, Cause::Error), expected.map(|(low, high)| (ms(low), ms(high))));
    assert_eq!(waits(&Preset::GrpcA6.policy(), 7, Cause::Error).len(), 3, "four attempts");
}

#[test]
fn grpc_repeats_what_is_unavailable_and_obeys_a_pushback_to_the_millisecond() {
    let policy = Preset::GrpcA6.policy();
    let (statuses, errors) = repeated(&policy);
    assert_eq!(statuses, not_now([429, 502, 503, 504]));
    assert_eq!(errors, ["dns", "connect", "connect_timeout", "tls", "not_sent", "unprocessed", "reset"]);
    for asked in [0, 1, 4_321] {
        let told = decisions(&policy, 7, &[failure(Cause::Error, Some(ms(asked)))]);
        assert!(matches!(told[..], [Decision::Retry(wait)] if wait.length == ms(asked)), "{told:?}");
    }
}

#[test]
fn grpc_throttles_when_half_of_its_ten_tokens_are_gone() {
    let policy = Preset::GrpcA6.policy();
    assert_eq!(policy.budget, Some(BudgetPolicy::Grpc(GrpcPolicy { max_milli: 10_000, ratio_milli: 100 })));
    let mut budget = BudgetState::new(&policy.budget.expect("it has one"));
    let mut ladder = Vec::new();
    for _ in 0..6 {
        budget.on_failure(Cause::Error);
        let loan = budget.try_retry(Cause::Error, Timestamp::ZERO);
        ladder.push((budget.tokens_milli(Timestamp::ZERO).expect("it has tokens"), loan.is_ok()));
        loan.into_iter().for_each(|loan| budget.on_retry_failure(loan));
    }
    assert_eq!(
        ladder,
        [(9000, true), (8000, true), (7000, true), (6000, true), (5000, false), (4000, false)]
    );
    (0..11).for_each(|_| budget.on_first_success(Timestamp::ZERO));
    assert_eq!(budget.tokens_milli(Timestamp::ZERO), Some(5100));
    assert!(budget.try_retry(Cause::Error, Timestamp::ZERO).is_ok());
}

#[test]
fn aws_draws_below_a_curve_for_each_cause_that_ends_at_twenty_seconds() {
    let policy = with_attempts(Preset::Aws2026, 12);
    let below = |tops: [u64; 11]| tops.map(|top| (Duration::ZERO, ms(top)));
    let transient = [50, 100, 200, 400, 800, 1600, 3200, 6400, 12_800, 20_000, 20_000];
    assert_eq!(ranges(&policy, Cause::Error), below(transient));
    let throttled = [1000, 2000, 4000, 8000, 16_000, 20_000, 20_000, 20_000, 20_000, 20_000, 20_000];
    assert_eq!(ranges(&policy, Cause::Throttled), below(throttled));
    assert_eq!(waits(&Preset::Aws2026.policy(), 7, Cause::Error).len(), 2, "three attempts");
    assert_eq!(policy.budget, Some(BudgetPolicy::Quota(QuotaPolicy::AWS_2026)));

    let (statuses, errors) = repeated(&policy);
    assert_eq!((statuses, errors), (not_now([500, 502, 503, 504]), NETWORK.to_vec()));
}

/// `x-amz-retry-after` counts between our own wait and five seconds more, without jitter of its own.
#[test]
fn aws_takes_a_hint_within_five_seconds_of_its_own_wait() {
    let policy = Preset::Aws2026.policy();
    for seed in 0..200 {
        let own = waits(&policy, seed, Cause::Throttled)[0].length;
        let told = |asked| match decisions(&policy, seed, &[failure(Cause::Throttled, Some(asked))])[..] {
            [Decision::Retry(wait)] => wait.length,
            ref other => panic!("{other:?}"),
        };
        assert_eq!(told(own / 2), own);
        assert_eq!(told(own + ms(4_999)), own + ms(4_999));
        assert_eq!(told(own + ms(5_001)), own + ms(5_000));
        assert_eq!(told(ms(3_600_000)), own + ms(5_000));
    }
}

/// The reference guide: the quota begins to drain when more than about 22 % of attempts fail in a way that is
/// transient, or 32 % when throttled. Reckoned exactly these are 21.5 % and 32.1 %; a full quota is 35 or 100
/// retries.
#[test]
fn the_aws_quota_drains_from_the_documented_shares_of_failures_on() {
    for (cause, drains_at, retries) in [(Cause::Error, 0.215, 35), (Cause::Throttled, 0.321, 100)] {
        assert!(drift(cause, drains_at - 0.001) > 0.0, "{cause:?} still fills");
        assert!(drift(cause, drains_at + 0.001) < 0.0, "{cause:?} drains");
        let mut budget = quota();
        let lent = std::iter::from_fn(|| budget.try_retry(cause, Timestamp::ZERO).ok());
        assert_eq!(lent.count(), retries);
    }
}

/// What a call does to the quota on average if each attempt fails with that chance: every course that a call can
/// take, weighed.
fn drift(cause: Cause, failing: f64) -> f64 {
    let attempts = Preset::Aws2026.policy().retry.max_attempts.expect("limited");
    let course = |failures: u32| {
        let mut budget = quota();
        // Away from the brim, so that what comes back finds room.
        (0..5).for_each(|_| drop(budget.try_retry(cause, Timestamp::ZERO).expect("there are tokens")));
        let before = budget.tokens_milli(Timestamp::ZERO).expect("tokens");
        if failures == 0 {
            budget.on_first_success(Timestamp::ZERO);
        }
        for retry in 1..=failures.min(attempts - 1) {
            let loan = budget.try_retry(cause, Timestamp::ZERO).expect("there are tokens");
            match retry == failures {
                true => budget.on_retry_success(loan, Timestamp::ZERO),
                false => budget.on_retry_failure(loan),
            }
        }
        f64::from(budget.tokens_milli(Timestamp::ZERO).expect("tokens")) - f64::from(before)
    };
    let chance = |failures: u32| {
        let ends = if failures == attempts { 1.0 } else { 1.0 - failing };
        failing.powi(failures.cast_signed()) * ends
    };
    (0..=attempts).map(|failures| chance(failures) * course(failures)).sum()
}

fn quota() -> BudgetState {
    BudgetState::new(&Preset::Aws2026.policy().budget.expect("it has one"))
}

#[test]
fn azure_spreads_a_fifth_to_either_side_of_its_curve() {
    let policy = with_attempts(Preset::AzureCore, 6);
    let expected = [(640, 960), (1280, 1920), (2560, 3840), (5120, 7680), (10_240, 15_360)];
    assert_eq!(ranges(&policy, Cause::Error), expected.map(|(low, high)| (ms(low), ms(high))));
    assert_eq!((policy.attempt_timeout, policy.total_timeout), (ms(100_000), None));
    assert_eq!(Preset::AzureCore.policy().retry.max_attempts, Some(4));
    assert_eq!((policy.budget, policy.breaker.is_none()), (None, true));

    let (mut expected, throttled) = (not_now([408, 500, 502, 503, 504]), (429, Answer::Throttled));
    expected.insert(1, throttled);
    assert_eq!(repeated(&policy), (expected, NETWORK.to_vec()));
}

/// The article's measurement of `BlobClient`: six requests over about 26 s. Reckoned over its source: mean 24.8 s,
/// standard deviation 1.7 s, 99 % between 21.3 and 28.3 s. With the default of four requests, mean 5.6 s.
#[test]
fn azures_six_requests_take_as_long_as_a_blob_clients() {
    let total = |attempts, seed| {
        let waits = waits(&with_attempts(Preset::AzureCore, attempts), seed, Cause::Error);
        assert_eq!(waits.len() + 1, attempts as usize);
        waits.iter().map(|wait| wait.length.as_secs_f64()).sum::<f64>()
    };
    let statistics = |attempts| {
        let mut totals: Vec<f64> = (0..SEEDS).map(|seed| total(attempts, seed)).collect();
        totals.sort_unstable_by(f64::total_cmp);
        let mean = totals.iter().sum::<f64>() / SEEDS as f64;
        let variance = totals.iter().map(|total| (total - mean).powi(2)).sum::<f64>() / SEEDS as f64;
        (mean, variance.sqrt(), totals)
    };
    let (mean, deviation, totals) = statistics(6);
    assert!((mean - 24.8).abs() < 0.1 && (deviation - 1.7).abs() < 0.05, "{mean} {deviation}");
    let beyond = totals.iter().filter(|total| **total >= 26.0).count() as f64 / SEEDS as f64;
    assert!((beyond - 0.27).abs() < 0.01, "{beyond}");
    let (low, high) = (totals[totals.len() / 100], totals[totals.len() * 99 / 100]);
    assert!((low - 21.3).abs() < 0.1 && (high - 28.3).abs() < 0.1, "{low} {high}");
    let (mean, _, totals) = statistics(4);
    let (least, most) = (totals[0], totals[totals.len() - 1]);
    assert!(
        (mean - 5.6).abs() < 0.05 && (4.48..4.8).contains(&least) && (6.4..6.72).contains(&most),
        "{mean}"
    );
}

#[test]
fn azure_takes_the_longer_of_the_hint_and_its_own_wait() {
    let policy = Preset::AzureCore.policy();
    for seed in 0..200 {
        let own = waits(&policy, seed, Cause::Throttled)[0].length;
        for (asked, length) in
            [(ms(0), own), (own / 2, own), (ms(961), ms(961)), (ms(3_600_000), ms(3_600_000))]
        {
            let told = decisions(&policy, seed, &[failure(Cause::Throttled, Some(asked))]);
            assert!(matches!(told[..], [Decision::Retry(wait)] if wait.length == length), "{told:?}");
        }
    }
}

#[test]
fn envoy_retries_once_below_its_base_interval_and_further_ones_below_ten_times_it() {
    let below = |tops: &[u64]| tops.iter().map(|top| (Duration::ZERO, ms(*top))).collect::<Vec<_>>();
    assert_eq!(ranges(&Preset::Envoy.policy(), Cause::Error), below(&[25]));
    assert_eq!(ranges(&with_attempts(Preset::Envoy, 6), Cause::Error), below(&[25, 75, 175, 250, 250]));
    let policy = Preset::Envoy.policy();
    assert_eq!(policy.budget, Some(BudgetPolicy::Share(SharePolicy { share_milli: 200, floor: 3 })));
    assert_eq!((policy.total_timeout, policy.attempt_timeout), (Some(ms(15_000)), ms(15_000)));
    let (statuses, errors) = repeated(&policy);
    assert_eq!(statuses, not_now([502, 503, 504]));
    let between = NETWORK.iter().copied().filter(|class| !matches!(*class, "dns" | "protocol"));
    assert_eq!(errors, between.collect::<Vec<_>>());
    let told = decisions(&policy, 7, &[failure(Cause::Error, Some(ms(9_000)))]);
    assert!(
        matches!(told[..], [Decision::Retry(wait)] if wait.length <= ms(25)),
        "a hint is ignored: {told:?}"
    );
}

const SEEDS: u64 = 20_000;
