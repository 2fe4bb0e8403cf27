//! Calls over shared controls: the live and the blocking driver must let through, refuse, wait and stop as the core's
//! states in plain fields say, call after call. (No delivery asks a gate, so there is no durable side to this.)

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use relent::{
    Attempt, BlockingClock, Clock, Event, Gate, ManualClock, Observe, Pipeline, Refusal, Report, Scene,
    ScriptedOutcome, StopReason, Timestamp, Verdict, breaker::Mode, control::Breaker,
};

use crate::{
    drivers::{ROUTE, START, Sighted, in_force},
    lives::{self, Life, Planned},
    twin::Twin,
};

/// How a call ended.
#[derive(Debug, PartialEq)]
pub(crate) struct Ended {
    pub(crate) stop: StopReason,
    pub(crate) refusal: Option<Refusal>,
    pub(crate) attempts: u32,
    pub(crate) at: Timestamp,
    pub(crate) last_verdict: Option<Verdict>,
}

/// A driver: one call of a pipeline, to its end.
type Driver = fn(&Pipeline<ManualClock, Sighted>, &Planned) -> Report;

fn live(users: &Pipeline<ManualClock, Sighted>, planned: &Planned) -> Report {
    let clock = users.clock();
    let play = |attempt: Attempt| async move {
        let outcome = of(planned, attempt);
        clock.sleep(outcome.took).await;
        Ok(outcome)
    };
    clock.block_on(terms(users, planned).run_with_report(play)).1
}

/// What outlives its attempt comes back when it has been given up, and a moment late.
fn blocking(users: &Pipeline<ManualClock, Sighted>, planned: &Planned) -> Report {
    let clock = users.clock();
    let play = |attempt: Attempt| {
        let outcome = of(planned, attempt);
        clock.pause_until(attempt.began.after(outcome.took).min(attempt.give_up_at.after(LATE)));
        Ok(outcome)
    };
    terms(users, planned).run_blocking_with_report(play).1
}

fn of(planned: &Planned, attempt: Attempt) -> ScriptedOutcome {
    planned.script[(attempt.number as usize - 1) % planned.script.len()]
}

fn terms<'a>(
    users: &'a Pipeline<ManualClock, Sighted>,
    planned: &Planned,
) -> relent::Calls<&'a Pipeline<ManualClock, Sighted>, relent::Route<'static>> {
    let calls = users.calls().with_seed(planned.seed).on_route(ROUTE.method, ROUTE.path);
    match planned.upstream {
        Some(length) => calls.with_deadline_in(length),
        None => calls,
    }
}

/// Plays a life with a driver and in the twin; how its calls stopped.
fn agree(life: &Life, driver: Driver, late: Duration) -> Result<Vec<StopReason>, TestCaseError> {
    let clock = ManualClock::starting_at(START);
    let told = Arc::new(Told::default());
    let mut users = in_force(&clock, &life.policy).observed_by(told.clone());
    if let Some(breaker) = &life.policy.breaker {
        users = users.with_breaker(&Breaker::with_seed(breaker, life.seed).expect("the policy is possible"));
    }
    let mut twin = Twin::new(life, late);
    let mut reports = Vec::new();
    for planned in &life.calls {
        let limits = [users.call_limit(), users.attempt_limit()];
        let held = [0, 1].map(|place| limits[place].filter(|_| planned.held[place]));
        let held = held.map(|limit| limit.map(|limit| limit.try_acquire().expect("nobody is there")));
        let expected = twin.call(planned, clock.now());
        let report = driver(&users, planned);
        prop_assert_eq!(
            seen(&report, clock.now()),
            expected,
            "call {} with {:?}",
            reports.len() + 1,
            planned
        );
        reports.push(report);
        drop(held);
        clock.advance(planned.pause);
    }
    let now = clock.now();
    let tokens = twin.budget.as_ref().and_then(|budget| budget.tokens_milli(now));
    prop_assert_eq!(users.budget().and_then(|budget| budget.tokens_milli(now)), tokens);
    let status = twin.breaker.as_ref().map(|breaker| (breaker.status(), breaker.counts(now)));
    prop_assert_eq!(users.breaker().map(|breaker| (breaker.status(), breaker.counts(now))), status);
    told.add_up(&reports)?;
    Ok(reports.iter().map(|report| report.stop).collect())
}

