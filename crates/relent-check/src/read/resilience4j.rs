//! resilience4j in a Spring Boot `application.yml`: each instance under `resilience4j.retry`, and what else is there
//! under the same name.
//!
//! # Source
//!
//! resilience4j 2.4, `RetryConfig`, `CommonRetryConfigurationProperties`, `CircuitBreakerConfig`, `IntervalFunction`
//! (the longest wait is cut after the randomisation); the order of its aspects: Retry ( CircuitBreaker ( RateLimiter
//! ( TimeLimiter ( Bulkhead ( function ))))).

use std::time::Duration;

use relent_core::{
    Answer, Backoff, BreakerPolicy, Classification, ConcurrencyPolicy, ErrorClass, Idempotency, Jitter,
    Policy, RatePolicy, ServerWaitMode, SlowCalls, Table, Window,
};
use serde_json::{Value, json};

use super::{
    node::{Node, Seen},
    section::Section,
};
use crate::{
    change::Change,
    read::{Edit, Key},
    subject::{Format, Origin, Part, Subject, Unread},
};

pub(super) fn subjects(tree: &Value) -> Vec<Subject> {
    let seen = Seen::default();
    let top = Node::top(tree, &seen, ".");
    let documents = if tree.is_array() { top.children() } else { vec![top] };
    documents.iter().flat_map(instances).collect()
}

fn instances(top: &Node<'_>) -> Vec<Subject> {
    let Some(retry) = module(top, "retry") else {
        return Vec::new();
    };
    let named = retry.get("instances").or_else(|| retry.get("backends"));
    let instances = named.map(|instances| instances.children()).unwrap_or_default();
    match (instances.is_empty(), retry.get("configs.default")) {
        (true, Some(default)) => vec![read(top, &default, vec![default.clone()])],
        _ => instances.iter().map(|instance| read(top, instance, levels(&retry, instance))).collect(),
    }
}

/// `resilience4j: { retry: … }`, or the same with keys that hold dots.
fn module<'a>(top: &Node<'a>, name: &str) -> Option<Node<'a>> {
    let nested = top.get("resilience4j").and_then(|all| all.get(name));
    nested.or_else(|| {
        let dotted = format!("resilience4j.{name}");
        top.children().into_iter().find(|child| child.name().eq_ignore_ascii_case(&dotted))
    })
}

/// Where a setting of an instance is looked for: in itself, then in the configuration that it names, or in the
/// default one.
fn levels<'a>(module: &Node<'a>, instance: &Node<'a>) -> Vec<Node<'a>> {
    let base = instance.get("baseConfig").and_then(|name| name.text().ok());
    let base = module.get("configs").and_then(|configs| configs.get(base.as_deref().unwrap_or("default")));
    std::iter::once(instance.clone()).chain(base).collect()
}

/// The instance of that name in another module, if it has one.
fn sibling<'a>(top: &Node<'a>, kind: &str, name: &str) -> Option<Vec<Node<'a>>> {
    let module = module(top, kind)?;
    let instance = module.get("instances").or_else(|| module.get("backends"))?.get(name)?;
    Some(levels(&module, &instance))
}

fn read<'a>(top: &Node<'a>, instance: &Node<'a>, levels: Vec<Node<'a>>) -> Subject {
    let mut policy = Policy::live();
    policy.repeat = Idempotency::Safe;
    policy.total_timeout = None;
    policy.budget = None;
    policy.retry.min_attempt = Duration::ZERO;
    policy.retry.server_wait.mode = ServerWaitMode::Ignore;
    let name = instance.name().to_owned();
    let subject = Subject::new(&name, Format::Resilience4j, policy).at(&instance.keys);
    let mut section = Section { subject, node: instance.clone() };
    retry(&mut section, &levels);
    exceptions(&mut section, &levels);
    for (part, origin) in ORIGINS {
        section.subject.origins.insert(part, origin);
    }
    attempt(&mut section, sibling(top, "timelimiter", &name));
    breaker(&mut section, sibling(top, "circuitbreaker", &name), &name);
    limits(&mut section, sibling(top, "bulkhead", &name), sibling(top, "ratelimiter", &name));
    section.done()
}

