//! Cases from public bug reports that concern a call's way through the gates.

mod support;

use std::{
    cell::Cell,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
    time::Duration,
};

use relent::{
    Attempt, Backoff, BreakerPolicy, BudgetPolicy, Call, Clock, ConcurrencyPolicy, Decision, Gate, Gates,
    ManualClock, Pipeline, Policy, RatePolicy, Stage, StopReason, Timestamp, Verdict, Window,
    breaker::Mode,
    budget::{QuotaPolicy, RatioPolicy, SharePolicy},
};
use support::{Act, Dependency, NOT_NOW, SECOND, at_once, pipeline, plain, with_attempts};

const MS: fn(u64) -> Duration = Duration::from_millis;

fn one_at_a_time(queue: u32) -> Gates {
    Gates { concurrency: Some(ConcurrencyPolicy { limit: 1, queue }), ..Gates::default() }
}

/// Polls all of them in turn until all are ready.
async fn all<F: Future>(futures: &mut [Pin<Box<F>>]) -> Vec<F::Output> {
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none()
                && let Poll::Ready(ready) = future.as_mut().poll(cx)
            {
                *output = Some(ready);
            }
        }
        if outputs.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn waiting_for_admission_is_part_of_the_total_time_out() {
    // TO-06
    let clock = ManualClock::new();
    let base = with_attempts(1, plain(Backoff::Constant(SECOND)));
    let policy = Policy { admission: one_at_a_time(5), total_timeout: Some(SECOND), ..base };
    let users = pipeline(&clock, policy);
    let holder = users.call_limit().unwrap().try_acquire().unwrap();
    let dependency = Dependency::new(&clock, &[at_once(200)]);
    let error = clock.block_on(users.run(|a| dependency.call(a))).unwrap_err();
    assert_eq!(clock.now(), Timestamp::from_secs(1));
    assert_eq!(error.stop(), StopReason::TotalTimeout);
    assert_eq!((error.report().stage, error.report().attempts), (Stage::Admission, 0));
    assert_eq!(dependency.began(), [0u128; 0], "its operation never starts");

    clock.advance(9 * SECOND);
    drop(holder);
    let limit = users.call_limit().unwrap();
    assert_eq!((limit.in_flight(), limit.waiting()), (0, 0));
    assert!(limit.try_acquire().is_ok(), "the full capacity is free");
}

#[test]
fn a_wait_that_would_leave_no_room_for_an_attempt_ends_before_the_deadline() {
    let clock = ManualClock::new();
    let mut policy = with_attempts(1, plain(Backoff::Constant(SECOND)));
    policy.retry.min_attempt = MS(100);
    policy.retry.reserve = MS(200);
    let policy = Policy { attempt: one_at_a_time(5), total_timeout: Some(SECOND), ..policy };
    let users = pipeline(&clock, policy);
    let _holder = users.attempt_limit().unwrap().try_acquire().unwrap();
    let error = clock.block_on(users.run(|_| async { Ok::<_, std::io::Error>(never()) })).unwrap_err();
    assert_eq!((error.stop(), error.report().stage), (StopReason::TotalTimeout, Stage::Gates));
    assert_eq!(error.report().took, MS(700));
}

fn never() -> support::Response {
    unreachable!("it was never let through")
}

#[test]
fn a_rate_is_waited_for_within_the_deadline_and_refuses_at_once_what_would_come_too_late() {
    let clock = ManualClock::new();
    let every_two_seconds = Some(RatePolicy { permits: 1, per: 2 * SECOND, burst: 1 });
    let base = with_attempts(1, plain(Backoff::Constant(SECOND)));
    let policy = Policy {
        admission: Gates { rate: every_two_seconds, ..Gates::default() },
        total_timeout: Some(5 * SECOND),
        ..base
    };
    let users = pipeline(&clock, policy);
    let dependency = Dependency::new(&clock, &[at_once(200)]);
    let mut calls: Vec<_> = (0..4).map(|_| Box::pin(users.run_with_report(|a| dependency.call(a)))).collect();
    let ended = clock.block_on(all(&mut calls));
    assert_eq!(dependency.began(), [0, 2_000, 4_000]);
    let last = &ended[3].1;
    assert_eq!((last.stop, last.took), (StopReason::Refused(Gate::Rate), Duration::ZERO));
    assert_eq!(last.refusal().unwrap().until, Some(Timestamp::from_secs(6)), "right about it");
}

