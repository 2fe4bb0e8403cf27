//! Attempts, waits and the deadlines around them.

mod support;

use std::time::Duration;

use relent::{
    Backoff, Cause, Clock, Decision, Error, Jitter, ManualClock, Over, Policy, RetryPolicy, ServerWait,
    ServerWaitMode, StopReason, Timestamp,
};
use support::{Act, Dependency, SECOND, at_once, doubling, pipeline, plain, with_attempts};

const MS: fn(u64) -> Duration = Duration::from_millis;

#[test]
fn a_503_a_timeout_and_a_200_are_three_attempts_inside_the_jitters_range() {
    for seed in 0..500 {
        let clock = ManualClock::new();
        let dependency = Dependency::new(&clock, &[at_once(503), Act::Hang, at_once(200)]);
        let users = pipeline(&clock, Policy { budget: None, ..Policy::live() });
        let (result, report) =
            clock.block_on(users.safe().with_seed(seed).run_with_report(|a| dependency.call(a)));
        assert_eq!(result.unwrap().status, 200);
        assert_eq!((report.attempts, report.waits, report.stop), (3, 2, StopReason::Succeeded));
        let began: Vec<_> = dependency.attempts().iter().map(|attempt| attempt.began).collect();
        let (first, second) = (began[1].since(began[0]), began[2].since(began[1].after(2 * SECOND)));
        assert!(first <= MS(200) && second <= MS(400), "seed {seed}: {first:?}, {second:?}");
        assert_eq!(report.waited, first + second);
        assert!(report.took == clock.now().since(Timestamp::ZERO) && report.took < 5 * SECOND);
        assert_eq!((dependency.running(), clock.sleepers()), (0, 0));
    }
}

#[test]
fn time_in_attempts_counts_towards_the_total() {
    // TO-02
    let clock = ManualClock::new();
    let dependency = Dependency::new(&clock, &[Act::Answer(503, 15 * SECOND)]);
    let policy = Policy { total_timeout: Some(30 * SECOND), ..plain(Backoff::Constant(SECOND)) };
    let users = pipeline(&clock, policy);
    let error = clock.block_on(users.run(|a| dependency.call(a))).unwrap_err();
    assert_eq!(dependency.began(), [0, 16_000]);
    assert_eq!(error.stop(), StopReason::TotalTimeout);
    assert_eq!(clock.now(), Timestamp::from_secs(30));
    assert_eq!(error.report().took, 30 * SECOND);
    assert!(matches!(error, Error::TimedOut { .. }), "the 503 was dropped before the second attempt");
}

#[test]
fn without_a_total_a_timed_out_attempt_is_tried_again() {
    // TO-04
    let clock = ManualClock::new();
    let dependency = Dependency::new(&clock, &[Act::Hang]);
    let policy = with_attempts(3, plain(doubling(MS(500), 10 * SECOND)));
    let users = pipeline(&clock, Policy { attempt_timeout: 2 * SECOND, ..policy });
    let error = clock.block_on(users.run(|a| dependency.call(a))).unwrap_err();
    assert_eq!(dependency.began(), [0, 2_500, 5_500]);
    assert_eq!(clock.now(), Timestamp::from_millis(7_500));
    assert_eq!((error.stop(), error.report().attempts), (StopReason::AttemptsExhausted, 3));
    assert_eq!(error.report().cause(), Some(Cause::Timeout));
    assert_eq!(error.to_string(), "timed out after 3 attempts: attempts_exhausted");
    assert!(matches!(error, Error::TimedOut { .. }), "the operation never said anything");
}

#[test]
fn timed_out_work_is_dropped_before_anything_else_happens() {
    // TO-08
    let clock = ManualClock::new();
    let dependency = Dependency::new(&clock, &[Act::Answer(200, 60 * SECOND)]);
    let policy = Policy { attempt_timeout: SECOND, ..with_attempts(1, plain(Backoff::Constant(SECOND))) };
    let users = pipeline(&clock, policy);
    for n in 1..=20 {
        let ended = clock.block_on(users.run(|a| dependency.call(a)));
        assert!(matches!(ended, Err(Error::TimedOut { .. })));
        assert_eq!(clock.now(), Timestamp::from_secs(n));
        assert_eq!((dependency.running(), clock.sleepers()), (0, 0));
    }
    assert_eq!(dependency.began().len(), 20);
}

#[test]
fn what_an_attempt_may_still_take_is_reckoned_anew_each_time() {
    // TO-10
    let allowed = |seed, backoff, jitter| {
        let clock = ManualClock::new();
        let dependency = Dependency::new(&clock, &[Act::Hang]);
        let plain = plain(backoff);
        let retry = RetryPolicy { jitter, ..plain.retry.clone() };
        let policy = Policy { attempt_timeout: MS(100), total_timeout: Some(MS(250)), retry, ..plain };
        let users = pipeline(&clock, policy);
        let call = users.calls().with_seed(seed).run(|a| dependency.call(a));
        let error = clock.block_on(call).unwrap_err();
        assert_eq!(error.stop(), StopReason::TotalTimeout);
        let allowed: Vec<_> = dependency.attempts().iter().map(|a| a.allowed().as_millis()).collect();
        (error.report().waited, allowed)
    };
    assert_eq!(allowed(0, Backoff::Constant(MS(20)), Jitter::None).1, [100, 100, 10]);

    // A policy must wait for more than nothing, but full jitter may draw just that.
    let unslept = (0..64)
        .map(|seed| allowed(seed, Backoff::Constant(Duration::from_nanos(1)), Jitter::Full))
        .find(|(waited, _)| waited.is_zero());
    assert_eq!(unslept.expect("of 64 seeds one draws nothing twice").1, [100, 100, 50]);
}

