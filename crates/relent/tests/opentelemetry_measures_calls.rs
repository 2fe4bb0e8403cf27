//! What OpenTelemetry's own SDK exports of calls: each instrument, with its unit and its attributes.

#![cfg(feature = "opentelemetry")]

mod meter;
mod support;

use std::{
    collections::BTreeSet,
    io,
    pin::pin,
    task::{Context, Waker},
};

use meter::{Meter, points};
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
use relent::{
    Backoff, BreakerPolicy, BudgetPolicy, ConcurrencyPolicy, Gates, ManualClock, Observing, Pipeline, Policy,
    RatePolicy,
};
use support::{Act, Dependency, SECOND, Seen, at_once, pipeline, plain, with_attempts};

fn measured(meter: &Meter, clock: &ManualClock, policy: Policy) -> Pipeline<ManualClock, Observing<Seen>> {
    pipeline(clock, policy).named("users").observed_by(meter.observer.clone())
}

#[test]
fn a_recovered_retry_is_one_good_call_of_two_attempts() {
    let (clock, meter) = (ManualClock::new(), Meter::new());
    let users = measured(&meter, &clock, with_attempts(3, plain(Backoff::Constant(SECOND))));
    let dependency = Dependency::new(&clock, &[Act::Answer(503, SECOND), at_once(200)]);
    clock.block_on(users.run(|a| dependency.call(a))).unwrap();
    assert_eq!(
        meter.lines(),
        [
            "relent.attempt.duration [attempt.outcome=success retry=true] 1: 0",
            "relent.attempt.duration [attempt.outcome=unavailable error.type=unavailable retry=false] 1: 1",
            "relent.call.active [] 0",
            "relent.call.attempts [call.reason=succeeded] 1: 2",
            "relent.call.duration [call.reason=succeeded retry=true] 1: 2",
            "relent.retry.delay [error.type=unavailable wait.origin=backoff] 1: 1",
        ]
    );
}

#[test]
fn time_outs_of_attempts_and_of_the_call_and_used_up_attempts_are_told_apart() {
    let (clock, meter) = (ManualClock::new(), Meter::new());
    let base = with_attempts(2, plain(Backoff::Constant(SECOND)));
    let users = measured(&meter, &clock, Policy { attempt_timeout: SECOND, ..base.clone() });
    let hanging = Dependency::new(&clock, &[Act::Hang]);
    clock.block_on(users.run(|a| hanging.call(a))).unwrap_err();
    let hasty = Policy { total_timeout: Some(3 * SECOND), attempt_timeout: 2 * SECOND, ..base };
    clock.block_on(measured(&meter, &clock, hasty).run(|a| hanging.call(a))).unwrap_err();
    let asked = Dependency::new(&clock, &[Act::Busy(2 * SECOND), at_once(404)]);
    clock.block_on(users.run(|a| asked.call(a))).unwrap();
    assert_eq!(
        meter.of("relent.attempt.duration"),
        [
            "[attempt.outcome=permanent error.type=permanent retry=true] 1: 0",
            "[attempt.outcome=timeout error.type=timeout retry=false] 2: 3",
            "[attempt.outcome=timeout error.type=timeout retry=true] 1: 1",
            "[attempt.outcome=unavailable error.type=unavailable retry=false] 1: 0",
        ]
    );
    assert_eq!(
        meter.of("relent.call.duration"),
        [
            "[call.reason=attempts_exhausted error.type=timeout retry=true] 1: 3",
            "[call.reason=permanent error.type=permanent retry=true] 1: 2",
            "[call.reason=total_timeout error.type=timeout retry=false] 1: 2",
        ]
    );
    assert_eq!(
        meter.of("relent.retry.delay"),
        ["[error.type=timeout wait.origin=backoff] 1: 1", "[error.type=unavailable wait.origin=server] 1: 2",]
    );
}

