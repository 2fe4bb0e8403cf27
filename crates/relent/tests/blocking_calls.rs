//! Calls that block: the same decisions, on a thread that waits.

mod support;

use std::{io, sync::Mutex, time::Duration};

use relent::{
    Attempt, Backoff, BlockingClock, BreakerPolicy, Clock, ConcurrencyPolicy, Error, Event, Gate, Gates,
    ManualClock, Observe, Pipeline, Policy, RatePolicy, Scene, Stage, StopReason, Timestamp, Window,
};
use support::{SECOND, plain, with_attempts};

fn busy() -> io::Error {
    io::ErrorKind::ConnectionRefused.into()
}

fn users(clock: &ManualClock, policy: Policy) -> Pipeline<ManualClock> {
    Pipeline::on(clock.clone(), policy).unwrap()
}

#[test]
fn attempts_and_waits_take_turns_until_one_succeeds() {
    let clock = ManualClock::new();
    let users = users(&clock, with_attempts(5, plain(Backoff::Linear { base: SECOND, max: 10 * SECOND })));
    let mut began = Vec::new();
    let (result, report) = users.calls().run_blocking_with_report(|attempt: Attempt| {
        began.push(attempt.began.as_secs());
        clock.pause_until(attempt.began.after(SECOND));
        if attempt.number < 3 { Err(busy()) } else { Ok("done") }
    });
    assert_eq!((result.unwrap(), began), ("done", vec![0, 2, 5]));
    assert_eq!((report.attempts, report.waited, report.took), (3, 3 * SECOND, 6 * SECOND));
}

#[test]
fn the_last_error_is_the_callers() {
    let clock = ManualClock::new();
    let users = users(&clock, with_attempts(2, plain(Backoff::Constant(SECOND))));
    let error: Error<io::Error> = users.run_blocking(|_| Err::<(), _>(busy())).unwrap_err();
    assert_eq!(error.stop(), StopReason::AttemptsExhausted);
    assert_eq!(error.into_inner().map(|inner| inner.kind()), Some(io::ErrorKind::ConnectionRefused));
}

#[test]
fn it_waits_at_the_gates_within_its_deadline() {
    let clock = ManualClock::new();
    let rate = Some(RatePolicy { permits: 1, per: 2 * SECOND, burst: 1 });
    let concurrency = Some(ConcurrencyPolicy { limit: 1, queue: 5 });
    let policy = Policy {
        admission: Gates { concurrency, rate },
        total_timeout: Some(3 * SECOND),
        ..with_attempts(1, plain(Backoff::Constant(SECOND)))
    };
    let users = users(&clock, policy);
    let ready = |attempt: Attempt| Ok::<_, io::Error>(attempt.began.as_secs());
    assert_eq!(users.run_blocking(ready).unwrap(), 0);
    assert_eq!(users.run_blocking(ready).unwrap(), 2, "the rate's next moment");
    let holder = users.call_limit().unwrap().try_acquire().unwrap();
    let late = users.run_blocking(ready).unwrap_err();
    assert_eq!((late.stop(), late.report().stage), (StopReason::TotalTimeout, Stage::Admission));
    assert_eq!(clock.now(), Timestamp::from_secs(5));
    drop(holder);
    assert_eq!(users.call_limit().unwrap().waiting(), 0);
    assert_eq!(users.run_blocking(ready).unwrap(), 5);
}

/// Counts overruns as they are told.
#[derive(Default)]
struct Overran(Mutex<Vec<u32>>);

impl Observe for Overran {
    fn observe(&self, _: Scene<'_>, event: &Event<'_>) {
        if let Event::Overran { number } = event {
            self.0.lock().unwrap().push(*number);
        }
    }
}

#[test]
fn work_that_outlives_its_attempt_keeps_its_place_is_counted_and_changes_nothing_when_it_comes_in_late() {
    // LI-09, TO-08: an operation that nothing can end.
    let clock = ManualClock::new();
    let told = std::sync::Arc::new(Overran::default());
    let policy = Policy {
        attempt: Gates { concurrency: Some(ConcurrencyPolicy { limit: 1, queue: 0 }), ..Gates::default() },
        breaker: Some(BreakerPolicy {
            failure_rate_milli: Some(500),
            window: Window::Count(10),
            min_calls: 10,
            ..BreakerPolicy::default()
        }),
        attempt_timeout: SECOND,
        ..with_attempts(1, plain(Backoff::Constant(SECOND)))
    };
    let users = users(&clock, policy).observed_by(told.clone());
    let late = users.run_blocking(|attempt| {
        clock.pause_until(attempt.began.after(10 * SECOND));
        // Nine seconds after it was given up it still has its place, and nobody else gets in.
        let second = users.call().admit().unwrap_err();
        assert_eq!(second.stop(), StopReason::Refused(Gate::Concurrency));
        Ok::<_, io::Error>("late")
    });
    let error = late.unwrap_err();
    assert_eq!((error.stop(), error.report().took), (StopReason::AttemptsExhausted, 10 * SECOND));
    assert!(matches!(error, Error::TimedOut { .. }));
    assert_eq!((users.overruns().total, told.0.lock().unwrap().as_slice()), (1, [1].as_slice()));
    let counts = users.breaker().unwrap().counts(clock.now());
    assert_eq!((counts.calls, counts.failures), (1, 1), "a time-out of ours, and no late success");
    assert_eq!(users.attempt_limit().unwrap().in_flight(), 0);
}

#[test]
fn a_result_at_the_last_moment_counts() {
    let clock = ManualClock::new();
    let base = with_attempts(1, plain(Backoff::Constant(SECOND)));
    let users = users(&clock, Policy { attempt_timeout: SECOND, ..base });
    let last = users.run_blocking(|attempt| {
        clock.pause_until(attempt.give_up_at);
        Ok::<_, io::Error>(7)
    });
    assert_eq!((last.unwrap(), users.overruns().total), (7, 0));
}

#[cfg(feature = "tokio")]
#[test]
fn it_needs_no_runtime_and_no_clock_but_the_threads() {
    // Real time, of a few milliseconds: only that it goes on is asserted.
    let policy = Policy {
        attempt: Gates { concurrency: Some(ConcurrencyPolicy { limit: 1, queue: 1 }), ..Gates::default() },
        ..with_attempts(3, plain(Backoff::Constant(Duration::from_millis(1))))
    };
    let users = Pipeline::new(policy).unwrap();
    let done = std::thread::scope(|scope| {
        let run = || {
            users.run_blocking(|attempt| if attempt.number < 3 { Err(busy()) } else { Ok(attempt.number) })
        };
        let threads = [scope.spawn(run), scope.spawn(run)];
        threads.map(|thread| thread.join().expect("it does not panic").expect("the third succeeds"))
    });
    assert_eq!(done, [3, 3]);
}