/// The first level that has a setting.
fn setting<'a, T>(
    section: &mut Section<'a>,
    levels: &[Node<'a>],
    part: Part,
    name: &str,
    read: impl Fn(&Node<'a>) -> Result<T, Unread>,
) -> Option<T> {
    let level = levels.iter().find(|level| level.get(name).is_some()).or(levels.first())?.clone();
    section.take_at(&level, part, name, read)
}

fn retry<'a>(section: &mut Section<'a>, levels: &[Node<'a>]) {
    for known in
        ["baseConfig", "eventConsumerBufferSize", "failAfterMaxAttempts", "writableStackTraceEnabled"]
    {
        levels.iter().filter_map(|level| level.get(known)).for_each(|node| node.look());
    }
    let attempts = setting(section, levels, Part::Attempts, "maxAttempts", Node::count).unwrap_or(3);
    let wait =
        setting(section, levels, Part::Backoff, "waitDuration", length).unwrap_or(Duration::from_millis(500));
    let grows =
        setting(section, levels, Part::Backoff, "enableExponentialBackoff", Node::truth).unwrap_or(false);
    let factor = setting(section, levels, Part::Backoff, "exponentialBackoffMultiplier", Node::thousandths);
    let cap = setting(section, levels, Part::Cap, "exponentialMaxWaitDuration", length);
    let random = setting(section, levels, Part::Jitter, "enableRandomizedWait", Node::truth).unwrap_or(false);
    let spread =
        setting(section, levels, Part::Jitter, "randomizedWaitFactor", Node::thousandths).unwrap_or(500);
    let Subject { policy, habits, .. } = &mut section.subject;
    policy.retry.max_attempts = Some(attempts.max(1));
    policy.retry.backoff = match grows {
        true => Backoff::Exponential {
            base: wait,
            factor_milli: factor.unwrap_or(1500),
            max: cap.unwrap_or(DAY).max(wait),
        },
        false => Backoff::Constant(wait),
    };
    policy.retry.jitter = match random {
        true => Jitter::Proportional { below_milli: spread.min(1000), above_milli: spread },
        false => Jitter::None,
    };
    habits.waits_nothing = wait.is_zero();
    habits.cuts_after_jitter = grows && cap.is_some();
}

/// Exceptions have no statuses; what a bug throws is one of them.
fn exceptions<'a>(section: &mut Section<'a>, levels: &[Node<'a>]) {
    let retried = setting(section, levels, Part::Classify, "retryExceptions", Node::texts);
    let ignored =
        setting(section, levels, Part::Classify, "ignoreExceptions", Node::texts).unwrap_or_default();
    let all = ["java.lang.Throwable", "java.lang.Exception", "java.lang.RuntimeException"];
    let bugs = match &retried {
        None => ignored.is_empty(),
        Some(names) => names.iter().any(|name| all.contains(&name.as_str())) && ignored.is_empty(),
    };
    let mut classify = Classification::new(Table::Documents);
    if bugs {
        classify.rules.errors.push((ErrorClass::Panic, Answer::NotNow));
    }
    section.subject.policy.classify = classify;
    let but = ignored.iter().map(|name| format!("not {name}"));
    let every = || vec!["every exception".to_owned()];
    section.subject.repeats = retried.unwrap_or_else(every).into_iter().chain(but).collect();
}

fn attempt<'a>(section: &mut Section<'a>, limiter: Option<Vec<Node<'a>>>) {
    let Some(levels) = limiter else {
        let elsewhere = "no timelimiter has its name; the HTTP client's own time-outs bound an attempt";
        section.subject.origins.insert(Part::AttemptTimeout, Origin::Elsewhere(elsewhere));
        return;
    };
    let timeout = setting(section, &levels, Part::AttemptTimeout, "timeoutDuration", length);
    section.subject.policy.attempt_timeout = timeout.unwrap_or(Duration::from_secs(1));
}

