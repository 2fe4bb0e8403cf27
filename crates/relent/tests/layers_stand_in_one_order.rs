//! What each layer of a pipeline sees of one and the same call: the order of the layers, from outside.

mod support;

use std::time::Duration;

use relent::{
    Backoff, BreakerPolicy, BudgetPolicy, ConcurrencyPolicy, Gate, Gates, ManualClock, Policy, RatePolicy,
    Stage, StopReason, Window, breaker::Mode, budget::RatioPolicy,
};
use support::{Act, Dependency, SECOND, at_once, pipeline, plain, with_attempts};

/// Counts every attempt and opens for nothing.
fn counting() -> BreakerPolicy {
    BreakerPolicy {
        failure_rate_milli: Some(1_000),
        min_calls: 100,
        window: Window::Count(100),
        ..BreakerPolicy::default()
    }
}

/// So many at once, and practically none after that.
fn only(burst: u32) -> Option<RatePolicy> {
    Some(RatePolicy { permits: 1, per: Duration::from_secs(86_400), burst })
}

#[test]
fn admission_sees_one_call_and_the_inner_gates_and_the_breaker_see_three_attempts() {
    for (admission, attempt, more, stage) in [(4, 100, 3, Stage::Admission), (100, 4, 1, Stage::Gates)] {
        let clock = ManualClock::new();
        let dependency = Dependency::new(&clock, &[at_once(503), at_once(503), at_once(200)]);
        let policy = Policy {
            admission: Gates { rate: only(admission), ..Gates::default() },
            attempt: Gates { rate: only(attempt), ..Gates::default() },
            breaker: Some(counting()),
            total_timeout: Some(10 * SECOND),
            ..with_attempts(20, plain(Backoff::Constant(SECOND)))
        };
        let users = pipeline(&clock, policy);
        let report = clock.block_on(users.run_with_report(|a| dependency.call(a))).1;
        assert_eq!((report.attempts, report.stop), (3, StopReason::Succeeded));
        let counts = users.breaker().unwrap().counts(relent::Clock::now(&clock));
        assert_eq!((counts.calls, counts.failures), (3, 2), "the breaker counts attempts");

        // What is left of four permits: three after one call, one after three attempts.
        let stops: Vec<_> = (0..=more)
            .map(|_| clock.block_on(users.run_with_report(|a| dependency.call(a))).1)
            .map(|report| (report.stop, report.stage))
            .collect();
        let (refused, passed) = stops.split_last().expect("there is one");
        assert!(passed.iter().all(|(stop, _)| *stop == StopReason::Succeeded), "{stops:?}");
        assert_eq!(*refused, (StopReason::Refused(Gate::Rate), stage));
    }
}

#[test]
fn admission_limits_calls_and_not_attempts() {
    let clock = ManualClock::new();
    let dependency = Dependency::new(&clock, &[at_once(503), at_once(503), at_once(200)]);
    let policy = Policy {
        admission: Gates { rate: only(1), ..Gates::default() },
        total_timeout: Some(10 * SECOND),
        ..plain(Backoff::Constant(SECOND))
    };
    let users = pipeline(&clock, policy);
    let report = clock.block_on(users.run_with_report(|a| dependency.call(a))).1;
    assert_eq!((report.attempts, report.stop), (3, StopReason::Succeeded), "one permit was enough");
    let second = clock.block_on(users.run(|a| dependency.call(a))).unwrap_err();
    assert_eq!(second.stop(), StopReason::Refused(Gate::Rate));
    assert_eq!((second.report().attempts, second.report().stage), (0, Stage::Admission));
}

#[test]
fn the_gates_inside_limit_attempts() {
    let clock = ManualClock::new();
    let dependency = Dependency::new(&clock, &[at_once(503)]);
    let policy = Policy {
        attempt: Gates { rate: only(2), ..Gates::default() },
        total_timeout: Some(10 * SECOND),
        ..plain(Backoff::Constant(SECOND))
    };
    let report = clock.block_on(pipeline(&clock, policy).run_with_report(|a| dependency.call(a))).1;
    assert_eq!((report.attempts, report.stop), (2, StopReason::Refused(Gate::Rate)));
    assert_eq!(report.stage, Stage::Gates);
}

