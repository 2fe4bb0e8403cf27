//! Sixty concurrent calls against a constant 503 under the Microsoft preset: the retries trip the breaker that is
//! inside them, and every call ends with it. In virtual time, with the core's own decisions.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use relent_core::{BreakerState, Decision, History, Idempotency, Observed, Policy, Preset, Route, Timestamp};

/// How the calls ended.
#[derive(Debug, Default)]
struct Ended {
    requests: u32,
    refused_by_breaker: u32,
    exhausted: u32,
    last: Timestamp,
}

/// What happens next to a call.
enum Next {
    Attempt(History),
    Answer(History, relent_core::breaker::Ticket),
}

fn outage(policy: &Policy, breaker: &mut BreakerState, calls: u64, latency: Duration, seed: u64) -> Ended {
    let mut ended = Ended::default();
    let mut agenda: BTreeMap<Timestamp, VecDeque<Next>> = BTreeMap::new();
    for call in 0..calls {
        let mut history = policy.begin(seed * 1_000_003 + call, Timestamp::ZERO, None, None);
        history.idempotency = Idempotency::Safe;
        agenda.entry(Timestamp::ZERO).or_default().push_back(Next::Attempt(history));
    }
    let down = policy.classify.verdict(Observed::Status(503), Route::default(), None);
    while let Some((now, due)) = agenda.pop_first() {
        ended.last = now;
        for next in due {
            let (at, next) = match next {
                Next::Attempt(history) => match breaker.admit(now) {
                    Ok(ticket) => {
                        ended.requests += 1;
                        (now.after(latency), Next::Answer(history, ticket))
                    }
                    Err(_) => {
                        ended.refused_by_breaker += 1;
                        continue;
                    }
                },
                Next::Answer(mut history, ticket) => {
                    let _transition = breaker.record(ticket, down, latency, now);
                    match policy.retry.conclude(&mut history, down, now) {
                        Decision::Retry(wait) => (now.after(wait.length), Next::Attempt(history)),
                        Decision::Stop(_) => {
                            ended.exhausted += 1;
                            continue;
                        }
                    }
                }
            };
            agenda.entry(at).or_default().push_back(next);
        }
    }
    ended
}

fn run(calls: u64, latency: Duration, seed: u64) -> (Ended, BreakerState) {
    let policy = Preset::MicrosoftStandard.policy();
    let mut breaker = BreakerState::new(policy.breaker.as_ref().expect("it has one"), seed);
    (outage(&policy, &mut breaker, calls, latency, seed), breaker)
}

#[test]
fn all_sixty_calls_end_with_the_breaker_and_a_hundred_requests_arrive() {
    let mut requests = 0;
    for seed in 0..RUNS {
        let (ended, mut breaker) = run(60, Duration::from_millis(1), seed);
        assert_eq!((ended.refused_by_breaker, ended.exhausted), (60, 0), "seed {seed}: {ended:?}");
        assert!((100..=102).contains(&ended.requests), "seed {seed}: {ended:?}");
        assert!(ended.last < Timestamp::from_millis(5_700), "seed {seed}: {ended:?}");
        let refused = breaker.admit(ended.last).expect_err("the next call is not sent");
        let opened = refused.until.expect("an open breaker knows").before(Duration::from_secs(5));
        let (first, last) = (Timestamp::from_millis(1_500), Timestamp::from_millis(2_755));
        assert!(opened >= first && opened < last, "seed {seed}: opened at {opened:?}");
        requests += ended.requests;
    }
    let mean = f64::from(requests) / RUNS as f64;
    assert!((99.9..100.5).contains(&mean), "{mean}");
}

#[test]
fn with_latency_only_what_is_in_flight_is_more_than_a_hundred() {
    for (millis, simulated) in [(50, 101.6), (200, 106.0)] {
        let requests: u32 = (0..RUNS)
            .map(|seed| {
                let (ended, _) = run(60, Duration::from_millis(millis), seed);
                assert_eq!(ended.refused_by_breaker, 60, "seed {seed}: {ended:?}");
                ended.requests
            })
            .sum();
        let mean = f64::from(requests) / RUNS as f64;
        assert!((mean - simulated).abs() < 0.5, "{millis} ms: {mean} for {simulated}");
    }
}

/// With fewer callers the hundred failures come too late for all of them to meet the open breaker.
#[test]
fn fewer_callers_do_not_all_end_with_the_breaker() {
    for (calls, broken) in [(26, 4.0), (34, 33.0), (50, 50.0)] {
        let refused: u32 =
            (0..RUNS).map(|seed| run(calls, Duration::from_millis(1), seed).0.refused_by_breaker).sum();
        let mean = f64::from(refused) / RUNS as f64;
        assert!((mean - broken).abs() < 0.6, "{calls} calls: {mean} for {broken}");
    }
}

const RUNS: u64 = 300;
