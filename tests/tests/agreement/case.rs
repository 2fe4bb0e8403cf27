//! Random cases: a possible policy, a seed, and how each attempt would end.

use std::{fmt, ops::Range, time::Duration};

use proptest::{collection::vec, option, prelude::*, sample::select};
use relent::{
    Answer, Backoff, Classification, DurationText, ErrorClass, Idempotency, Jitter, Observed, Over, Policy,
    PolicyText, RetryPolicy, RouteRule, Rules, ScriptedOutcome, ServerWait, ServerWaitMode, Table,
};

/// One case. A failure prints the policy as it could be written down.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) policy: Policy,
    pub(crate) seed: u64,
    /// The caller's own deadline, from the start.
    pub(crate) upstream: Option<Duration>,
    /// Ends with a success at once, so that every call ends.
    pub(crate) script: Vec<ScriptedOutcome>,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policy = toml::to_string(&PolicyText::from(&self.policy)).map_err(|_| fmt::Error)?;
        let upstream = self.upstream.map(DurationText);
        writeln!(f, "seed {}, upstream deadline {upstream:?}, and this policy:\n\n{policy}", self.seed)?;
        for outcome in &self.script {
            write!(f, "{} takes {}", outcome.observed, DurationText(outcome.took))?;
            if let Some(asked) = outcome.server_wait {
                write!(f, " asks {}", DurationText(asked))?;
            }
            f.write_str(", ")?;
        }
        Ok(())
    }
}

/// Any case that every driver can be given.
pub(crate) fn any() -> impl Strategy<Value = Case> {
    (case(outcome()), option::weighted(0.2, millis(2_000, 60_000)))
        .prop_map(|(case, upstream)| Case { upstream, ..case })
}

/// A case in which workers die: every third attempt is lost with its worker, and many meet a fault of our own.
pub(crate) fn with_losses() -> impl Strategy<Value = Case> {
    let class = prop_oneof![2 => Just(ErrorClass::Lost), 1 => Just(ErrorClass::OwnFault)];
    let mishap = (outcome(), class).prop_map(|(outcome, class)| ScriptedOutcome {
        observed: Observed::Error(class),
        server_wait: None,
        ..outcome
    });
    case(prop_oneof![outcome(), mishap])
}

fn case(outcome: impl Strategy<Value = ScriptedOutcome>) -> impl Strategy<Value = Case> {
    (policy(), proptest::num::u64::ANY, vec(outcome, 0..14)).prop_map(|(policy, seed, mut script)| {
        script.push(ScriptedOutcome::at_once(Observed::Status(200)));
        Case { policy, seed, upstream: None, script }
    })
}

fn policy() -> impl Strategy<Value = Policy> {
    (repeat(), limits(), retry(), classification())
        .prop_map(|(repeat, (attempt_timeout, total_timeout, business_deadline), retry, classify)| Policy {
            repeat,
            attempt_timeout,
            total_timeout,
            business_deadline,
            retry,
            classify,
            // What many calls share decides about none of them alone, and stays out.
            budget: None,
            ..Policy::durable()
        })
        .prop_filter("the policy is possible", |policy| policy.validate().is_ok())
}

/// All of them, but seldom the one that ends most calls after an attempt.
fn repeat() -> impl Strategy<Value = Idempotency> {
    prop_oneof![
        12 => select(vec![Idempotency::Safe, Idempotency::Keyed]),
        3 => Just(Idempotency::Unsafe),
        1 => Just(Idempotency::Never),
    ]
}

fn limits() -> impl Strategy<Value = (Duration, Option<Duration>, Option<Duration>)> {
    let business = prop_oneof![millis(2_000, 60_000), millis(60_000, 3 * DAY)];
    (millis(100, 30_000), option::of(millis(2_000, 600_000)), option::of(business))
}

fn retry() -> impl Strategy<Value = RetryPolicy> {
    let counts = (option::of(1..12u32), 0..4u32);
    let curves = (backoff(), option::of(backoff()), jitter(), millis(60_000, DAY));
    (counts, curves, server_wait(), millis(0, 90), millis(0, 500)).prop_map(
        |(
            (max_attempts, max_losses),
            (backoff, throttled_backoff, jitter, max_wait),
            server_wait,
            min_attempt,
            reserve,
        )| {
            RetryPolicy {
                max_attempts,
                backoff,
                throttled_backoff,
                jitter,
                max_wait,
                server_wait,
                min_attempt,
                reserve,
                max_losses,
            }
        },
    )
}

fn backoff() -> impl Strategy<Value = Backoff> {
    prop_oneof![
        millis(1, 5_000).prop_map(Backoff::Constant),
        (millis(1, 2_000), millis(2_000, HOUR)).prop_map(|(base, max)| Backoff::Linear { base, max }),
        (millis(1, 2_000), 1000..5000u32, millis(2_000, DAY))
            .prop_map(|(base, factor_milli, max)| Backoff::Exponential { base, factor_milli, max }),
        vec(millis(1, 20_000), 1..6).prop_map(Backoff::Steps),
    ]
}