fn breaker<'a>(section: &mut Section<'a>, instance: Option<Vec<Node<'a>>>, name: &str) {
    let Some(levels) = instance else {
        let path = format!("resilience4j.circuitbreaker.instances.{name}");
        section.subject.origins.insert(Part::Breaker, Origin::Default(path.clone()));
        section.subject.origins.insert(Part::Budget, Origin::Default(path));
        return;
    };
    let count = |section: &mut Section<'a>, name: &str, default: u32| {
        setting(section, &levels, Part::Breaker, name, Node::count).unwrap_or(default)
    };
    let window = count(section, "slidingWindowSize", 100);
    let calls = count(section, "minimumNumberOfCalls", 100);
    let probes = count(section, "permittedNumberOfCallsInHalfOpenState", 10);
    let rate = setting(section, &levels, Part::Breaker, "failureRateThreshold", Node::thousandths);
    let slow = setting(section, &levels, Part::Breaker, "slowCallRateThreshold", Node::thousandths);
    let slower = setting(section, &levels, Part::Breaker, "slowCallDurationThreshold", length);
    let open = setting(section, &levels, Part::Breaker, "waitDurationInOpenState", length);
    let timed = setting(section, &levels, Part::Breaker, "slidingWindowType", Node::text)
        .is_some_and(|kind| kind.eq_ignore_ascii_case("TIME_BASED"));
    let slow_calls = (slow.is_some() || slower.is_some()).then(|| SlowCalls {
        longer_than: slower.unwrap_or(Duration::from_secs(60)),
        rate_milli: slow.unwrap_or(100_000) / 100,
    });
    section.subject.policy.breaker = Some(BreakerPolicy {
        failure_rate_milli: Some(rate.unwrap_or(50_000) / 100),
        slow_calls,
        consecutive_failures: None,
        window: if timed {
            Window::Time(Duration::from_secs(window.into()))
        } else {
            Window::Count(window.max(1))
        },
        min_calls: if timed { calls } else { calls.min(window.max(1)) },
        break_time: Backoff::Constant(open.unwrap_or(Duration::from_secs(60))),
        break_jitter_milli: 0,
        probes: probes.clamp(1, BreakerPolicy::MOST_PROBES),
        probe_timeout: DAY,
    });
    let ends = Origin::Fixed("it has no budget; its circuit breaker ends an outage");
    section.subject.origins.insert(Part::Budget, ends);
}

fn limits<'a>(section: &mut Section<'a>, bulkhead: Option<Vec<Node<'a>>>, limiter: Option<Vec<Node<'a>>>) {
    if let Some(levels) = bulkhead {
        let limit = setting(section, &levels, Part::Limits, "maxConcurrentCalls", Node::count).unwrap_or(25);
        section.subject.policy.attempt.concurrency = Some(ConcurrencyPolicy { limit, queue: 0 });
    }
    if let Some(levels) = limiter {
        let permits = setting(section, &levels, Part::Limits, "limitForPeriod", Node::count).unwrap_or(50);
        let per = setting(section, &levels, Part::Limits, "limitRefreshPeriod", length);
        let per = per.unwrap_or(Duration::from_nanos(500));
        section.subject.policy.attempt.rate =
            Some(RatePolicy { permits: permits.max(1), per, burst: permits.max(1) });
    }
    let none = Origin::Elsewhere("no bulkhead and no ratelimiter has its name; code around it may limit");
    section.subject.origins.entry(Part::Limits).or_insert(none);
}

