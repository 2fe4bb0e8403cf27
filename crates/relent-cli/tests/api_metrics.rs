//! The metrics count, survive a restart where they should, and do not grow with what senders choose.

mod host;

use std::collections::BTreeSet;

use host::{Host, Receiver, eventually, exchange, serve};
use serde_json::{Value, json};

/// The names and labels of every series.
fn series(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
}

fn value(text: &str, series: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{series} is not in\n{text}")).parse().unwrap()
}

fn metrics(host: &Host) -> String {
    let reply = host.ask("GET", "/metrics", "");
    assert_eq!(reply.status, 200);
    assert!(reply.header("content-type").unwrap().contains("version=1.0.0"));
    reply.text().to_owned()
}

#[test]
fn ten_thousand_urls_add_no_series() {
    const WORKERS: u32 = 8;
    const EACH: u32 = 1250;
    // No power fails here.
    let host = Host::with(&["--synchronous", "off"]);
    host.submit(&message_to(WORKERS, 0));
    host.submit(&message_to(WORKERS, 1));
    let before = series(&with_blocked(&host, 1));
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let host = &host;
            scope.spawn(move || (0..EACH).for_each(|number| drop(host.submit(&message_to(worker, number)))));
        }
    });
    let text = with_blocked(&host, 1 + u64::from(WORKERS * EACH / 5));
    assert!((value(&text, "relent_accepted_total") - f64::from(2 + WORKERS * EACH)).abs() < 0.5);
    assert_eq!(series(&text), before);
    assert!(!text.contains("example") && !text.contains("10.0."));
}

/// A message to a URL of its own. Every fifth goes to a private address, where it is attempted and dead at once
/// without a network; the others wait.
fn message_to(worker: u32, number: u32) -> Value {
    let labels = json!({"n": number.to_string()});
    match number % 5 {
        0 => {
            let [high, low] = [number / 5 / 250, number / 5 % 250];
            json!({"url": format!("http://10.{worker}.{high}.{low}/path/{number}"), "labels": labels})
        }
        _ => {
            let url = format!("http://host-{worker}-{number}.example:{}/path/{number}", 1000 + number);
            json!({"url": url, "not_before": "1d", "labels": labels})
        }
    }
}

/// The metrics, once so many attempts were blocked and their messages are dead.
fn with_blocked(host: &Host, count: u64) -> String {
    eventually("the private addresses are blocked", || {
        let text = metrics(host);
        let counted = |series: &str| text.contains(&format!("{series} {count}\n"));
        let blocked = counted("relent_attempts_total{outcome=\"blocked\"}");
        (blocked && counted("relent_dead_total{reason=\"permanent\"}")).then_some(text)
    })
}

#[test]
fn what_happens_is_counted_and_the_ledgers_counts_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (good, bad) = (Receiver::answering(200), Receiver::answering(422));
    let mut host = Host::launch(serve(&folder.path().join("data")), folder.path());
    let message = json!({"url": good.url(), "key": "k"});
    let delivered = host.submit(&message);
    host.ask("POST", "/v1/messages", &message.to_string()).expect(200);
    let dead = host.submit(&json!({"url": bad.url()}));
    host.submit_for_later();
    host.wait_for(&delivered, "delivered");
    host.wait_for(&dead, "dead");
    // The store knows of an end a moment before the counters do.
    let text = eventually("both ends are counted", || {
        let text = metrics(&host);
        text.contains("relent_dead_total{reason=\"permanent\"} 1")
            .then_some(text)
            .filter(|text| text.contains("relent_delivered_total 1"))
    });
    for (series, expected) in [
        ("relent_accepted_total", 3.0),
        ("relent_replayed_total", 1.0),
        ("relent_attempts_total{outcome=\"2xx\"}", 1.0),
        ("relent_attempts_total{outcome=\"4xx\"}", 1.0),
        ("relent_attempt_duration_seconds_count", 2.0),
        ("relent_messages{state=\"waiting\"}", 1.0),
        ("relent_messages{state=\"delivered\"}", 1.0),
        ("relent_messages{state=\"dead\"}", 1.0),
        ("relent_ledger_errors_total", 0.0),
    ] {
        assert!((value(&text, series) - expected).abs() < 1e-9, "{series} in\n{text}");
    }
    assert!((value(&text, "relent_amplification") - 2.0 / 3.0).abs() < 1e-9);
    assert!(value(&text, "relent_oldest_waiting_age_seconds") > 0.0);
    assert!(value(&text, "relent_oldest_dead_age_seconds") > 0.0);
    host.stop();

    let host = Host::launch(serve(&folder.path().join("data")), folder.path());
    let text = metrics(&host);
    assert!((value(&text, "relent_accepted_total") - 3.0).abs() < 1e-9);
    assert!((value(&text, "relent_amplification") - 2.0 / 3.0).abs() < 1e-9);
    assert!((value(&text, "relent_delivered_total")).abs() < 1e-9, "the process's own counts begin anew");
}

#[test]
fn the_metrics_are_public_only_where_it_is_said() {
    let host = Host::with(&["--metrics-public"]);
    assert_eq!(exchange(&host.address, "GET", "/metrics", &[], b"").unwrap().status, 200);
    assert_eq!(exchange(&host.address, "GET", "/v1/status", &[], b"").unwrap().status, 401);
}