#[test]
fn a_place_at_admission_is_held_through_waits_and_one_inside_is_not() {
    for (is_outer, waits_for_place) in [(true, true), (false, false)] {
        let clock = ManualClock::new();
        let (slow, quick) = (
            Dependency::new(&clock, &[at_once(503), at_once(200)]),
            Dependency::new(&clock, &[at_once(200)]),
        );
        let one = Gates { concurrency: Some(ConcurrencyPolicy { limit: 1, queue: 1 }), ..Gates::default() };
        let base = with_attempts(20, plain(Backoff::Constant(10 * SECOND)));
        let policy = match is_outer {
            true => Policy { admission: one, ..base },
            false => Policy { attempt: one, ..base },
        };
        let users = pipeline(&clock, policy);
        let both = async {
            let mut first = std::pin::pin!(users.run(|a| slow.call(a)));
            let mut second = std::pin::pin!(users.run(|a| quick.call(a)));
            let (mut first_done, mut second_done) = (false, false);
            std::future::poll_fn(|cx| {
                first_done = first_done || first.as_mut().poll(cx).is_ready();
                second_done = second_done || second.as_mut().poll(cx).is_ready();
                if first_done && second_done { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
            })
            .await;
        };
        clock.block_on(both);
        let expected = if waits_for_place { 10_000 } else { 0 };
        assert_eq!(quick.began(), [expected], "admission: {is_outer}");
        assert_eq!(slow.began(), [0, 10_000]);
    }
}

#[test]
fn the_budget_sees_retries_that_the_core_wants_and_no_others() {
    let clock = ManualClock::new();
    let budget =
        BudgetPolicy::Ratio(RatioPolicy { share_milli: 1_000, floor_per_second: 0, ..RatioPolicy::FINAGLE });
    // The one attempt allowed is used up: the budget is not asked, and lends what it has to the next call.
    let base = with_attempts(1, plain(Backoff::Constant(SECOND)));
    let single = pipeline(&clock, Policy { budget: Some(budget), ..base });
    let dependency = Dependency::new(&clock, &[at_once(503)]);
    for _ in 0..5 {
        let report = clock.block_on(single.run_with_report(|a| dependency.call(a))).1;
        assert_eq!(report.stop, StopReason::AttemptsExhausted);
    }
    let many = pipeline(
        &clock,
        Policy { budget: Some(budget), ..with_attempts(20, plain(Backoff::Constant(SECOND))) },
    )
    .sharing_budget(single.budget().unwrap());
    let report = clock.block_on(many.run_with_report(|a| dependency.call(a))).1;
    // Six originals: six retries, the seventh is refused, at once.
    assert_eq!((report.attempts, report.stop), (7, StopReason::Refused(Gate::Budget)));
    assert_eq!((report.waited, report.took), (6 * SECOND, 6 * SECOND));
    assert_eq!(report.stage, Stage::Retry);
}

#[test]
fn an_attempt_that_times_out_is_a_failure_to_the_breaker_and_the_wait_before_it_is_not_counted() {
    let clock = ManualClock::new();
    let dependency = Dependency::new(&clock, &[Act::Hang, at_once(200)]);
    let policy = Policy {
        attempt: Gates {
            rate: Some(RatePolicy { permits: 1, per: 10 * SECOND, burst: 1 }),
            ..Gates::default()
        },
        breaker: Some(counting()),
        attempt_timeout: SECOND,
        ..with_attempts(20, plain(Backoff::Constant(Duration::from_millis(1))))
    };
    let users = pipeline(&clock, policy);
    let report = clock.block_on(users.run_with_report(|a| dependency.call(a))).1;
    // Timed out at 1 s, next permit at 10 s, and a whole second from there.
    assert_eq!(dependency.began(), [0, 10_000]);
    assert_eq!(dependency.attempts()[1].allowed(), SECOND);
    assert_eq!((report.attempts, report.took), (2, 10 * SECOND));
    let counts = users.breaker().unwrap().counts(relent::Clock::now(&clock));
    assert_eq!((counts.calls, counts.failures), (2, 1));
}

#[test]
fn a_breaker_that_opens_during_a_call_ends_it_and_is_not_retried() {
    let clock = ManualClock::new();
    let dependency = Dependency::new(&clock, &[at_once(503)]);
    let breaker = BreakerPolicy {
        failure_rate_milli: None,
        consecutive_failures: Some(3),
        break_time: Backoff::Constant(60 * SECOND),
        break_jitter_milli: 0,
        ..BreakerPolicy::default()
    };
    let users = pipeline(
        &clock,
        Policy { breaker: Some(breaker), ..with_attempts(20, plain(Backoff::Constant(SECOND))) },
    );
    let (result, report) = clock.block_on(users.run_with_report(|a| dependency.call(a)));
    assert_eq!(
        result.unwrap().body,
        "busy3",
        "the dependency's last real failure, not an error that hides it"
    );
    assert_eq!((report.attempts, report.stop), (3, StopReason::Refused(Gate::Breaker)));
    assert_eq!(report.took, 2 * SECOND, "without a wait that leads nowhere");
    assert_eq!(users.breaker().unwrap().status().mode, Mode::Open);

    let refused = clock.block_on(users.run(|a| dependency.call(a))).unwrap_err();
    assert_eq!((refused.report().attempts, refused.report().took), (0, Duration::ZERO));
    let until = refused.refusal().and_then(|refusal| refusal.until);
    assert_eq!(until, Some(relent::Timestamp::from_secs(62)), "it says when to come back");
    assert_eq!(refused.to_string(), "not tried: refused_breaker, worth trying again in 1m");
    assert_eq!(dependency.began().len(), 3);
}
