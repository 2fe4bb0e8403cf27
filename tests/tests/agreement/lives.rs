//! Random lives of a pipeline: a possible policy with any of the controls, and call after call over what they share.

use std::{fmt, time::Duration};

use proptest::{bool, collection::vec, option, prelude::*, sample::select};
use relent::{
    Backoff, BreakerPolicy, BudgetPolicy, Classification, ConcurrencyPolicy, ErrorClass, Gates, Idempotency,
    Observed, Policy, PolicyText, RatePolicy, RetryPolicy, ScriptedOutcome, SlowCalls, Table, Window,
    budget::{GrpcPolicy, LoanPolicy, Of, QuotaPolicy, RatioPolicy, SharePolicy},
};

use crate::case;

/// A policy in force, and its calls one after another. A failure prints the policy as it could be written down.
#[derive(Clone)]
pub(crate) struct Life {
    pub(crate) policy: Policy,
    /// The breaker's supply of chance.
    pub(crate) seed: u64,
    pub(crate) calls: Vec<Planned>,
}

/// One call.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) seed: u64,
    /// The caller's own deadline, from the call's beginning.
    pub(crate) upstream: Option<Duration>,
    /// How its attempts end, over and over.
    pub(crate) script: Vec<ScriptedOutcome>,
    /// Whether somebody else holds the one place at admission, and the one of the attempts.
    pub(crate) held: [bool; 2],
    /// What passes before the next.
    pub(crate) pause: Duration,
}

impl fmt::Debug for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policy = toml::to_string(&PolicyText::from(&self.policy)).map_err(|_| fmt::Error)?;
        writeln!(f, "seed {}, and this policy:\n\n{policy}", self.seed)?;
        self.calls.iter().try_for_each(|call| writeln!(f, "{call:?}"))
    }
}

/// Any life. Half of its calls fare well, or ill, together, as calls to one dependency do.
pub(crate) fn any() -> impl Strategy<Value = Life> {
    let stretches = vec((0..10u32, 4..12usize), 1..5).prop_flat_map(|stretches| {
        let stretch = |(bad, calls): (u32, usize)| vec(planned(bad), calls);
        stretches.into_iter().map(stretch).collect::<Vec<_>>().prop_map(|calls| calls.concat())
    });
    (policy(), any_u64(), stretches).prop_map(|(policy, seed, calls)| Life { policy, seed, calls })
}

fn planned(bad: u32) -> impl Strategy<Value = Planned> {
    let upstream = option::weighted(0.1, case::millis(500, 5_000));
    let held = || bool::weighted(0.1);
    (any_u64(), upstream, vec(outcome(bad), 1..6), [held(), held()], case::millis(0, 400))
        .prop_map(|(seed, upstream, script, held, pause)| Planned { seed, upstream, script, held, pause })
}

/// An outcome, of which so many in ten are bad.
fn outcome(bad: u32) -> impl Strategy<Value = ScriptedOutcome> {
    let observed = prop_oneof![
        10 - bad => Just(Observed::Status(200)),
        bad => prop_oneof![
            8 => select(vec![429, 502, 503, 504]).prop_map(Observed::Status),
            1 => select(vec![400, 404, 500]).prop_map(Observed::Status),
            2 => select(vec![ErrorClass::Connect, ErrorClass::Reset, ErrorClass::OwnFault])
                .prop_map(Observed::Error),
        ],
    ];
    let took = prop_oneof![2 => Just(Duration::ZERO), 6 => case::millis(1, 700), 1 => Just(Duration::MAX)];
    let asked = option::weighted(0.1, case::millis(0, 3_000));
    (observed, took, asked).prop_map(|(observed, took, server_wait)| ScriptedOutcome {
        observed,
        server_wait,
        took,
    })
}