/// A length as Spring reads it: a bare number is milliseconds; `500ms`, `2s`, `PT1.5S`.
fn length(node: &Node<'_>) -> Result<Duration, Unread> {
    let text = node.text()?;
    if let Ok(millis) = text.parse::<u64>() {
        return Ok(Duration::from_millis(millis));
    }
    let iso = text.strip_prefix("PT").map(|rest| rest.to_ascii_lowercase());
    let read = relent_core::parse_duration(iso.as_deref().unwrap_or(&text)).ok();
    read.ok_or_else(|| node.refuse(format!("\"{text}\" is not a duration like 500ms, 2s or PT2S")))
}

pub(super) fn edit(subject: &Subject, change: &Change) -> Option<Edit> {
    let set = |name: &str, value: Value| Some(Edit::below(&subject.keys, &[name], value, ".", ": "));
    let beside = |module: &str, names: &[&str], value: Value| {
        // `resilience4j`, `retry`, `instances` or `configs`, and its name; the first two may be one key.
        let (root, rest) = subject.keys.split_at_checked(subject.keys.len().checked_sub(3)?)?;
        let [Key::Name(retry), kind, name] = rest else {
            return None;
        };
        let module = retry.strip_suffix("retry").map(|before| format!("{before}{module}"))?;
        let mut keys = root.to_vec();
        keys.extend([Key::Name(module), kind.clone(), name.clone()]);
        Some(Edit::below(&keys, names, value, ".", ": "))
    };
    let millis = |length: &Duration| json!(format!("{}ms", length.as_millis()));
    match change {
        Change::MaxAttempts(attempts) => set("maxAttempts", json!(attempts)),
        Change::AttemptTimeout(length) => beside("timelimiter", &["timeoutDuration"], millis(length)),
        Change::Jitter(_) if subject.policy.retry.jitter == Jitter::None => {
            set("enableRandomizedWait", json!(true))
        }
        Change::Jitter(Jitter::Proportional { .. }) => set("randomizedWaitFactor", json!(0.5)),
        Change::Backoff(Backoff::Exponential { base, .. }) if subject.habits.waits_nothing => {
            set("waitDuration", millis(base))
        }
        Change::Backoff(Backoff::Exponential { max, .. }) if subject.habits.cuts_after_jitter => {
            set("exponentialMaxWaitDuration", millis(max))
        }
        Change::Backoff(Backoff::Exponential { .. }) => set("enableExponentialBackoff", json!(true)),
        Change::Error(ErrorClass::Panic, Answer::No) => {
            set("retryExceptions", json!(["java.io.IOException", "java.util.concurrent.TimeoutException"]))
        }
        Change::Breaker(_) => beside(
            "circuitbreaker",
            &[],
            json!({ "failureRateThreshold": 60, "slidingWindowSize": 100, "minimumNumberOfCalls": 20 }),
        ),
        Change::BreakerRate(milli) => {
            beside("circuitbreaker", &["failureRateThreshold"], json!(f64::from(*milli) / 10.0))
        }
        Change::BreakerMinCalls(calls) => beside("circuitbreaker", &["minimumNumberOfCalls"], json!(calls)),
        _ => None,
    }
}

const ORIGINS: [(Part, Origin); 6] = [
    (
        Part::Deadline,
        Origin::Elsewhere("nothing of resilience4j bounds a call with its retries; code around it may"),
    ),
    (Part::Hints, Origin::Fixed("a wait that the answer asks for needs an interval function in code")),
    (
        Part::Repeat,
        Origin::Elsewhere("it repeats whatever is annotated; the code knows whether that is safe"),
    ),
    (Part::Exhausted, Origin::Fixed("the last exception goes to the caller, or to its fallback")),
    (Part::Alert, Origin::Elsewhere("alerts stand where its metrics are collected")),
    (
        Part::Visible,
        Origin::Elsewhere("it counts retries in Micrometer (resilience4j.retry.calls), where that is bound"),
    ),
];

const DAY: Duration = Duration::from_secs(86_400);
