//! What an observer is told of calls, in which order, and what it can count by it.

mod support;

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{Arc, Mutex},
    task::{Context, Waker},
    time::Duration,
};

use relent::{
    Backoff, BreakerPolicy, BudgetPolicy, Clock, ConcurrencyPolicy, Event, Gates, Lending, ManualClock,
    Neutral, Observe, Pipeline, Policy, RatePolicy, Scene, StopReason, Timestamp, Verdict,
};
use support::{Act, Dependency, SECOND, Seen, at_once, pipeline, plain, with_attempts};

/// Writes down a line for each event.
#[derive(Default)]
struct Diary(Mutex<Vec<String>>);

impl Diary {
    fn lines(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// How often each event was told.
    fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for line in self.lines() {
            let name = line.split(' ').nth(1).expect("a time, then a name").to_owned();
            *counts.entry(name).or_insert(0) += 1;
        }
        counts
    }
}

impl Observe for Diary {
    fn observe(&self, scene: Scene<'_>, event: &Event<'_>) {
        assert_eq!(scene.dependency, Some("users"));
        let told = match *event {
            Event::CallBegan { nesting } => nesting.name().to_owned(),
            Event::Queued { stage, gate, waited } => {
                format!("{} {} {waited:?}", stage.name(), gate.name())
            }
            Event::AttemptBegan(attempt) => attempt.number.to_string(),
            Event::AttemptEnded { number, verdict, took } => {
                format!("{number} {} {took:?}", meaning(verdict))
            }
            Event::Waiting { next, after, wait } => {
                format!("{next} {} {:?} {}", meaning(after), wait.length, wait.origin.name())
            }
            Event::Refused { stage, refusal } => format!("{} {}", stage.name(), refusal.by.name()),
            Event::BreakerChanged(change) => format!("{} {}", change.from.name(), change.to.name()),
            Event::BudgetChanged(lending) => format!("{lending:?}"),
            Event::CallEnded(report) => {
                format!("{} {} {:?}", report.stop.name(), report.attempts, report.took)
            }
            _ => String::new(),
        };
        let line = format!("{:?} {} {told}", scene.at.since(Timestamp::ZERO), event.name());
        self.0.lock().unwrap().push(line);
    }
}

fn meaning(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Success => "success",
        Verdict::Permanent => "permanent",
        Verdict::Neutral(Neutral::Cancelled) => "cancelled",
        Verdict::Neutral(Neutral::OwnFault) => "own_fault",
        Verdict::Failure { .. } => "failure",
    }
}

fn users(
    clock: &ManualClock,
    policy: Policy,
) -> (Pipeline<ManualClock, relent::Observing<Seen>>, Arc<Diary>) {
    let diary = Arc::new(Diary::default());
    (pipeline(clock, policy).named("users").observed_by(diary.clone()), diary)
}

#[test]
fn of_two_observers_each_hears_the_whole_call() {
    let clock = ManualClock::new();
    let [first, second] = [(); 2].map(|()| Arc::new(Diary::default()));
    let users = pipeline(&clock, with_attempts(2, plain(Backoff::Constant(SECOND)))).named("users");
    let users = users.observed_by(Arc::new((first.clone(), second.clone())));
    let dependency = Dependency::new(&clock, &[at_once(503), at_once(200)]);
    clock.block_on(users.run(|attempt| dependency.call(attempt))).unwrap();
    let heard = first.lines();
    assert!(heard.last().is_some_and(|line| line.contains("call_ended succeeded 2")), "{heard:#?}");
    assert_eq!(second.lines(), heard);
}

