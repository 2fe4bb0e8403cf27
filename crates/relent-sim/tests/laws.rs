//! What holds in every run, whatever the scenario: nothing is counted twice, nothing is lost, and what one policy alone
//! decides is what the core decides.

use std::time::Duration;

use relent_core::{BudgetPolicy, Policy, StopReason, budget::LoanPolicy};
use relent_sim::{
    Report, Scenario,
    policies::named,
    run,
    scenario::{Standard, Unusable},
};

fn standard_runs(policy: &Policy) -> impl Iterator<Item = (Scenario, Report)> {
    Standard::ALL.iter().map(move |standard| {
        // The first minutes are as good as all of them for what is counted here.
        let scenario = standard.scenario(&[]).unwrap_or_else(|error| panic!("{}: {error}", standard.id));
        let report = run(&scenario, policy, 1);
        (scenario, report)
    })
}

#[test]
fn points_and_windows_add_up_to_the_same() {
    for (scenario, report) in standard_runs(&named("grpc-budget").expect("built in")) {
        let sum = |of: fn(&relent_sim::Point) -> u64| report.points.iter().map(of).sum::<u64>();
        let all = report.all();
        assert_eq!(sum(|point| point.calls), all.calls, "{}", scenario.id);
        assert_eq!(sum(|point| point.ended), all.ended, "{}", scenario.id);
        assert_eq!(sum(|point| point.succeeded), all.succeeded, "{}", scenario.id);
        assert_eq!(sum(|point| point.successes), all.successes, "{}", scenario.id);
        assert_eq!(sum(|point| point.arrivals), all.arrivals, "{}", scenario.id);
        assert_eq!(sum(|point| point.rejected), all.rejected, "{}", scenario.id);
        assert_eq!(sum(|point| point.useful), all.useful, "{}", scenario.id);
        assert_eq!(sum(|point| point.wasted), all.wasted, "{}", scenario.id);
        assert_eq!(report.ends.iter().map(|(_, count)| count).sum::<u64>(), all.ended, "{}", scenario.id);
        assert!(all.ended <= all.calls && all.succeeded <= all.ended && all.rescued <= all.faltered);
    }
}

#[test]
fn no_retries_means_one_request_a_call_in_every_scenario() {
    for (scenario, report) in standard_runs(&named("no-retries").expect("built in")) {
        if scenario.id == "S9" {
            continue; // its callers may not give up, whatever the policy says
        }
        let all = report.all();
        assert_eq!(all.arrivals, all.calls, "{}", scenario.id);
        assert_eq!(all.rescued, 0, "{}", scenario.id);
    }
}

/// The loan budget's second guarantee: in an outage the failed retries are at most what was saved at its start and what
/// was out already. At steady traffic the bucket holds 0.02 of a minute's calls, that is 1.2 seconds' worth.
#[test]
fn an_outage_costs_what_the_loan_budget_had_saved_however_long_it_lasts() {
    for seconds in [30, 60, 120] {
        let length = format!("{seconds}s");
        let settings = [("effect.0.for", length.as_str()), ("duration", "300s")];
        let scenario = standard("S3", &settings).expect("it is possible");
        let report = run(&scenario, &named("default").expect("built in"), 1);
        let outage = report.window("trigger").expect("refused for a while");
        let retries = outage.arrivals - outage.calls;
        let saved = 800 * 12 / 10 + 20; // and less than a token's worth for each of the twenty clients
        assert!(retries <= saved && retries > 700, "{seconds} s: {retries} retries for {saved}");
    }
}

#[test]
fn a_budget_without_tokens_stops_every_retry() {
    let broke = LoanPolicy { start_milli: 0, earn_milli: 0, gain_milli: 0, ..LoanPolicy::default() };
    let policy = Policy { budget: Some(BudgetPolicy::Loan(broke)), ..named("default").expect("built in") };
    let report = run(&standard("S2", &[]).expect("it is possible"), &policy, 1);
    assert_eq!(report.all().arrivals, report.all().calls);
    assert!(report.ends.iter().any(|(reason, count)| reason.name() == "refused_budget" && *count > 1000));
}

