//! What the Rust crates of today get wrong in whole calls, as bars that these take.

#![cfg(not(loom))]

mod support;

use std::{
    collections::HashSet,
    future::{Future, poll_fn},
    io,
    pin::Pin,
    sync::Mutex,
    task::Poll,
    time::Duration,
};

use relent::{
    Backoff, Clock, Decision, Idempotency, Jitter, ManualClock, Over, Pipeline, Policy, ServerWait,
    StopReason, Timestamp,
};
use support::{Act, Dependency, NOT_NOW, SECOND, at_once, doubling, pipeline, plain, with_attempts};

const MS: fn(u64) -> Duration = Duration::from_millis;

fn refused() -> io::Error {
    io::ErrorKind::ConnectionRefused.into()
}

/// Polls all of them, as they become ready, until none is left.
async fn all<F: Future<Output = ()>>(mut futures: Vec<Pin<Box<F>>>) {
    poll_fn(|cx| {
        futures.retain_mut(|future| future.as_mut().poll(cx).is_pending());
        if futures.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

#[test]
fn a_hundred_calls_that_fail_together_wait_a_hundred_lengths_where_tower_waits_one() {
    let clock = ManualClock::new();
    let users = Pipeline::on(clock.clone(), Policy { budget: None, ..Policy::live() }).unwrap();
    let again = Mutex::new(Vec::new());
    let calls = (0..100).map(|_| {
        Box::pin(async {
            let called = users.run(|attempt| {
                if attempt.number == 2 {
                    again.lock().unwrap().push(attempt.began.since(Timestamp::ZERO));
                }
                async move { if attempt.number == 1 { Err(refused()) } else { Ok(()) } }
            });
            called.await.unwrap();
        })
    });
    clock.block_on(all(calls.collect()));
    let again = again.into_inner().unwrap();
    let distinct: HashSet<Duration> = again.iter().copied().collect();
    assert_eq!(again.len(), 100);
    // Of a hundred draws among 200 million nanoseconds, two pairs are alike less than once in a billion runs.
    assert!(distinct.len() >= 99, "{} distinct waits", distinct.len());
    let in_each_quarter = [0, 50, 100, 150]
        .map(|from| again.iter().filter(|wait| (MS(from)..MS(from + 50)).contains(*wait)).count());
    assert!(in_each_quarter.iter().all(|waits| *waits > 0), "{in_each_quarter:?} in the quarters of 200 ms");
}

#[test]
fn jitter_that_only_shortens_takes_no_wait_over_the_longest_where_backon_waits_twice_that() {
    for jitter in [Jitter::Full, Jitter::Equal, Jitter::Decorrelated] {
        let mut policy = with_attempts(12, plain(doubling(MS(500), 2 * SECOND)));
        policy.retry.jitter = jitter;
        let clock = ManualClock::new();
        let users = Pipeline::on(clock.clone(), policy).unwrap();
        let mut longest = Duration::ZERO;
        for seed in 0..1_000 {
            let mut call = users.calls().with_seed(seed).call();
            while call.admit().is_ok()
                && let Decision::Retry(wait) = call.conclude_verdict(NOT_NOW)
            {
                longest = longest.max(wait.length);
            }
        }
        assert!((MS(1_990)..=2 * SECOND).contains(&longest), "{jitter:?}: {longest:?}");
    }
}

#[test]
fn a_wait_of_800_ms_that_the_server_asks_for_is_kept_where_tokio_retry2_waits_11() {
    for seed in 0..1_000 {
        let clock = ManualClock::new();
        let dependency = Dependency::new(&clock, &[Act::Busy(MS(800)), at_once(200)]);
        let users = pipeline(&clock, Policy { budget: None, ..Policy::live() });
        let call = users.safe().with_seed(seed).run(|a| dependency.call(a));
        assert_eq!(clock.block_on(call).unwrap().status, 200);
        // Half of what was asked for is added by chance at the most, so that not everybody comes back at once.
        assert!((800..=1_200).contains(&dependency.began()[1]), "seed {seed}: {:?}", dependency.began());
    }
    let clock = ManualClock::new();
    let dependency = Dependency::new(&clock, &[Act::Busy(MS(800)), at_once(200)]);
    let users = pipeline(&clock, with_attempts(2, plain(Backoff::Constant(MS(10)))));
    clock.block_on(users.run(|a| dependency.call(a))).unwrap();
    assert_eq!(dependency.began(), [0, 800], "exactly, without jitter");
}

#[test]
fn a_wait_above_the_longest_of_our_own_is_kept_where_reqx_comes_back_after_two_seconds() {
    for seed in 0..1_000 {
        let clock = ManualClock::new();
        let dependency = Dependency::new(&clock, &[Act::Busy(30 * SECOND), at_once(200)]);
        let mut policy = with_attempts(2, plain(Backoff::Constant(MS(200))));
        policy.retry.jitter = Jitter::Full;
        policy.retry.max_wait = 2 * SECOND;
        policy.retry.server_wait = ServerWait { over: Over::Clamp, ..policy.retry.server_wait };
        let users = pipeline(&clock, policy);
        clock.block_on(users.calls().with_seed(seed).run(|a| dependency.call(a))).unwrap();
        assert!((30_000..=45_000).contains(&dependency.began()[1]), "seed {seed}: {:?}", dependency.began());
    }
}

#[test]
fn a_wait_beyond_the_deadline_is_not_begun_where_execution_policy_sleeps_until_the_deadline() {
    let waits = |length| with_attempts(3, plain(Backoff::Constant(length)));
    let half_a_second = Policy { total_timeout: Some(MS(500)), ..waits(MS(1)) };
    // By our own backoff under the caller's deadline, and by the server's word under the policy's own.
    for (policy, deadline, act, reason) in [
        (waits(10 * SECOND), MS(500), at_once(503), StopReason::UpstreamDeadline),
        (half_a_second, MS(900), Act::Busy(10 * SECOND), StopReason::TotalTimeout),
    ] {
        let clock = ManualClock::new();
        let dependency = Dependency::new(&clock, &[act]);
        let users = pipeline(&clock, policy);
        let call = users.calls().with_deadline_in(deadline);
        let (result, report) = clock.block_on(call.run_with_report(|a| dependency.call(a)));
        assert_eq!((report.stop, report.attempts, report.waits), (reason, 1, 0));
        assert_eq!((clock.now(), clock.sleepers()), (Timestamp::ZERO, 0), "no time has passed");
        assert_eq!(result.unwrap().status, 503, "and the last failure is at hand");
    }
}

#[test]
fn a_503_to_what_nobody_called_safe_is_sent_once_where_reqwest_retry_sends_four() {
    let clock = ManualClock::new();
    let dependency = Dependency::new(&clock, &[at_once(503)]);
    let orders = pipeline(&clock, Policy { budget: None, ..Policy::live() });
    assert_eq!(orders.policy().repeat, Idempotency::Unsafe, "the default");
    let report = clock.block_on(orders.run_with_report(|a| dependency.call(a))).1;
    assert_eq!((report.stop, dependency.began().len()), (StopReason::Ambiguous, 1));
    let report = clock.block_on(orders.keyed().run_with_report(|a| dependency.call(a))).1;
    assert_eq!(
        (report.stop, report.attempts),
        (StopReason::AttemptsExhausted, 5),
        "with a key it is repeated"
    );
}
