//! The policy's TOML: what it means, that it prints what it means, and what it refuses.

mod text;

use std::time::Duration;

use relent_core::{
    Answer, Backoff, BudgetPolicy, Classification, ErrorClass, Gates, Idempotency, Jitter, Observed,
    OnExhausted, Over, Policy, PolicyText, Route, RouteRule, Rules, ServerWait, ServerWaitMode, Table,
};
use text::{assert_refused, assert_unknown, read};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Every slot of a policy, but for its controls, set to something that is not the default.
fn unlike_the_default() -> Policy {
    let mut policy = read(
        r#"
        repeat = "keyed"
        attempt_timeout = "1500ms"
        total_timeout = "none"
        business_deadline = "3d"
        on_exhausted = "discard"
        alert = "orders on call"

        [retry]
        max_attempts = "unlimited"
        min_attempt = "50ms"
        reserve = "1s"
        max_losses = 1
        jitter = { below = 0.2, above = 0.125 }
        max_wait = "12h"
        backoff = { kind = "linear", base = "1s", max = "1m" }
        throttled_backoff = { kind = "steps", waits = ["1s", "5s", "1m"] }
        server_wait = { mode = { within = "5s" }, limit = "1h", over = "clamp" }

        [classify]
        table = "webhook"
        status = { 404 = "not_now", 5xx = "no", 500-503 = "not_now" }
        error = { tls = "no" }

        [[classify.route]]
        method = "GET"
        path = "/orders/*"
        status = { 404 = "throttled" }
        repeat = "never"
        fresh_for = "2s"
        "#,
    );
    policy.retry.jitter = Jitter::Proportional { below_milli: 200, above_milli: 125 };
    policy
}

#[test]
fn every_field_means_what_it_says() {
    let policy = unlike_the_default();
    let expected = Policy {
        repeat: Idempotency::Keyed,
        attempt_timeout: ms(1500),
        total_timeout: None,
        business_deadline: Some(Duration::from_secs(3 * 86_400)),
        on_exhausted: OnExhausted::Discard,
        alert: Some("orders on call".into()),
        admission: Gates::default(),
        budget: Some(BudgetPolicy::default()),
        attempt: Gates::default(),
        breaker: None,
        retry: relent_core::RetryPolicy {
            max_attempts: None,
            min_attempt: ms(50),
            reserve: ms(1000),
            max_losses: 1,
            jitter: Jitter::Proportional { below_milli: 200, above_milli: 125 },
            max_wait: Duration::from_secs(12 * 3600),
            backoff: Backoff::Linear { base: ms(1000), max: ms(60_000) },
            throttled_backoff: Some(Backoff::Steps(vec![ms(1000), ms(5000), ms(60_000)])),
            server_wait: ServerWait {
                mode: ServerWaitMode::Within(ms(5000)),
                limit: Duration::from_secs(3600),
                over: Over::Clamp,
            },
        },
        classify: Classification {
            table: Table::Webhook,
            rules: Rules {
                statuses: vec![
                    (404, 404, Answer::NotNow),
                    (500, 503, Answer::NotNow),
                    (500, 599, Answer::No),
                ],
                errors: vec![(ErrorClass::Tls, Answer::No)],
            },
            routes: vec![RouteRule {
                method: Some("GET".into()),
                path: "/orders/*".into(),
                rules: Rules { statuses: vec![(404, 404, Answer::Throttled)], errors: vec![] },
                repeat: Some(Idempotency::Never),
                fresh_for: Some(ms(2000)),
            }],
        },
    };
    assert_eq!(policy, expected);
}

#[test]
fn a_policy_prints_as_a_text_that_means_the_same_over_any_base() {
    let mut odd_factor = Policy::live();
    odd_factor.retry.backoff = Backoff::Exponential { base: ms(100), factor_milli: 1_999, max: ms(900) };
    let mut constant = Policy::durable();
    constant.retry.backoff = Backoff::Constant(Duration::from_nanos(1_000_000_001));
    constant.retry.jitter = Jitter::Decorrelated;
    constant.retry.server_wait.mode = ServerWaitMode::Ignore;
    let mut polly = Policy::live();
    polly.retry.jitter = Jitter::PollyV2;
    for policy in [Policy::live(), Policy::durable(), unlike_the_default(), odd_factor, constant, polly] {
        let printed = toml::to_string(&PolicyText::from(&policy)).expect("a policy can be printed");
        for base in [Policy::live(), Policy::durable(), unlike_the_default()] {
            let again: PolicyText = toml::from_str(&printed).expect("what is printed can be read");
            assert_eq!(again.over(base).as_ref(), Ok(&policy), "{printed}");
        }
    }
}