#[test]
fn a_caller_who_gives_up_is_no_failure_and_leaves_nothing_active() {
    let (clock, meter) = (ManualClock::new(), Meter::new());
    let users = measured(&meter, &clock, with_attempts(2, plain(Backoff::Constant(SECOND))));
    let dependency = Dependency::new(&clock, &[Act::Hang]);
    {
        let mut call = pin!(users.run(|a| dependency.call(a)));
        assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!(meter.of("relent.call.active"), ["[] 1"]);
    }
    assert_eq!(
        meter.lines(),
        [
            "relent.attempt.duration [attempt.outcome=cancelled retry=false] 1: 0",
            "relent.call.active [] 0",
            "relent.call.attempts [call.reason=cancelled] 1: 1",
            "relent.call.duration [call.reason=cancelled retry=false] 1: 0",
        ]
    );
}

/// A call waits for a rate and is refused by its budget, the next by a concurrency limit.
fn at_the_gates(meter: &Meter) {
    let clock = ManualClock::new();
    let rate = Some(RatePolicy { permits: 1, per: 2 * SECOND, burst: 1 });
    let policy = Policy {
        admission: Gates { rate, ..Gates::default() },
        attempt: Gates { concurrency: Some(ConcurrencyPolicy { limit: 1, queue: 0 }), ..Gates::default() },
        total_timeout: Some(60 * SECOND),
        budget: Some(BudgetPolicy::default()),
        ..with_attempts(3, plain(Backoff::Constant(SECOND)))
    };
    let users = measured(meter, &clock, policy);
    let busy = Dependency::new(&clock, &[at_once(503)]);
    clock.block_on(users.run(|a| busy.call(a))).unwrap();
    let _holder = users.attempt_limit().unwrap().try_acquire().unwrap();
    clock.block_on(users.run(|a| busy.call(a))).unwrap_err();
}

#[test]
fn what_a_gate_refuses_or_holds_back_says_which_gate_and_where() {
    let meter = Meter::new();
    at_the_gates(&meter);
    assert_eq!(meter.of("relent.gate.wait"), ["[gate=rate stage=admission] 1: 1"]);
    assert_eq!(
        meter.of("relent.gate.refusals"),
        ["[gate=budget stage=retry] 1", "[gate=concurrency stage=gates] 1"]
    );
    assert_eq!(meter.of("relent.budget.transitions"), ["[budget.state=refuses] 1"]);
    assert_eq!(
        meter.of("relent.call.attempts"),
        [
            "[call.reason=refused_budget error.type=unavailable] 1: 2",
            "[call.reason=refused_concurrency error.type=refused_concurrency] 1: 0",
        ]
    );
}

/// A breaker trips, and its probe closes it.
fn round_a_breaker(meter: &Meter) {
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
    let users = measured(meter, &clock, Policy { breaker: Some(breaker), ..base });
    let dependency = Dependency::new(&clock, &[at_once(503), at_once(503), at_once(200)]);
    clock.block_on(users.run(|a| dependency.call(a))).unwrap();
    clock.advance(5 * SECOND);
    clock.block_on(users.run(|a| dependency.call(a))).unwrap();
}

#[test]
fn a_breakers_changes_are_counted_with_what_tripped_it() {
    let meter = Meter::new();
    round_a_breaker(&meter);
    assert_eq!(
        meter.of("relent.breaker.transitions"),
        [
            "[breaker.from=closed breaker.to=open breaker.trip=consecutive] 1",
            "[breaker.from=half_open breaker.to=closed] 1",
            "[breaker.from=open breaker.to=half_open] 1",
        ]
    );
}

