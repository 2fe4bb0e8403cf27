//! The simulator against published figures, continued: closed loops, a herd and a named instant, where waits make the
//! difference and not budgets. As in `published.rs`: facts, met within 15 %, or 3 points, or 3 s.

use std::time::Duration;

use relent_core::{Backoff, Jitter, Over, Policy, ServerWait, ServerWaitMode};
use relent_sim::{Recovery, Report, Sums, policies::named, run, scenario::standard};

/// The loop of the article, without a budget, with these waits.
fn waits(backoff: Backoff, jitter: Jitter) -> Policy {
    let mut policy = named("plain-loop").expect("built in");
    policy.retry.backoff = backoff;
    policy.retry.jitter = jitter;
    policy
}

fn exponential(base_ms: u64, max_s: u64) -> Backoff {
    let (base, max) = (Duration::from_millis(base_ms), Duration::from_secs(max_s));
    Backoff::Exponential { base, factor_milli: 2000, max }
}

fn fixed(millis: u64) -> Backoff {
    Backoff::Constant(Duration::from_millis(millis))
}

fn reports(id: &str, policy: &Policy, seeds: u64) -> Vec<Report> {
    let scenario = standard(id).expect("a standard scenario").scenario(&[]).expect("it is possible");
    (1..=seeds).map(|seed| run(&scenario, policy, seed)).collect()
}

fn mean(reports: &[Report], window: &str, of: impl Fn(&Sums) -> f64) -> f64 {
    let sums = reports.iter().map(|report| of(report.window(window).expect("a window of the file")));
    sums.sum::<f64>() / reports.len() as f64
}

#[track_caller]
fn is_met(what: &str, figure: f64, found: f64, least: f64) {
    println!("{what:60} {figure:9.2} {found:9.2}");
    assert!((found - figure).abs() <= least.max(0.15 * figure), "{what}: {found} for {figure}");
}

/// S9: arrivals and successes a second at 100 to 110 s, and whether the loop came free.
#[test]
fn a_closed_loop_comes_free_if_its_callers_wait_long_enough() {
    #[rustfmt::skip]
    let published = [
        ("none", waits(Backoff::Constant(Duration::ZERO), Jitter::None), 1875.0, 0.0, false),
        ("fixed 0.2 s", waits(fixed(200), Jitter::None), 1688.0, 0.0, false),
        ("full jitter 0.2..1", waits(exponential(200, 1), Jitter::Full), 1500.0, 0.0, false),
        ("full jitter 0.2..10", waits(exponential(200, 10), Jitter::Full), 195.0, 195.0, true),
        ("exponential 0.2..10 without jitter", waits(exponential(200, 10), Jitter::None), 198.0, 198.0, true),
        ("full jitter 0.2..30", waits(exponential(200, 30), Jitter::Full), 200.0, 200.0, true),
    ];
    for (name, policy, arrivals, successes, comes_free) in published {
        let reports = reports("S9", &policy, 2);
        let a_second = |of: fn(&Sums) -> u64| mean(&reports, "100-110 s", |sums| of(sums) as f64 / 10.0);
        is_met(&format!("S9 {name}: arrivals a second"), arrivals, a_second(|sums| sums.arrivals), 0.0);
        is_met(&format!("S9 {name}: successes a second"), successes, a_second(|sums| sums.successes), 3.0);
        let free =
            |report: &Report| matches!(report.recovery, Some(Recovery::After(after)) if after.as_secs() <= 3);
        assert!(reports.iter().all(|report| free(report) == comes_free), "{name}");
    }
}

/// With waits of up to 4 s the callers ask for up to 1,000 a second where 500 can be borne: it may come free and may
/// not. The published run did, after 7 s.
#[test]
fn on_the_edge_a_closed_loop_comes_free_or_not_as_chance_will_have_it() {
    let reports = reports("S9", &waits(exponential(200, 4), Jitter::Full), 8);
    let free: Vec<Duration> = reports
        .iter()
        .filter_map(|report| match report.recovery {
            Some(Recovery::After(after)) => Some(after),
            _ => None,
        })
        .collect();
    assert!(!free.is_empty() && free.len() < reports.len(), "{} of {}", free.len(), reports.len());
    is_met("S9 full jitter 0.2..4: recovery", 7.0, free[0].as_secs_f64(), 3.0);
}

