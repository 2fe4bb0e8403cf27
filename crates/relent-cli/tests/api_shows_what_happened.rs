//! From acceptance to the end, and back from the dead: what the API tells about a message.

mod host;

use host::{Host, Receiver, eventually, serve_as_it_is};
use serde_json::{Value, json};

#[test]
fn a_message_is_delivered_and_its_whole_story_is_told() {
    let (host, receiver) = (Host::start(), Receiver::answering(200));
    let reply = host.ask(
        "POST",
        "/v1/messages",
        &json!({
            "url": receiver.url(), "method": "PUT", "body": "{\"a\": 1}", "key": "k-1", "labels": {"team": "a"},
            "headers": [["Content-Type", "application/json"], ["X-Api-Key", "hunter2"], ["X-Twice", "1"], ["X-Twice", "2"]],
        })
        .to_string(),
    );
    let accepted = reply.expect(201);
    let id = accepted["id"].as_str().unwrap();
    assert_eq!(accepted, json!({"id": id, "state": "waiting"}));
    assert_eq!(reply.header("location"), Some(&*format!("/v1/messages/{id}")));

    let message = host.wait_for(id, "delivered");
    assert_eq!(message["url"], json!(receiver.url()));
    assert_eq!(message["method"], "PUT");
    assert_eq!((&message["attempts"], &message["cycle"]), (&json!(1), &json!(0)));
    assert_eq!(
        (&message["key"], &message["repeat"], &message["policy"]),
        (&json!("k-1"), &json!("keyed"), &json!("durable"))
    );
    assert_eq!(message["labels"], json!({"team": "a"}));
    assert_eq!(message["body"], "{\"a\": 1}");
    assert_eq!(message["last_outcome"], "200");
    let log = &message["log"][0];
    assert_eq!(
        (&log["attempt"], &log["outcome"], &log["response"]),
        (&json!(1), &json!("200"), &json!("heard"))
    );
    assert!(log["took_s"].as_f64().is_some_and(|took| took > 0.0));
    assert!(message["headers"].as_array().unwrap().contains(&json!(["x-api-key", "REDACTED"])), "{message}");

    let seen = &receiver.seen()[0];
    assert_eq!(seen.line, "PUT /hook HTTP/1.1");
    assert_eq!(seen.body, b"{\"a\": 1}");
    for header in ["x-api-key: hunter2", "x-twice: 1", "x-twice: 2", "idempotency-key: k-1"] {
        assert!(seen.headers.iter().any(|line| line == header), "{header}: {seen:?}");
    }
}

#[test]
fn bytes_that_are_not_text_arrive_as_they_were() {
    let (host, receiver) = (Host::start(), Receiver::answering(204));
    let id = host.submit(&json!({"url": receiver.url(), "body_base64": "/wD+"}));
    assert_eq!(host.wait_for(&id, "delivered")["body_base64"], "/wD+");
    assert_eq!(receiver.seen()[0].body, [0xff, 0x00, 0xfe]);
}

#[test]
fn a_dead_letter_is_listed_redriven_and_discarded() {
    let (host, receiver) = (Host::start(), Receiver::answering(422));
    let [one, two] = [1, 2].map(|_| host.submit(&json!({"url": receiver.url()})));
    for id in [&one, &two] {
        let dead = host.wait_for(id, "dead");
        assert_eq!((&dead["reason"], &dead["last_outcome"]), (&json!("permanent"), &json!("422")));
    }
    let list = host.get("/v1/dead?limit=1");
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    let rest = host.get(&format!("/v1/dead?limit=1&cursor={}", list["next"].as_str().unwrap()));
    let mut listed: Vec<_> = [&list, &rest].map(|page| page["items"][0]["id"].as_str().unwrap()).into();
    listed.sort_unstable();
    let mut sent = [&*one, &*two];
    sent.sort_unstable();
    assert_eq!(listed, sent);
    assert_eq!(host.get(&format!("/v1/dead/{one}"))["log"][0]["response"], "heard");
    assert_eq!(host.get("/v1/status")["dead_by_reason"], json!({"permanent": 2}));

    receiver.answer_with(200);
    let redriven = host.ask("POST", &format!("/v1/dead/{one}/redrive"), "").expect(200);
    assert_eq!(redriven, json!({"id": one, "state": "waiting", "cycle": 1}));
    let delivered = host.wait_for(&one, "delivered");
    assert_eq!((&delivered["attempts"], &delivered["cycle"]), (&json!(2), &json!(1)));

    let discarded = host.ask("DELETE", &format!("/v1/dead/{two}"), "").expect(200);
    assert_eq!(discarded, json!({"id": two, "state": "discarded"}));
    assert_eq!(host.get("/v1/dead")["items"], json!([]));
    assert_eq!(host.get(&format!("/v1/messages/{two}"))["state"], "discarded", "it stays readable");
}

