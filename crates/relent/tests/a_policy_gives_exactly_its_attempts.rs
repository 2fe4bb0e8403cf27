//! How many attempts there are, what they are spaced by, and what the caller gets at the end.

mod support;

use std::{error::Error as _, io, sync::Mutex, time::Duration};

use relent::{
    Backoff, Clock, Decision, Error, Idempotency, Jitter, ManualClock, Pipeline, Policy, RetryPolicy,
    RouteRule, ServerWaitMode, StopReason, Timestamp, WaitOrigin,
};
use support::{Act, Dependency, SECOND, at_once, doubling, pipeline, plain, with_attempts};

const MS: fn(u64) -> Duration = Duration::from_millis;

fn refused() -> io::Error {
    io::ErrorKind::ConnectionRefused.into()
}

#[test]
fn the_last_answer_is_what_the_caller_gets() {
    // RT-17: a 404 after one attempt, and the fourth 503 with its body after four.
    for (script, attempts, reason) in
        [(at_once(404), 1, StopReason::Permanent), (at_once(503), 4, StopReason::AttemptsExhausted)]
    {
        let clock = ManualClock::new();
        let dependency = Dependency::new(&clock, &[script]);
        let users = pipeline(&clock, with_attempts(4, plain(Backoff::Constant(SECOND))));
        let (result, report) = clock.block_on(users.run_with_report(|a| dependency.call(a)));
        assert_eq!(result.unwrap().body, format!("busy{attempts}"));
        assert_eq!((report.attempts, report.stop), (attempts, reason));
    }
}

#[test]
fn the_last_error_is_what_the_caller_gets() {
    let clock = ManualClock::new();
    let users = Pipeline::on(clock.clone(), with_attempts(3, plain(Backoff::Constant(SECOND)))).unwrap();
    let error = clock
        .block_on(users.run(|attempt| async move {
            Err::<(), _>(io::Error::new(io::ErrorKind::ConnectionRefused, format!("try {}", attempt.number)))
        }))
        .unwrap_err();
    assert_eq!(error.to_string(), "gave up after 3 attempts: attempts_exhausted");
    assert_eq!(error.source().unwrap().to_string(), "try 3");
    assert_eq!((error.report().waits, error.report().waited), (2, 2 * SECOND));
    assert_eq!(error.into_inner().unwrap().to_string(), "try 3");
}

#[test]
fn an_error_outlives_the_timeouts_that_follow_it() {
    let clock = ManualClock::new();
    let policy = Policy {
        attempt_timeout: SECOND,
        total_timeout: Some(4 * SECOND),
        ..plain(Backoff::Constant(SECOND))
    };
    let users = Pipeline::on(clock.clone(), policy).unwrap();
    let error = clock
        .block_on(users.run(|attempt| async move {
            if attempt.number > 1 {
                std::future::pending::<()>().await;
            }
            Err::<(), _>(refused())
        }))
        .unwrap_err();
    assert_eq!((error.stop(), error.report().attempts), (StopReason::TotalTimeout, 3));
    assert_eq!(error.inner().map(io::Error::kind), Some(io::ErrorKind::ConnectionRefused));
}

#[test]
fn the_most_attempts_include_the_first() {
    // RT-19: a maximum of four is four sends, of one is one; RT-25: no hidden ceiling lowers a larger one.
    for max in [1, 4, 10, 100] {
        let clock = ManualClock::new();
        let dependency = Dependency::new(&clock, &[at_once(503)]);
        let users = pipeline(&clock, with_attempts(max, plain(Backoff::Constant(SECOND))));
        assert_eq!(users.policy().retry.max_attempts, Some(max));
        let (_, report) = clock.block_on(users.run_with_report(|a| dependency.call(a)));
        assert_eq!(dependency.began().len(), usize::try_from(max).unwrap());
        assert_eq!(report.attempts, max);
        let numbers: Vec<_> = dependency.attempts().iter().map(|attempt| attempt.number).collect();
        assert_eq!(numbers, (1..=max).collect::<Vec<_>>());
    }
}

