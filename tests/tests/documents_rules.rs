//! The documents' rules, each on the real binary against a receiver with a script. What was sent is judged by the
//! receiver's log; what was decided, by what the API says of the message.

use std::time::Duration;

use relent_tests::{
    receiver::{Act, Answer, Arrival},
    server::Server,
    trial::{Trial, last_wait, outcomes, seconds},
    wall,
};
use rusqlite::Connection;
use serde_json::{Value, json};

#[test]
fn a_503_a_timeout_and_a_200_are_three_attempts_with_drawn_waits_before_the_deadline() {
    let policy = r#"
[policies.timely]
attempt_timeout = "2s"
business_deadline = "1m"
[policies.timely.retry]
backoff = { kind = "exponential", base = "200ms", factor = 2, max = "10s" }
"#;
    let trial = Trial::start(policy, |arrival| match arrival.nth {
        1 => Act::status(503),
        2 => Act::Silence,
        _ => Act::status(200),
    });
    let id = trial.post("/orders", json!({ "policy": "timely" }));
    let message = trial.when(&id, "delivered");
    assert_eq!(outcomes(&message), ["503", "header_timeout", "200"]);
    assert_eq!(trial.receiver.arrivals("/orders").len(), 3, "exactly three attempts");

    let log = message["log"].as_array().unwrap();
    let waits = message["waits"].as_array().unwrap();
    assert_eq!(waits.len(), 2);
    for (wait, (attempts, ceiling)) in waits.iter().zip(log.windows(2).zip([0.2, 0.4])) {
        assert_eq!(
            (&wait["origin"], wait["floor_s"].as_f64(), wait["ceiling_s"].as_f64()),
            (&json!("backoff"), Some(0.0), Some(ceiling))
        );
        assert!(seconds(&wait["length_s"]) <= Duration::from_secs_f64(ceiling), "{wait}");
        let ended = millis(&attempts[0]["began_at"]) + whole_millis(&attempts[0]["took_s"]);
        let waited = millis(&attempts[1]["began_at"]) as i64 - ended as i64;
        // Three times are cut to milliseconds.
        assert!(waited + 3 >= whole_millis(&wait["length_s"]) as i64, "waited {waited} ms of {wait}");
    }
    assert!(seconds(&log[1]["took_s"]) >= Duration::from_secs(2), "the time-out is the attempt's own");
    assert!(millis(&message["ended_at"]) < millis(&message["accepted_at"]) + 60_000, "before its deadline");
}

#[test]
fn a_401_and_a_422_are_one_attempt_and_a_dead_letter_with_the_reason() {
    // RT-15: a permanent error is not tried again.
    let trial = Trial::start("", |arrival| Act::status(if arrival.path == "/401" { 401 } else { 422 }));
    for status in ["401", "422"] {
        let path = format!("/{status}");
        let id = trial.post(&path, json!({}));
        let message = trial.when(&id, "dead");
        assert_eq!((&message["reason"], &message["last_outcome"]), (&json!("permanent"), &json!(status)));
        assert_eq!(trial.receiver.arrivals(&path).len(), 1);
        let dead = trial.server.client().json(&format!("/v1/dead/{id}"));
        assert_eq!(dead["reason"], "permanent", "it is on the list of the dead letters");
    }
}

#[test]
fn a_429_that_asks_for_two_seconds_is_not_tried_sooner() {
    let trial = Trial::start("", |arrival| match arrival.nth {
        1 => asking(429, "2"),
        _ => Act::status(200),
    });
    let id = trial.post("/orders", json!({}));
    let message = trial.when(&id, "delivered");
    let arrivals = trial.receiver.arrivals("/orders");
    let gap = arrivals[1].at - arrivals[0].at;
    assert!(gap >= Duration::from_secs(2), "by the receiver's clock it came back after {gap:?}");
    let wait = last_wait(&message);
    assert_eq!((&wait["origin"], wait["asked_s"].as_f64()), (&json!("server"), Some(2.0)));
    // hint + U(0, max(own, hint ÷ 2)): the server's floor never collapses into a wave at its end.
    assert_eq!((wait["floor_s"].as_f64(), wait["ceiling_s"].as_f64()), (Some(2.0), Some(1.0)));
}

#[test]
fn a_deadline_shorter_than_the_next_wait_shelves_at_once_with_the_last_real_failure() {
    // RT-17: the last response is kept with its status and body.
    let trial = Trial::start("", |_| Act::Answer(answer(503, &[], b"busy with the stock-taking")));
    let id = trial.post("/orders", json!({ "policy": "patient", "deadline": "20s" }));
    let message = trial.when(&id, "dead");
    assert_eq!(message["reason"], "business_deadline");
    assert_eq!(outcomes(&message), ["503"]);
    assert_eq!(message["last_outcome"], "503");
    assert_eq!(message["log"][0]["response"], "busy with the stock-taking");
    assert!(
        millis(&message["ended_at"]) + 5_000 < millis(&message["deadline"]),
        "it did not wait for its deadline"
    );
}