#[test]
fn dead_letters_are_listed_by_reason_and_destination() {
    let (host, busy) = (Host::start(), Receiver::answering(503));
    let (shop, mail) = (Receiver::answering(422), Receiver::answering(422));
    let bury = |url: String| host.submit(&json!({"url": url}));
    let (one, two, three) = (bury(shop.url()), bury(mail.url()), bury(shop.url()));
    for id in [&one, &two, &three] {
        host.wait_for(id, "dead");
    }
    bury(busy.url());
    let listed = |query: &str| -> Vec<String> {
        let page = host.get(&format!("/v1/dead?{query}"));
        page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
    };
    let origin = |receiver: &Receiver| receiver.url().trim_end_matches("/hook").to_owned();
    assert_eq!(listed("reason=permanent").len(), 3);
    assert_eq!(listed("reason=ambiguous,poison_crash"), Vec::<String>::new());
    assert_eq!(listed(&format!("destination={}", origin(&shop))), [three.clone(), one.clone()]);
    assert_eq!(
        listed(&format!("destination={},{}", origin(&shop), origin(&mail))),
        [three.clone(), two, one.clone()]
    );
    assert_eq!(listed(&format!("reason=permanent&destination={}", origin(&busy))), Vec::<String>::new());

    let query = format!("limit=1&destination={}", origin(&shop));
    let page = host.get(&format!("/v1/dead?{query}"));
    let rest = host.get(&format!("/v1/dead?{query}&cursor={}", page["next"].as_str().unwrap()));
    assert_eq!((&page["items"][0]["id"], &rest["items"][0]["id"]), (&json!(three), &json!(one)));
    assert_eq!(rest.get("next"), None, "the list ends with what was asked for");

    let problem = host.ask("GET", "/v1/dead?reason=to_early", "").problem(422);
    let detail = problem["detail"].as_str().unwrap();
    assert_eq!(problem["field"], "reason");
    assert!(detail.contains("attempts_exhausted") && detail.contains("poison_crash"), "{detail}");
    let problem = host.ask("GET", "/v1/dead?destination=shop.example", "").problem(422);
    assert_eq!(problem["field"], "destination");
}

#[test]
fn a_letter_that_died_anew_is_not_taken_for_the_one_that_was_seen() {
    let (host, receiver) = (Host::start(), Receiver::answering(422));
    let id = host.submit(&json!({"url": receiver.url()}));
    host.wait_for(&id, "dead");
    host.ask("POST", &format!("/v1/dead/{id}/redrive?cycle=0"), "").expect(200);
    eventually("it is dead again", || {
        let message = host.get(&format!("/v1/messages/{id}"));
        (message["state"] == "dead" && message["cycle"] == 1).then_some(())
    });
    for (method, path) in
        [("POST", format!("/v1/dead/{id}/redrive?cycle=0")), ("DELETE", format!("/v1/dead/{id}?cycle=0"))]
    {
        let problem = host.ask(method, &path, "").problem(409);
        assert!(problem["detail"].as_str().unwrap().contains("dead anew"), "{problem}");
        let wrong = host.ask(method, &path.replace("cycle", "circle"), "").problem(422);
        assert_eq!(wrong["field"], "circle");
    }
    host.ask("DELETE", &format!("/v1/dead/{id}?cycle=1"), "").expect(200);
}