#[test]
fn what_is_not_safe_to_repeat_is_sent_once_unless_a_key_says_otherwise() {
    // RT-13
    let clock = ManualClock::new();
    let dependency = Dependency::new(&clock, &[Act::Answer(200, 12 * SECOND)]);
    let policy = Policy {
        attempt_timeout: 10 * SECOND,
        repeat: Idempotency::Unsafe,
        ..plain(Backoff::Constant(SECOND))
    };
    let orders = pipeline(&clock, with_attempts(4, policy));
    let error = clock.block_on(orders.run(|a| dependency.call(a))).unwrap_err();
    assert_eq!((error.stop(), error.report().attempts), (StopReason::Ambiguous, 1));
    assert!(matches!(error, Error::TimedOut { .. }));

    let error = clock.block_on(orders.keyed().run(|a| dependency.call(a))).unwrap_err();
    assert_eq!((error.stop(), error.report().attempts), (StopReason::AttemptsExhausted, 4));

    let safe = pipeline(&clock, with_attempts(4, plain(Backoff::Constant(SECOND))));
    let dependency = Dependency::new(&clock, &[at_once(503)]);
    let call = safe.unsafe_to_repeat().run_with_report(|a| dependency.call(a));
    assert_eq!(clock.block_on(call).1.stop, StopReason::Ambiguous, "a call may be stricter than its policy");
}

#[test]
fn what_a_route_forbids_is_tried_once_whoever_says_that_it_is_safe() {
    let clock = ManualClock::new();
    let mut policy = with_attempts(4, plain(Backoff::Constant(SECOND)));
    policy.classify.routes.push(RouteRule {
        repeat: Some(Idempotency::Never),
        fresh_for: Some(2 * SECOND),
        ..RouteRule::on("/report")
    });
    let reports = pipeline(&clock, policy);
    for script in [at_once(503), Act::Answer(200, 3 * SECOND)] {
        let dependency = Dependency::new(&clock, &[script]);
        let calls = reports.safe().on_route("GET", "/report");
        let (_, report) = clock.block_on(calls.run_with_report(|a| dependency.call(a)));
        assert_eq!((report.stop, report.attempts), (StopReason::AttemptsExhausted, 1), "{script:?}");
        assert!(report.took <= 2 * SECOND, "it is given up when it is stale");
    }
}

#[test]
fn a_permanent_failure_costs_one_attempt_and_no_time() {
    // RT-15
    let clock = ManualClock::new();
    let users = Pipeline::on(clock.clone(), with_attempts(4, plain(Backoff::Constant(SECOND)))).unwrap();
    for kind in [io::ErrorKind::InvalidInput, io::ErrorKind::InvalidData, io::ErrorKind::PermissionDenied] {
        let call = users.run(|_| async move { Err::<(), _>(io::Error::from(kind)) });
        let error = clock.block_on(call).unwrap_err();
        assert_eq!((error.stop(), error.report().attempts), (StopReason::Permanent, 1));
        assert_eq!(error.to_string(), "gave up after 1 attempt: permanent");
    }
    assert_eq!(clock.now(), Timestamp::ZERO);
}

#[test]
fn every_attempt_is_made_anew() {
    // RT-07: token A until t = 5, token B afterwards; an answer only for B.
    let clock = ManualClock::new();
    let users = Pipeline::on(clock.clone(), with_attempts(3, plain(Backoff::Constant(10 * SECOND)))).unwrap();
    let signed = Mutex::new(Vec::new());
    let token = clock.block_on(users.run(|attempt| {
        let token = if clock.now() < Timestamp::from_secs(5) { 'A' } else { 'B' };
        signed.lock().unwrap().push((token, attempt.began.as_secs()));
        async move { if token == 'B' { Ok(token) } else { Err(refused()) } }
    }));
    assert_eq!(token.unwrap(), 'B');
    assert_eq!(*signed.lock().unwrap(), [('A', 0), ('B', 10)]);
}

#[test]
fn a_discarded_answer_is_let_go_before_the_wait() {
    // RT-05, the driver's part: the value is dropped when the wait begins, not when it ends.
    struct Body<'a>(&'a Mutex<Vec<Timestamp>>, &'a ManualClock, u16);
    impl Drop for Body<'_> {
        fn drop(&mut self) {
            self.0.lock().unwrap().push(self.1.now());
        }
    }
    let (clock, dropped) = (ManualClock::new(), Mutex::new(Vec::new()));
    let users = Pipeline::on(clock.clone(), with_attempts(3, plain(Backoff::Constant(SECOND))))
        .unwrap()
        .observe_with(|result: Result<&Body<'_>, &io::Error>| {
            relent::Observed::Status(result.map_or(500, |body| body.2))
        });
    let (clock, dropped) = (&clock, &dropped);
    let last = clock.block_on(users.run(|_| async move { Ok(Body(dropped, clock, 503)) }));
    assert_eq!(*dropped.lock().unwrap(), [Timestamp::ZERO, Timestamp::from_secs(1)]);
    assert_eq!(last.unwrap().2, 503);
}

