//! Istio's `VirtualService`: each of its HTTP routes, also those that say nothing of retries, since Istio retries them
//! twice; and the limit of a `DestinationRule` for the same host, if one stands in the same file.
//!
//! # Source
//!
//! Istio, `virtual_service.proto` (`HTTPRoute.timeout`, `HTTPRetry`), `destination_rule.proto`
//! (`ConnectionPoolSettings.HTTPSettings.max_retries`), `pilot/pkg/networking/core/route/retry/retry.go` (the defaults,
//! statuses in `retryOn`, and that zero attempts are no retry). The waits are Envoy's.

use std::time::Duration;

use relent_core::{BudgetPolicy, Idempotency, Preset, ServerWaitMode, budget::SharePolicy};
use serde_json::{Value, json};

use super::{
    envoy,
    node::{Node, Seen},
    section::Section,
};
use crate::{
    change::Change,
    read::{Edit, Key},
    subject::{Format, Origin, Part, Subject},
};

pub(super) fn subjects(tree: &Value) -> Vec<Subject> {
    let seen = Seen::default();
    let resources = resources(&Node::top(tree, &seen, "."));
    let services = resources.iter().filter(|one| is(one, "VirtualService"));
    let routes = services.filter_map(|service| service.get("spec.http")).flat_map(|http| http.children());
    // What is redirected or answered by the proxy itself is sent nowhere.
    routes.filter(|route| route.get("route").is_some()).map(|route| read(&resources, &route)).collect()
}

/// One resource, several documents, or a `List` with items.
fn resources<'a>(top: &Node<'a>) -> Vec<Node<'a>> {
    let one = |node: Node<'a>| match node.get("items") {
        Some(items) => items.children(),
        None => vec![node],
    };
    if top.value.is_array() { top.children().into_iter().flat_map(one).collect() } else { one(top.clone()) }
}

fn is(resource: &Node<'_>, kind: &str) -> bool {
    let text = |name: &str| resource.get(name).and_then(|node| node.value.as_str());
    text("kind") == Some(kind)
        && text("apiVersion").is_some_and(|version| version.starts_with("networking.istio.io/"))
}

fn read<'a>(resources: &[Node<'a>], route: &Node<'a>) -> Subject {
    let mut policy = Preset::Envoy.policy();
    policy.repeat = Idempotency::Safe;
    policy.retry.server_wait.mode = ServerWaitMode::Ignore;
    let subject = Subject::new(route.path(), Format::Istio, policy).at(&route.keys);
    // What of a route is not about retries is none of ours, so a route that says nothing of them is read at its own place.
    let retries = route.get("retries");
    let mut section = Section { subject, node: retries.clone().unwrap_or_else(|| route.clone()) };
    times(&mut section, route);
    outcomes(&mut section, route);
    for (part, origin) in ORIGINS {
        section.subject.origins.insert(part, origin);
    }
    budget(resources, route, &mut section);
    for known in ["retryRemoteLocalities", "retryIgnorePreviousHosts"] {
        retries.iter().filter_map(|retries| retries.get(known)).for_each(|node| node.look());
    }
    if retries.is_some() { section.done() } else { section.subject }
}

fn times<'a>(section: &mut Section<'a>, route: &Node<'a>) {
    let total = section.take_at(route, Part::Deadline, "timeout", |node| node.seconds());
    let total = total.filter(|total| !total.is_zero());
    let one = section.take_at(route, Part::AttemptTimeout, "retries.perTryTimeout", |node| node.seconds());
    let attempts = section.take_at(route, Part::Attempts, "retries.attempts", Node::count);
    let base = section.take_at(route, Part::Backoff, "retries.backoff", |node| node.seconds());
    let base = base.unwrap_or(Duration::from_millis(25));
    let policy = &mut section.subject.policy;
    policy.total_timeout = total;
    policy.attempt_timeout = one.or(total).unwrap_or(envoy::ENDLESS);
    policy.retry.max_attempts = Some(attempts.unwrap_or(2).saturating_add(1));
    policy.retry.backoff = envoy::curve(base, base.saturating_mul(10));
}

/// A number in `retryOn` is a status.
fn outcomes<'a>(section: &mut Section<'a>, route: &Node<'a>) {
    let said = section.take_at(route, Part::Classify, "retries.retryOn", Node::texts);
    let said = said.filter(|words| !words.is_empty());
    let said = said.unwrap_or_else(|| DEFAULT.iter().map(|word| (*word).to_owned()).collect());
    let (mut words, mut statuses) = (Vec::new(), Vec::new());
    for word in &said {
        match word.parse::<u16>() {
            Ok(status) => statuses.push(status),
            Err(_) => words.push(word.clone()),
        }
    }
    if !statuses.is_empty() {
        words.push("retriable-status-codes".to_owned());
    }
    section.subject.policy.classify = envoy::classification(&words, &statuses);
    section.subject.origins.insert(Part::Repeat, repeat(&words, route));
    section.subject.repeats = said;
}