#[test]
fn what_is_left_out_is_as_in_the_base_or_in_the_preset() {
    let empty = || toml::from_str::<PolicyText>("").expect("an empty text");
    assert_eq!(empty().over(Policy::durable()), Ok(Policy::durable()));
    assert_eq!(read("preset = \"durable\""), Policy::durable());
    assert_eq!(read("preset = \"default\""), Policy::live());

    let shorter = read("[retry]\nbackoff = { base = \"100ms\" }\nserver_wait = { limit = \"5s\" }");
    let mut expected = Policy::live();
    expected.retry.backoff = Backoff::Exponential { base: ms(100), factor_milli: 2000, max: ms(10_000) };
    expected.retry.server_wait.limit = ms(5000);
    assert_eq!(shorter, expected);

    let throttled = read("[retry]\nthrottled_backoff = { base = \"1s\" }");
    let curve = Backoff::Exponential { base: ms(1000), factor_milli: 2000, max: ms(10_000) };
    assert_eq!(throttled.retry.throttled_backoff, Some(curve));
}

#[test]
fn the_narrower_rule_and_the_route_win_over_the_wider() {
    let policy = unlike_the_default();
    let answer = |status, route| policy.classify.answer(Observed::Status(status), route);
    let orders = Route { method: "get", path: "/orders/7" };
    let other = Route { method: "POST", path: "/orders/7" };
    assert_eq!(answer(404, orders), Answer::Throttled);
    assert_eq!(answer(404, other), Answer::NotNow);
    assert_eq!(answer(503, other), Answer::NotNow);
    assert_eq!(answer(504, other), Answer::No);
    assert_eq!(answer(403, other), Answer::No, "the table's own");
}

/// Policies are compared and printed: texts that mean the same must give equal policies.
#[test]
fn rules_stand_in_the_order_of_what_they_are_about() {
    let policy = read(
        "[classify]\nstatus = { 404 = \"not_now\", 4xx = \"no\" }\nerror = { connect = \"no\", dns = \"no\" }",
    );
    assert_eq!(policy.classify.rules.statuses, [(400, 499, Answer::No), (404, 404, Answer::NotNow)]);
    let errors = [(ErrorClass::Dns, Answer::No), (ErrorClass::Connect, Answer::No)];
    assert_eq!(policy.classify.rules.errors, errors);
}

#[test]
fn a_route_without_a_path_or_a_method_is_every_route() {
    let policy = read("[[classify.route]]\nmethod = \"DELETE\"\nstatus = { 404 = \"success\" }");
    let answer = |method| policy.classify.answer(Observed::Status(404), Route { method, path: "/a" });
    assert_eq!(answer("DELETE"), Answer::Success);
    assert_eq!(answer("GET"), Answer::No);
}

#[test]
fn an_unknown_field_is_refused_with_the_fields_that_are_known() {
    assert_unknown(&[
        ("retries = 3", "`retries`", "`repeat`"),
        ("[retry]\nattempts = 3", "`attempts`", "`max_attempts`"),
        ("[retry]\nbackoff = { kind = \"constant\", delay = \"1s\" }", "`delay`", "`wait`"),
        ("[retry]\nthrottled_backoff = { delay = \"1s\" }", "`delay`", "`wait`"),
        ("[retry]\njitter = { plus = 0.2 }", "`plus`", "`above`"),
        ("[retry]\nserver_wait = { max = \"1s\" }", "`max`", "`limit`"),
        ("[retry]\nserver_wait = { mode = { upto = \"1s\" } }", "`upto`", "`within`"),
        ("[classify]\nstatuses = {}", "`statuses`", "`status`"),
        ("[[classify.route]]\nurl = \"/\"", "`url`", "`path`"),
    ]);
}