#[test]
fn a_limit_of_calls_in_flight_keeps_the_dependencys_queue_short() {
    let mut policy = named("plain-loop").expect("built in");
    policy.admission.concurrency = Some(relent_core::ConcurrencyPolicy { limit: 50, queue: 100 });
    let scenario = standard("S4", &[("callers.clients", "1")]).expect("it is possible");
    let report = run(&scenario, &policy, 1);
    // An attempt that was given up still stands in the queue, so that gets deeper than the limit: in ten seconds by six
    // attempts of 2 s, 2 s and 1 s for each place, and by two more until all is worked off. Without a limit it is 20,000.
    assert!(report.points.iter().all(|point| point.in_flight <= 50));
    assert!(report.points.iter().all(|point| point.queued <= 50 * 8));
    assert!(
        report.ends.iter().any(|(reason, _)| *reason == StopReason::Refused(relent_core::Gate::Concurrency))
    );
    assert!(
        matches!(report.recovery, Some(relent_sim::Recovery::After(length)) if length <= Duration::from_secs(5))
    );
}

#[test]
fn a_rate_lets_no_more_through_than_it_says() {
    let mut policy = named("default").expect("built in");
    policy.attempt.rate =
        Some(relent_core::RatePolicy { permits: 30, per: Duration::from_secs(1), burst: 5 });
    let scenario = standard("S3", &[]).expect("it is possible");
    let report = run(&scenario, &policy, 1);
    // Twenty clients, thirty a second each, and a burst.
    assert!(report.points.iter().all(|point| point.arrivals <= 20 * 35), "more went through");
    let steady = &report.points[60..110];
    assert!(steady.iter().all(|point| point.arrivals >= 590), "less went through");
}

#[test]
fn a_breaker_spares_the_dependency_in_an_outage_and_lets_calls_through_after_it() {
    let policy = Policy { breaker: Some(Default::default()), ..named("plain-loop").expect("built in") };
    let report = run(&standard("S3", &[]).expect("it is possible"), &policy, 1);
    let outage = report.window("trigger").expect("refused for a while");
    assert!(outage.arrivals_per_call().expect("calls began") < 0.3, "{outage:?}");
    assert!(outage.breakers_opened >= 20, "each client's opened");
    assert_eq!(report.points[150].open + report.points[150].half_open, 20);
    let last = report.points.last().expect("points");
    assert_eq!((last.open, last.half_open), (0, 0));
    let settled = report.window("settled").expect("a window of the file");
    assert!(settled.success_percent().expect("calls began") > 90.0, "{settled:?}");
}

#[test]
fn services_that_cancel_downwards_spare_the_dependency_work() {
    let requests = |cancel| {
        let settings =
            [("layers.cancel_downwards", cancel), ("effect.0.kind", "hang"), ("callers.rate", "20")];
        let report =
            run(&standard("S8", &settings).expect("possible"), &named("plain-loop").expect("built in"), 1);
        let last = report.points.last().expect("points");
        assert_eq!(last.waiting, 0, "nothing is left over a minute after");
        assert!(last.in_flight <= 12, "what a second's calls have under way at three services, {last:?}");
        report.window("trigger").expect("hangs").arrivals
    };
    let (without, with) = (requests("false"), requests("true"));
    assert!(with < without * 9 / 10, "{with} and {without}");
}

#[test]
fn a_run_of_a_day_keeps_no_more_points_than_one_of_an_hour() {
    let points = |duration, rate| {
        let settings = [("duration", duration), ("callers.rate", rate)];
        let report =
            run(&standard("S1", &settings).expect("possible"), &named("default").expect("built in"), 1);
        assert_eq!(report.points.iter().map(|point| point.calls).sum::<u64>(), report.all().calls);
        (report.points.len(), report.interval)
    };
    assert_eq!(points("1h", "10"), (3600, Duration::from_secs(1)));
    assert_eq!(points("1d", "1"), (3600, Duration::from_secs(24)));
}

fn standard(id: &str, settings: &[(&str, &str)]) -> Result<Scenario, Unusable> {
    relent_sim::scenario::standard(id).expect("a standard scenario").scenario(settings)
}