#[test]
fn a_moment_that_is_the_deadline_itself_is_too_late() {
    let clock = ManualClock::new();
    let every_two_seconds = Some(RatePolicy { permits: 1, per: 2 * SECOND, burst: 1 });
    let base = with_attempts(1, plain(Backoff::Constant(SECOND)));
    let admission = Gates { rate: every_two_seconds, ..Gates::default() };
    let users = pipeline(&clock, Policy { admission, total_timeout: Some(2 * SECOND), ..base });
    let dependency = Dependency::new(&clock, &[at_once(200)]);
    clock.block_on(users.run(|a| dependency.call(a))).unwrap();
    let error = clock.block_on(users.run(|a| dependency.call(a))).unwrap_err();
    assert_eq!((error.stop(), clock.now()), (StopReason::Refused(Gate::Rate), Timestamp::ZERO));
}

#[test]
fn what_comes_when_the_deadline_has_passed_begins_no_attempt_and_goes_back() {
    // TO-06: the thread was busy with something else when the deadline came, and then the place or the moment.
    let clock = ManualClock::new();
    let gates = Gates {
        concurrency: Some(ConcurrencyPolicy { limit: 1, queue: 5 }),
        rate: Some(RatePolicy { permits: 1, per: SECOND, burst: 1 }),
    };
    let base = with_attempts(1, plain(Backoff::Constant(SECOND)));
    let users = pipeline(&clock, Policy { admission: gates, total_timeout: Some(2 * SECOND), ..base });
    let dependency = Dependency::new(&clock, &[at_once(200)]);
    let limit = users.call_limit().unwrap();

    let holder = limit.try_acquire().unwrap();
    let mut for_room = Box::pin(users.run(|a| dependency.call(a)));
    assert!(poll_once(for_room.as_mut()).is_pending());
    clock.advance(3 * SECOND);
    drop(holder);
    let Poll::Ready(Err(late)) = poll_once(for_room.as_mut()) else { panic!("it goes on") };
    assert_eq!((late.stop(), limit.in_flight()), (StopReason::TotalTimeout, 0));

    assert!(clock.block_on(users.run(|a| dependency.call(a))).is_ok(), "the permit was not used up");
    let mut for_its_moment = Box::pin(users.run(|a| dependency.call(a)));
    assert!(poll_once(for_its_moment.as_mut()).is_pending());
    clock.advance(3 * SECOND);
    let Poll::Ready(Err(late)) = poll_once(for_its_moment.as_mut()) else { panic!("it goes on") };
    assert_eq!((late.stop(), limit.in_flight()), (StopReason::TotalTimeout, 0));
    assert_eq!(dependency.began(), [3_000]);
}

#[test]
fn a_send_pays_when_it_is_sent() {
    // BU-11
    let clock = ManualClock::new();
    let policy = Policy {
        attempt: Gates {
            rate: Some(RatePolicy { permits: 1, per: 2 * SECOND, burst: 1 }),
            ..Gates::default()
        },
        ..with_attempts(2, plain(Backoff::Constant(MS(1))))
    };
    let users = pipeline(&clock, policy);
    let dependency = Dependency::new(&clock, &[Act::Busy(5 * SECOND), at_once(200)]);
    let report = clock.block_on(users.run_with_report(|a| dependency.call(a))).1;
    assert_eq!((report.stop, dependency.began()), (StopReason::Succeeded, vec![0, 5_000]));
    let refused = users.call().admit().unwrap_err();
    let until = refused.refusal().unwrap().until;
    assert_eq!(until, Some(Timestamp::from_secs(7)), "one permit was paid, at 5 s");
}