/// S9's other half: 2,000 callers at one moment.
#[test]
fn a_herd_is_spread_by_jitter_and_by_nothing_else() {
    #[rustfmt::skip]
    let published = [
        ("none", waits(Backoff::Constant(Duration::ZERO), Jitter::None), 0.0, 10.6, 4.58, 10.0),
        ("fixed 0.2 s", waits(fixed(200), Jitter::None), 0.0, 50.4, 3.98, 11.0),
        ("exponential 0.2..10 without jitter", waits(exponential(200, 10), Jitter::None), 1373.0, 52.4, 3.95, 13.0),
        ("full jitter 0.2..10", waits(exponential(200, 10), Jitter::Full), 17.0, 94.2, 3.72, 12.0),
        ("full jitter 1..10", waits(exponential(1000, 10), Jitter::Full), 11.0, 100.0, 2.40, 16.0),
    ];
    for (name, policy, peak, success, arrivals, last) in published {
        let reports = reports("S9b", &policy, 30);
        let later = mean(&reports, "after the first wave", |sums| sums.peak as f64);
        is_met(&format!("herd, {name}: peak after the first wave"), peak, later, 0.0);
        let all = |of: fn(&Sums) -> Option<f64>| mean(&reports, "all", |sums| of(sums).expect("calls"));
        is_met(&format!("herd, {name}: success"), success, all(Sums::success_percent), 3.0);
        is_met(&format!("herd, {name}: arrivals a call"), arrivals, all(Sums::arrivals_per_call), 0.0);
        let ended = all(|sums| sums.last_success.map(|at| at.as_nanos() as f64 / 1e9));
        is_met(&format!("herd, {name}: last success"), last, ended, 3.0);
    }
}

/// S10: what the callers do with a hint that names one instant for all.
#[test]
fn a_named_instant_makes_a_stampede_of_those_who_obey_it() {
    let hint = |mode| ServerWait { mode, limit: Duration::from_secs(3600), over: Over::Stop };
    let obeying = |mode, budget| {
        let mut policy = named("plain-loop").expect("built in");
        policy.total_timeout = None;
        policy.retry.server_wait = hint(mode);
        Policy { budget, ..policy }
    };
    let loan = Policy::live().budget;
    #[rustfmt::skip]
    let published = [
        ("ignored", obeying(ServerWaitMode::Ignore, None), 6.2, 1709.0, 35.0, None, 100.0, 2.59),
        ("obeyed exactly", obeying(ServerWaitMode::Longer, None), 18.7, 38_858.0, 12_182.0, Some(49_029.0), 91.3, 2.70),
        ("obeyed exactly, loan budget", obeying(ServerWaitMode::Longer, loan), 0.5, 655.0, 63.0, Some(0.0), 100.0, 1.00),
    ];
    for (name, policy, during, arrivals, peak, rejections, after, per_call) in published {
        let reports = reports("S10", &policy, 3);
        let percent = |sums: &Sums| sums.success_percent().expect("calls");
        is_met(
            &format!("S10 {name}: success in the window"),
            during,
            mean(&reports, "trigger", percent),
            3.0,
        );
        let second = mean(&reports, "first second after", |sums| sums.arrivals as f64);
        is_met(&format!("S10 {name}: arrivals in the second after"), arrivals, second, 0.0);
        let most = mean(&reports, "first second after", |sums| sums.peak as f64);
        is_met(&format!("S10 {name}: most of them in 10 ms"), peak, most, 0.0);
        if let Some(rejections) = rejections {
            let found = mean(&reports, "50-80 s", |sums| sums.rejected as f64);
            is_met(&format!("S10 {name}: rejections after"), rejections, found, 0.0);
        }
        is_met(
            &format!("S10 {name}: success after"),
            after,
            mean(&reports, "ten seconds after", percent),
            3.0,
        );
        let ratio = mean(&reports, "30-80 s", |sums| sums.arrivals_per_call().expect("calls"));
        is_met(&format!("S10 {name}: arrivals a call"), per_call, ratio, 0.0);
    }
}

/// Who ignores the hint meets a queue that overflows for a moment. What is rejected then is the difference of two numbers
/// twice and three times as large, and varies from run to run by a fifth (121 of 580); 515 was one run's, and so was the
/// 1,709 that arrived. The mean of thirty runs is within the tolerance, and so is what was let in.
#[test]
fn who_ignores_the_hint_meets_a_hundred_times_fewer_rejections_than_who_obeys_it() {
    let mut policy = named("plain-loop").expect("built in");
    policy.total_timeout = None;
    policy.retry.server_wait.mode = ServerWaitMode::Ignore;
    let reports = reports("S10", &policy, 30);
    let rejected = mean(&reports, "50-80 s", |sums| sums.rejected as f64);
    is_met("S10 ignored: rejections after", 515.0, rejected, 0.0);
    let arrived = mean(&reports, "first second after", |sums| sums.arrivals as f64);
    is_met("S10 ignored: let in of those in the second after", 1709.0 - 515.0, arrived - rejected, 0.0);
}
