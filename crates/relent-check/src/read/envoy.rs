//! Envoy's routes with a `retry_policy`, and the budget of the cluster that they name if it stands in the same file.
//!
//! # Source
//!
//! Envoy, `route_components.proto` (`RetryPolicy`, `RouteAction.timeout`), `router_filter.rst` (`retry_on`),
//! `circuit_breaker.proto` (`max_retries`, `RetryBudget`).

use std::time::Duration;

use relent_core::{
    Answer, Backoff, BudgetPolicy, Classification, ErrorClass, Idempotency, Preset, Rules, ServerWaitMode,
    Table, budget::SharePolicy,
};
use serde_json::{Value, json};

use super::{
    node::{Node, Seen},
    section::Section,
};
use crate::{
    change::Change,
    read::Edit,
    subject::{Format, Origin, Part, Subject},
};

pub(super) fn subjects(tree: &Value) -> Vec<Subject> {
    let seen = Seen::default();
    let top = Node::top(tree, &seen, ".");
    let mut found = Vec::new();
    find(&top, &top, None, &mut found);
    found
}

/// `route` is the nearest entry of `routes` above, whose match says for which requests it is.
fn find<'a>(top: &Node<'a>, node: &Node<'a>, route: Option<&Node<'a>>, found: &mut Vec<Subject>) {
    if let Some(retry) = node.get("retry_policy").filter(is_retry) {
        found.push(read(top, node, &retry, route));
    }
    for child in node.children() {
        let route = if child.get("match").is_some() { Some(&child) } else { route };
        find(top, &child, route, found);
    }
}

fn is_retry(node: &Node<'_>) -> bool {
    ["retry_on", "num_retries", "per_try_timeout", "retry_back_off"]
        .iter()
        .any(|name| node.get(name).is_some())
}

fn read<'a>(top: &Node<'a>, action: &Node<'a>, retry: &Node<'a>, route: Option<&Node<'a>>) -> Subject {
    let mut policy = Preset::Envoy.policy();
    policy.repeat = Idempotency::Safe;
    let subject = Subject::new(action.path(), Format::Envoy, policy).at(&action.keys);
    let mut section = Section { subject, node: retry.clone() };
    times(&mut section, action);
    backoff(&mut section);
    let words = section.take(Part::Classify, "retry_on", Node::texts).unwrap_or_default();
    let statuses = section.take(Part::Classify, "retriable_status_codes", |node| {
        node.children().iter().map(Node::count).collect::<Result<Vec<u32>, _>>()
    });
    let statuses: Vec<u16> =
        statuses.unwrap_or_default().into_iter().filter_map(|status| status.try_into().ok()).collect();
    section.subject.policy.classify = classification(&words, &statuses);
    section.subject.origins.insert(Part::Repeat, repeat(&words, route));
    section.subject.repeats = words;
    budget(top, action, &mut section);
    for (part, origin) in ORIGINS {
        section.subject.origins.insert(part, origin);
    }
    section.done()
}

fn times<'a>(section: &mut Section<'a>, action: &Node<'a>) {
    let total = section.take_at(action, Part::Deadline, "timeout", |node| node.seconds());
    let total = total.unwrap_or(ROUTE);
    // Nothing bounds a route whose time-out is zero.
    section.subject.policy.total_timeout = Some(total).filter(|total| !total.is_zero());
    let one = section.take(Part::AttemptTimeout, "per_try_timeout", |node| node.seconds());
    let one = one.filter(|one| !one.is_zero());
    if one.is_none() && section.subject.is_unreadable(Part::Deadline) {
        // An attempt may take as long as the call, and nobody knows how long that is.
        section.subject.origins.insert(Part::AttemptTimeout, Origin::UNREADABLE);
    }
    section.subject.policy.attempt_timeout = one.unwrap_or(if total.is_zero() { ENDLESS } else { total });
    let retries = section.take(Part::Attempts, "num_retries", Node::count);
    section.subject.policy.retry.max_attempts = Some(retries.unwrap_or(1).saturating_add(1));
}