#[test]
fn a_log_is_shown_in_stretches_and_says_when_it_goes_further_back() {
    let (host, receiver) = (Host::start(), Receiver::answering(422));
    let id = host.submit(&json!({"url": receiver.url()}));
    for cycle in 1..=2 {
        host.wait_for(&id, "dead");
        host.ask("POST", &format!("/v1/dead/{id}/redrive"), "").expect(200);
        eventually("it is dead again", || {
            let message = host.get(&format!("/v1/messages/{id}"));
            (message["state"] == "dead" && message["cycle"] == cycle).then_some(())
        });
    }
    let shown = |query: &str| {
        let message = host.get(&format!("/v1/dead/{id}{query}"));
        let numbers = |field: &str, name: &str| -> Vec<u64> {
            message[field].as_array().unwrap().iter().map(|entry| entry[name].as_u64().unwrap()).collect()
        };
        assert_eq!(message["attempts"], 3, "the total is the whole log's");
        (numbers("log", "attempt"), numbers("waits", "after_attempt"), message["older"] == json!(true))
    };
    assert_eq!(shown(""), (vec![1, 2, 3], vec![1, 2], false));
    assert_eq!(shown("?attempts=2"), (vec![2, 3], vec![2], true));
    assert_eq!(shown("?attempts=2&before=2"), (vec![1], vec![1], false));
    assert_eq!(shown("?attempts=0"), (vec![], vec![], true));
    let problem = host.ask("GET", &format!("/v1/messages/{id}?attempts=251"), "").problem(422);
    assert_eq!(problem["field"], "attempts");
}

#[test]
fn what_the_state_does_not_allow_is_refused_and_the_state_is_said() {
    let host = Host::start();
    let id = host.submit_for_later();
    for (method, path) in [("POST", format!("/v1/dead/{id}/redrive")), ("DELETE", format!("/v1/dead/{id}"))] {
        let problem = host.ask(method, &path, "").problem(409);
        assert!(problem["detail"].as_str().unwrap().contains("waiting"), "{problem}");
        assert_eq!(problem["id"], json!(id));
    }
    let problem = host.ask("GET", &format!("/v1/dead/{id}"), "").problem(404);
    assert!(problem["detail"].as_str().unwrap().contains("waiting"), "{problem}");

    let cancelled = host.ask("DELETE", &format!("/v1/messages/{id}"), "").expect(200);
    assert_eq!(cancelled, json!({"id": id, "state": "cancelled"}));
    let again = host.ask("DELETE", &format!("/v1/messages/{id}"), "").problem(409);
    assert!(again["detail"].as_str().unwrap().contains("cancelled"), "{again}");
    let nobody = "0198c5d2-7f3a-7c41-9d55-3b1f2a6e8c90";
    for (method, path) in [
        ("DELETE", format!("/v1/messages/{nobody}")),
        ("DELETE", format!("/v1/dead/{nobody}")),
        ("POST", format!("/v1/dead/{nobody}/redrive")),
    ] {
        host.ask(method, &path, "").problem(404);
    }
}

