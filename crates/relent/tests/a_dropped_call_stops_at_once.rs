//! Cancellation is dropping the future; a caller who wants to keep the last failure steps by himself.

mod support;

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::atomic::{AtomicUsize, Ordering},
    task::{Context, Poll, Waker},
    time::Duration,
};

use relent::{
    Backoff, Clock, Decision, Jitter, ManualClock, Neutral, Policy, RetryPolicy, StopReason, Timestamp,
    Verdict,
};
use support::{Act, Dependency, SECOND, at_once, pipeline, plain, with_attempts};

/// The first of the two to be ready; of both, the first.
async fn first_of<A: Future, B: Future>(a: A, b: B) -> Result<A::Output, B::Output> {
    let (mut a, mut b) = (pin!(a), pin!(b));
    poll_fn(|cx| match a.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Ok(output)),
        Poll::Pending => b.as_mut().poll(cx).map(Err),
    })
    .await
}

fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn dropping_a_call_during_an_attempt_drops_the_attempt() {
    let clock = ManualClock::new();
    let dependency = Dependency::new(&clock, &[Act::Hang]);
    let users = pipeline(&clock, with_attempts(4, plain(Backoff::Constant(SECOND))));
    let mut call = Box::pin(users.run(|a| dependency.call(a)));
    assert!(poll_once(call.as_mut()).is_pending());
    assert_eq!((dependency.running(), clock.sleepers()), (1, 1), "the attempt, and its one timer");
    drop(call);
    assert_eq!((dependency.running(), clock.sleepers()), (0, 0));
    clock.advance(3600 * SECOND);
    assert_eq!(dependency.began(), [0]);
}

#[test]
fn dropping_a_call_during_a_wait_ends_the_wait() {
    // RT-23, by a drop
    let clock = ManualClock::new();
    let dependency = Dependency::new(&clock, &[at_once(503)]);
    let users = pipeline(&clock, with_attempts(4, plain(Backoff::Constant(10 * SECOND))));
    let ended =
        clock.block_on(first_of(users.run(|a| dependency.call(a)), clock.sleep(Duration::from_millis(100))));
    assert!(ended.is_err(), "the caller gave up first");
    assert_eq!(clock.now(), Timestamp::from_millis(100));
    assert_eq!((clock.sleepers(), dependency.began().as_slice()), (0, [0].as_slice()));
    clock.advance(3600 * SECOND);
    assert_eq!(dependency.began(), [0]);
}

#[test]
fn a_stepping_caller_who_gives_up_keeps_the_last_failure() {
    // RT-23, with the first attempt's failure in hand
    let clock = ManualClock::new();
    let dependency = Dependency::new(&clock, &[at_once(503)]);
    let users = pipeline(&clock, with_attempts(4, plain(Backoff::Constant(10 * SECOND))));
    let mut call = users.call();
    let last = clock.block_on(async {
        let mut cancelled = pin!(clock.sleep(Duration::from_millis(100)));
        loop {
            let result = dependency.call(call.admit().expect("the first is admitted")).await;
            let Decision::Retry(wait) = call.conclude(&result) else { break result };
            if first_of(clock.sleep(wait.length), cancelled.as_mut()).await.is_err() {
                let given_up = call.conclude_verdict(Verdict::Neutral(Neutral::Cancelled));
                assert_eq!(given_up, Decision::Stop(StopReason::Cancelled));
                break result;
            }
        }
    });
    assert_eq!(last.unwrap().body, "busy1");
    let report = call.report().unwrap();
    assert_eq!((report.stop, report.attempts), (StopReason::Cancelled, 1));
    assert_eq!(report.took, Duration::from_millis(100));
}

#[test]
fn a_caller_who_gave_up_is_heard_even_if_the_wait_is_zero() {
    // BO-13, second run: the cancellation is there before a wait of nothing begins.
    let plain = plain(Backoff::Constant(Duration::from_nanos(1)));
    let retry = RetryPolicy { jitter: Jitter::Full, ..plain.retry.clone() };
    let policy = with_attempts(4, Policy { retry, ..plain });
    for seed in 0..64 {
        let clock = ManualClock::new();
        let dependency = Dependency::new(&clock, &[at_once(503)]);
        let users = pipeline(&clock, policy.clone());
        let call = users.calls().with_seed(seed).run(|a| dependency.call(a));
        let ended = clock.block_on(first_of(call, std::future::ready("given up")));
        assert!(matches!(ended, Err("given up")));
        assert_eq!(dependency.began().len(), 1, "seed {seed}");
    }
}

#[test]
fn a_result_that_comes_with_the_timeout_counts() {
    // RT-27, the choice: what the operation delivers before the driver gives up is the caller's, and a call
    // that was abandoned leaves nothing. Never a mixture.
    for (took, expected) in [(1_000, Some(200)), (1_001, None)] {
        let clock = ManualClock::new();
        let dependency = Dependency::new(&clock, &[Act::Answer(200, Duration::from_millis(took))]);
        let policy = Policy { attempt_timeout: SECOND, ..with_attempts(1, plain(Backoff::Constant(SECOND))) };
        let users = pipeline(&clock, policy);
        let (result, report) = clock.block_on(users.run_with_report(|a| dependency.call(a)));
        assert_eq!(result.ok().map(|response| response.status), expected);
        assert_eq!(report.attempts, 1);
    }
}

#[test]
fn a_late_success_of_an_abandoned_call_is_recorded_nowhere() {
    // RT-27: the operation would succeed at t = 1; the caller gives up at t = 0.9.
    let clock = ManualClock::new();
    let finished = AtomicUsize::new(0);
    let users = pipeline(&clock, with_attempts(4, plain(Backoff::Constant(SECOND))));
    let call = users.run(|_| async {
        clock.sleep(SECOND).await;
        finished.fetch_add(1, Ordering::SeqCst);
        Ok(support::Response { status: 200, wait: None, body: String::new() })
    });
    let ended = clock.block_on(first_of(call, clock.sleep(Duration::from_millis(900))));
    assert!(ended.is_err());
    clock.advance(10 * SECOND);
    assert_eq!((finished.load(Ordering::SeqCst), clock.sleepers()), (0, 0));
}

#[test]
fn a_panic_of_the_operation_goes_on_to_the_caller() {
    let clock = ManualClock::new();
    let calls = AtomicUsize::new(0);
    let users = pipeline(&clock, with_attempts(4, plain(Backoff::Constant(SECOND))));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        clock.block_on(users.run(|_| async {
            calls.fetch_add(1, Ordering::SeqCst);
            panic!("the operation's own")
        }))
    }));
    let payload = panicked.expect_err("it is not swallowed");
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"the operation's own"));
    assert_eq!((calls.load(Ordering::SeqCst), clock.sleepers()), (1, 0));
}