fn seen(report: &Report, at: Timestamp) -> Ended {
    Ended {
        stop: report.stop,
        refusal: report.refusal(),
        attempts: report.attempts,
        at,
        last_verdict: report.last_verdict,
    }
}

/// What an observer can count, which must come to what the reports say.
#[derive(Default)]
struct Told {
    calls: [AtomicU64; 2],
    attempts: [AtomicU64; 2],
    waits: AtomicU64,
    waited: Mutex<Duration>,
    refusals: AtomicU64,
    mode: Mutex<Option<Mode>>,
}

impl Observe for Told {
    fn observe(&self, _: Scene<'_>, event: &Event<'_>) {
        let count = |counter: &AtomicU64| _ = counter.fetch_add(1, Relaxed);
        match event {
            Event::CallBegan { .. } => count(&self.calls[0]),
            Event::CallEnded(_) => count(&self.calls[1]),
            Event::AttemptBegan(_) => count(&self.attempts[0]),
            Event::AttemptEnded { .. } => count(&self.attempts[1]),
            Event::Waiting { wait, .. } => {
                count(&self.waits);
                *self.waited.lock().expect("no panic") += wait.length;
            }
            Event::Refused { .. } => count(&self.refusals),
            Event::BreakerChanged(change) => {
                let before = self.mode.lock().expect("no panic").replace(change.to);
                assert_eq!(before.unwrap_or(Mode::Closed), change.from, "no change goes untold");
            }
            _ => {}
        }
    }
}

impl Told {
    fn add_up(&self, reports: &[Report]) -> Result<(), TestCaseError> {
        let [began, ended] = [&self.calls[0], &self.calls[1]].map(|count| count.load(Relaxed));
        prop_assert_eq!([began, ended], [reports.len() as u64; 2]);
        let attempts = reports.iter().map(|report| u64::from(report.attempts)).sum::<u64>();
        prop_assert_eq!(
            [&self.attempts[0], &self.attempts[1]].map(|count| count.load(Relaxed)),
            [attempts; 2]
        );
        let waits = reports.iter().map(|report| u64::from(report.waits)).sum::<u64>();
        prop_assert_eq!(self.waits.load(Relaxed), waits);
        prop_assert_eq!(
            *self.waited.lock().expect("no panic"),
            reports.iter().map(|report| report.waited).sum()
        );
        let refused = reports.iter().filter(|report| report.refusal().is_some()).count();
        prop_assert_eq!(self.refusals.load(Relaxed), refused as u64);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: LIVES, ..ProptestConfig::default() })]

    #[test]
    fn both_drivers_pass_every_gate_as_the_states_in_plain_fields_say(life in lives::any()) {
        agree(&life, live, Duration::ZERO)?;
        agree(&life, blocking, LATE)?;
    }
}

#[test]
fn the_lives_meet_every_gate() {
    let mut runner = TestRunner::deterministic();
    let mut reached = Vec::new();
    for _ in 0..LIVES {
        let life = lives::any().new_tree(&mut runner).expect("a life").current();
        reached.extend(agree(&life, live, Duration::ZERO).expect("they agree"));
    }
    for reason in [
        StopReason::Succeeded,
        StopReason::Permanent,
        StopReason::AttemptsExhausted,
        StopReason::TotalTimeout,
        StopReason::UpstreamDeadline,
        StopReason::Ambiguous,
        StopReason::Refused(Gate::Concurrency),
        StopReason::Refused(Gate::Rate),
        StopReason::Refused(Gate::Breaker),
        StopReason::Refused(Gate::Budget),
    ] {
        let count = reached.iter().filter(|stop| **stop == reason).count();
        assert!(count >= 20, "{} only {count} times in {} calls", reason.name(), reached.len());
    }
}

/// How late those come back that outlive their attempt.
const LATE: Duration = Duration::from_nanos(1);
const LIVES: u32 = 500;
