//! Faults of the kinds that public reports name of budgets, breakers and limits, where no report has named them yet.
//! Each test says whose neighbour it is.

#![cfg(not(loom))]

mod support;

use std::{
    future::Future,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
    time::Duration,
};

use relent::{
    Backoff, BreakerPolicy, BudgetPolicy, Cause, Clock, ConcurrencyPolicy, Decision, Gate, Gates,
    ManualClock, Observing, Pipeline, Policy, RatePolicy, Retries, StopReason, Timestamp, Verdict, Window,
    breaker::{Mode, Recorded},
    budget::{GrpcPolicy, Of, QuotaPolicy, RatioPolicy, SharePolicy},
    control::{Breaker, Budget},
};
use support::{Act, Dependency, NOT_NOW, SECOND, Seen, at_once, pipeline, plain, with_attempts};

type Users = Pipeline<ManualClock, Observing<Seen>>;

fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// What keeps a retry from being sent that the budget has lent for.
type Obstacle = (fn(&Users, &ManualClock), StopReason);

const OBSTACLES: [Obstacle; 6] = [
    (|_, clock| clock.advance(60 * SECOND), StopReason::TotalTimeout),
    (|users, _| users.retries(Retries::Off), StopReason::Refused(Gate::Switch)),
    (|users, _| assert!(users.breaker().unwrap().isolate().is_some()), StopReason::Refused(Gate::Breaker)),
    (
        |users, _| std::mem::forget(users.attempt_limit().unwrap().try_acquire().unwrap().keep()),
        StopReason::Refused(Gate::Concurrency),
    ),
    (take_the_rate, StopReason::Refused(Gate::Rate)),
    (|_, _| {}, StopReason::Cancelled),
];

/// Another call takes the one permit that there is.
fn take_the_rate(users: &Users, _: &ManualClock) {
    let mut other = users.call();
    other.admit().unwrap();
    let _done = other.conclude_verdict(Verdict::Success);
}

#[test]
fn a_loan_goes_back_whatever_keeps_its_retry_from_being_sent() {
    // BU-13
    let one_at_a_time = ConcurrencyPolicy { limit: 1, queue: 0 };
    let one_a_second = RatePolicy { permits: 1, per: SECOND, burst: 1 };
    let quota = QuotaPolicy { first_success_milli: 0, ..QuotaPolicy::AWS_2026 };
    for (keep_from, reason) in OBSTACLES {
        let clock = ManualClock::new();
        let policy = Policy {
            budget: Some(BudgetPolicy::Quota(quota)),
            attempt: Gates { concurrency: Some(one_at_a_time), rate: Some(one_a_second) },
            breaker: Some(BreakerPolicy::default()),
            total_timeout: Some(30 * SECOND),
            ..with_attempts(3, plain(Backoff::Constant(2 * SECOND)))
        };
        let users = pipeline(&clock, policy);
        let tokens = || users.budget().unwrap().tokens_milli(clock.now());
        let mut call = users.call();
        call.admit().unwrap();
        assert!(matches!(call.conclude_verdict(NOT_NOW), Decision::Retry(_)));
        assert_eq!(tokens(), Some(486_000), "lent while it waits");
        clock.advance(2 * SECOND);
        keep_from(&users, &clock);
        match reason {
            StopReason::Cancelled => drop(call),
            _ => assert_eq!(call.admit().unwrap_err().stop(), reason),
        }
        assert_eq!(tokens(), Some(500_000), "{}", reason.name());
    }
}

#[test]
fn retries_do_not_earn_retries() {
    // BU-01: a fifth of the originals is a fifth, however often each of them is retried; otherwise it is a quarter.
    let ratio = RatioPolicy { of: Of::Originals, share_milli: 200, window: 10 * SECOND, floor_per_second: 0 };
    let clock = ManualClock::new();
    let base = with_attempts(50, plain(Backoff::Constant(Duration::from_nanos(1))));
    let users = pipeline(&clock, Policy { budget: Some(BudgetPolicy::Ratio(ratio)), ..base });
    let mut calls: Vec<_> = (0..100).map(|_| users.call()).collect();
    let mut retries = 0;
    for call in &mut calls {
        while call.admit().is_ok() {
            retries += u32::from(matches!(call.conclude_verdict(NOT_NOW), Decision::Retry(_)));
        }
    }
    assert_eq!(retries, 20);
}