pub(crate) fn jitter() -> impl Strategy<Value = Jitter> {
    prop_oneof![
        3 => Just(Jitter::Full),
        1 => Just(Jitter::None),
        1 => Just(Jitter::Equal),
        1 => Just(Jitter::Decorrelated),
        1 => Just(Jitter::PollyV2),
        1 => (0..=1000u32, 0..=2000u32)
            .prop_map(|(below_milli, above_milli)| Jitter::Proportional { below_milli, above_milli }),
    ]
}

pub(crate) fn server_wait() -> impl Strategy<Value = ServerWait> {
    let mode = prop_oneof![
        3 => Just(ServerWaitMode::Above),
        1 => Just(ServerWaitMode::Longer),
        1 => Just(ServerWaitMode::Replace),
        1 => millis(1, 60_000).prop_map(ServerWaitMode::Within),
        1 => Just(ServerWaitMode::Ignore),
    ];
    (mode, millis(1, HOUR), select(Over::ALL)).prop_map(|(mode, limit, over)| ServerWait {
        mode,
        limit,
        over,
    })
}

/// A table, and rules above it, for this route, another and all; none about 200, which ends every script.
fn classification() -> impl Strategy<Value = Classification> {
    let path = select(vec!["/orders", "/ord*", "/elsewhere"]);
    let matched = (select(vec![None, Some("POST"), Some("GET")]), path, rules(1..3));
    let repeat = option::weighted(0.1, repeat());
    let fresh_for = option::weighted(0.1, millis(2_000, 600_000));
    let route = (matched, repeat, fresh_for).prop_map(|((method, path, rules), repeat, fresh_for)| {
        RouteRule { method: method.map(str::to_string), path: path.to_string(), rules, repeat, fresh_for }
    });
    (select(Table::ALL), rules(0..3), vec(route, 0..3)).prop_map(|(table, rules, routes)| Classification {
        rules,
        routes,
        ..Classification::new(table)
    })
}

fn rules(statuses: Range<usize>) -> impl Strategy<Value = Rules> {
    let status = (300..560u16, 0..40u16, select(Answer::ALL))
        .prop_map(|(low, more, answer)| (low, low + more, answer));
    // A fault of our own is nobody's answer, and no rule may say otherwise.
    let classes: Vec<_> =
        SEEN_ERRORS.iter().copied().filter(|class| *class != ErrorClass::OwnFault).collect();
    let error = (select(classes), select(Answer::ALL));
    (vec(status, statuses), vec(error, 0..3)).prop_map(|(statuses, errors)| Rules { statuses, errors })
}

fn outcome() -> impl Strategy<Value = ScriptedOutcome> {
    let observed = prop_oneof![
        6 => select(vec![429, 502, 503, 504, 408]).prop_map(Observed::Status),
        2 => select(vec![200, 204, 302, 400, 401, 404, 425, 500, 501, 505]).prop_map(Observed::Status),
        3 => select(SEEN_ERRORS).prop_map(Observed::Error),
    ];
    let took = prop_oneof![3 => Just(Duration::ZERO), 3 => millis(1, 2_000), 1 => millis(2_000, 60_000), 1 => Just(Duration::MAX)];
    let asked = prop_oneof![3 => Just(None), 1 => Just(Some(Duration::ZERO)), 1 => millis(1, 2 * HOUR).prop_map(Some)];
    (observed, took, asked).prop_map(|(observed, took, server_wait)| ScriptedOutcome {
        observed,
        server_wait,
        took,
    })
}

pub(crate) fn millis(low: u64, high: u64) -> impl Strategy<Value = Duration> {
    // With some nanoseconds, so that no rounding goes unseen.
    (low..=high, 0..1_000_000u32).prop_map(move |(millis, nanos)| {
        Duration::from_millis(millis) + Duration::from_nanos(if millis < high { u64::from(nanos) } else { 0 })
    })
}

/// What an operation may return: anything but the loss of its worker.
const SEEN_ERRORS: &[ErrorClass] = &[
    ErrorClass::Dns,
    ErrorClass::Connect,
    ErrorClass::ConnectTimeout,
    ErrorClass::Tls,
    ErrorClass::NotSent,
    ErrorClass::Unprocessed,
    ErrorClass::Reset,
    ErrorClass::HeaderTimeout,
    ErrorClass::BodyTimeout,
    ErrorClass::Timeout,
    ErrorClass::Protocol,
    ErrorClass::Blocked,
    ErrorClass::Panic,
    ErrorClass::OwnFault,
    ErrorClass::Other,
];
const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;