/// (2ⁿ − 1) × the base, drawn from zero, at most ten times the base unless something else is said.
fn backoff(section: &mut Section<'_>) {
    let base = section.take(Part::Backoff, "retry_back_off.base_interval", |node| node.seconds());
    let base = base.unwrap_or(Duration::from_millis(25));
    let max = section.take(Part::Backoff, "retry_back_off.max_interval", |node| node.seconds());
    let max = max.unwrap_or(base.saturating_mul(10));
    section.subject.policy.retry.backoff = curve(base, max);
    section.subject.habits.waits_nothing = base.is_zero();
    let hints = &mut section.subject.policy.retry.server_wait;
    match section.node.get("rate_limited_retry_back_off") {
        None => hints.mode = ServerWaitMode::Ignore,
        Some(_) => {
            // The hint, and up to half of it more: jitter above.
            hints.mode = ServerWaitMode::Above;
            hints.limit = Duration::from_secs(300);
        }
    }
    let limit = section.take(Part::Hints, "rate_limited_retry_back_off.max_interval", |node| node.seconds());
    if let Some(limit) = limit {
        section.subject.policy.retry.server_wait.limit = limit;
    }
    section.node.get("rate_limited_retry_back_off").iter().for_each(Node::look);
}

/// (2ⁿ − 1) × the base, at most `max`.
pub(super) fn curve(base: Duration, max: Duration) -> Backoff {
    let step =
        |n: u32| base.saturating_mul(1_u32.checked_shl(n).map_or(u32::MAX, |power| power - 1)).min(max);
    Backoff::Steps((1..=STEPS).map(step).collect())
}

/// What `retry_on` repeats, in relent's words.
pub(super) fn classification(words: &[String], statuses: &[u16]) -> Classification {
    let has = |word: &str| words.iter().any(|known| known == word);
    let mut rules: Vec<(u16, u16, Answer)> =
        vec![(408, 408, Answer::No), (429, 429, Answer::No), (502, 504, Answer::No)];
    if has("gateway-error") {
        rules.retain(|(low, ..)| *low != 502);
        rules.push((502, 504, Answer::NotNow));
    }
    if has("5xx") {
        rules.retain(|(low, ..)| *low != 502);
        rules.push((500, 599, Answer::NotNow));
    }
    if has("retriable-4xx") {
        rules.push((409, 409, Answer::NotNow));
    }
    if has("retriable-status-codes") {
        rules.retain(|(low, high, _)| low != high || !statuses.contains(low));
        rules.extend(statuses.iter().map(|status| (*status, *status, Answer::NotNow)));
    }
    let answer = |again: bool| if again { Answer::NotNow } else { Answer::No };
    let connect = has("connect-failure") || has("5xx");
    let unsent = connect || has("refused-stream") || has("reset-before-request") || has("reset");
    let reset = has("reset") || has("5xx");
    let late = reset || has("gateway-error");
    let errors = vec![
        (ErrorClass::Connect, answer(connect)),
        (ErrorClass::ConnectTimeout, answer(connect)),
        (ErrorClass::Tls, answer(connect)),
        (ErrorClass::NotSent, answer(unsent)),
        (ErrorClass::Unprocessed, answer(unsent)),
        (ErrorClass::Reset, answer(reset)),
        (ErrorClass::HeaderTimeout, answer(late)),
        (ErrorClass::BodyTimeout, answer(late)),
        (ErrorClass::Timeout, answer(late)),
    ];
    rules.sort_unstable_by_key(|&(low, high, _)| (low, high));
    Classification { rules: Rules { statuses: rules, errors }, ..Classification::new(Table::Documents) }
}

/// Whether all of these words stand for what never reached a host.
pub(super) fn are_unsent(words: &[String]) -> bool {
    let unsent = ["connect-failure", "refused-stream", "reset-before-request", "http3-post-connect-failure"];
    words.iter().all(|word| unsent.contains(&word.as_str()))
}

/// A route for methods that change nothing, or one that repeats only what never reached a host, is safe.
fn repeat(words: &[String], route: Option<&Node<'_>>) -> Origin {
    if are_unsent(words) {
        return Origin::Fixed("it repeats only what never reached a host");
    }
    let headers = route.and_then(|route| route.get("match.headers"));
    let method = headers
        .iter()
        .flat_map(Node::children)
        .find(|header| header.get("name").and_then(|name| name.text().ok()).as_deref() == Some(":method"));
    let exact = method.as_ref().and_then(|header| {
        let value = header.get("string_match.exact").or_else(|| header.get("exact_match"))?;
        value.text().ok()
    });
    match (method, exact.as_deref()) {
        (Some(header), Some("GET" | "HEAD" | "OPTIONS")) => Origin::Written(header.path()),
        _ => Origin::Elsewhere("it repeats every method of the route"),
    }
}