#[test]
fn a_hint_longer_than_the_time_left_shelves_at_once() {
    // RA-10
    let trial = Trial::start("", |_| asking(503, "86400"));
    let id = trial.post("/orders", json!({ "deadline": "20s" }));
    let message = trial.when(&id, "dead");
    assert_eq!((&message["reason"], &message["last_outcome"]), (&json!("business_deadline"), &json!("503")));
    assert!(
        millis(&message["ended_at"]) + 5_000 < millis(&message["deadline"]),
        "it did not sleep until its deadline"
    );
    assert_eq!(trial.receiver.arrivals("/orders").len(), 1);
}

#[test]
fn a_corrupt_row_is_shelved_as_unreadable_and_the_others_go_on() {
    let mut trial = Trial::start("", |_| Act::status(200));
    let ids: Vec<_> =
        (0..5).map(|n| trial.post(&format!("/orders/{n}"), json!({ "not_before": "3s" }))).collect();
    trial.server.kill();
    damage(&trial.server, &ids[2]);
    trial.server.restart();
    let shelved = trial.when(&ids[2], "dead");
    assert_eq!((&shelved["reason"], &shelved["attempts"]), (&json!("unreadable"), &json!(0)));
    assert_ne!(shelved["last_detail"].as_str().unwrap_or_default(), "", "it says what is wrong");
    for (number, id) in ids.iter().enumerate().filter(|(number, _)| *number != 2) {
        trial.when(id, "delivered");
        assert_eq!(trial.receiver.arrivals(&format!("/orders/{number}")).len(), 1);
    }
    assert!(trial.receiver.arrivals("/orders/2").is_empty(), "a row that cannot be read is not sent");
}

#[test]
fn a_redirect_is_never_followed_and_is_tried_again_by_schedule() {
    // WH-07, and RA-14: a redirect that asks for a pause gets it.
    let trial = Trial::start("", |arrival| match (arrival.path.as_str(), arrival.nth) {
        ("/orders", 1) => Act::Answer(answer(303, &[("Location", "/elsewhere"), ("Retry-After", "1")], b"")),
        ("/orders", 2) => Act::Answer(answer(307, &[("Location", "http://169.254.169.254/x")], b"")),
        _ => Act::status(200),
    });
    let id = trial.post("/orders", json!({}));
    let message = trial.when(&id, "delivered");
    assert_eq!(outcomes(&message), ["303", "307", "200"]);
    assert!(trial.receiver.arrivals("/elsewhere").is_empty(), "it was followed");
    let arrivals = trial.receiver.log();
    assert_eq!(arrivals.len(), 3);
    assert!(
        arrivals[1].at - arrivals[0].at >= Duration::from_secs(1),
        "it came back before the pause was over"
    );
}

#[test]
fn a_name_that_does_not_resolve_is_tried_again() {
    // WH-09. The name is one that never resolves, and the resolver gives up soon where there is no network.
    let mut server = Server::prepare(
        "[policies.few]\nattempt_timeout = \"20s\"\n[policies.few.retry]\nmax_attempts = 2\n\
         backoff = { kind = \"constant\", wait = \"100ms\" }\n",
    )
    .with_variable("RES_OPTIONS", "timeout:1 attempts:1");
    server.restart();
    let mut client = server.client();
    let message = json!({ "url": "http://receiver.invalid/orders", "policy": "few" }).to_string();
    let id = client.send("POST", "/v1/messages", Some(message.as_bytes())).unwrap().json()["id"].clone();
    let path = format!("/v1/messages/{}", id.as_str().unwrap());
    let message = wall::eventually("the end", Duration::from_secs(60), || {
        Some(client.json(&path)).filter(|message| message["state"] == "dead")
    });
    assert_eq!(outcomes(&message), ["dns", "dns"]);
    assert_eq!(message["reason"], "attempts_exhausted");
}

#[test]
fn an_unsafe_message_that_ended_ambiguously_is_shelved_and_never_sent_again() {
    // RT-13
    let mut trial = Trial::start("", |_| Act::Hangup);
    let id = trial.post("/orders", json!({ "repeat": "unsafe" }));
    let message = trial.when(&id, "dead");
    assert_eq!((&message["reason"], outcomes(&message)), (&json!("ambiguous"), vec!["reset".to_string()]));
    trial.server.kill();
    trial.server.restart();
    // Whatever is due goes out before a message that came after it.
    let later = trial.post("/later", json!({ "repeat": "unsafe" }));
    trial.when(&later, "dead");
    assert_eq!(trial.receiver.arrivals("/orders").len(), 1);
}