#[test]
fn pages_lead_through_all_messages_newest_first() {
    let host = Host::start();
    let mut sent: Vec<String> = (0..7).map(|_| host.submit_for_later()).collect();
    sent.reverse();
    let mut listed = Vec::new();
    let mut path = "/v1/messages?state=waiting&limit=3".to_owned();
    loop {
        let page = host.get(&path);
        listed.extend(
            page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/messages?state=waiting&limit=3&cursor={next}");
    }
    assert_eq!(listed, sent);
    assert_eq!(host.get("/v1/messages?state=dead,delivered")["items"], json!([]));
    let item = &host.get("/v1/messages?limit=1")["items"][0];
    assert_eq!(item["wait"]["origin"], "not_before");
    assert_eq!(item["wait"]["length_s"], json!(86_400.0));
}

#[test]
fn a_wait_is_told_with_its_whole_derivation() {
    let (host, receiver) = (Host::start(), Receiver::answering(503));
    let id = host.submit(&json!({"url": receiver.url()}));
    let message = eventually("the first attempt has ended", || {
        let message = host.get(&format!("/v1/messages/{id}"));
        (!message["waits"].as_array().unwrap().is_empty()).then_some(message)
    });
    let wait = &message["waits"][0];
    assert_eq!((&wait["after_attempt"], &wait["origin"]), (&json!(1), &json!("backoff")));
    let number = |name: &str| wait[name].as_f64().unwrap();
    assert!((number("length_s") - number("floor_s") - number("draw_s")).abs() < 1e-6, "{wait}");
    assert!(number("draw_s") <= number("ceiling_s") && number("ceiling_s") > 0.0, "{wait}");
    assert!(["decided_at", "until"].iter().all(|name| wait[*name].as_str().unwrap().ends_with('Z')));
}

#[test]
fn each_ended_message_has_one_line_in_the_log_and_no_secret_is_in_it() {
    let receivers = [Receiver::answering(200), Receiver::answering(422)];
    let host = Host::with(&["--log-level", "debug"]);
    let ids = receivers.each_ref().map(|receiver| {
        host.submit(&json!({
            "url": format!("{}?sig=s3cret-query", receiver.url()), "body": "s3cret-body",
            "headers": {"Authorization": "s3cret-header"},
        }))
    });
    host.wait_for(&ids[0], "delivered");
    host.wait_for(&ids[1], "dead");
    let lines = eventually("both ends are logged", || {
        let lines: Vec<Value> =
            host.log_lines().into_iter().filter(|line| line["message"] == "message ended").collect();
        (lines.len() >= 2).then_some(lines)
    });
    assert_eq!(lines.len(), 2);
    for (id, state, reason) in [(&ids[0], "delivered", "succeeded"), (&ids[1], "dead", "permanent")] {
        let line = lines.iter().find(|line| line["id"] == json!(id)).unwrap();
        assert_eq!(
            (&line["state"], &line["reason"], &line["attempts"]),
            (&json!(state), &json!(reason), &json!(1))
        );
        assert!(line["destination"].as_str().unwrap().starts_with("http://127.0.0.1:"));
        assert!(line["age_s"].is_f64() && line["level"] == "INFO", "{line}");
    }
    let attempts = host.log_lines().iter().filter(|line| line["message"] == "attempt ended").count();
    assert_eq!(attempts, 2);
    assert!(!host.log().contains("s3cret") && !host.log().contains(&host.token));
}

#[test]
fn by_default_each_ended_message_has_exactly_one_line_and_no_attempt_has_one() {
    let receivers = [Receiver::answering(200), Receiver::answering(422), Receiver::answering(503)];
    for form in ["text", "json"] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("relent.toml");
        std::fs::write(&file, TWICE).unwrap();
        let mut command = serve_as_it_is(&folder.path().join("data"), "127.0.0.1:0");
        command.arg("--config").arg(&file);
        if form == "json" {
            command.arg("--json");
        }
        let mut host = Host::launch(command, folder.path());
        let ids = receivers.each_ref().map(|to| host.submit(&json!({"url": to.url(), "policy": "twice"})));
        for (id, state) in ids.iter().zip(["delivered", "dead", "dead"]) {
            host.wait_for(id, state);
        }
        assert_eq!(host.get(&format!("/v1/messages/{}", ids[2]))["attempts"], 2);
        // What is to be logged is logged when it has ended.
        host.stop();
        let log = host.log();
        for (id, says) in ids.iter().zip(["delivered", "permanent", "attempts_exhausted"]) {
            let about: Vec<&str> = log.lines().filter(|line| line.contains(id.as_str())).collect();
            assert!(
                matches!(about[..], [line] if line.contains("message ended") && line.contains(says)),
                "{log}"
            );
        }
        assert!(!log.contains("attempt ended") && !log.contains('\u{1b}'), "{log}");
        assert_eq!(log.lines().all(|line| line.starts_with('{')), form == "json", "{log}");
    }
}

const TWICE: &str = r#"
allow_target = ["127.0.0.0/8"]
[policies.twice.retry]
max_attempts = 2
backoff = { kind = "constant", wait = "10ms" }
"#;