#[test]
fn a_success_of_one_pipeline_is_credited_to_the_budget_that_others_share() {
    // BU-07: a refill that goes to another bucket than the charges come from refills nothing.
    let quota = QuotaPolicy { capacity_milli: 14_000, ..QuotaPolicy::AWS_2026 };
    let budget = std::sync::Arc::new(Budget::new(&BudgetPolicy::Quota(quota)).unwrap());
    let clock = ManualClock::new();
    let shares =
        || pipeline(&clock, with_attempts(2, plain(Backoff::Constant(SECOND)))).sharing_budget(&budget);
    let (reads, writes) = (shares(), shares().clone());
    let run = |users: &Users, status| {
        let dependency = Dependency::new(&clock, &[at_once(status)]);
        clock.block_on(users.run_with_report(|a| dependency.call(a))).1.stop
    };
    assert_eq!(run(&reads, 503), StopReason::AttemptsExhausted, "it has spent the one charge");
    assert_eq!(run(&writes, 503), StopReason::Refused(Gate::Budget), "for both");
    for _ in 0..14 {
        assert_eq!(run(&writes, 200), StopReason::Succeeded);
    }
    assert_eq!(run(&reads, 503), StopReason::AttemptsExhausted);
}

#[test]
fn what_is_no_failure_worth_retrying_uses_up_no_retries() {
    // BU-07: a quota that every 404 and every caller who gives up makes smaller is soon empty for those who need it.
    for policy in [
        BudgetPolicy::default(),
        BudgetPolicy::Grpc(GrpcPolicy::default()),
        BudgetPolicy::Ratio(RatioPolicy::SRE),
        BudgetPolicy::Share(SharePolicy::default()),
        BudgetPolicy::Quota(QuotaPolicy::AWS_2026),
    ] {
        let clock = ManualClock::new();
        let base = with_attempts(2, plain(Backoff::Constant(SECOND)));
        let users = pipeline(&clock, Policy { budget: Some(policy), ..base });
        for _ in 0..200 {
            let mut call = users.call();
            call.admit().unwrap();
            assert_eq!(call.conclude_verdict(Verdict::Permanent), Decision::Stop(StopReason::Permanent));
            let mut given_up = users.call();
            given_up.admit().unwrap();
            drop(given_up);
        }
        let mut call = users.call();
        call.admit().unwrap();
        assert!(matches!(call.conclude_verdict(NOT_NOW), Decision::Retry(_)), "{policy:?}");
    }
}

/// Opens at the second failure in a row, for two seconds.
fn two_in_a_row() -> BreakerPolicy {
    BreakerPolicy {
        failure_rate_milli: Some(500),
        window: Window::Count(10),
        min_calls: 2,
        break_time: Backoff::Constant(2 * SECOND),
        break_jitter_milli: 0,
        probes: 1,
        ..BreakerPolicy::default()
    }
}

#[test]
fn what_a_breaker_refuses_it_does_not_count_and_what_it_forgot_does_not_open_it_again() {
    // CB-07: neither its own refusals nor the failures from before it closed are news of the dependency.
    let breaker = Breaker::new(&two_in_a_row()).unwrap();
    let at = Timestamp::from_secs;
    let record = |verdict, now| breaker.admit(now).unwrap().record(verdict, Duration::ZERO, now);
    assert_eq!(record(NOT_NOW, at(0)), Recorded::Counted);
    assert!(record(NOT_NOW, at(0)).transition().is_some());
    for _ in 0..1_000 {
        assert!(breaker.admit(at(1)).is_err());
    }
    assert_eq!(breaker.counts(at(1)).calls, 0);
    assert_eq!(record(Verdict::Success, at(2)).transition().map(|told| told.to), Some(Mode::Closed));
    assert_eq!(breaker.counts(at(2)).calls, 0, "the probe belongs to the state that is over");
    assert_eq!(record(NOT_NOW, at(2)), Recorded::Counted, "one failure is one failure");
    assert_eq!(breaker.status().mode, Mode::Closed);
}

#[test]
fn a_probe_that_is_told_no_has_found_the_dependency_well() {
    // CB-03: a permanent "no" is an answer, unlike what is neutral; it must not keep the breaker half-open.
    let breaker = Breaker::new(&two_in_a_row()).unwrap();
    let now = Timestamp::from_secs(9);
    assert!(breaker.force_open(now).is_some());
    let told = breaker.admit(now).unwrap().record(Verdict::Permanent, Duration::ZERO, now);
    assert_eq!(told.transition().map(|told| (told.from, told.to)), Some((Mode::HalfOpen, Mode::Closed)));
}