/// A route whose every match is for a method that changes nothing, or one that repeats only what never reached a host,
/// is safe.
fn repeat(words: &[String], route: &Node<'_>) -> Origin {
    if envoy::are_unsent(words) {
        return Origin::Fixed("it repeats only what never reached a host");
    }
    let matches = route.get("match").map(|list| list.children()).unwrap_or_default();
    let methods: Vec<Option<Node<'_>>> = matches.iter().map(|one| one.get("method.exact")).collect();
    let changes_nothing = |method: &Option<Node<'_>>| {
        let text = method.as_ref().and_then(|method| method.value.as_str());
        matches!(text, Some("GET" | "HEAD" | "OPTIONS"))
    };
    match methods.first() {
        Some(Some(first)) if methods.iter().all(changes_nothing) => Origin::Written(first.path()),
        _ => Origin::Elsewhere("it repeats every method of the route"),
    }
}

fn budget<'a>(resources: &[Node<'a>], route: &Node<'a>, section: &mut Section<'a>) {
    section.subject.policy.budget = None;
    let text = |node: &Node<'a>, name: &str| node.get(name).and_then(|node| node.text().ok());
    let hosts: Vec<String> = route
        .get("route")
        .iter()
        .flat_map(Node::children)
        .filter_map(|to| text(&to, "destination.host"))
        .collect();
    let of_a_host = |one: &&Node<'a>| text(one, "spec.host").is_some_and(|host| hosts.contains(&host));
    let rule = resources.iter().filter(|one| is(one, "DestinationRule")).find(of_a_host);
    let Some(rule) = rule.and_then(|rule| rule.get("spec")) else {
        let elsewhere =
            "a DestinationRule's connectionPool.http.maxRetries; without one nothing bounds its retries";
        section.subject.origins.insert(Part::Budget, Origin::Elsewhere(elsewhere));
        return;
    };
    if let Some(outliers) = rule.get("trafficPolicy.outlierDetection") {
        section.subject.unread.push(outliers.refuse("it shuts out single hosts, and is not checked"));
    }
    let most = section.take_at(&rule, Part::Budget, MOST_RETRIES, Node::count);
    // Its share of nothing leaves the number: so many retries at a time, whatever the traffic.
    section.subject.policy.budget =
        most.map(|most| BudgetPolicy::Share(SharePolicy { share_milli: 0, floor: most }));
}

pub(super) fn edit(subject: &Subject, change: &Change) -> Option<Edit> {
    let set = |names: &[&str], value: Value| Some(Edit::below(&subject.keys, names, value, ".", ": "));
    let seconds = |length: &Duration| json!(format!("{}s", length.as_secs_f64()));
    match change {
        Change::MaxAttempts(attempts) => set(&["retries", "attempts"], json!(attempts.saturating_sub(1))),
        Change::AttemptTimeout(length) => set(&["retries", "perTryTimeout"], seconds(length)),
        Change::TotalTimeout(length) => set(&["timeout"], seconds(length)),
        // Envoy's own default, which Istio lifts.
        Change::Budget(_) => {
            let path = subject.origin(Part::Budget).path()?;
            let keys = keys(path);
            Some(Edit::below(&keys, &[], json!(3), ".", ": "))
        }
        Change::Statuses(_) => {
            let kept: Vec<&str> = subject
                .repeats
                .iter()
                .map(String::as_str)
                .filter(|word| word.parse::<u16>().is_err() && *word != "retriable-status-codes")
                .collect();
            (!kept.is_empty()).then(|| set(&["retries", "retryOn"], json!(kept.join(",")))).flatten()
        }
        _ => None,
    }
}

/// The keys of a path in a resource, whose names hold no dots.
fn keys(path: &str) -> Vec<Key> {
    let parts = path.split(['.', '[', ']']).filter(|part| !part.is_empty());
    parts.map(|part| part.parse().map_or_else(|_| Key::Name(part.to_owned()), Key::Index)).collect()
}

const MOST_RETRIES: &str = "trafficPolicy.connectionPool.http.maxRetries";

/// What Istio repeats where nothing is said.
const DEFAULT: [&str; 5] = ["connect-failure", "refused-stream", "unavailable", "cancelled", "503"];

const ORIGINS: [(Part, Origin); 8] = [
    (Part::Hints, Origin::Fixed("Istio has no setting for a wait that the answer asks for")),
    (Part::Jitter, Origin::Fixed("drawn from zero to the curve")),
    (Part::Cap, Origin::Fixed("the jitter is drawn below it")),
    (Part::Breaker, Origin::Fixed("a DestinationRule ejects hosts one by one; it has no breaker for all")),
    (Part::Limits, Origin::Elsewhere("a DestinationRule's connectionPool; without one nothing is bounded")),
    (Part::Exhausted, Origin::Fixed("the last answer goes to the caller")),
    (Part::Alert, Origin::Elsewhere("alerts stand where its metrics are collected")),
    (
        Part::Visible,
        Origin::Fixed(
            "the proxy counts upstream_rq_retry, _retry_success and _retry_overflow for each cluster",
        ),
    ),
];
