//! What tracing hears of requests with a key, at which level and under which names.

use std::{
    fmt::{Debug, Write},
    sync::{Arc, Mutex},
    time::Duration,
};

use relent_idempotency::{
    Asked, Caller, ClaimId, Ended, Error, ErrorKind, Event, Key, Lease, Observe, RecordId, Refusal, Tracing,
};
use tracing::{
    Metadata, Subscriber,
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
            name => write!(self.0, " {name}={value:?}").expect("a string takes all"),
        }
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "relent"
    }

    fn event(&self, event: &tracing::Event<'_>) {
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

#[test]
fn what_somebody_on_call_wants_to_see_is_a_warning_and_callers_are_not_shown() {
    let record = RecordId { caller: Caller::named("tenant-17"), key: Key::new("order-1").unwrap() };
    let lease = Lease { record: record.clone(), claim: ClaimId([7; 16]), run: 2 };
    let error = Error::new(ErrorKind::Unavailable, "no connection");
    let (lease, record, error) = (&lease, &record, &error);
    let took = Duration::from_millis(1500);
    let lines = Lines::default();
    with_default(lines.clone(), || {
        for event in [
            Event::Ran { lease, ended: Ended::Answered, took },
            Event::Ran { lease, ended: Ended::Unknown, took },
            Event::Replayed(record),
            Event::Refused { refusal: Refusal::KeyMissing, record: None },
            Event::Refused { refusal: Refusal::OutcomeUnknown, record: Some(record) },
            Event::LeaseLost(lease),
            Event::StoreFailed { asked: Asked::Finish, record, error },
            Event::RanUnguarded(record),
            Event::NotInTransaction(lease),
        ] {
            Tracing.observe(&event);
        }
    });
    assert_eq!(
        *lines.0.lock().unwrap(),
        [
            r#"DEBUG ran key="order-1" run=2 ended="answered" duration=1.5"#,
            r#"WARN ran key="order-1" run=2 ended="unknown" duration=1.5"#,
            r#"DEBUG replayed key="order-1""#,
            r#"DEBUG refused reason="key-missing""#,
            r#"INFO refused key="order-1" reason="outcome-unknown""#,
            r#"WARN lease_lost key="order-1" run=2"#,
            r#"WARN store_failed key="order-1" asked="finish" kind=Unavailable error=no connection"#,
            r#"WARN ran_unguarded key="order-1""#,
            r#"WARN not_in_transaction key="order-1" run=2"#,
        ]
    );
}