fn policy() -> impl Strategy<Value = Policy> {
    let repeat = prop_oneof![4 => Just(Idempotency::Safe), 1 => select(Idempotency::ALL)];
    let limits = (case::millis(300, 1_000), case::millis(1_000, 6_000));
    let controls = (gates(), option::weighted(0.8, budget()), gates(), option::weighted(0.8, breaker()));
    (repeat, limits, retry(), select(Table::ALL), controls)
        .prop_map(
            |(repeat, (attempt_timeout, total), retry, table, (admission, budget, attempt, breaker))| {
                Policy {
                    repeat,
                    attempt_timeout,
                    total_timeout: Some(total),
                    retry,
                    classify: Classification::new(table),
                    admission,
                    budget,
                    attempt,
                    breaker,
                    ..Policy::live()
                }
            },
        )
        .prop_filter("the policy is possible", |policy| policy.validate().is_ok())
}

fn retry() -> impl Strategy<Value = RetryPolicy> {
    let backoff = (case::millis(1, 300), 1000..3000u32).prop_map(|(base, factor_milli)| {
        Backoff::Exponential { base, factor_milli, max: Duration::from_secs(10) }
    });
    let counts = option::weighted(0.9, 1..7u32);
    (counts, backoff, case::jitter(), case::server_wait(), case::millis(0, 100), case::millis(0, 200))
        .prop_map(|(max_attempts, backoff, jitter, server_wait, min_attempt, reserve)| RetryPolicy {
            max_attempts,
            backoff,
            jitter,
            server_wait,
            min_attempt,
            reserve,
            ..Policy::live().retry
        })
}

/// One place in flight, so that whoever else is there is in the way; and a rate that is soon used up.
fn gates() -> impl Strategy<Value = Gates> {
    let concurrency = (0..2u32).prop_map(|queue| ConcurrencyPolicy { limit: 1, queue });
    let rate = (1..4u32, case::millis(500, 5_000), 1..4u32).prop_map(|(permits, per, burst)| RatePolicy {
        permits,
        per,
        burst,
    });
    (option::weighted(0.6, concurrency), option::weighted(0.3, rate))
        .prop_map(|(concurrency, rate)| Gates { concurrency, rate })
}

fn budget() -> impl Strategy<Value = BudgetPolicy> {
    let ratio = (select(vec![Of::Originals, Of::All]), 100..1_000u32, 0..2u32).prop_map(
        |(of, share_milli, floor_per_second)| {
            BudgetPolicy::Ratio(RatioPolicy {
                of,
                share_milli,
                window: Duration::from_secs(10),
                floor_per_second,
            })
        },
    );
    prop_oneof![
        2 => Just(BudgetPolicy::Loan(LoanPolicy::default())),
        1 => Just(BudgetPolicy::Grpc(GrpcPolicy { max_milli: 4_000, ratio_milli: 300 })),
        1 => ratio,
        1 => (0..2u32).prop_map(|floor| BudgetPolicy::Share(SharePolicy { share_milli: 1_000, floor })),
        1 => Just(BudgetPolicy::Quota(QuotaPolicy { capacity_milli: 30_000, ..QuotaPolicy::AWS_2026 })),
    ]
}

fn breaker() -> impl Strategy<Value = BreakerPolicy> {
    let slow = (case::millis(100, 700), 500..1_000u32)
        .prop_map(|(longer_than, rate_milli)| SlowCalls { longer_than, rate_milli });
    let window =
        prop_oneof![(6..20u32).prop_map(Window::Count), case::millis(3_000, 20_000).prop_map(Window::Time),];
    let rules = (option::weighted(0.9, 300..900u32), option::weighted(0.4, slow), option::of(2..6u32));
    (rules, window, 2..6u32, case::millis(300, 3_000), 0..=1_000u32, 1..4u32).prop_map(
        |(
            (failure_rate_milli, slow_calls, consecutive_failures),
            window,
            min_calls,
            length,
            jitter,
            probes,
        )| {
            BreakerPolicy {
                failure_rate_milli,
                slow_calls,
                consecutive_failures,
                window,
                min_calls,
                break_time: Backoff::Exponential { base: length, factor_milli: 2000, max: length * 4 },
                break_jitter_milli: jitter,
                probes,
                ..BreakerPolicy::default()
            }
        },
    )
}

fn any_u64() -> impl Strategy<Value = u64> {
    proptest::num::u64::ANY
}
