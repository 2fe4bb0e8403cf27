//! Failures that other libraries had, of the kinds that the core alone decides. Each test cites its case.

use std::time::Duration;

use relent_core::{
    Backoff, Cause, Deadlines, Decision, History, Idempotency, Invalid, Jitter, Over, Policy, Route, Sent,
    ServerWait, ServerWaitMode, StopReason, Timeline, Timestamp, Verdict, Wait, WaitOrigin, parse_script,
    timeline,
};

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A policy without chance, for calls that are safe to repeat: one attempt more than `waits`.
fn plain(backoff: Backoff) -> Policy {
    let mut policy = Policy { repeat: Idempotency::Safe, total_timeout: None, ..Policy::live() };
    policy.attempt_timeout = secs(3600);
    policy.retry.backoff = backoff;
    policy.retry.jitter = Jitter::None;
    policy.retry.server_wait =
        ServerWait { mode: ServerWaitMode::Replace, limit: secs(60), over: Over::Stop };
    policy
}

fn run(policy: &Policy, script: &str) -> Timeline {
    let history = policy.begin(7, Timestamp::ZERO, None, None);
    timeline(policy, history, Route::default(), &parse_script(script).expect("a script"))
}

fn begins(timeline: &Timeline) -> Vec<Duration> {
    timeline.steps.iter().map(|step| step.began.since(Timestamp::ZERO)).collect()
}

fn waits(timeline: &Timeline) -> Vec<Wait> {
    let decisions = timeline.steps.iter().map(|step| step.decision);
    decisions
        .filter_map(|decision| if let Decision::Retry(wait) = decision { Some(wait) } else { None })
        .collect()
}

const fn not_now(server_wait: Option<Duration>) -> Verdict {
    Verdict::Failure { cause: Cause::Error, sent: Sent::No, server_wait }
}

fn exponential(base: Duration, max: Duration) -> Backoff {
    Backoff::Exponential { base, factor_milli: 2000, max }
}

// RA-08
#[test]
fn an_absurd_hint_stops_or_is_clamped_and_never_overflows() {
    let mut policy = plain(Backoff::Constant(secs(1)));
    for asked in [secs(9_999_999_999), Duration::from_nanos(u64::MAX), Duration::MAX] {
        let mut history = policy.begin(7, Timestamp::ZERO, None, None);
        policy.retry.server_wait.over = Over::Stop;
        let stopped = policy.retry.conclude(&mut history, not_now(Some(asked)), Timestamp::ZERO);
        assert_eq!(stopped, Decision::Stop(StopReason::ServerWaitTooLong));

        policy.retry.server_wait.over = Over::Clamp;
        let Decision::Retry(wait) = policy.retry.decide(&history, Timestamp::ZERO) else {
            panic!("{asked:?}")
        };
        assert_eq!((wait.length, wait.origin, wait.asked), (secs(60), WaitOrigin::Server, Some(asked)));
        assert!(wait.was_clamped());
    }
}

// RA-10
#[test]
fn a_hint_longer_than_the_rest_of_the_budget_stops_at_once() {
    let mut policy = plain(Backoff::Constant(secs(1)));
    policy.total_timeout = Some(secs(5));
    policy.retry.server_wait.limit = secs(86_400);
    let ended = run(&policy, "503 asks 1d, 200");
    assert_eq!(ended.end, Some(StopReason::TotalTimeout));
    assert_eq!((ended.steps.len(), ended.at), (1, Timestamp::ZERO));
    policy.retry.server_wait.limit = secs(60);
    assert_eq!(run(&policy, "503 asks 1d, 200").end, Some(StopReason::ServerWaitTooLong));
}

// RA-18
#[test]
fn hints_around_the_edges_of_small_integers_are_obeyed_alike() {
    let mut policy = plain(Backoff::Constant(secs(1)));
    policy.retry.server_wait.limit = secs(3600);
    for asked in [255, 256, 300] {
        let ended = run(&policy, &format!("429 asks {asked}s, 200"));
        assert_eq!(begins(&ended), [secs(0), secs(asked)]);
    }
    assert_eq!(run(&policy, "429 asks 65536s, 200").end, Some(StopReason::ServerWaitTooLong));
    policy.retry.server_wait.over = Over::Clamp;
    assert_eq!(begins(&run(&policy, "429 asks 65536s, 200")), [secs(0), secs(3600)]);
}

