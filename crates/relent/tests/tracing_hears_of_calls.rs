//! What tracing hears of calls, at which level and under which names.

#![cfg(feature = "tracing")]

mod support;

use std::{
    fmt::{Debug, Write},
    pin::pin,
    sync::{Arc, Mutex},
    task::{Context, Waker},
};

use relent::{
    Backoff, BreakerPolicy, BudgetPolicy, Gates, ManualClock, Observing, Pipeline, Policy, RatePolicy,
    Tracing,
};
use support::{Act, Dependency, Response, SECOND, Seen, at_once, pipeline, plain, with_attempts};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::with_default,
};

/// Writes a line for each event.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.0.insert_str(0, &format!("{value:?}")),
            "call" => {} // chance
            name => write!(self.0, " {name}={value:?}").expect("a string takes all"),
        }
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "relent"
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push(format!("{} {}", event.metadata().level(), line.0));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// What is heard of calls through a pipeline with this policy.
fn heard_of(
    policy: Policy,
    calls: impl FnOnce(&ManualClock, Pipeline<ManualClock, Observing<Seen>>),
) -> Vec<String> {
    let clock = ManualClock::new();
    let users = pipeline(&clock, policy).named("users").observed_by(Arc::new(Tracing));
    let lines = Lines::default();
    with_default(lines.clone(), || calls(&clock, users));
    std::mem::take(&mut lines.0.lock().unwrap())
}

fn heard(policy: Policy, script: &[Act]) -> Vec<String> {
    heard_of(policy, |clock, users| {
        let dependency = Dependency::new(clock, script);
        clock.block_on(users.run(|a| dependency.call(a))).unwrap();
    })
}

#[test]
fn a_recovered_retry_is_no_failed_call_and_nothing_to_wake_anybody() {
    let policy = with_attempts(3, plain(Backoff::Constant(SECOND)));
    assert_eq!(
        heard(policy, &[Act::Answer(503, SECOND), at_once(200)]),
        [
            r#"DEBUG call_began dependency="users" nesting="outermost""#,
            r#"DEBUG attempt_began dependency="users" attempt=1 timeout=3600.0"#,
            r#"DEBUG attempt_ended dependency="users" attempt=1 outcome="unavailable" error.type="unavailable" duration=1.0"#,
            r#"DEBUG waiting dependency="users" attempt=2 error.type="unavailable" wait=1.0 origin="backoff""#,
            r#"DEBUG attempt_began dependency="users" attempt=2 timeout=3600.0"#,
            r#"DEBUG attempt_ended dependency="users" attempt=2 outcome="success" duration=0.0"#,
            r#"DEBUG call_ended dependency="users" reason="succeeded" attempts=2 duration=2.0 waited=1.0"#,
        ]
    );
}

#[test]
fn a_failed_call_is_a_warning_and_a_budget_that_runs_dry_an_information() {
    let base = with_attempts(3, plain(Backoff::Constant(SECOND)));
    let (budget, alert) = (Some(BudgetPolicy::default()), Some("users on call".into()));
    let lines = heard(Policy { budget, alert, ..base }, &[at_once(503)]);
    let told: Vec<_> = lines.iter().filter(|line| !line.starts_with("DEBUG")).collect();
    assert_eq!(
        told,
        [
            r#"INFO budget_changed dependency="users" state="refuses""#,
            r#"WARN call_ended dependency="users" reason="refused_budget" attempts=2 error.type="unavailable" duration=1.0 waited=1.0 alert="users on call""#,
        ]
    );
}

#[test]
fn time_outs_and_callers_who_give_up_have_words_of_their_own() {
    let policy = with_attempts(2, plain(Backoff::Constant(SECOND)));
    let hasty = Policy { attempt_timeout: 2 * SECOND, total_timeout: Some(3 * SECOND), ..policy.clone() };
    let lines = heard_of(hasty, |clock, users| {
        let dependency = Dependency::new(clock, &[Act::Hang]);
        clock.block_on(users.run(|a| dependency.call(a))).unwrap_err();
    });
    assert_eq!(
        lines[2..],
        [
            r#"DEBUG attempt_ended dependency="users" attempt=1 outcome="timeout" error.type="timeout" duration=2.0"#,
            r#"WARN call_ended dependency="users" reason="total_timeout" attempts=1 error.type="timeout" duration=2.0 waited=0.0"#,
        ]
    );
    let lines = heard_of(policy, |clock, users| {
        let dependency = Dependency::new(clock, &[Act::Hang]);
        let mut call = pin!(users.run(|a| dependency.call(a)));
        assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    });
    assert_eq!(
        lines[2..],
        [
            r#"DEBUG attempt_ended dependency="users" attempt=1 outcome="cancelled" duration=0.0"#,
            r#"DEBUG call_ended dependency="users" reason="cancelled" attempts=1 duration=0.0 waited=0.0"#,
        ]
    );
}

#[test]
fn gates_breakers_nested_retries_and_overruns_are_heard_of() {
    let breaker =
        BreakerPolicy { failure_rate_milli: None, consecutive_failures: Some(2), ..BreakerPolicy::default() };
    let policy = Policy {
        admission: Gates {
            rate: Some(RatePolicy { permits: 1, per: 5 * SECOND, burst: 1 }),
            ..Gates::default()
        },
        breaker: Some(breaker),
        attempt_timeout: SECOND,
        total_timeout: Some(60 * SECOND),
        ..with_attempts(2, plain(Backoff::Constant(SECOND)))
    };
    let lines = heard_of(policy, |clock, users| {
        let outer = pipeline(clock, with_attempts(3, plain(Backoff::Constant(SECOND)))).named("shop");
        let late = |_| {
            clock.advance(2 * SECOND);
            Ok::<_, std::io::Error>(Response { status: 200, wait: None, body: String::new() })
        };
        let inner = |_| {
            Ok(users.run_blocking(late).unwrap_or(Response { status: 404, wait: None, body: String::new() }))
        };
        for _ in 0..2 {
            outer.run_blocking(inner).unwrap();
        }
    });
    let once = |name: &str| -> &str {
        let told: Vec<_> = lines.iter().filter(|line| line.contains(name)).collect();
        assert!(!told.is_empty(), "{name} in {lines:#?}");
        told[0]
    };
    assert_eq!(once("nested"), r#"WARN nested dependency="users" nesting="within" attempts=6"#);
    assert_eq!(once("overran"), r#"WARN overran dependency="users" attempt=1"#);
    assert_eq!(
        once("breaker_changed"),
        r#"INFO breaker_changed dependency="users" from="closed" to="open" why="consecutive""#
    );
    let refused = once("refused");
    assert!(
        refused.starts_with(r#"DEBUG refused dependency="users" stage="gates" gate="breaker" advised="#),
        "{refused}"
    );
}
