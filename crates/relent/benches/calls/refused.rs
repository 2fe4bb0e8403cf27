//! Calls that are refused: the breaker is open, the limit is full, the rate is used up, the budget is empty.

use std::{
    future::{pending, poll_fn},
    sync::Mutex,
    task::Poll,
    time::Duration,
};

use failsafe::{CircuitBreaker, backoff, failure_policy};
use recloser::Recloser;
use relent::{Error, Gate, Gates, Policy, RatePolicy, StopReason, Timestamp};
use tower::{
    Service, ServiceBuilder,
    limit::ConcurrencyLimitLayer,
    load_shed::LoadShedLayer,
    retry::{RetryLayer, budget::TpsBudget},
    service_fn,
};
use tower_resilience::{
    bulkhead::BulkheadLayer, circuitbreaker::CircuitBreakerLayer, ratelimiter::RateLimiterLayer,
};

use crate::{
    controls::{breakers, budgets, rates},
    operation::{Busy, fails, ready},
    packed::{Packed, Rules},
    peers::AtOnce,
    policy::{broke, by_hand, in_force, limited_to, rules, standard},
    table::{Row, Table, Threads},
    work::{Work, calls, kept, on_runtime, services, steps},
};

pub(crate) fn tables() -> Vec<Table> {
    let table = |name, title, rows: &[Row]| Table { name, title, threads: Threads::One, rows: rows.to_vec() };
    vec![
        table("open", "A call that an open breaker refuses", OPEN),
        table("full", "A call that a full limit refuses", FULL),
        table("used-up", "A call that a rate limit refuses", USED_UP),
        table("broke", "A retry that an empty budget refuses, its failed attempt included", BROKE),
    ]
}

const OPEN: &[Row] = &[
    ("by hand", packed_open),
    ("relent", relent_open),
    ("relent's breaker, no more, told the time", breakers::open),
    ("recloser", recloser_open),
    ("failsafe", failsafe_open),
    ("tower-resilience breaker, no more", resilience_open),
];

const FULL: &[Row] = &[
    ("by hand", || packed_refuses(Rules { limit: 0, ..rules() })),
    ("relent", relent_full),
    ("tower load shed and limit, no more", tower_full),
    ("tower-resilience bulkhead, no more", resilience_full),
];

const USED_UP: &[Row] = &[
    ("relent", relent_used_up),
    ("relent's limit, no more", rates::relent_empty),
    ("governor, no more", rates::governor_empty),
    ("tower-resilience rate limiter, no more", resilience_used_up),
];

const BROKE: &[Row] = &[
    ("by hand", packed_broke),
    ("relent", relent_broke),
    ("tower retry and budget, no more", tower_broke),
    ("relent's budget, no more, without the attempt", budgets::loan_empty),
    ("tower TpsBudget, no more, without the attempt", budgets::tower_empty),
];

/// It tripped over one failure.
fn packed_open() -> Work {
    let packed = by_hand(Rules { least_calls: 1, open_for: 3_600_000_000_000, ..rules() });
    assert!(on_runtime(packed.run(|_| fails())).is_err());
    refusals(packed)
}

fn packed_refuses(rules: Rules) -> Work {
    refusals(by_hand(rules))
}

fn refusals(packed: &'static Packed) -> Work {
    calls(move || packed.run(|_| ready()), Result::is_err)
}

fn relent_open() -> Work {
    let pipeline = in_force(standard());
    let _told = pipeline.breaker().expect("there is one").force_open(Timestamp::MAX);
    calls(move || pipeline.safe().run(|_| ready()), refused_by(Gate::Breaker))
}

fn recloser_open() -> Work {
    let recloser = Recloser::custom().closed_len(1).open_wait(HOUR).build();
    for _ in 0..3 {
        let _counted = recloser.call(|| Err::<u32, _>(Busy));
    }
    steps(move || assert!(recloser.call(|| Ok::<_, Busy>(7)).is_err()))
}