// RA-20
#[test]
fn a_hint_does_not_disturb_the_sequence_of_the_backoff() {
    let policy = plain(exponential(ms(100), secs(10)));
    let waited = waits(&run(&policy, "503, 503 asks 5s, 503, 503, 200"));
    let lengths: Vec<Duration> = waited.iter().map(|wait| wait.length).collect();
    let origins: Vec<&str> = waited.iter().map(|wait| wait.origin.name()).collect();
    assert_eq!(lengths, [ms(100), secs(5), ms(400), ms(800)]);
    assert_eq!(origins, ["backoff", "server", "backoff", "backoff"]);

    let mut decorrelated = plain(exponential(secs(1), secs(30)));
    decorrelated.retry.jitter = Jitter::Decorrelated;
    let waited = waits(&run(&decorrelated, "503, 503 asks 50s, 503, 200"));
    assert!(waited[2].longest() <= waited[0].length * 3, "it grows from its own last wait: {:?}", waited[2]);
}

// BO-01
#[test]
fn the_cap_holds_at_any_exponent() {
    let curve = exponential(secs(2), secs(300));
    let first: Vec<u64> = (1..=10).map(|n| curve.ceiling(n).as_secs()).collect();
    assert_eq!(first, [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    for n in [64, 70, 1024, 1_000_000, u32::MAX] {
        assert_eq!(curve.ceiling(n), secs(300), "{n}");
    }
}

// BO-03
#[test]
fn a_wait_never_wraps_to_zero() {
    let curve = exponential(secs(1), secs(3600));
    assert_eq!(curve.ceiling(12), secs(2048));
    for n in [13, 40, 63, 64, 65, 66, 130] {
        assert_eq!(curve.ceiling(n), secs(3600), "{n}");
    }
}

// BO-05
#[test]
fn a_curve_of_zero_stays_zero_and_a_policy_refuses_it() {
    let curve = exponential(Duration::ZERO, secs(60));
    for n in [2, 10, 1025] {
        assert_eq!(curve.ceiling(n), Duration::ZERO, "{n}");
    }
    assert_eq!(plain(curve).validate().unwrap_err().field, "retry.backoff.base");
}

// BO-07
#[test]
fn a_curve_without_a_cap_of_its_own_stops_at_a_day() {
    let uncapped = Backoff::Exponential { base: secs(1), factor_milli: 10_000, max: Duration::MAX };
    assert_eq!(uncapped.ceiling(8), secs(10_000_000));
    let mut policy = plain(uncapped);
    policy.retry.max_attempts = Some(12);
    let waited = waits(&run(&policy, "11x 503, 200"));
    let lengths: Vec<u64> = waited.iter().map(|wait| wait.length.as_secs()).collect();
    assert_eq!(lengths[..5], [1, 10, 100, 1_000, 10_000]);
    assert!(lengths[5..].iter().all(|length| *length == 86_400), "{lengths:?}");
    policy.retry.max_wait = secs(20_000_000);
    assert_eq!(waits(&run(&policy, "11x 503, 200"))[7].length, secs(10_000_000));
}

// BO-11
#[test]
fn a_first_wait_above_the_cap_is_refused_with_both_values() {
    let curve = exponential(secs(10), secs(5));
    assert!((1..=5).all(|n| curve.ceiling(n) == secs(5)));
    let refused = plain(curve).validate();
    let expected = Invalid::new("retry.backoff.base", "10s is longer than retry.backoff.max 5s");
    assert_eq!(refused, Err(expected));
}

// BO-13
#[test]
fn a_draw_of_exactly_zero_waits_zero() {
    let mut policy = plain(Backoff::Constant(Duration::from_nanos(1)));
    policy.retry.jitter = Jitter::Full;
    let script = parse_script("503, 200").expect("a script");
    // Full jitter under one nanosecond draws one of two values; about half of all seeds draw zero.
    let zero = (0..64)
        .map(|seed| {
            timeline(&policy, policy.begin(seed, Timestamp::ZERO, None, None), Route::default(), &script)
        })
        .find(|ended| ended.at == Timestamp::ZERO)
        .expect("some seed draws zero");
    assert_eq!(zero.end, Some(StopReason::Succeeded));
    assert_eq!(begins(&zero), [Duration::ZERO, Duration::ZERO]);

    let mut history = policy.begin(7, Timestamp::ZERO, None, None);
    assert!(matches!(
        policy.retry.conclude(&mut history, not_now(None), Timestamp::ZERO),
        Decision::Retry(_)
    ));
    let cancelled = Verdict::Neutral(relent_core::Neutral::Cancelled);
    let decision = policy.retry.conclude(&mut history, cancelled, Timestamp::ZERO);
    assert_eq!(decision, Decision::Stop(StopReason::Cancelled));
    assert_eq!(history.attempts, 1);
}

// BO-15
#[test]
fn one_policy_serves_call_after_call_without_a_memory() {
    let mut policy = plain(exponential(secs(1), secs(30)));
    policy.retry.max_attempts = None;
    policy.total_timeout = Some(secs(60));
    assert_eq!(run(&policy, "100x 503").end, Some(StopReason::TotalTimeout));
    let later = Timestamp::from_secs(600);
    let script = parse_script("503, 503, 200").expect("a script");
    let second = timeline(&policy, policy.begin(7, later, None, None), Route::default(), &script);
    let began: Vec<Duration> = second.steps.iter().map(|step| step.began.since(later)).collect();
    assert_eq!((second.end, began), (Some(StopReason::Succeeded), vec![secs(0), secs(1), secs(3)]));
}

// BO-17
#[test]
fn the_end_is_a_reason_and_never_a_wait() {
    let mut policy = plain(Backoff::Constant(secs(1)));
    policy.retry.max_attempts = None;
    policy.total_timeout = Some(secs(10));
    let mut history = policy.begin(7, Timestamp::ZERO, None, None);
    let mut now = Timestamp::ZERO;
    let mut waited = 0;
    for _ in 0..20 {
        match policy.retry.conclude(&mut history, not_now(None), now) {
            Decision::Retry(wait) => {
                assert_eq!(wait.length, secs(1));
                now = now.after(wait.length);
                waited += 1;
            }
            Decision::Stop(reason) => assert_eq!(reason, StopReason::TotalTimeout),
        }
    }
    assert_eq!(waited, 9, "the tenth would leave nothing for an attempt");
}

// RT-19
#[test]
fn attempts_count_the_first() {
    for (most, sent) in [(4, 4), (1, 1)] {
        let mut policy = plain(Backoff::Constant(secs(1)));
        policy.retry.max_attempts = Some(most);
        let ended = run(&policy, "9x 503");
        assert_eq!((ended.steps.len(), ended.end), (sent, Some(StopReason::AttemptsExhausted)));
    }
}

// RT-25
#[test]
fn no_hidden_ceiling_lowers_the_maximum() {
    for most in [10, 1000] {
        let mut policy = plain(Backoff::Constant(ms(1)));
        policy.retry.max_attempts = Some(most);
        assert_eq!(run(&policy, "2000x 503").history.attempts, most);
    }
}

// JB-01
#[test]
fn a_very_late_attempt_is_scheduled_after_now() {
    let mut policy =
        plain(Backoff::Exponential { base: secs(1), factor_milli: u32::MAX, max: Duration::MAX });
    policy.retry.max_attempts = None;
    policy.retry.max_wait = Duration::MAX;
    let last_verdict = Some(not_now(None));
    for started in [Timestamp::from_secs(1_800_000_000), Timestamp::MAX.before(secs(1))] {
        let fresh = History::new(7, started, Idempotency::Safe, Deadlines::default());
        let history = History { attempts: 310, last_verdict, ..fresh };
        let Decision::Retry(wait) = policy.retry.decide(&history, started) else { panic!("it goes on") };
        assert!(wait.length >= secs(9_235_210_000), "{wait}");
        assert_eq!(started.after(wait.length), Timestamp::MAX);
    }
}

// JB-05
#[test]
fn the_last_attempt_lost_with_its_worker_is_run_again() {
    let mut policy = plain(Backoff::Constant(secs(1)));
    policy.retry.max_attempts = Some(3);
    let ended = run(&policy, "503, 503, lost, 200");
    assert_eq!(ended.end, Some(StopReason::Succeeded));
    assert_eq!((ended.history.attempts, ended.history.losses), (3, 1));
    let given_up = run(&policy, "503, 503, 4x lost");
    assert_eq!(given_up.end, Some(StopReason::PoisonCrash));
    assert_eq!((given_up.history.attempts, given_up.history.losses), (2, 4));
}

// JB-07
#[test]
fn a_wait_that_was_asked_for_is_not_cut_to_the_longest_wait_of_our_own() {
    let mut policy = plain(Backoff::Constant(secs(1)));
    policy.retry.max_wait = secs(3600);
    policy.retry.server_wait.limit = secs(86_400);
    assert_eq!(begins(&run(&policy, "503 asks 7200s, 200")), [secs(0), secs(7200)]);
    policy.total_timeout = Some(secs(3600));
    let ended = run(&policy, "503 asks 7200s, 200");
    assert_eq!((ended.end, ended.at), (Some(StopReason::TotalTimeout), Timestamp::ZERO));
    assert_eq!(ended.steps.len(), 1);
}

// RD-01 RD-03
#[test]
fn work_sent_again_by_a_person_is_not_sent_straight_back() {
    let mut policy = Policy::durable();
    policy.retry.max_attempts = Some(3);
    policy.retry.max_losses = 0;
    let mut history = policy.begin(7, Timestamp::ZERO, None, None);
    for _ in 0..3 {
        let _ = policy.retry.conclude(&mut history, not_now(None), Timestamp::from_secs(1));
    }
    assert_eq!(
        policy.retry.decide(&history, Timestamp::from_secs(2)),
        Decision::Stop(StopReason::AttemptsExhausted)
    );

    // A week later: the first deadline is long past and must not count.
    let later = Timestamp::from_secs(7 * 86_400);
    let fresh = policy.begin(history.seed, later, None, None).deadlines;
    let redriven = history.redriven(later, fresh);
    assert_eq!((redriven.attempts, redriven.losses, redriven.cycle), (0, 0, 1));
    let script = parse_script("2x 503, 200").expect("a script");
    let ended = timeline(&policy, redriven, Route::default(), &script);
    assert_eq!((ended.end, ended.history.attempts), (Some(StopReason::Succeeded), 3));
}

// TO-02
#[test]
fn the_time_of_attempts_counts_towards_the_total() {
    let mut policy = plain(Backoff::Constant(secs(1)));
    policy.total_timeout = Some(secs(30));
    let ended = run(&policy, "9x 503 takes 15s");
    assert_eq!(begins(&ended), [secs(0), secs(16)]);
    assert_eq!((ended.end, ended.at), (Some(StopReason::TotalTimeout), Timestamp::from_secs(30)));
}

// TO-04
#[test]
fn a_total_that_is_not_set_is_not_filled_with_the_attempt_time_out() {
    let mut policy = plain(Backoff::Steps(vec![ms(500), secs(1)]));
    policy.attempt_timeout = secs(2);
    policy.retry.max_attempts = Some(3);
    policy.validate().expect("it can be built");
    let ended = run(&policy, "9x timeout");
    assert_eq!(begins(&ended), [secs(0), ms(2500), ms(5500)]);
    assert_eq!((ended.end, ended.at), (Some(StopReason::AttemptsExhausted), Timestamp::from_millis(7500)));
}

// TO-14
#[test]
fn the_callers_own_deadline_is_kept_where_it_is_the_earlier() {
    let mut policy = plain(Backoff::Constant(secs(1)));
    policy.total_timeout = Some(secs(10));
    policy.retry.max_attempts = None;
    let script = parse_script("99x 503").expect("a script");
    let now = Timestamp::from_secs(100);
    let with =
        |upstream| timeline(&policy, policy.begin(7, now, Some(upstream), None), Route::default(), &script);

    let passed = with(now.before(secs(1)));
    assert_eq!((passed.end, passed.steps.len()), (Some(StopReason::UpstreamDeadline), 0));
    assert_eq!(passed.at, now);

    let four = with(now.after(secs(4)));
    assert_eq!((four.end, four.steps.len()), (Some(StopReason::UpstreamDeadline), 4));
    assert!(four.at <= now.after(secs(4)));
}

// TO-16
#[test]
fn the_total_bounds_a_loop_without_an_attempt_limit() {
    let mut policy = plain(Backoff::Constant(secs(1)));
    policy.total_timeout = Some(secs(5));
    policy.retry.max_attempts = None;
    let ended = run(&policy, "9999x 503");
    assert_eq!(begins(&ended), [0, 1, 2, 3, 4].map(secs));
    assert!(ended.at <= Timestamp::from_secs(5));
}

// TS-06
#[test]
fn the_wait_that_is_reported_is_the_wait_that_is_passed() {
    let policy = plain(Backoff::Constant(secs(1)));
    let ended = run(&policy, "503 asks 60s, 200");
    let wait = waits(&ended)[0];
    assert_eq!((wait.length, wait.origin), (secs(60), WaitOrigin::Server));
    assert_eq!(ended.steps[1].began.since(ended.steps[0].ended), wait.length);
    assert!(ended.to_string().contains("wait 1m (server asked 1m)"), "{ended}");
}

// CL-06
#[test]
fn a_wait_is_a_length_and_knows_no_local_time() {
    // Seconds since the epoch of 2026-10-25 00:30 in London (summer time: 23:30Z the day
    // before) and of 2026-03-29 00:30 there (00:30Z).
    let (autumn, spring) = (1_792_884_600, 1_774_744_200);
    for (failed, wait, expected) in [
        (autumn, 2 * 3600, 1_792_891_800),  // 2026-10-25T01:30:00Z
        (spring, 2 * 3600, 1_774_751_400),  // 2026-03-29T02:30:00Z
        (autumn, 24 * 3600, 1_792_971_000), // 2026-10-25T23:30:00Z
    ] {
        let mut policy = plain(Backoff::Constant(secs(wait)));
        policy.retry.max_wait = secs(wait);
        let history = policy.begin(7, Timestamp::from_secs(failed), None, None);
        let script = parse_script("503, 200").expect("a script");
        let ended = timeline(&policy, history, Route::default(), &script);
        assert_eq!(ended.steps[1].began, Timestamp::from_secs(expected));
    }
}