#[test]
fn a_draw_of_zero_is_no_wait_and_no_panic() {
    // BO-13, first run. Full jitter below a nanosecond draws nothing for every other seed.
    let plain = plain(Backoff::Constant(Duration::from_nanos(1)));
    let retry = RetryPolicy { jitter: Jitter::Full, ..plain.retry.clone() };
    let policy = with_attempts(2, Policy { retry, ..plain });
    let mut unslept = 0;
    for seed in 0..64 {
        let clock = ManualClock::new();
        let dependency = Dependency::new(&clock, &[at_once(503), at_once(200)]);
        let users = pipeline(&clock, policy.clone());
        let call = users.calls().with_seed(seed).run_with_report(|a| dependency.call(a));
        let (result, report) = clock.block_on(call);
        assert_eq!(result.unwrap().status, 200);
        if report.waited.is_zero() {
            assert_eq!((report.attempts, clock.now()), (2, Timestamp::ZERO));
            unslept += 1;
        }
    }
    assert!(unslept > 0, "of 64 seeds one draws nothing");
}

#[test]
fn one_call_leaves_nothing_behind_for_the_next() {
    // BO-15
    let clock = ManualClock::new();
    let policy = Policy { total_timeout: Some(60 * SECOND), ..plain(doubling(SECOND, 10 * SECOND)) };
    let users = pipeline(&clock, policy);
    let failing = Dependency::new(&clock, &[at_once(503)]);
    let (_, report) = clock.block_on(users.run_with_report(|a| failing.call(a)));
    assert_eq!(report.stop, StopReason::TotalTimeout);

    clock.advance(600 * SECOND);
    let base = clock.now().since(Timestamp::ZERO).as_millis();
    let dependency = Dependency::new(&clock, &[at_once(503), at_once(503), at_once(200)]);
    assert_eq!(clock.block_on(users.run(|a| dependency.call(a))).unwrap().status, 200);
    let began: Vec<_> = dependency.began().iter().map(|at| at - base).collect();
    assert_eq!(began, [0, 1_000, 3_000]);
}

#[test]
fn a_servers_wait_neither_resets_nor_skips_the_backoff() {
    // RA-20
    let clock = ManualClock::new();
    let script = [at_once(503), Act::Busy(5 * SECOND), at_once(503), at_once(503), at_once(200)];
    let dependency = Dependency::new(&clock, &script);
    let plain = plain(doubling(MS(100), 10 * SECOND));
    let mut retry = plain.retry.clone();
    retry.server_wait.mode = ServerWaitMode::Replace;
    let users = pipeline(&clock, with_attempts(5, Policy { retry, ..plain }));
    let waits = step(&clock, &users, &dependency);
    use WaitOrigin::{Backoff, Server};
    assert_eq!(waits, [(100, Backoff), (5_000, Server), (400, Backoff), (800, Backoff)]);
    assert_eq!(dependency.began(), [0, 100, 5_100, 5_500, 6_300]);
}

#[test]
fn the_wait_that_is_reported_is_the_wait_that_is_slept() {
    // TS-06
    let clock = ManualClock::new();
    let dependency = Dependency::new(&clock, &[Act::Busy(60 * SECOND), at_once(200)]);
    let users = pipeline(&clock, with_attempts(2, plain(Backoff::Constant(SECOND))));
    assert_eq!(step(&clock, &users, &dependency), [(60_000, WaitOrigin::Server)]);
    assert_eq!(dependency.began(), [0, 60_000]);

    let clock = ManualClock::new();
    let dependency = Dependency::new(&clock, &[Act::Busy(60 * SECOND), at_once(200)]);
    let users = users.with_clock(clock.clone());
    let (_, report) = clock.block_on(users.run_with_report(|a| dependency.call(a)));
    assert_eq!((report.waited, clock.now()), (60 * SECOND, Timestamp::from_secs(60)));
}

/// A loop of one's own around the stepper; gives the waits in milliseconds and their origins.
fn step(
    clock: &ManualClock,
    users: &Pipeline<ManualClock, relent::Observing<support::Seen>>,
    dependency: &Dependency,
) -> Vec<(u128, WaitOrigin)> {
    let mut waits = Vec::new();
    clock.block_on(async {
        let mut call = users.call();
        loop {
            let attempt = call.admit().expect("the script ends before the policy's patience");
            let result = dependency.call(attempt).await;
            match call.conclude(&result) {
                Decision::Retry(wait) => {
                    waits.push((wait.length.as_millis(), wait.origin));
                    clock.sleep(wait.length).await;
                }
                Decision::Stop(reason) => {
                    assert_eq!(call.report().map(|report| report.stop), Some(reason));
                    return;
                }
            }
            assert_eq!(call.report(), None, "it goes on");
        }
    });
    waits
}