#[test]
fn the_two_attempts_of_one_call_that_open_a_breaker_are_not_followed_by_a_third() {
    // CB-09's opposite: attempts that fail are failures although their call goes on; each counts once.
    let clock = ManualClock::new();
    let base = with_attempts(9, plain(Backoff::Constant(SECOND)));
    let users = pipeline(&clock, Policy { breaker: Some(two_in_a_row()), ..base });
    let dependency = Dependency::new(&clock, &[at_once(503), at_once(503), at_once(200)]);
    let report = clock.block_on(users.run_with_report(|a| dependency.call(a))).1;
    assert_eq!((report.stop, dependency.began().len()), (StopReason::Refused(Gate::Breaker), 2));
    // Three seconds of backoff outlast the break of two: there the call goes on by itself.
    let clock = ManualClock::new();
    let base = with_attempts(9, plain(Backoff::Constant(3 * SECOND)));
    let users = pipeline(&clock, Policy { breaker: Some(two_in_a_row()), ..base });
    let dependency = Dependency::new(&clock, &[at_once(503), at_once(503), at_once(200)]);
    let report = clock.block_on(users.run_with_report(|a| dependency.call(a))).1;
    assert_eq!((report.stop, dependency.began()), (StopReason::Succeeded, vec![0, 3_000, 6_000]));
}

#[test]
fn a_caller_who_gives_up_in_a_queue_leaves_every_gate_as_it_was() {
    // LI-01: in the inner queue the call holds a place at admission already.
    let clock = ManualClock::new();
    let gates = Gates {
        concurrency: Some(ConcurrencyPolicy { limit: 1, queue: 5 }),
        rate: Some(RatePolicy { permits: 1, per: 10 * SECOND, burst: 1 }),
    };
    let policy = Policy {
        admission: gates,
        attempt: gates,
        budget: Some(BudgetPolicy::Share(SharePolicy::default())),
        total_timeout: Some(60 * SECOND),
        ..with_attempts(2, plain(Backoff::Constant(SECOND)))
    };
    let users = pipeline(&clock, policy);
    let dependency = Dependency::new(&clock, &[Act::Hang]);
    let holder = users.attempt_limit().unwrap().try_acquire().unwrap();
    for _ in 0..1_000 {
        let mut call = pin!(users.run(|a| dependency.call(a)));
        assert!(poll_once(call.as_mut()).is_pending());
        assert_eq!(users.call_limit().unwrap().in_flight(), 1);
        assert_eq!(users.attempt_limit().unwrap().waiting(), 1);
    }
    drop(holder);
    let limits = [users.call_limit().unwrap(), users.attempt_limit().unwrap()];
    assert_eq!(limits.map(|limit| (limit.in_flight(), limit.waiting())), [(0, 0); 2]);
    assert_eq!((clock.sleepers(), dependency.began().len()), (0, 0));
    let mut next = users.call();
    assert!(next.admit().is_ok(), "the rates have lost nothing either");
}

#[test]
fn of_callers_who_wait_for_a_rate_those_who_stay_are_not_held_up_by_those_who_go() {
    // LI-07, LI-19: at the level of calls.
    let clock = ManualClock::new();
    let rate = RatePolicy { permits: 1, per: 2 * SECOND, burst: 1 };
    let policy = Policy {
        admission: Gates { rate: Some(rate), ..Gates::default() },
        total_timeout: Some(60 * SECOND),
        ..with_attempts(1, plain(Backoff::Constant(SECOND)))
    };
    let users = pipeline(&clock, policy);
    let dependency = Dependency::new(&clock, &[at_once(200)]);
    clock.block_on(users.run(|a| dependency.call(a))).unwrap();
    let mut waiting: Vec<_> = (0..5).map(|_| Box::pin(users.run(|a| dependency.call(a)))).collect();
    for call in &mut waiting {
        assert!(poll_once(call.as_mut()).is_pending());
    }
    waiting.drain(..4);
    clock.advance(2 * SECOND);
    assert!(poll_once(waiting[0].as_mut()).is_ready(), "the fifth goes when the first would have gone");
    assert_eq!(dependency.began(), [0, 2_000]);
}

#[test]
fn time_that_seems_to_go_back_opens_no_gate_and_frees_nothing() {
    // CL-02: readings of several threads may come out of order.
    let at = Timestamp::from_secs;
    let breaker = Breaker::new(&two_in_a_row()).unwrap();
    for now in [at(100), at(99)] {
        let _told = breaker.admit(now).unwrap().record(NOT_NOW, Duration::ZERO, now);
    }
    assert_eq!(breaker.status().until, Some(at(101)), "from the moment of the failure that opened it");
    assert!(breaker.admit(at(50)).is_err());
    let budget = Budget::new(&BudgetPolicy::default()).unwrap();
    drop(budget.on_call(at(100)));
    budget.try_retry(Cause::Error, at(100)).unwrap().failed();
    for now in [at(40), at(0), at(99)] {
        assert!(budget.try_retry(Cause::Error, now).is_err());
    }
}