#[test]
fn a_call_is_told_from_its_beginning_to_its_end_with_what_was_really_waited() {
    // TS-06: the wait told is the wait taken, with its origin.
    let clock = ManualClock::new();
    let (users, diary) = users(&clock, with_attempts(3, plain(Backoff::Constant(SECOND))));
    let script = [Act::Answer(503, SECOND), Act::Busy(60 * SECOND), at_once(200)];
    let dependency = Dependency::new(&clock, &script);
    clock.block_on(users.run(|a| dependency.call(a))).unwrap();
    assert_eq!(
        diary.lines(),
        [
            "0ns call_began outermost",
            "0ns attempt_began 1",
            "1s attempt_ended 1 failure 1s",
            "1s waiting 2 failure 1s backoff",
            "2s attempt_began 2",
            "2s attempt_ended 2 failure 0ns",
            "2s waiting 3 failure 60s server",
            "62s attempt_began 3",
            "62s attempt_ended 3 success 0ns",
            "62s call_ended succeeded 3 62s",
        ]
    );
    assert_eq!(dependency.began(), [0, 2_000, 62_000]);
}

#[test]
fn what_waits_at_a_gate_or_is_refused_there_says_which() {
    let clock = ManualClock::new();
    let policy = Policy {
        admission: Gates {
            rate: Some(RatePolicy { permits: 1, per: 2 * SECOND, burst: 1 }),
            ..Gates::default()
        },
        attempt: Gates { concurrency: Some(ConcurrencyPolicy { limit: 1, queue: 0 }), ..Gates::default() },
        total_timeout: Some(60 * SECOND),
        ..with_attempts(1, plain(Backoff::Constant(SECOND)))
    };
    let (users, diary) = users(&clock, policy);
    let dependency = Dependency::new(&clock, &[at_once(200)]);
    clock.block_on(users.run(|a| dependency.call(a))).unwrap();
    diary.lines();
    let _holder = users.attempt_limit().unwrap().try_acquire().unwrap();
    clock.block_on(users.run(|a| dependency.call(a))).unwrap_err();
    assert_eq!(
        diary.lines(),
        [
            "0ns call_began outermost",
            "2s queued admission rate 2s",
            "2s refused gates concurrency",
            "2s call_ended refused_concurrency 0 2s",
        ]
    );
}

#[test]
fn a_budget_that_runs_dry_is_told_once_and_once_more_when_it_lends_again() {
    // BU-15: one event per change of state, not per call.
    let clock = ManualClock::new();
    let base = with_attempts(2, plain(Backoff::Constant(SECOND)));
    let (users, diary) = users(&clock, Policy { budget: Some(BudgetPolicy::default()), ..base });
    let busy = Dependency::new(&clock, &[at_once(503)]);
    let fine = Dependency::new(&clock, &[at_once(200)]);
    for _ in 0..20 {
        clock.block_on(users.run(|a| busy.call(a))).unwrap();
    }
    let told = diary.counts();
    assert_eq!((told["budget_changed"], told["refused"]), (1, 19));
    for _ in 0..30 {
        clock.block_on(users.run(|a| fine.call(a))).unwrap();
    }
    assert!(!diary.counts().contains_key("budget_changed"), "it is told when it lends, not when it could");
    clock.block_on(users.run(|a| busy.call(a))).unwrap();
    let lines = diary.lines();
    let changes: Vec<_> = lines.iter().filter(|line| line.contains("budget_changed")).collect();
    assert!(matches!(changes[..], [line] if line.contains(&format!("{:?}", Lending::Lends))), "{lines:?}");
}

#[test]
fn a_breaker_is_told_of_at_each_change_with_its_probe_and_its_refusals() {
    let clock = ManualClock::new();
    let breaker = BreakerPolicy {
        failure_rate_milli: None,
        consecutive_failures: Some(2),
        break_time: Backoff::Constant(5 * SECOND),
        break_jitter_milli: 0,
        probes: 1,
        ..BreakerPolicy::default()
    };
    let base = with_attempts(9, plain(Backoff::Constant(SECOND)));
    let (users, diary) = users(&clock, Policy { breaker: Some(breaker), ..base });
    let dependency = Dependency::new(&clock, &[at_once(503), at_once(503), at_once(200)]);
    clock.block_on(users.run(|a| dependency.call(a))).unwrap();
    clock.block_on(users.run(|a| dependency.call(a))).unwrap_err();
    clock.advance(5 * SECOND);
    clock.block_on(users.run(|a| dependency.call(a))).unwrap();
    let lines = diary.lines();
    let of = |name: &str| lines.iter().filter(|line| line.contains(name)).cloned().collect::<Vec<_>>();
    assert_eq!(
        of("breaker_changed"),
        [
            "1s breaker_changed closed open",
            "6s breaker_changed open half_open",
            "6s breaker_changed half_open closed",
        ]
    );
    assert_eq!(of("refused "), ["1s refused retry breaker", "1s refused gates breaker"]);
    assert_eq!(of("attempt_began").len(), 3);
}