#[test]
fn an_unsafe_message_in_flight_when_the_server_dies_is_shelved_as_ambiguous() {
    let mut trial = Trial::start("", |_| Act::Silence);
    let id = trial.post("/orders", json!({ "repeat": "unsafe" }));
    arrived(&trial, "/orders", 1);
    trial.server.kill();
    trial.server.restart();
    let message = trial.when(&id, "dead");
    assert_eq!((&message["reason"], outcomes(&message)), (&json!("ambiguous"), vec!["unknown".to_string()]));
    assert_eq!(trial.receiver.arrivals("/orders").len(), 1);
}

#[test]
fn an_unsafe_message_that_never_left_is_tried_again() {
    let trial = Trial::start("", |_| Act::status(200));
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/orders", nobody.local_addr().unwrap());
    drop(nobody);
    let id = trial.post("/", json!({ "url": url, "repeat": "unsafe", "policy": "patient" }));
    let message = trial.when_waiting_after(&id, 1);
    assert_eq!(outcomes(&message), ["connect"]);
}

#[test]
fn every_attempt_carries_the_same_key_and_tells_the_age_and_the_try() {
    // WH-17, and RT-13 B: all sends carry the same key.
    let trial = Trial::start("", |arrival| match (arrival.path.as_str(), arrival.nth) {
        ("/dies", 2) => Act::status(422),
        (_, 1 | 2) => Act::status(503),
        _ => Act::status(200),
    });
    let own = trial.post("/own", json!({ "key": "order-17", "body": "three apples" }));
    let none = trial.post("/none", json!({}));
    let dies = trial.post("/dies", json!({}));
    trial.when(&own, "delivered");
    trial.when(&none, "delivered");
    trial.when(&dies, "dead");
    let redriven = trial.server.client().send("POST", &format!("/v1/dead/{dies}/redrive"), None).unwrap();
    assert_eq!(redriven.status, 200, "{}", redriven.text());
    trial.when(&dies, "delivered");
    for (path, id, key) in
        [("/own", &own, "order-17"), ("/none", &none, none.as_str()), ("/dies", &dies, dies.as_str())]
    {
        let arrivals = trial.receiver.arrivals(path);
        let said = |name: &str| -> Vec<&str> {
            arrivals.iter().filter_map(|arrival| arrival.header(name)).collect()
        };
        assert_eq!(said("idempotency-key"), [key; 3], "{path}");
        assert_eq!(said("x-relent-message"), [id.as_str(); 3]);
        assert_eq!(said("x-relent-attempt"), ["1", "2", "3"], "on through a redrive");
        let accepted = (millis(&trial.message(id)["accepted_at"]) / 1000).to_string();
        assert_eq!(said("x-relent-accepted-at"), [accepted.as_str(); 3]);
        let sent: Vec<u64> = said("x-relent-sent-at").iter().map(|second| second.parse().unwrap()).collect();
        let began: Vec<u64> = log_times(&trial.message(id)).iter().map(|millis| millis / 1000).collect();
        assert_eq!(sent.len(), 3);
        assert!(
            sent.iter().zip(&began).all(|(sent, began)| sent.abs_diff(*began) <= 1),
            "{sent:?} {began:?}"
        );
        let bodies: Vec<&[u8]> = arrivals.iter().map(|arrival| arrival.body.as_slice()).collect();
        assert!(bodies.iter().all(|body| *body == bodies[0]), "the body's bytes are the same");
    }
    let cycles: Vec<_> = trial
        .receiver
        .arrivals("/dies")
        .iter()
        .map(|a| a.header("x-relent-cycle").map(str::to_string))
        .collect();
    assert_eq!(cycles, [Some("0".into()), Some("0".into()), Some("1".into())]);
}

fn asking(status: u16, retry_after: &str) -> Act {
    Act::Answer(answer(status, &[("Retry-After", retry_after)], b""))
}

fn answer(status: u16, headers: &[(&'static str, &str)], body: &[u8]) -> Answer {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_string())).collect();
    Answer { status, headers, body: body.to_vec(), after: Duration::ZERO }
}

fn arrived(trial: &Trial, path: &str, count: usize) -> Vec<Arrival> {
    wall::eventually("the arrival", Duration::from_secs(30), || {
        Some(trial.receiver.arrivals(path)).filter(|arrivals| arrivals.len() >= count)
    })
}

/// Overwrites the decision state of a message in the store of a server that does not run.
fn damage(server: &Server, id: &str) {
    let database = Connection::open(server.data().join("relent.db")).unwrap();
    let hex = id.replace('-', "");
    let sql = format!("UPDATE message SET history = x'00112233' WHERE id = x'{hex}'");
    assert_eq!(database.execute(&sql, []).unwrap(), 1, "the row is there");
}

fn log_times(message: &Value) -> Vec<u64> {
    message["log"].as_array().unwrap().iter().map(|entry| millis(&entry["began_at"])).collect()
}

fn millis(time: &Value) -> u64 {
    wall::millis_of(time.as_str().unwrap_or_else(|| panic!("not a time: {time}")))
}

fn whole_millis(length: &Value) -> u64 {
    u64::try_from(seconds(length).as_millis()).unwrap()
}
