//! What only a whole server can show: its schedule in real time, its connections, its end, and one destination
//! beside another.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use relent_tests::{
    receiver::{Act, Answer, Answered, Receiver},
    trial::{Trial, last_wait, outcomes, seconds},
    wall,
};
use serde_json::json;

#[test]
fn hints_of_every_size_are_obeyed_or_clamped_and_never_wrap() {
    // RA-08, RA-18, JB-07: the policy's longest own wait is an hour, and bounds no hint.
    let policy = "[policies.bounded.retry]\nmax_wait = \"1h\"\n\
                  backoff = { kind = \"constant\", wait = \"1s\" }\n";
    let trial = Trial::start(policy, |arrival| {
        let asked = arrival.path.trim_start_matches('/').to_string();
        Act::Answer(Answer {
            status: 429,
            headers: vec![("Retry-After", asked)],
            body: Vec::new(),
            after: Duration::ZERO,
        })
    });
    let day = 86_400.0;
    for (asked, floor) in [
        ("255", 255.0),
        ("256", 256.0),
        ("300", 300.0),
        ("7200", 7200.0),
        ("65536", 65_536.0),
        ("9999999999", day),
        ("99999999999999999999999999", day),
    ] {
        let id = trial.post(&format!("/{asked}"), json!({ "policy": "bounded" }));
        let message = trial.when_waiting_after(&id, 1);
        let wait = last_wait(&message);
        assert_eq!(
            (&wait["origin"], wait["floor_s"].as_f64()),
            (&json!("server"), Some(floor)),
            "{asked}: {wait}"
        );
        assert!(seconds(&wait["length_s"]) >= Duration::from_secs_f64(floor), "{asked}: {wait}");
        let clamped = asked.len() > 5;
        assert_eq!(wait["clamped"] == true, clamped, "{asked}: {wait}");
    }
}

#[test]
fn a_short_wait_is_not_rounded_up_to_a_scan() {
    // JB-03. One after the other, each handed in when the last has ended: with a scan every two seconds each would
    // come back two seconds after it had failed. The quickest counts, for a busy machine may hold up the others.
    let policy =
        "[policies.second.retry]\njitter = \"none\"\nbackoff = { kind = \"constant\", wait = \"1s\" }\n";
    let trial = Trial::start(policy, |arrival| Act::status(if arrival.nth == 1 { 503 } else { 200 }));
    let gaps: Vec<Duration> = (1..=4)
        .map(|number| {
            let path = format!("/orders/{number}");
            let id = trial.post(&path, json!({ "policy": "second" }));
            trial.when(&id, "delivered");
            let arrivals = trial.receiver.arrivals(&path);
            arrivals[1].at - arrivals[0].at
        })
        .collect();
    assert!(gaps.iter().all(|gap| *gap >= Duration::from_secs(1)), "{gaps:?} after waits of 1 s");
    // The first may have come into a scan by chance.
    let quickest = gaps[1..].iter().min().expect("three");
    assert!(*quickest < Duration::from_millis(1500), "{gaps:?} after waits of 1 s");
}

#[test]
fn a_server_killed_during_the_last_attempt_tries_it_again_uncounted() {
    // JB-05
    let policy = "[policies.once]\nattempt_timeout = \"60s\"\n[policies.once.retry]\nmax_attempts = 1\n\
                  backoff = { kind = \"constant\", wait = \"20ms\" }\n";
    let mut trial =
        Trial::start(policy, |arrival| if arrival.nth == 1 { Act::Silence } else { Act::status(200) });
    let id = trial.post("/orders", json!({ "policy": "once" }));
    wall::eventually("the arrival", PATIENCE, || (trial.receiver.count() == 1).then_some(()));
    trial.server.kill();
    trial.server.restart();
    let message = trial.when(&id, "delivered");
    assert_eq!(outcomes(&message), ["unknown", "200"]);
}

