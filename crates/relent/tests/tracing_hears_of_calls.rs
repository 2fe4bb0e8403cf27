//! What tracing hears of calls, at which level and under which names.

#![cfg(feature = "tracing")]

mod support;

use std::{
    fmt::{Debug, Write},
    sync::{Arc, Mutex},
};

use relent::{Backoff, BudgetPolicy, ManualClock, Policy, Tracing};
use support::{Act, Dependency, SECOND, at_once, pipeline, plain, with_attempts};
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

fn heard(policy: Policy, script: &[Act]) -> Vec<String> {
    let clock = ManualClock::new();
    let dependency = Dependency::new(&clock, script);
    let users = pipeline(&clock, policy).named("users").observed_by(Arc::new(Tracing));
    let lines = Lines::default();
    with_default(lines.clone(), || clock.block_on(users.run(|a| dependency.call(a)))).unwrap();
    std::mem::take(&mut lines.0.lock().unwrap())
}

#[test]
fn a_recovered_retry_is_no_failed_call_and_nothing_to_wake_anybody() {
    let policy = with_attempts(3, plain(Backoff::Constant(SECOND)));
    assert_eq!(
        heard(policy, &[Act::Answer(503, SECOND), at_once(200)]),
        [
            r#"DEBUG call_began dependency="users" nesting="outermost""#,
            r#"DEBUG attempt_began dependency="users" attempt=1 timeout=3600.0"#,
            r#"DEBUG attempt_ended dependency="users" attempt=1 error.type="unavailable" duration=1.0"#,
            r#"DEBUG waiting dependency="users" attempt=2 error.type="unavailable" wait=1.0 origin="backoff""#,
            r#"DEBUG attempt_began dependency="users" attempt=2 timeout=3600.0"#,
            r#"DEBUG attempt_ended dependency="users" attempt=2 duration=0.0"#,
            r#"DEBUG call_ended dependency="users" reason="succeeded" attempts=2 duration=2.0 waited=1.0"#,
        ]
    );
}

#[test]
fn a_failed_call_is_a_warning_and_a_budget_that_runs_dry_an_information() {
    let base = with_attempts(3, plain(Backoff::Constant(SECOND)));
    let lines = heard(Policy { budget: Some(BudgetPolicy::default()), ..base }, &[at_once(503)]);
    let told: Vec<_> = lines.iter().filter(|line| !line.starts_with("DEBUG")).collect();
    assert_eq!(
        told,
        [
            r#"INFO budget_changed dependency="users" lends=false"#,
            r#"WARN call_ended dependency="users" reason="refused_budget" attempts=2 error.type="unavailable" duration=1.0 waited=1.0"#,
        ]
    );
}