#[test]
fn retries_that_wait_are_counted() {
    // BU-05
    let clock = ManualClock::new();
    let budget = BudgetPolicy::Share(SharePolicy { share_milli: 200, floor: 3 });
    let base = with_attempts(2, plain(Backoff::Constant(5 * SECOND)));
    let users = pipeline(&clock, Policy { budget: Some(budget), ..base });
    let mut calls: Vec<Call<_>> = (0..1_000).map(|_| users.call()).collect();
    for call in &mut calls {
        call.admit().unwrap();
    }
    clock.advance(SECOND);
    let decided: Vec<_> = calls.iter_mut().map(|call| call.conclude_verdict(NOT_NOW)).collect();
    let waiting = decided.iter().filter(|decision| matches!(decision, Decision::Retry(_))).count();
    assert_eq!(waiting, 200);
    let refused = decided
        .iter()
        .filter(|decision| **decision == Decision::Stop(StopReason::Refused(Gate::Budget)))
        .count();
    assert_eq!(waiting + refused, 1_000, "the others have their failure at 1 s");
}

#[test]
fn a_loan_whose_retry_is_never_sent_goes_back() {
    // BU-13
    let clock = ManualClock::new();
    let quota = QuotaPolicy { capacity_milli: 5_000, transient_milli: 1_000, ..QuotaPolicy::AWS_2026 };
    let policy = Policy {
        budget: Some(BudgetPolicy::Quota(quota)),
        attempt: one_at_a_time(10),
        total_timeout: Some(60 * SECOND),
        ..with_attempts(3, plain(Backoff::Constant(SECOND)))
    };
    let users = pipeline(&clock, policy);
    let dependency = Dependency::new(&clock, &[at_once(503)]);
    let tokens = || users.budget().unwrap().tokens_milli(clock.now());
    {
        let mut calls: Vec<_> = (0..5).map(|_| Box::pin(users.run(|a| dependency.call(a)))).collect();
        // Each fails at once and waits for its retry; then the one place is taken, and all wait for it.
        for call in &mut calls {
            assert!(poll_once(call.as_mut()).is_pending());
        }
        assert_eq!((dependency.began().len(), tokens()), (5, Some(0)));
        let _holder = users.attempt_limit().unwrap().try_acquire().unwrap();
        clock.advance(SECOND);
        for call in &mut calls {
            assert!(poll_once(call.as_mut()).is_pending());
        }
        assert_eq!((users.attempt_limit().unwrap().waiting(), tokens()), (5, Some(0)));
    }
    assert_eq!(tokens(), Some(5_000), "all five were cancelled before they were sent");
    let mut sixth = users.call();
    sixth.admit().unwrap();
    assert!(matches!(sixth.conclude_verdict(NOT_NOW), Decision::Retry(_)));
}

#[test]
fn a_loan_whose_retry_was_in_flight_is_kept_when_the_caller_gives_up() {
    let clock = ManualClock::new();
    let base = with_attempts(3, plain(Backoff::Constant(SECOND)));
    let users = pipeline(&clock, Policy { budget: Some(BudgetPolicy::default()), ..base });
    let mut call = users.call();
    call.admit().unwrap();
    assert!(matches!(call.conclude_verdict(NOT_NOW), Decision::Retry(_)));
    call.admit().unwrap();
    drop(call);
    assert_eq!(users.budget().unwrap().tokens_milli(clock.now()), Some(0));
}