#[test]
fn attempts_are_the_number_that_the_policy_says_and_the_log_counts_each() {
    // RT-19, RT-25, JB-09
    let policies: String = [1, 4, 10]
        .iter()
        .map(|max| {
            format!(
                "[policies.most-{max}.retry]\nmax_attempts = {max}\n\
                 backoff = {{ kind = \"constant\", wait = \"5ms\" }}\n"
            )
        })
        .collect();
    let trial = Trial::start(&policies, |arrival| match arrival.nth % 3 {
        0 => Act::Hangup,
        1 => Act::status(503),
        _ => Act::status(500),
    });
    for max in [1, 4, 10] {
        let path = format!("/orders/{max}");
        let id = trial.post(&path, json!({ "policy": format!("most-{max}") }));
        let message = trial.when(&id, "dead");
        assert_eq!(message["reason"], "attempts_exhausted");
        assert_eq!(message["attempts"], max);
        assert_eq!(outcomes(&message).len(), max);
        assert_eq!(trial.receiver.arrivals(&path).len(), max);
    }
}

#[test]
fn two_at_once_on_connections_that_are_closed_unanswered_end_after_their_attempts() {
    // RT-11: the first two go out on connections that were kept alive, where a client may think itself free to
    // send once more beneath the attempt.
    let policy =
        "[policies.four.retry]\nmax_attempts = 4\nbackoff = { kind = \"constant\", wait = \"5ms\" }\n";
    let (warm, both) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let trial = Trial::start(policy, move |arrival| {
        let (meeting, act) = match arrival.path.starts_with("/warm") {
            true => (&warm, Act::status(200)),
            false => (&both, Act::Hangup),
        };
        if arrival.nth == 1 {
            meeting.fetch_add(1, Ordering::SeqCst);
            wall::poll(PATIENCE, || (meeting.load(Ordering::SeqCst) == 2).then_some(()));
        }
        act
    });
    for path in ["/warm/1", "/warm/2"] {
        trial.post(path, json!({}));
    }
    trial.server.wait_until_idle(PATIENCE);
    assert_eq!(trial.receiver.connections(), 2, "both are kept alive");
    let paths = ["/orders/1", "/orders/2"];
    let ids = paths.map(|path| trial.post(path, json!({ "policy": "four" })));
    for (path, id) in paths.iter().zip(&ids) {
        let message = trial.when(id, "dead");
        assert_eq!(message["reason"], "attempts_exhausted");
        assert_eq!(outcomes(&message), ["reset"; 4]);
        assert_eq!(trial.receiver.arrivals(path).len(), 4, "nothing beneath an attempt sends it again");
    }
}

#[test]
fn a_failed_answer_gives_its_connection_back() {
    // RT-05
    let settings = "[delivery]\nper_destination = 1\n";
    let trial = Trial::start(settings, |arrival| {
        let status = if arrival.nth <= 3 { 503 } else { 200 };
        Act::Answer(Answer { status, headers: Vec::new(), body: vec![b'x'; 1024], after: Duration::ZERO })
    });
    for number in 0..50 {
        trial.post(&format!("/orders/{number}"), json!({}));
    }
    trial.server.wait_until_idle(PATIENCE);
    assert_eq!(trial.receiver.count(), 200);
    assert_eq!(trial.receiver.connections(), 1, "one at a time needs one connection");
}

#[test]
fn a_silent_destination_does_not_hold_up_another() {
    // ST-20
    let settings = "[delivery]\nin_flight = 8\nper_destination = 4\n";
    let silent = Trial::start(settings, |_| Act::Silence);
    let other = Receiver::start(|_| Act::status(200));
    for number in 0..20 {
        silent.post(&format!("/orders/{number}"), json!({}));
    }
    wall::eventually("the silent one is full", PATIENCE, || (silent.receiver.busy() == 4).then_some(()));
    let begin = wall::now();
    for number in 0..20 {
        let id = silent.post("/", json!({ "url": other.url(&format!("/orders/{number}")) }));
        silent.when(&id, "delivered");
    }
    assert!(begin.elapsed() < ATTEMPT_TIMEOUT, "it waited for the silent one's time-out");
    assert_eq!((silent.receiver.count(), other.count()), (4, 20));
}