#[test]
fn a_caller_who_gives_up_is_told_apart_from_every_failure() {
    // CB-09: the cancelled counter reads 100.
    let clock = ManualClock::new();
    let (users, diary) = users(&clock, with_attempts(2, plain(Backoff::Constant(SECOND))));
    let dependency = Dependency::new(&clock, &[Act::Hang]);
    for _ in 0..100 {
        let mut call = pin!(users.run(|a| dependency.call(a)));
        assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        clock.advance(Duration::from_millis(200));
    }
    let lines = diary.lines();
    let cancelled =
        |name: &str| lines.iter().filter(|line| line.contains(name) && line.contains("cancelled")).count();
    assert_eq!((cancelled("attempt_ended"), cancelled("call_ended")), (100, 100));
    assert_eq!(lines.len(), 400);
    assert_eq!(lines[3], "200ms call_ended cancelled 1 200ms");
}

#[test]
fn every_call_ends_exactly_once_however_it_is_stepped() {
    let clock = ManualClock::new();
    let (users, diary) = users(&clock, with_attempts(1, plain(Backoff::Constant(SECOND))));
    drop(users.call());
    assert_eq!(diary.lines(), ["0ns call_began outermost", "0ns call_ended cancelled 0 0ns"]);
    let mut call = users.call();
    call.admit().unwrap();
    let _stopped = call.conclude_verdict(Verdict::Permanent);
    assert_eq!(call.admit().unwrap_err().stop(), StopReason::Permanent);
    assert_eq!(call.admit().unwrap_err().stop(), StopReason::Permanent);
    drop(call);
    assert_eq!(diary.counts()["call_ended"], 1);
}

/// What an observer may do: everything that a caller may, since nobody holds a lock.
struct Calling(Pipeline<ManualClock>, Mutex<u32>);

impl Observe for Calling {
    fn observe(&self, scene: Scene<'_>, event: &Event<'_>) {
        let Self(pipeline, calls) = self;
        if matches!(event, Event::CallEnded(_)) {
            let called = pipeline.run_blocking(|_| Ok::<_, std::io::Error>(scene.at));
            assert_eq!(called.unwrap(), pipeline.clock().now());
            *calls.lock().unwrap() += 1;
        }
    }
}

#[test]
fn an_observer_may_call_through_the_same_gates() {
    let clock = ManualClock::new();
    let gates = Gates {
        concurrency: Some(ConcurrencyPolicy { limit: 1, queue: 0 }),
        rate: Some(RatePolicy { permits: 100, per: SECOND, burst: 100 }),
    };
    let policy = Policy {
        admission: gates,
        attempt: gates,
        breaker: Some(BreakerPolicy::default()),
        budget: Some(BudgetPolicy::default()),
        ..with_attempts(2, plain(Backoff::Constant(SECOND)))
    };
    let plainly = Pipeline::on(clock.clone(), policy).unwrap();
    let observer = Arc::new(Calling(plainly.clone(), Mutex::new(0)));
    let watched = plainly.observed_by(observer.clone());
    clock.block_on(watched.run(|_| async { Ok::<_, std::io::Error>(()) })).unwrap();
    assert_eq!(*observer.1.lock().unwrap(), 1);
}