#[test]
fn a_retry_that_never_reached_the_dependency_keeps_its_loan_for_the_next() {
    let clock = ManualClock::new();
    let base = with_attempts(3, plain(Backoff::Constant(SECOND)));
    let users = pipeline(&clock, Policy { budget: Some(BudgetPolicy::default()), ..base });
    let tokens = || users.budget().unwrap().tokens_milli(clock.now());
    let own_fault = Verdict::Neutral(relent::Neutral::OwnFault);
    let mut call = users.call();
    for (verdict, left) in [(NOT_NOW, 0), (own_fault, 0), (own_fault, 0)] {
        call.admit().unwrap();
        assert!(matches!(call.conclude_verdict(verdict), Decision::Retry(_)));
        assert_eq!(tokens(), Some(left));
    }
    call.admit().unwrap();
    assert_eq!(call.conclude_verdict(Verdict::Success), Decision::Stop(StopReason::Succeeded));
    assert_eq!(tokens(), Some(1_500), "the loan came back once, with interest");
}

#[test]
fn an_empty_budget_says_so_advises_a_wait_and_blocks_no_first_attempt() {
    // BU-15
    let clock = ManualClock::new();
    let budget = BudgetPolicy::Loan(relent::budget::LoanPolicy {
        start_milli: 0,
        ..relent::budget::LoanPolicy::default()
    });
    let base = with_attempts(3, plain(Backoff::Constant(SECOND)));
    let users = pipeline(&clock, Policy { budget: Some(budget), ..base });
    let dependency = Dependency::new(&clock, &[at_once(503)]);
    for sent in 1..=256 {
        let (result, report) = clock.block_on(users.run_with_report(|a| dependency.call(a)));
        assert_eq!(result.unwrap().status, 503, "the dependency's real failure");
        assert_eq!((report.stop, report.took), (StopReason::Refused(Gate::Budget), Duration::ZERO));
        let refusal = report.refusal().unwrap();
        assert!(refusal.by == Gate::Budget && refusal.advised > Duration::ZERO);
        assert_eq!(dependency.began().len(), sent);
    }
}

#[test]
fn the_total_time_out_holds_where_only_a_budget_bounds_the_attempts() {
    // TO-16
    let clock = ManualClock::new();
    let budget = BudgetPolicy::Ratio(RatioPolicy { floor_per_second: 1, ..RatioPolicy::FINAGLE });
    let base = plain(Backoff::Constant(SECOND));
    let policy = Policy { budget: Some(budget), total_timeout: Some(5 * SECOND), ..base };
    let dependency = Dependency::new(&clock, &[at_once(503)]);
    let users = pipeline(&clock, policy);
    let report = clock.block_on(users.run_with_report(|a| dependency.call(a))).1;
    assert_eq!(dependency.began(), [0, 1_000, 2_000, 3_000, 4_000]);
    assert_eq!(report.stop, StopReason::TotalTimeout);
    assert!(clock.now() <= Timestamp::from_secs(5));
}

fn half_of_ten() -> BreakerPolicy {
    BreakerPolicy {
        failure_rate_milli: Some(500),
        min_calls: 10,
        window: Window::Time(30 * SECOND),
        ..BreakerPolicy::default()
    }
}

#[test]
fn callers_who_give_up_do_not_open_the_breaker() {
    // CB-09
    let clock = ManualClock::new();
    let base = with_attempts(2, plain(Backoff::Constant(SECOND)));
    let users = pipeline(&clock, Policy { breaker: Some(half_of_ten()), ..base });
    let dependency = Dependency::new(&clock, &[Act::Hang]);
    for _ in 0..100 {
        let mut call = pin!(users.run(|a| dependency.call(a)));
        assert!(poll_once(call.as_mut()).is_pending());
        clock.advance(MS(200));
    }
    assert_eq!((dependency.began().len(), dependency.running()), (100, 0));
    let breaker = users.breaker().unwrap();
    assert_eq!((breaker.status().mode, breaker.counts(clock.now()).calls), (Mode::Closed, 0));
}