#[test]
fn a_message_cancelled_in_its_wait_is_never_sent_again() {
    // RT-23
    let policy =
        "[policies.soon.retry]\njitter = \"none\"\nbackoff = { kind = \"constant\", wait = \"2s\" }\n";
    let trial = Trial::start(policy, |_| Act::status(503));
    let id = trial.post("/orders", json!({ "policy": "soon" }));
    let other = trial.post("/other", json!({ "policy": "soon" }));
    trial.when_waiting_after(&id, 1);
    let reply = trial.server.client().send("DELETE", &format!("/v1/messages/{id}"), None).unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
    let message = trial.when(&id, "cancelled");
    assert_eq!(message["last_outcome"], "503", "its last failure is kept");
    // The other was accepted after it and has gone twice: the cancelled one's time is past.
    trial.when_waiting_after(&other, 2);
    assert_eq!(trial.receiver.arrivals("/orders").len(), 1);
}

#[test]
fn a_server_that_is_told_to_end_finishes_what_is_under_way_and_begins_nothing_more() {
    // ST-16
    let mut trial = Trial::start("", |arrival| {
        let slow = arrival.path == "/slow";
        Act::Answer(Answer {
            status: 200,
            headers: Vec::new(),
            body: Vec::new(),
            after: Duration::from_secs(if slow { 5 } else { 0 }),
        })
    });
    let soon = trial.post("/soon", json!({ "not_before": "4s" }));
    let slow = trial.post("/slow", json!({}));
    wall::eventually("the arrival", PATIENCE, || (trial.receiver.busy() == 1).then_some(()));
    let status = trial.server.terminate(PATIENCE);
    assert!(status.success(), "{status}; {}", trial.server.log());
    assert!(trial.receiver.arrivals("/soon").is_empty(), "it came due while the server was ending");
    assert_eq!(trial.receiver.arrivals("/slow")[0].answer, Answered::Written(200));
    trial.server.assert_sound();

    trial.server.restart();
    assert_eq!(outcomes(&trial.when(&slow, "delivered")), ["200"]);
    assert_eq!(outcomes(&trial.when(&soon, "delivered")), ["200"]);
    assert_eq!(trial.receiver.count(), 2);
}

#[test]
fn what_outlasts_the_drain_is_put_back_uncounted() {
    // JB-05: the attempt was the last that the policy allows.
    let policy = "[policies.once]\nattempt_timeout = \"60s\"\n[policies.once.retry]\nmax_attempts = 1\n\
                  backoff = { kind = \"constant\", wait = \"20ms\" }\n";
    let mut trial = Trial::start_with("drain = \"1s\"", policy, |arrival| match arrival.nth {
        1 => Act::Silence,
        _ => Act::status(200),
    });
    let keyed = trial.post("/keyed", json!({ "policy": "once" }));
    let not_safe = trial.post("/unsafe", json!({ "policy": "once", "repeat": "unsafe" }));
    wall::eventually("the arrivals", PATIENCE, || (trial.receiver.busy() == 2).then_some(()));
    let status = trial.server.terminate(PATIENCE);
    assert!(status.success(), "{status}; {}", trial.server.log());
    trial.server.restart();
    let message = trial.when(&keyed, "delivered");
    assert_eq!(outcomes(&message), ["unknown", "200"]);
    assert_eq!(last_wait(&message)["origin"], "shutdown");
    let message = trial.when(&not_safe, "dead");
    assert_eq!((&message["reason"], outcomes(&message)), (&json!("ambiguous"), vec!["unknown".to_string()]));
}

const PATIENCE: Duration = Duration::from_secs(30);
/// Of the policy `quick`.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
