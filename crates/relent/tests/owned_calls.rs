//! A call that holds a clone of its pipeline depends on nobody, its future has a name, and no box is around it.

mod counting;

use std::{
    future::{Future, Pending, Ready, pending, ready},
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use counting::counted;
use relent::{
    Answer, Attempt, BreakerPolicy, Calls, Classification, ConcurrencyPolicy, Gates, Idempotency,
    ManualClock, Observed, Observing, Operation, Pipeline, Policy, Route, RouteRule, Routed, Rules, Run,
    Table, Work,
};

/// Answers with these statuses in turn.
struct Answers(&'static [u16]);

impl Operation for Answers {
    type Value = u16;
    type Error = io::Error;
    type Future = Ready<io::Result<u16>>;

    fn begin(&mut self, attempt: Attempt, _: impl FnOnce() -> Work) -> Self::Future {
        ready(Ok(self.0[attempt.number as usize - 1]))
    }
}

/// Never answers.
struct Silence;

impl Operation for Silence {
    type Value = u16;
    type Error = io::Error;
    type Future = Pending<io::Result<u16>>;

    fn begin(&mut self, _: Attempt, _: impl FnOnce() -> Work) -> Self::Future {
        pending()
    }
}

/// A request as a server knows it.
#[derive(Clone)]
struct Request {
    path: Arc<str>,
}

impl Routed for Request {
    fn route(&self) -> Route<'_> {
        Route { method: "GET", path: &self.path }
    }
}

type See = fn(Result<&u16, &io::Error>) -> Observed;
type Orders = Pipeline<ManualClock, Observing<See>>;

fn see(result: Result<&u16, &io::Error>) -> Observed {
    match result {
        Ok(status) => Observed::Status(*status),
        Err(error) => Observed::Error(relent::io_error_class(error)),
    }
}

fn orders(policy: Policy) -> Orders {
    Pipeline::on(ManualClock::new(), policy).unwrap().observe_with(see as See)
}

/// One call at a time, one may wait.
fn narrow() -> Policy {
    let concurrency = Some(ConcurrencyPolicy { limit: 1, queue: 1 });
    let gates = Gates { concurrency, rate: None };
    Policy { admission: gates, breaker: Some(BreakerPolicy::default()), ..Policy::live() }
}

fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_call_may_outlive_the_pipeline_that_it_was_begun_on() {
    fn depends_on_nobody<F: Future + Send + 'static>(call: F) -> F {
        call
    }
    let orders = orders(narrow());
    let clock = orders.clock().clone();
    let call: Run<Orders, (), Answers> = Calls::through(orders).safe().run_operation(Answers(&[503, 200]));
    assert_eq!(clock.block_on(depends_on_nobody(call)).unwrap(), 200);
}

#[test]
fn it_shares_everything_with_the_pipeline_it_is_a_clone_of_and_allocates_nothing() {
    let orders = orders(narrow());
    let place = orders.call_limit().unwrap();
    let (answered, allocations) =
        counted(|| poll_once(Calls::through(orders.clone()).run_operation(Answers(&[200]))));
    assert!(matches!(answered, Poll::Ready(Ok(200))));
    assert_eq!(allocations, 0);

    let mut held = Box::pin(Calls::through(Arc::new(orders.clone())).run_operation(Silence));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(held.as_mut().poll(&mut cx).is_pending());
    assert_eq!(place.in_flight(), 1);

    let mut waits = Box::pin(Calls::through(orders.clone()).run_operation(Answers(&[200])));
    assert!(waits.as_mut().poll(&mut cx).is_pending());
    assert_eq!((place.in_flight(), place.waiting()), (1, 1));
    drop(waits);
    assert_eq!((place.in_flight(), place.waiting()), (1, 0));
    drop(held);
    assert_eq!((place.in_flight(), orders.clock().sleepers()), (0, 0));
}

#[test]
fn a_wait_for_admission_that_is_granted_and_not_taken_up_goes_to_nobody() {
    let orders = orders(narrow());
    let place = orders.call_limit().unwrap();
    let held = place.try_acquire().unwrap();
    let mut waits = Box::pin(Calls::through(orders.clone()).run_operation(Answers(&[200])));
    assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(held);
    assert_eq!(place.in_flight(), 1, "it was granted");
    drop(waits);
    assert_eq!((place.in_flight(), place.waiting()), (0, 0));
}

#[test]
fn rules_for_a_route_hold_for_a_request_that_the_call_owns() {
    let rules = Rules { statuses: vec![(404, 404, Answer::NotNow)], ..Rules::default() };
    let rule = RouteRule {
        method: None,
        path: "/fresh/*".into(),
        rules,
        repeat: Some(Idempotency::Safe),
        fresh_for: None,
    };
    let classify = Classification { routes: vec![rule], ..Classification::new(Table::Documents) };
    let orders = orders(Policy { classify, ..Policy::live() });
    let clock = orders.clock().clone();
    for (path, expected) in [("/fresh/7", 200), ("/old/7", 404)] {
        let calls = Calls::through(orders.clone()).routed_by(Request { path: Arc::from(path) });
        assert_eq!(clock.block_on(calls.run_operation(Answers(&[404, 200]))).unwrap(), expected, "{path}");
        let calls = orders.calls().on_route("GET", path);
        assert_eq!(clock.block_on(calls.run_operation(Answers(&[404, 200]))).unwrap(), expected, "{path}");
    }
}

#[test]
fn a_deadline_is_a_term_like_the_others() {
    let orders = orders(Policy::live());
    let clock = orders.clock().clone();
    let call = Calls::through(orders).safe().with_deadline_in(Duration::from_millis(700));
    let (result, report) = clock.block_on(call.run_operation_with_report(Silence));
    assert_eq!(result.unwrap_err().stop().name(), "upstream_deadline");
    assert_eq!(report.took, Duration::from_millis(700));
}

#[test]
fn after_a_panic_of_the_operation_nothing_follows() {
    let orders = orders(narrow());
    let mut begun = 0;
    let mut call = Box::pin(orders.safe().run(|_| {
        begun += 1;
        if begun == 1 { panic!("as planned") } else { ready(Ok(200)) }
    }));
    for expected in ["as planned", "polled after it has given its output or panicked"] {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _ = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }));
        assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&expected));
    }
    drop(call);
    assert_eq!((begun, orders.call_limit().unwrap().in_flight()), (1, 0));
}