#[test]
fn callers_who_give_up_leave_a_limit_as_it_was_set() {
    // LI-15: the limit is fixed, so no caller's impatience moves it; and nobody takes a place along.
    let clock = ManualClock::new();
    let twenty = Gates { concurrency: Some(ConcurrencyPolicy { limit: 20, queue: 0 }), ..Gates::default() };
    let base = with_attempts(1, plain(Backoff::Constant(SECOND)));
    let users = pipeline(&clock, Policy { admission: twenty, attempt: twenty, ..base });
    let dependency = Dependency::new(&clock, &[Act::Answer(200, MS(50))]);
    for _ in 0..200 {
        let mut call = pin!(users.run(|a| dependency.call(a)));
        assert!(poll_once(call.as_mut()).is_pending());
        clock.advance(MS(5));
    }
    for limit in [users.call_limit().unwrap(), users.attempt_limit().unwrap()] {
        assert_eq!((limit.limit(), limit.in_flight(), limit.waiting()), (20, 0, 0));
    }
    let mut calls: Vec<_> = (0..20).map(|_| Box::pin(users.run(|a| dependency.call(a)))).collect();
    assert!(calls.iter_mut().all(|call| poll_once(call.as_mut()).is_pending()));
    assert_eq!(dependency.running(), 20);
}

#[test]
fn an_open_breaker_refuses_before_anybody_queues() {
    // CB-11
    let clock = ManualClock::new();
    let policy = Policy {
        admission: one_at_a_time(1_000),
        attempt: one_at_a_time(1_000),
        breaker: Some(half_of_ten()),
        total_timeout: Some(60 * SECOND),
        ..with_attempts(2, plain(Backoff::Constant(SECOND)))
    };
    let users = pipeline(&clock, policy);
    // The dependency is never ready: somebody holds the one place for good.
    let _holder = users.call_limit().unwrap().try_acquire().unwrap();
    assert!(users.breaker().unwrap().force_open(Timestamp::from_secs(3600)).is_some());
    let dependency = Dependency::new(&clock, &[Act::Hang]);
    for _ in 0..100 {
        let error = clock.block_on(users.run(|a| dependency.call(a))).unwrap_err();
        assert_eq!(error.stop(), StopReason::Refused(Gate::Breaker));
    }
    assert_eq!((clock.now(), dependency.began().len()), (Timestamp::ZERO, 0));
    assert_eq!(users.call_limit().unwrap().waiting(), 0);
}

#[test]
fn a_result_that_is_there_is_the_callers_and_the_breakers_and_an_abandoned_one_is_nobodys() {
    // RT-27: the first of the two choices where the result is delivered, the second where the call is dropped;
    // never a mixture.
    let clock = ManualClock::new();
    let base = with_attempts(3, plain(Backoff::Constant(SECOND)));
    let policy = Policy { breaker: Some(half_of_ten()), attempt_timeout: 10 * SECOND, ..base };
    let users = pipeline(&clock, policy);
    let counted = || users.breaker().unwrap().counts(clock.now());
    let dependency = Dependency::new(&clock, &[Act::Answer(200, SECOND)]);
    {
        let mut call = pin!(users.run(|a| dependency.call(a)));
        assert!(poll_once(call.as_mut()).is_pending());
        clock.advance(SECOND); // the result is there, and so is the wish to give up: it was polled first
        assert!(matches!(poll_once(call.as_mut()), Poll::Ready(Ok(_))));
    }
    assert_eq!((counted().calls, counted().failures, dependency.began().len()), (1, 0, 1));
    {
        let mut call = pin!(users.run(|a| dependency.call(a)));
        assert!(poll_once(call.as_mut()).is_pending());
        clock.advance(MS(900));
    }
    clock.advance(SECOND);
    assert_eq!((counted().calls, dependency.began().len(), dependency.running()), (1, 2, 0));
}

