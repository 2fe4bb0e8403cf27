//! Random scenarios under random policies: whatever stands between the callers and the dependency, a run ends, counts
//! everything once, lets nothing leak, and repeats.

use std::time::Duration;

use proptest::{prelude::*, sample::select};
use relent_core::{
    BreakerPolicy, BudgetPolicy, ConcurrencyPolicy, Gates, Policy, RatePolicy,
    budget::{GrpcPolicy, QuotaPolicy, RatioPolicy, SharePolicy},
};
use relent_sim::{Point, Report, Scenario, policies::named, run};

fn scenario() -> impl Strategy<Value = String> {
    let callers = prop_oneof![
        (20u32..300).prop_map(|rate| format!("kind = 'open'\nrate = {rate}")),
        (1u32..200, 0u32..3000).prop_map(|(callers, think)| format!(
            "kind = 'closed'\ncallers = {callers}\nthink = '{think}ms'"
        )),
        (1u32..500).prop_map(|callers| format!("kind = 'herd'\ncallers = {callers}\nat = '5s'")),
    ];
    let effect = select(
        &[
            "kind = 'refuse'",
            "kind = 'hang'\nshare = 0.5",
            "kind = 'fail'\nshare = 0.7",
            "kind = 'speed'\nto = 0.0",
            "kind = 'speed'\nto = 0.2",
            "kind = 'maintenance'",
        ][..],
    );
    let parts = (1u32..6, 0u32..400, 0u32..8, any::<bool>(), 1u32..4, any::<bool>());
    (callers, effect, parts, select(&["next", "again"][..]), 1u32..10).prop_map(
        |(callers, effect, (workers, queue, cost, drops, layers, cancels), give_up, clients)| {
            format!(
                "id = 'random'\nduration = '40s'\n\
                 [dependency]\nworkers = {workers}\nservice = '15ms'\nqueue = {queue}\n\
                 reject_cost = '{cost}ms'\ndrop_expired = {drops}\n\
                 [callers]\n{callers}\nclients = {clients}\ngive_up = '{give_up}'\n\
                 [layers]\ncount = {layers}\ncancel_downwards = {cancels}\n\
                 [[effect]]\n{effect}\nfrom = '8s'\nfor = '7s'\n"
            )
        },
    )
}

fn policy() -> impl Strategy<Value = Policy> {
    let budget = select(vec![
        None,
        Some(BudgetPolicy::default()),
        Some(BudgetPolicy::Grpc(GrpcPolicy::default())),
        Some(BudgetPolicy::Ratio(RatioPolicy::FINAGLE)),
        Some(BudgetPolicy::Share(SharePolicy::default())),
        Some(BudgetPolicy::Quota(QuotaPolicy::AWS_2026)),
    ]);
    let gates = || {
        let concurrency = proptest::option::of((1u32..20, 0u32..20))
            .prop_map(|limits| limits.map(|(limit, queue)| ConcurrencyPolicy { limit, queue }));
        let rate = proptest::option::of((1u32..100, 1u32..20)).prop_map(|limits| {
            limits.map(|(permits, burst)| RatePolicy { permits, per: Duration::from_secs(1), burst })
        });
        (concurrency, rate).prop_map(|(concurrency, rate)| Gates { concurrency, rate })
    };
    let breaker = proptest::option::of(Just(BreakerPolicy::default()));
    let base = select(&["default", "plain-loop", "microsoft-standard", "grpc-a6", "aws-2026", "envoy"][..]);
    (base, budget, gates(), gates(), breaker, 1u32..6).prop_map(
        |(base, budget, admission, attempt, breaker, attempts)| {
            let mut policy = named(base).expect("built in");
            policy.retry.max_attempts = Some(attempts);
            Policy { budget, admission, attempt, breaker, ..policy }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_run_counts_everything_once_and_repeats(text in scenario(), policy in policy(), seed: u64) {
        let scenario = Scenario::parse(&text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
        prop_assume!(policy.validate().is_ok());
        let report = run(&scenario, &policy, seed);
        let all = report.all();
        let sum = |of: fn(&Point) -> u64| report.points.iter().map(of).sum::<u64>();
        prop_assert_eq!((sum(|p| p.calls), sum(|p| p.arrivals)), (all.calls, all.arrivals));
        prop_assert_eq!((sum(|p| p.ended), sum(|p| p.succeeded)), (all.ended, all.succeeded));
        prop_assert_eq!(report.ends.iter().map(|(_, count)| count).sum::<u64>(), all.ended);
        prop_assert!(all.rescued <= all.succeeded && all.succeeded <= all.ended && all.ended <= all.calls);
        let most = u64::from(policy.retry.max_attempts.expect("it is set")).pow(scenario.layers);
        prop_assert!(all.arrivals <= all.calls * most, "{} requests of {} calls", all.arrivals, all.calls);
        prop_assert!(sum(|p| p.answered) >= all.succeeded, "no success without an answer");
        nothing_leaks(&scenario, &policy, &report)?;
        prop_assert_eq!(run(&scenario, &policy, seed), report);
    }
}

/// Limits are kept, however calls end.
fn nothing_leaks(scenario: &Scenario, policy: &Policy, report: &Report) -> Result<(), TestCaseError> {
    let clients = scenario.callers.clients * scenario.layers;
    if let Some(limit) = policy.attempt.concurrency {
        let most = limit.limit * clients;
        prop_assert!(report.points.iter().all(|point| point.in_flight <= most), "more than {most} in flight");
    }
    prop_assert!(report.points.iter().all(|point| point.open + point.half_open <= clients));
    // A call of no more than five seconds leaves nothing behind: who began in the first half has ended. (At the last
    // service of several, a call may still run that nobody waits for; it is not the callers'.)
    if policy.total_timeout.is_some_and(|total| total <= Duration::from_secs(5)) {
        let early = &report.points[..report.points.len() / 2];
        prop_assert!(early.iter().all(|point| point.ended == point.calls), "a call never ended");
    }
    Ok(())
}