fn budget<'a>(top: &Node<'a>, action: &Node<'a>, section: &mut Section<'a>) {
    let name = action.get("cluster").and_then(|name| name.text().ok());
    let cluster = name.and_then(|name| cluster(top, &name));
    let mut share = SharePolicy { share_milli: 0, floor: 3 };
    match cluster {
        None => {
            let elsewhere =
                "the cluster's circuit_breakers: three retries at a time unless they say otherwise";
            section.subject.origins.insert(Part::Budget, Origin::Elsewhere(elsewhere));
        }
        Some(cluster) => {
            if let Some(outliers) = cluster.get("outlier_detection") {
                section.subject.unread.push(outliers.refuse("it shuts out single hosts, and is not checked"));
            }
            let thresholds = cluster.get("circuit_breakers.thresholds").map(|list| list.children());
            let first = thresholds.and_then(|list| list.into_iter().next()).unwrap_or(cluster);
            if let Some(most) = section.take_at(&first, Part::Budget, "max_retries", Node::count) {
                share.floor = most;
            }
            if first.get("retry_budget").is_some() {
                let percent = section.take_at(
                    &first,
                    Part::Budget,
                    "retry_budget.budget_percent.value",
                    Node::thousandths,
                );
                let floor =
                    section.take_at(&first, Part::Budget, "retry_budget.min_retry_concurrency", Node::count);
                share =
                    SharePolicy { share_milli: percent.unwrap_or(20_000) / 100, floor: floor.unwrap_or(3) };
                share.share_milli = percent.map_or(200, |thousandths| thousandths / 100);
            }
        }
    }
    section.subject.policy.budget = Some(BudgetPolicy::Share(share));
}

/// The cluster of that name, wherever it stands in the file.
fn cluster<'a>(node: &Node<'a>, name: &str) -> Option<Node<'a>> {
    for child in node.children() {
        if child.name() == "clusters" {
            let named =
                |one: &Node<'a>| one.get("name").and_then(|name| name.text().ok()).as_deref() == Some(name);
            return child.children().into_iter().find(named);
        }
        if let Some(found) = cluster(&child, name) {
            return Some(found);
        }
    }
    None
}

pub(super) fn edit(subject: &Subject, change: &Change) -> Option<Edit> {
    let set = |names: &[&str], value: Value| Some(Edit::below(&subject.keys, names, value, ".", ": "));
    let seconds = |length: &Duration| json!(format!("{}s", length.as_secs_f64()));
    match change {
        Change::MaxAttempts(attempts) => {
            set(&["retry_policy", "num_retries"], json!(attempts.saturating_sub(1)))
        }
        Change::AttemptTimeout(length) => set(&["retry_policy", "per_try_timeout"], seconds(length)),
        Change::TotalTimeout(length) => set(&["timeout"], seconds(length)),
        Change::HintMode(ServerWaitMode::Above) => set(
            &["retry_policy", "rate_limited_retry_back_off"],
            json!({ "reset_headers": [{ "name": "retry-after", "format": "SECONDS" }], "max_interval": "60s" }),
        ),
        Change::HintLimit(length) => {
            set(&["retry_policy", "rate_limited_retry_back_off", "max_interval"], seconds(length))
        }
        Change::Backoff(_) if subject.habits.waits_nothing => {
            set(&["retry_policy", "retry_back_off", "base_interval"], json!("0.025s"))
        }
        Change::Statuses(_) => {
            let kept: Vec<&str> = subject
                .repeats
                .iter()
                .map(String::as_str)
                .filter(|word| *word != "retriable-status-codes")
                .collect();
            (!kept.is_empty()).then(|| set(&["retry_policy", "retry_on"], json!(kept.join(",")))).flatten()
        }
        _ => None,
    }
}

const ORIGINS: [(Part, Origin); 7] = [
    (Part::Jitter, Origin::Fixed("drawn from zero to the curve")),
    (Part::Cap, Origin::Fixed("the jitter is drawn below it")),
    (Part::Breaker, Origin::Fixed("a cluster ejects hosts one by one; it has no breaker for all")),
    (Part::Limits, Origin::Elsewhere("the cluster's circuit_breakers: 1,024 requests at once by default")),
    (Part::Exhausted, Origin::Fixed("the last answer goes to the caller")),
    (Part::Alert, Origin::Elsewhere("alerts stand where its statistics are collected")),
    (
        Part::Visible,
        Origin::Fixed("it counts upstream_rq_retry, _retry_success and _retry_overflow for each cluster"),
    ),
];

/// The time-out of a route that names none.
const ROUTE: Duration = Duration::from_secs(15);
/// No attempt is bounded where nothing is.
pub(super) const ENDLESS: Duration = Duration::from_secs(86_400);
/// More retries than that of one request are no plan.
const STEPS: u32 = 16;