fn failsafe_open() -> Work {
    let policy = failure_policy::consecutive_failures(1, backoff::constant(HOUR));
    let breaker = failsafe::Config::new().failure_policy(policy).build();
    let _counted = breaker.call(|| Err::<u32, _>(Busy));
    steps(move || assert!(breaker.call(|| Ok::<_, Busy>(7)).is_err()))
}

fn resilience_open() -> Work {
    let (layer, handle) =
        CircuitBreakerLayer::builder().wait_duration_in_open(HOUR).build_with_handle().expect("a breaker");
    on_runtime(handle.force_open());
    services(ServiceBuilder::new().layer(layer).service(service_fn(|()| ready())), Result::is_err)
}

/// One call is in flight for good.
fn relent_full() -> Work {
    let mut admission = limited_to(1);
    admission.concurrency.iter_mut().for_each(|limit| limit.queue = 0);
    let pipeline = in_force(Policy { admission, ..standard() });
    let limit = pipeline.call_limit().expect("there is one");
    kept(limit.try_acquire().expect("nobody is in flight").keep());
    calls(move || pipeline.safe().run(|_| ready()), refused_by(Gate::Concurrency))
}

fn tower_full() -> Work {
    let limit = ConcurrencyLimitLayer::new(0);
    let stack =
        ServiceBuilder::new().layer(LoadShedLayer::new()).layer(limit).service(service_fn(|()| ready()));
    services(stack, Result::is_err)
}

/// Its one place is taken by a call that never ends.
fn resilience_full() -> Work {
    let layer =
        BulkheadLayer::builder().max_concurrent_calls(1).reject_when_full().build().expect("a bulkhead");
    let endless = service_fn(|()| pending::<Result<u32, Busy>>());
    let mut stack = ServiceBuilder::new().layer(layer).service(endless);
    let first = kept(Mutex::new(stack.call(())));
    let mut first = first.lock().expect("nobody else has it");
    on_runtime(poll_fn(|cx| {
        assert!(first.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    }));
    services(stack, Result::is_err)
}

fn relent_used_up() -> Work {
    let rate = RatePolicy { permits: 1, per: HOUR, burst: 1 };
    let pipeline =
        in_force(Policy { admission: Gates { rate: Some(rate), ..limited_to(100) }, ..standard() });
    assert!(on_runtime(pipeline.safe().run(|_| ready())).is_ok());
    calls(move || pipeline.safe().run(|_| ready()), refused_by(Gate::Rate))
}

fn resilience_used_up() -> Work {
    let layer = RateLimiterLayer::builder()
        .limit_for_period(1)
        .refresh_period(HOUR)
        .timeout_duration(Duration::ZERO)
        .build()
        .expect("a limit");
    let mut stack = ServiceBuilder::new().layer(layer).service(service_fn(|()| ready()));
    assert!(on_runtime(stack.call(())).is_ok());
    services(stack, Result::is_err)
}

/// Its breaker asks for more calls than there are.
fn packed_broke() -> Work {
    let packed = by_hand(Rules { least_calls: u64::MAX, most_tokens: 0, ..rules() });
    calls(move || packed.run(|_| fails()), Result::is_err)
}

fn relent_broke() -> Work {
    let pipeline = in_force(broke());
    calls(move || pipeline.safe().run(|_| fails()), refused_by(Gate::Budget))
}

fn refused_by(gate: Gate) -> impl Fn(&Result<u32, Error<Busy>>) -> bool {
    let stop = StopReason::Refused(gate);
    move |called| called.as_ref().is_err_and(|error| error.stop() == stop)
}

fn tower_broke() -> Work {
    let retry = RetryLayer::new(AtOnce::with(TpsBudget::new(Duration::from_secs(60), 0, 0.2)));
    services(ServiceBuilder::new().layer(retry).service(service_fn(|()| fails())), Result::is_err)
}

const HOUR: Duration = Duration::from_secs(3_600);