/// Work outlives its attempts, in retries within retries.
fn nested_and_late(meter: &Meter) {
    let clock = ManualClock::new();
    let policy = Policy { attempt_timeout: SECOND, ..with_attempts(2, plain(Backoff::Constant(SECOND))) };
    let outer = Pipeline::on(clock.clone(), policy.clone()).unwrap().named("shop");
    let users =
        Pipeline::on(clock.clone(), policy).unwrap().named("users").observed_by(meter.observer.clone());
    let inner = || {
        let called = users.run_blocking(|_| {
            clock.advance(2 * SECOND);
            Ok::<_, io::Error>(())
        });
        called.map_err(|_| io::Error::from(io::ErrorKind::ConnectionRefused))
    };
    outer.run_blocking(|_| inner()).unwrap_err();
}

#[test]
fn retries_within_retries_and_work_that_outlives_its_attempt_are_counted() {
    let meter = Meter::new();
    nested_and_late(&meter);
    assert_eq!(meter.of("relent.attempt.overruns"), ["[] 4"]);
    assert_eq!(meter.of("relent.nested.calls"), ["[nesting=within] 2"]);
}

#[test]
fn a_control_that_pipelines_of_one_name_share_counts_once() {
    let (clock, meter) = (ManualClock::new(), Meter::new());
    let policy = || Policy {
        breaker: Some(BreakerPolicy::default()),
        budget: Some(BudgetPolicy::default()),
        ..with_attempts(2, plain(Backoff::Constant(SECOND)))
    };
    let reads = pipeline(&clock, policy()).named("users");
    let (budget, breaker) = (reads.budget().unwrap(), reads.breaker().unwrap());
    let writes = pipeline(&clock, policy()).named("users").sharing_budget(budget).with_breaker(breaker);
    let alone = pipeline(&clock, policy()).named("users");
    for watched in [&reads, &writes, &alone, &reads.clone()] {
        meter.observer.watch(watched);
    }
    assert_eq!(meter.of("relent.budget.tokens"), ["[] 2"], "one shared, one not");
    assert_eq!(meter.of("relent.breaker.state")[0], "[breaker.state=closed] 2");
}

#[test]
fn limits_of_two_pipelines_of_one_name_are_added_up_and_one_of_two_clones_is_counted_once() {
    let (clock, meter) = (ManualClock::new(), Meter::new());
    let limited = |limit| {
        let concurrency = Some(ConcurrencyPolicy { limit, queue: 0 });
        let attempt = Gates { concurrency, ..Gates::default() };
        let policy = Policy { attempt, ..with_attempts(2, plain(Backoff::Constant(SECOND))) };
        pipeline(&clock, policy).named("users")
    };
    let (reads, writes) = (limited(3), limited(4));
    let [reading, writing] = [&reads, &writes].map(|users| users.attempt_limit().unwrap());
    let _under_way = (reading.try_acquire().unwrap(), writing.try_acquire().unwrap());
    for watched in [&reads, &writes, &reads.clone()] {
        meter.observer.watch(watched);
    }
    assert_eq!(meter.of("relent.limit.max"), ["[stage=gates] 7"]);
    assert_eq!(meter.of("relent.limit.usage"), ["[stage=gates] 2"]);
}

#[test]
fn a_watched_pipeline_shows_how_its_controls_stand_and_ends_with_the_pipeline() {
    let (clock, meter) = (ManualClock::new(), Meter::new());
    let policy = Policy {
        attempt: Gates { concurrency: Some(ConcurrencyPolicy { limit: 3, queue: 0 }), ..Gates::default() },
        breaker: Some(BreakerPolicy::default()),
        budget: Some(BudgetPolicy::default()),
        ..with_attempts(2, plain(Backoff::Constant(SECOND)))
    };
    let users = pipeline(&clock, policy).named("users");
    meter.observer.watch(&users);
    // By hand, and by a call that nobody observes.
    users.breaker().unwrap().isolate();
    let place = users.attempt_limit().unwrap().try_acquire().unwrap();
    let state =
        |of: &str| format!("relent.breaker.state [breaker.state={of}] {}", u8::from(of == "isolated"));
    let mut expected = vec!["relent.attempt.overrunning [] 0".to_owned()];
    expected.extend(["closed", "forced_closed", "half_open", "isolated", "observe_only", "open"].map(state));
    expected.push("relent.budget.tokens [] 1".into());
    expected.push("relent.limit.max [stage=gates] 3".into());
    expected.push("relent.limit.usage [stage=gates] 1".into());
    assert_eq!(meter.lines(), expected);
    drop(place);

    users.breaker().unwrap().close();
    let busy = Dependency::new(&clock, &[at_once(503)]);
    clock.block_on(users.run(|a| busy.call(a))).unwrap();
    assert_eq!(meter.of("relent.budget.tokens"), ["[] 0"]);
    // TS-04: what is removed is not reachable any more.
    drop(users);
    assert_eq!(meter.lines(), Vec::<String>::new());
}

