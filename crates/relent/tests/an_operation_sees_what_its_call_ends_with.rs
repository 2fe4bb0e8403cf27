//! `Operation::finish`: the last look at a value before its caller gets it, with a report for who asks.

use std::{
    future::{Ready, ready},
    io,
    sync::Arc,
};

use relent::{
    Attempt, Calls, Event, ManualClock, Observe, Operation, Pipeline, Policy, Report, Scene, StopReason, Work,
};

/// Gives these results one after the other, and writes the report of the call beside the value that it ends with.
struct Fetch(Vec<io::Result<u32>>);

type Seen = (u32, Option<(StopReason, Report)>);

impl Operation for Fetch {
    type Value = Seen;
    type Error = io::Error;
    type Future = Ready<io::Result<Seen>>;

    fn begin(&mut self, _: Attempt, _: impl FnOnce() -> Work) -> Self::Future {
        ready(self.0.remove(0).map(|value| (value, None)))
    }

    fn finish(&mut self, seen: &mut Seen, stop: StopReason, report: impl FnOnce() -> Report) {
        assert_eq!(seen.1.replace((stop, report())), None, "a call ends once");
    }
}

struct Listener;

impl Observe for Listener {
    fn observe(&self, _: Scene<'_>, _: &Event<'_>) {}
}

#[derive(Clone, Copy)]
enum Way {
    Straight,
    Long,
}

fn fetch(way: Way, results: Vec<io::Result<u32>>) -> Result<Seen, relent::Error<io::Error>> {
    let clock = ManualClock::new();
    let pipeline = Pipeline::on(clock.clone(), Policy::live()).unwrap().named("users");
    let pipeline = match way {
        Way::Straight => pipeline,
        Way::Long => pipeline.observed_by(Arc::new(Listener)),
    };
    clock.block_on(Calls::through(pipeline).safe().with_seed(7).run_operation(Fetch(results)))
}

fn refused() -> io::Result<u32> {
    Err(io::ErrorKind::ConnectionRefused.into())
}

#[test]
fn a_first_success_is_reported_alike_on_either_way() {
    let [straight, long] = [Way::Straight, Way::Long].map(|way| fetch(way, vec![Ok(42)]).unwrap());
    assert_eq!(straight, long);
    let (stop, report) = straight.1.unwrap();
    assert_eq!((stop, report.stop, report.attempts), (StopReason::Succeeded, StopReason::Succeeded, 1));
    assert_eq!(report.dependency.as_deref(), Some("users"));
}

#[test]
fn a_success_after_a_failure_is_reported_with_both_attempts() {
    let [straight, long] = [Way::Straight, Way::Long].map(|way| fetch(way, vec![refused(), Ok(42)]).unwrap());
    assert_eq!(straight, long);
    let (stop, report) = straight.1.unwrap();
    assert_eq!((stop, report.attempts, report.waits), (StopReason::Succeeded, 2, 1));
}

#[test]
fn a_call_that_ends_with_an_error_has_no_value_to_look_at() {
    let error = fetch(Way::Straight, (0..5).map(|_| refused()).collect()).unwrap_err();
    assert!(error.report().attempts > 1, "{error}");
}
