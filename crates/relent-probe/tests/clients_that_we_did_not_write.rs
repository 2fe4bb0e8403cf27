//! What curl, urllib3, tenacity, got and reqwest-retry do when their dependency fails, and `relent call` beside them,
//! against the cards that were written from their documentation before they were run.
//!
//! A client that cannot be had is said aloud; where `RELENT_TEST_REQUIRE` names its tool (curl, python3, node, cargo),
//! the test fails. Nearly all of the time is waiting.
//!
//! What is measured is real time, between processes that nobody here can give a clock to. Beside other tests a stalled
//! machine spreads the waits of a client that has no jitter, so these run by themselves: `cargo xtask clients`.

mod clients;

use std::{collections::BTreeMap, env, fmt::Write as _, fs, time::Duration};

use clients::Missing;
use relent_probe::{Card, Client, Curve, FirstRetry, Fit, JitterKind, Suite};
use toml::{Table, Value};

#[test]
#[ignore = "measures real time, which a busy machine stretches: cargo xtask clients"]
fn curl_keeps_its_card() {
    keeps_its_card("curl");
}

#[test]
#[ignore = "measures real time, which a busy machine stretches: cargo xtask clients"]
fn requests_with_urllib3_keeps_its_card() {
    keeps_its_card("urllib3");
}

#[test]
#[ignore = "measures real time, which a busy machine stretches: cargo xtask clients"]
fn tenacity_keeps_its_card() {
    keeps_its_card("tenacity");
}

#[test]
#[ignore = "measures real time, which a busy machine stretches: cargo xtask clients"]
fn got_keeps_its_card() {
    keeps_its_card("got");
}

#[test]
#[ignore = "measures real time, which a busy machine stretches: cargo xtask clients"]
fn reqwest_retry_keeps_its_card() {
    keeps_its_card("reqwest-retry");
}

#[test]
#[ignore = "measures real time, which a busy machine stretches: cargo xtask clients"]
fn relent_call_keeps_its_card() {
    keeps_its_card("relent-call");
}

/// A measurement that is not as expected is made once more: what a stalled machine did is not there again, and what the
/// client does is.
fn keeps_its_card(name: &str) {
    let client = match clients::install(name) {
        Ok(client) => client,
        Err(Missing { tool, why }) => {
            let required = env::var("RELENT_TEST_REQUIRE").unwrap_or_default();
            assert!(!required.split(',').any(|name| name.trim() == tool), "{name} is required: {why}");
            eprintln!("SKIPPED: {name} is not probed, {tool} cannot give it: {why}");
            return;
        }
    };
    let expected = fs::read_to_string(clients::source(&format!("expected/{name}.toml"))).unwrap();
    let expected = toml::from_str(&expected).unwrap();
    let card = probe(&client);
    let found = compare(&card, &expected);
    if found.is_empty() {
        return;
    }
    eprintln!("{name} is probed once more:\n{found}");
    let card = probe(&client);
    let found = compare(&card, &expected);
    assert!(found.is_empty(), "{name}:\n{found}\n{}", card.text());
}

fn probe(client: &Client) -> Card {
    let suite = Suite {
        copies: 20,
        calls: 3,
        patience: Duration::from_secs(13),
        time: Duration::from_secs(240),
        parallel: 20,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    Card::new(&runtime.block_on(suite.run(client)).unwrap())
}

fn compare(card: &Card, expected: &Table) -> String {
    let mut found = String::new();
    let checks = expected["checks"].as_table().unwrap();
    let seen: BTreeMap<&str, _> = card.checks.iter().map(|check| (check.name, &check.verdict)).collect();
    assert_eq!(seen.len(), checks.len(), "every check has an expectation");
    for (name, entry) in checks {
        let verdict = seen.get(name.as_str()).unwrap_or_else(|| panic!("there is no check {name}"));
        let (wanted, because) = (entry["verdict"].as_str().unwrap(), entry["because"].as_str().unwrap());
        if verdict.name() != wanted {
            let _ = writeln!(
                found,
                "  {name}: {}, {}; expected {wanted} ({because})",
                verdict.name(),
                verdict.why()
            );
        }
    }
    let schedule = expected["schedule"].as_table().unwrap();
    for difference in differences(card.fit.as_ref().unwrap(), schedule) {
        let _ = writeln!(found, "  schedule: {difference} ({})", schedule["because"]);
    }
    found
}

fn differences(fit: &Fit, expected: &Table) -> Vec<String> {
    let mut found = Vec::new();
    let text = |name: &str| expected.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut same = |what: &str, seen: &str, wanted: &str| {
        if seen != wanted {
            found.push(format!("{what} {seen}; expected {wanted}"));
        }
    };
    same("curve", fit.curve.name(), text("curve"));
    same("jitter", fit.jitter.name(), text("jitter"));
    let at_once = (fit.first == FirstRetry::AtOnce).to_string();
    same("first retry at once:", &at_once, &expected["first_at_once"].to_string());
    let millis = |name: &str| expected.get(name).and_then(Value::as_integer);
    let mut near = |what: &str, seen: Duration, wanted: i64| {
        let (seen, wanted) = (seen.as_secs_f64() * 1000.0, wanted as f64);
        // A tenth either way, and what a busy machine adds to every wait.
        if !(wanted * 0.9..=wanted * 1.1 + 30.0).contains(&seen) {
            found.push(format!("{what} {seen:.0} ms; expected {wanted} ms"));
        }
    };
    match &fit.curve {
        Curve::Exponential { base, factor_range: (low, high), .. } => {
            if let Some(wanted) = millis("base_ms") {
                near("base", *base, wanted);
            }
            let factor = expected["factor"].as_float().unwrap();
            if !(low * 0.95..=high * 1.05).contains(&factor) {
                found.push(format!("factor {low:.2} to {high:.2}; expected {factor}"));
            }
        }
        Curve::Constant { wait } => near("wait", *wait, millis("base_ms").unwrap_or_default()),
        _ => {}
    }
    if let (JitterKind::Additive { span }, Some(wanted)) = (&fit.jitter, millis("jitter_span_ms")) {
        let span = span.as_secs_f64() * 1000.0;
        // The addition is a tenth of the wait: a busy machine widens it by as much again.
        if !(wanted as f64 * 0.75..=wanted as f64 * 2.0 + 20.0).contains(&span) {
            found.push(format!("span {span:.0} ms; expected {wanted} ms"));
        }
    }
    found
}
