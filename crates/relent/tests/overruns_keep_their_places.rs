//! Work that no dropped future ends: it keeps its places, is counted, and its late result is nobody's.

mod support;

use std::{
    io,
    pin::pin,
    sync::Mutex,
    task::{Context, Waker},
};

use relent::{
    Backoff, BreakerPolicy, Clock, ConcurrencyPolicy, Error, Gate, Gates, ManualClock, Pipeline, Policy,
    StopReason, Timestamp, Window, Work,
};
use support::{SECOND, plain, with_attempts};

/// Threads, as far as these tests go: work, and until when it runs whatever anybody wants.
struct Threads<'a> {
    clock: &'a ManualClock,
    running: Mutex<Vec<(Timestamp, Work)>>,
}

impl<'a> Threads<'a> {
    fn of(clock: &'a ManualClock) -> Self {
        Self { clock, running: Mutex::default() }
    }

    /// Starts work of ten seconds that its attempt waits for.
    async fn start(&self, work: Work) -> io::Result<()> {
        let end = self.clock.now().after(10 * SECOND);
        self.running.lock().unwrap().push((end, work));
        self.clock.sleep_until(end).await;
        Ok(())
    }

    /// How many run now.
    fn running(&self) -> usize {
        let now = self.clock.now();
        let mut running = self.running.lock().unwrap();
        running.retain(|(end, _)| now < *end);
        running.len()
    }
}

fn users(clock: &ManualClock, place: fn(Gates) -> Policy) -> Pipeline<ManualClock> {
    let two = Gates { concurrency: Some(ConcurrencyPolicy { limit: 2, queue: 0 }), ..Gates::default() };
    let breaker = BreakerPolicy {
        failure_rate_milli: Some(1_000),
        window: Window::Count(100),
        min_calls: 100,
        ..BreakerPolicy::default()
    };
    Pipeline::on(clock.clone(), Policy { attempt_timeout: SECOND, breaker: Some(breaker), ..place(two) })
        .unwrap()
}

fn at_admission(gates: Gates) -> Policy {
    Policy { admission: gates, ..with_attempts(1, plain(Backoff::Constant(SECOND))) }
}

fn at_each_attempt(gates: Gates) -> Policy {
    Policy { attempt: gates, ..with_attempts(1, plain(Backoff::Constant(SECOND))) }
}

#[test]
fn there_is_never_more_work_than_the_limit_though_all_of_it_outlives_its_attempts() {
    // LI-09
    for place in [at_admission, at_each_attempt] {
        let clock = ManualClock::new();
        let (users, threads) = (users(&clock, place), Threads::of(&clock));
        let mut started = 0;
        for second in 0..9 {
            let called = clock.block_on(users.calls().run_with_work(|_, work| threads.start(work)));
            let error = called.unwrap_err();
            match second {
                0 | 1 => assert!(matches!(error, Error::TimedOut { .. }), "{error}"),
                _ => {
                    assert_eq!(error.stop(), StopReason::Refused(Gate::Concurrency));
                    clock.advance(SECOND);
                }
            }
            started += usize::from(second < 2);
            assert_eq!(threads.running(), started.min(2));
            let overruns = users.overruns();
            assert_eq!((overruns.total, overruns.running), (started as u64, started as u64));
        }
        clock.advance(10 * SECOND);
        assert_eq!((threads.running(), users.overruns().running, users.overruns().total), (0, 0, 2));
        for limit in [users.call_limit(), users.attempt_limit()].into_iter().flatten() {
            assert_eq!(limit.in_flight(), 0);
        }
        let counts = users.breaker().unwrap().counts(clock.now());
        assert_eq!(
            (counts.calls, counts.failures),
            (2, 2),
            "time-outs of ours, and nothing when they came late"
        );
    }
}

#[test]
fn work_whose_caller_has_gone_knows_it_and_is_counted() {
    let clock = ManualClock::new();
    let (users, threads) = (users(&clock, at_each_attempt), Threads::of(&clock));
    {
        let mut call = pin!(users.calls().run_with_work(|_, work| threads.start(work)));
        assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert!(!threads.running.lock().unwrap()[0].1.was_given_up());
    }
    assert!(threads.running.lock().unwrap()[0].1.was_given_up());
    assert_eq!((users.overruns().running, users.attempt_limit().unwrap().in_flight()), (1, 1));
    clock.advance(10 * SECOND);
    assert_eq!((threads.running(), users.overruns().running), (0, 0));
    assert_eq!(users.attempt_limit().unwrap().in_flight(), 0);
}

#[test]
fn work_that_ends_in_time_is_no_overrun() {
    let clock = ManualClock::new();
    let users = users(&clock, at_each_attempt);
    for _ in 0..5 {
        let called = users.calls().run_with_work(|_, work| async move {
            drop(work);
            Ok::<_, io::Error>(())
        });
        clock.block_on(called).unwrap();
    }
    assert_eq!(users.overruns(), relent::Overruns::default());
    assert_eq!(users.attempt_limit().unwrap().in_flight(), 0);
}

#[test]
fn a_retry_has_a_place_of_its_own_beside_the_work_that_runs_on() {
    let clock = ManualClock::new();
    let two = |gates| Policy { attempt: gates, ..with_attempts(3, plain(Backoff::Constant(SECOND))) };
    let (users, threads) = (users(&clock, two), Threads::of(&clock));
    let called = clock.block_on(users.calls().run_with_work(|_, work| threads.start(work)));
    let error = called.unwrap_err();
    assert_eq!((error.stop(), error.report().attempts), (StopReason::Refused(Gate::Concurrency), 2));
    assert_eq!((threads.running(), users.overruns().running), (2, 2));
}

#[test]
fn a_calls_own_place_is_kept_by_the_work_of_every_attempt_and_not_of_the_first_alone() {
    // LI-09
    let clock = ManualClock::new();
    let twice = |gates| Policy { admission: gates, ..with_attempts(2, plain(Backoff::Constant(SECOND))) };
    let (users, threads) = (users(&clock, twice), Threads::of(&clock));
    let called = clock.block_on(users.calls().run_with_work(|_, work| threads.start(work)));
    assert_eq!(called.unwrap_err().report().attempts, 2);
    let in_flight = || users.call_limit().unwrap().in_flight();
    assert_eq!((clock.now(), threads.running(), in_flight()), (Timestamp::from_secs(3), 2, 1));
    clock.advance(8 * SECOND);
    assert_eq!((threads.running(), in_flight()), (1, 1), "the second attempt's work runs on");
    clock.advance(SECOND);
    assert_eq!((threads.running(), in_flight()), (0, 0));
}