#[test]
fn a_callers_deadline_that_has_passed_allows_no_attempt() {
    // TO-14 (a)
    let clock = ManualClock::starting_at(Timestamp::from_secs(10));
    let dependency = Dependency::new(&clock, &[at_once(503)]);
    let policy = Policy { total_timeout: Some(10 * SECOND), ..plain(Backoff::Constant(SECOND)) };
    let users = pipeline(&clock, policy).named("users");
    let call = users.with_deadline(Timestamp::from_secs(9)).run(|a| dependency.call(a));
    let error = clock.block_on(call).unwrap_err();
    assert_eq!(dependency.began().len(), 0);
    assert_eq!((error.stop(), error.report().attempts), (StopReason::UpstreamDeadline, 0));
    assert_eq!(error.report().took, Duration::ZERO);
    assert_eq!(error.to_string(), "users: not tried: upstream_deadline");
}

#[test]
fn a_callers_deadline_ends_the_call_before_the_policys_own() {
    // TO-14 (b)
    let clock = ManualClock::new();
    let dependency = Dependency::new(&clock, &[at_once(503)]);
    let policy = Policy { total_timeout: Some(10 * SECOND), ..plain(Backoff::Constant(SECOND)) };
    let users = pipeline(&clock, policy);
    let call = users.calls().with_deadline_in(4 * SECOND).with_deadline_in(9 * SECOND);
    let (result, report) = clock.block_on(call.run_with_report(|a| dependency.call(a)));
    assert_eq!(dependency.began(), [0, 1_000, 2_000, 3_000]);
    assert_eq!(clock.now(), Timestamp::from_secs(3), "the wait that would reach the deadline is not begun");
    assert_eq!(report.stop, StopReason::UpstreamDeadline);
    assert_eq!(result.unwrap().status, 503);
}

#[test]
fn without_a_limit_on_attempts_the_total_still_ends_the_call() {
    // TO-16
    let clock = ManualClock::new();
    let dependency = Dependency::new(&clock, &[at_once(503)]);
    let policy = Policy { total_timeout: Some(5 * SECOND), ..plain(Backoff::Constant(SECOND)) };
    let users = pipeline(&clock, policy);
    let (_, report) = clock.block_on(users.run_with_report(|a| dependency.call(a)));
    assert_eq!(dependency.began(), [0, 1_000, 2_000, 3_000, 4_000]);
    assert_eq!(report.stop, StopReason::TotalTimeout);
    assert!(clock.now() <= Timestamp::from_secs(5));
}

#[test]
fn a_server_wait_beyond_the_limit_gives_the_answer_back_at_once() {
    // RA-10
    for (hint, reason) in [(86_400, StopReason::ServerWaitTooLong), (30, StopReason::TotalTimeout)] {
        let clock = ManualClock::new();
        let dependency = Dependency::new(&clock, &[Act::Busy(hint * SECOND)]);
        let policy = with_attempts(3, plain(Backoff::Constant(SECOND)));
        let users = pipeline(&clock, Policy { total_timeout: Some(5 * SECOND), ..policy });
        let (result, report) = clock.block_on(users.run_with_report(|a| dependency.call(a)));
        assert_eq!(result.unwrap().status, 503);
        assert_eq!((report.stop, report.attempts), (reason, 1));
        assert_eq!(clock.now(), Timestamp::ZERO, "nobody sleeps until the limit first");
    }
}

#[test]
fn a_wait_that_the_operation_asks_for_is_not_cut_to_the_policys_longest() {
    // JB-07
    let clock = ManualClock::new();
    let dependency = Dependency::new(&clock, &[Act::Busy(7_200 * SECOND), at_once(200)]);
    let plain = plain(Backoff::Constant(SECOND));
    let server_wait = ServerWait { mode: ServerWaitMode::Above, limit: 86_400 * SECOND, over: Over::Clamp };
    let retry = RetryPolicy { max_wait: 3_600 * SECOND, server_wait, ..plain.retry.clone() };
    let policy = with_attempts(2, Policy { retry, ..plain });
    let users = pipeline(&clock, policy.clone());
    clock.block_on(users.run(|a| dependency.call(a))).unwrap();
    assert_eq!(dependency.began(), [0, 7_200_000]);

    let clock = ManualClock::new();
    let dependency = Dependency::new(&clock, &[Act::Busy(7_200 * SECOND), at_once(200)]);
    let users = pipeline(&clock, Policy { total_timeout: Some(3_600 * SECOND), ..policy });
    let (_, report) = clock.block_on(users.run_with_report(|a| dependency.call(a)));
    assert_eq!((report.stop, dependency.began().as_slice()), (StopReason::TotalTimeout, [0].as_slice()));
    assert_eq!(clock.now(), Timestamp::ZERO);
}

#[test]
fn a_wait_that_took_longer_than_it_should_begins_no_attempt_past_the_deadline() {
    let clock = ManualClock::new();
    let policy = Policy { total_timeout: Some(5 * SECOND), ..plain(Backoff::Constant(SECOND)) };
    let users = pipeline(&clock, policy);
    let mut call = users.call();
    assert_eq!(call.admit().unwrap().number, 1);
    assert!(matches!(call.conclude_verdict(support::NOT_NOW), Decision::Retry(_)));
    clock.advance(7 * SECOND);
    let stopped = call.admit().unwrap_err();
    assert_eq!(stopped.stop(), StopReason::TotalTimeout);
    assert_eq!((stopped.report().attempts, stopped.report().took), (1, 7 * SECOND));
    assert_eq!(call.admit().unwrap_err().stop(), StopReason::TotalTimeout, "it stays stopped");
}