#[test]
fn attempts_that_time_out_leave_their_workers_free() {
    // TO-08, with an operation that honours cancellation.
    let clock = ManualClock::new();
    let policy = Policy {
        attempt: Gates { concurrency: Some(ConcurrencyPolicy { limit: 2, queue: 0 }), ..Gates::default() },
        attempt_timeout: SECOND,
        ..with_attempts(1, plain(Backoff::Constant(SECOND)))
    };
    let users = pipeline(&clock, policy);
    let dependency = Dependency::new(&clock, &[Act::Answer(200, 60 * SECOND)]);
    for call in 1..=20 {
        let error = clock.block_on(users.run(|a| dependency.call(a))).unwrap_err();
        assert_eq!((error.report().attempts, error.report().took), (1, SECOND));
        assert_eq!((dependency.began().len(), dependency.running()), (call, 0));
        assert_eq!(users.attempt_limit().unwrap().in_flight(), 0);
    }
}

#[test]
fn what_is_refused_further_in_gives_back_what_was_taken_further_out() {
    let clock = ManualClock::new();
    let gates = Gates {
        concurrency: Some(ConcurrencyPolicy { limit: 3, queue: 0 }),
        rate: Some(RatePolicy { permits: 1, per: 60 * SECOND, burst: 2 }),
    };
    let policy = Policy {
        admission: gates,
        attempt: gates,
        breaker: Some(half_of_ten()),
        budget: Some(BudgetPolicy::Share(SharePolicy::default())),
        ..with_attempts(2, plain(Backoff::Constant(SECOND)))
    };
    let users = pipeline(&clock, policy);
    assert!(users.breaker().unwrap().isolate().is_some());
    for _ in 0..50 {
        let refused = users.call().admit().unwrap_err();
        assert_eq!(refused.stop(), StopReason::Refused(Gate::Breaker), "the rates lost nothing");
    }
    assert_eq!(users.call_limit().unwrap().in_flight(), 0);
    assert_eq!(users.attempt_limit().unwrap().in_flight(), 0);
}

#[test]
fn what_a_call_held_is_free_when_it_has_stopped_though_its_stepper_lives_on() {
    let clock = ManualClock::new();
    let base = with_attempts(1, plain(Backoff::Constant(SECOND)));
    let users: Pipeline<_, _> =
        pipeline(&clock, Policy { admission: one_at_a_time(0), attempt: one_at_a_time(0), ..base });
    let mut call = users.call();
    let attempt: Attempt = call.admit().unwrap();
    assert_eq!((attempt.number, users.call_limit().unwrap().in_flight()), (1, 1));
    assert_eq!(call.conclude_verdict(NOT_NOW), Decision::Stop(StopReason::AttemptsExhausted));
    assert_eq!(users.call_limit().unwrap().in_flight(), 0);
    assert_eq!(users.attempt_limit().unwrap().in_flight(), 0);
    assert!(call.report().is_some());
}

#[test]
fn the_stepper_waits_where_it_is_asked_to_and_is_refused_where_not() {
    let clock = ManualClock::new();
    let policy = Policy {
        attempt: Gates {
            rate: Some(RatePolicy { permits: 1, per: 2 * SECOND, burst: 1 }),
            ..Gates::default()
        },
        total_timeout: Some(60 * SECOND),
        ..with_attempts(2, plain(Backoff::Constant(SECOND)))
    };
    let users = pipeline(&clock, policy);
    users.call().admit().unwrap();
    let (mut patient, mut hasty) = (users.call(), users.call());
    let refused = hasty.admit().unwrap_err();
    assert_eq!(refused.refusal().unwrap().until, Some(Timestamp::from_secs(2)));
    let seen = Cell::new(None);
    clock.block_on(async { seen.set(Some(patient.admitted().await.unwrap().began)) });
    assert_eq!(seen.get(), Some(Timestamp::from_secs(2)));
    let stopped = patient.conclude_verdict(Verdict::Success);
    assert_eq!(stopped, Decision::Stop(StopReason::Succeeded));
}
