//! The switches. That of the process is one for all, so this file is one test.

mod support;

use relent::{
    Backoff, BudgetPolicy, Gate, ManualClock, Pipeline, Policy, Retries, Stage, StopReason, retries_off,
    retries_on,
};
use support::{Act, Dependency, SECOND, Seen, at_once, pipeline, plain, with_attempts};

fn users(clock: &ManualClock) -> Pipeline<ManualClock, relent::Observing<Seen>> {
    pipeline(clock, with_attempts(3, plain(Backoff::Constant(SECOND))))
}

fn stopped(clock: &ManualClock, users: &Pipeline<ManualClock, relent::Observing<Seen>>) -> (u32, StopReason) {
    let dependency = Dependency::new(clock, &[at_once(503)]);
    let (result, report) = clock.block_on(users.run_with_report(|a| dependency.call(a)));
    assert_eq!(result.unwrap().status, 503, "the real answer, whatever stopped it");
    (report.attempts, report.stop)
}

#[test]
fn the_switches_stop_retries_and_let_first_attempts_through() {
    const OFF: (u32, StopReason) = (1, StopReason::Refused(Gate::Switch));
    const ON: (u32, StopReason) = (3, StopReason::AttemptsExhausted);
    let clock = ManualClock::new();
    let (users, orders) = (users(&clock), users(&clock));

    users.retries(Retries::Off);
    assert_eq!(stopped(&clock, &users), OFF);
    assert_eq!(stopped(&clock, &users.clone()), OFF, "clones are one pipeline");
    assert_eq!(stopped(&clock, &orders), ON, "another pipeline is another");

    retries_off();
    assert_eq!(relent::retries(), Retries::Off);
    assert_eq!(stopped(&clock, &orders), OFF);
    users.retries(Retries::On);
    assert_eq!((stopped(&clock, &users), users.retries_now()), (OFF, Retries::Off));
    retries_on();
    assert_eq!((stopped(&clock, &users), stopped(&clock, &orders)), (ON, ON));

    a_waiting_retry_is_not_sent(&clock);
    a_success_is_nobodys_business(&clock, &users);
}

/// Thrown while a call waits: what it has borrowed goes back, and nothing more is sent.
fn a_waiting_retry_is_not_sent(clock: &ManualClock) {
    let base = with_attempts(3, plain(Backoff::Constant(SECOND)));
    let users = pipeline(clock, Policy { budget: Some(BudgetPolicy::default()), ..base });
    let dependency = Dependency::new(clock, &[at_once(503)]);
    let mut call = users.call();
    let attempt = call.admit().unwrap();
    let result = clock.block_on(dependency.call(attempt));
    assert!(matches!(call.conclude(&result), relent::Decision::Retry(_)));
    let now = relent::Clock::now(clock);
    assert_eq!(users.budget().unwrap().tokens_milli(now), Some(0));

    users.retries(Retries::Off);
    let stopped = call.admit().unwrap_err();
    assert_eq!(stopped.stop(), StopReason::Refused(Gate::Switch));
    assert_eq!(stopped.report().stage, Stage::Retry);
    assert_eq!(users.budget().unwrap().tokens_milli(now), Some(1_000), "the loan went back");
    assert_eq!(dependency.began().len(), 1);
}

fn a_success_is_nobodys_business(
    clock: &ManualClock,
    users: &Pipeline<ManualClock, relent::Observing<Seen>>,
) {
    users.retries(Retries::Off);
    let dependency = Dependency::new(clock, &[Act::Answer(200, SECOND)]);
    let report = clock.block_on(users.run_with_report(|a| dependency.call(a))).1;
    assert_eq!((report.attempts, report.stop), (1, StopReason::Succeeded));
}