#[test]
fn the_table_in_the_docs_lists_every_instrument_with_its_kind_and_unit_and_every_attribute() {
    let meter = Meter::new();
    at_the_gates(&meter);
    round_a_breaker(&meter);
    nested_and_late(&meter);
    let everything = Policy {
        attempt: Gates { concurrency: Some(ConcurrencyPolicy { limit: 1, queue: 0 }), ..Gates::default() },
        breaker: Some(BreakerPolicy::default()),
        ..Policy::live()
    };
    let watched = Pipeline::on(ManualClock::new(), everything).unwrap().named("users");
    meter.observer.watch(&watched);
    let docs = include_str!("../src/event/opentelemetry.rs");
    let rows: Vec<&str> = docs.lines().filter(|line| line.starts_with("/// | `relent.")).collect();
    let exported = meter.exported().expect("much was measured");
    let scope = exported.scope_metrics().next().expect("a scope");
    assert_eq!((scope.scope().name(), scope.scope().version()), ("relent", Some(env!("CARGO_PKG_VERSION"))));
    let mut names = BTreeSet::new();
    for metric in scope.metrics() {
        let kind = match metric.data() {
            AggregatedMetrics::F64(MetricData::Histogram(_))
            | AggregatedMetrics::U64(MetricData::Histogram(_)) => "histogram",
            AggregatedMetrics::I64(_) => "up-down counter",
            AggregatedMetrics::F64(MetricData::Gauge(_)) => "gauge",
            _ => "counter",
        };
        let row = format!("/// | `{}` | {kind}, {} | ", metric.name(), metric.unit());
        let row = rows.iter().find(|line| line.starts_with(&row)).unwrap_or_else(|| panic!("{row}"));
        assert!(metric.description().ends_with('.'), "{}", metric.name());
        for point in points(metric) {
            let attributes = point.split(['[', ']']).nth(1).expect("a list");
            for pair in attributes.split(' ').filter(|pair| !pair.is_empty()) {
                let name = pair.split('=').next().expect("a name");
                let name = if name == "error.type" { name.to_owned() } else { format!("relent.{name}") };
                assert!(row.contains(&format!("`{name}`")), "{row} lacks {name}");
            }
        }
        names.insert(metric.name().to_owned());
    }
    assert_eq!(names.len(), 16, "all were measured: {names:?}");
}

#[test]
fn a_thousand_calls_need_no_more_series_than_two() {
    let (clock, meter) = (ManualClock::new(), Meter::new());
    let users = measured(&meter, &clock, with_attempts(2, plain(Backoff::Constant(SECOND))));
    let series = |meter: &Meter| meter.lines().len();
    let mut few = 0;
    for call in 0..1_000 {
        let dependency = Dependency::new(&clock, &[at_once(503), at_once(200)]);
        let path = format!("/users/{call}");
        clock.block_on(users.calls().on_route("GET", &path).run(|a| dependency.call(a))).unwrap();
        if call == 1 {
            few = series(&meter);
        }
    }
    assert_eq!(series(&meter), few, "no id and no path is a label");
}