#[test]
fn what_cannot_be_read_is_refused_with_the_field_and_the_way_out() {
    assert_refused(&[
        ("preset = \"fast\"", "preset: ", "default, durable"),
        ("repeat = \"yes\"", "repeat: ", "safe, keyed, unsafe, never"),
        ("on_exhausted = \"retry\"", "on_exhausted: ", "caller, dead_letter, discard"),
        ("alert = \" \"", "alert: ", "a team, a pager, a rule"),
        ("alert = \"a\\u001b[2J\"", "alert: ", "control characters"),
        ("attempt_timeout = 2", "attempt_timeout: ", "unit is missing"),
        ("attempt_timeout = \"-2s\"", "attempt_timeout: ", "negative"),
        ("attempt_timeout = -2", "attempt_timeout: ", "negative"),
        ("attempt_timeout = nan", "attempt_timeout: ", "not a duration"),
        ("total_timeout = \"never\"", "total_timeout: ", "not a duration"),
        ("[retry]\nmax_attempts = 0", "retry.max_attempts: ", "1 or more, or \"unlimited\""),
        ("[retry]\nmax_attempts = -1", "retry.max_attempts: ", "1 or more"),
        ("[retry]\nmax_attempts = 2.5", "retry.max_attempts: ", "1 or more"),
        ("[retry]\nmax_attempts = 4294967296", "retry.max_attempts: ", "to 4294967295"),
        ("[retry]\nmax_losses = -1", "retry.max_losses: ", "from 0"),
        ("[retry]\njitter = \"some\"", "retry.jitter: ", "none, full, equal, decorrelated, polly_v2"),
        ("[retry]\njitter = { below = nan }", "retry.jitter.below: ", "three decimals"),
        ("[retry]\njitter = { above = -0.1 }", "retry.jitter.above: ", "three decimals"),
        ("[retry]\njitter = { above = inf }", "retry.jitter.above: ", "three decimals"),
        ("[retry]\njitter = { above = 0.0001 }", "retry.jitter.above: ", "three decimals"),
        ("[retry]\nthrottled_backoff = \"slow\"", "retry.throttled_backoff: ", "none"),
        ("[retry]\nbackoff = { kind = \"cubic\" }", "retry.backoff.kind: ", "constant, linear"),
        ("[retry]\nbackoff = { kind = \"linear\" }", "retry.backoff.base: ", "base, max"),
        ("[retry]\nbackoff = { kind = \"constant\", max = \"1s\" }", "retry.backoff.max: ", "it has wait"),
        ("[retry]\nbackoff = { factor = \"2\" }", "retry.backoff.factor: ", "three decimals"),
        ("[retry]\nbackoff = { factor = nan }", "retry.backoff.factor: ", "three decimals"),
        ("[retry]\nbackoff = { factor = 4294968 }", "retry.backoff.factor: ", "4294968"),
        ("[retry]\nserver_wait = { over = \"ignore\" }", "retry.server_wait.over: ", "stop, clamp"),
        ("[retry]\nserver_wait = { mode = \"obey\" }", "retry.server_wait.mode: ", "above, longer"),
        ("[classify]\ntable = \"http\"", "classify.table: ", "documents, webhook"),
        ("[classify]\nstatus = { xx = \"no\" }", "classify.status.xx: ", "5xx"),
        ("[classify]\nstatus = { 12xx = \"no\" }", "classify.status.12xx: ", "5xx"),
        ("[classify]\nstatus = { 404 = \"maybe\" }", "classify.status.404: ", "not_now"),
        ("[classify]\nerror = { ssl = \"no\" }", "classify.error: ", "tls"),
        ("[classify]\nerror = { tls = \"maybe\" }", "classify.error.tls: ", "not_now"),
    ]);
}

#[test]
fn a_value_of_a_wrong_shape_is_refused_where_it_stands() {
    for text in ["attempt_timeout = true", "[retry]\njitter = 1", "[retry]\nserver_wait = \"above\""] {
        let message = toml::from_str::<PolicyText>(text).expect_err(text).to_string();
        assert!(message.contains("invalid type") && message.contains("expected"), "{text}: {message}");
    }
}
