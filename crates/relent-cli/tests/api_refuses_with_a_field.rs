//! What cannot be accepted is answered with a problem that names the field; nothing is stored, and the server goes
//! on.

mod host;

use std::{io::Write as _, net::TcpStream};

use host::{Host, Reply, exchange};
use serde_json::{Value, json};

#[test]
fn a_submission_that_cannot_be_is_refused_by_field_and_nothing_is_stored() {
    let host = Host::start();
    let url = "http://127.0.0.1:9/";
    for (body, status, field, says) in [
        (r#"{"url": "#.to_owned(), 400, "body", "line 1 column"),
        ("not json".to_owned(), 400, "body", "not JSON"),
        (json!([url]).to_string(), 422, "body", "object"),
        (json!({}).to_string(), 422, "url", "missing"),
        (json!({"url": 7}).to_string(), 422, "url", "expected a string"),
        (json!({"url": "not a url"}).to_string(), 422, "url", "url"),
        (json!({"url": "/relative"}).to_string(), 422, "url", "not absolute"),
        (json!({"url": "ftp://example.com/"}).to_string(), 422, "url", "only http and https"),
        (json!({"url": "file:///etc/passwd"}).to_string(), 422, "url", "only http and https"),
        (json!({"url": "http://user:secret@example.com/"}).to_string(), 422, "url", "leak"),
        (json!({"url": url, "method": "TRACE"}).to_string(), 422, "method", "TRACE"),
        (json!({"url": url, "headers": {"Host": "a"}}).to_string(), 422, "headers.host", "host"),
        (json!({"url": url, "headers": {"a": "b\r\nc: d"}}).to_string(), 422, "headers.a", "visible ASCII"),
        (json!({"url": url, "headers": {"a": 1}}).to_string(), 422, "headers.a", "string"),
        (json!({"url": url, "body": "a", "body_base64": "YQ=="}).to_string(), 422, "body_base64", "both"),
        (json!({"url": url, "body_base64": "%%"}).to_string(), 422, "body_base64", "base64"),
        (json!({"url": url, "key": ""}).to_string(), 422, "key", "1 to 255"),
        (json!({"url": url, "deadline": "2001-01-01T00:00:00Z"}).to_string(), 422, "deadline", "past"),
        (json!({"url": url, "deadline": "0s"}).to_string(), 422, "deadline", "past"),
        (json!({"url": url, "deadline": "1ms"}).to_string(), 422, "deadline", "no room"),
        (json!({"url": url, "deadline": "tomorrow"}).to_string(), 422, "deadline", "RFC 3339"),
        (json!({"url": url, "not_before": "2h", "deadline": "1h"}).to_string(), 422, "deadline", "no room"),
        (json!({"url": url, "policy": "durabel"}).to_string(), 422, "policy", "durable"),
        (json!({"url": url, "repeat": "often"}).to_string(), 422, "repeat", "keyed"),
        (json!({"url": url, "labels": {"a": 1}}).to_string(), 422, "labels.a", "string"),
        (json!({"url": url, "dead_line": "1h"}).to_string(), 422, "dead_line", "did you mean `deadline`?"),
    ] {
        let problem = host.ask("POST", "/v1/messages", &body).problem(status);
        assert_eq!(problem["field"], field, "{body}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(says), "{body}: {problem}");
    }
    assert_eq!(host.accepted(), 0);
}

#[test]
fn a_body_over_the_limit_is_refused_before_all_of_it_is_read() {
    let host = Host::with(&["--body-limit", "1KiB"]);
    let message =
        |length: usize| json!({"url": "http://127.0.0.1:9/", "not_before": "1d", "body": "x".repeat(length)});
    assert_eq!(host.ask("POST", "/v1/messages", &message(1024).to_string()).status, 201);
    let problem = host.ask("POST", "/v1/messages", &message(1025).to_string()).problem(413);
    assert_eq!(problem["field"], "body");
    assert!(problem["detail"].as_str().unwrap().contains("1024"), "{problem}");
    // Beyond what any message of that limit can take, the request itself is cut short.
    let problem = host.ask("POST", "/v1/messages", &message(200_000).to_string()).problem(413);
    assert_eq!(problem["field"], "body");
    assert_eq!(host.accepted(), 1);

    // A terabyte is announced, some of it is sent: the answer does not wait for the rest.
    let mut stream = TcpStream::connect(&host.address).unwrap();
    let token = &host.token;
    write!(
        stream,
        "POST /v1/messages HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: 1099511627776\r\nexpect: 100-continue\r\n\r\n"
    )
    .unwrap();
    Reply::read(&mut stream).unwrap().problem(413);
}

#[test]
fn the_default_limit_is_a_mebibyte() {
    let host = Host::start();
    let message = |body: &str, length: usize| {
        json!({"url": "http://127.0.0.1:9/", "not_before": "1d", "body": body.repeat(length)}).to_string()
    };
    // A control character is six times as long in JSON, and a body of them is within the limit all the same.
    for body in ["x", "\n", "\u{1}"] {
        assert_eq!(host.ask("POST", "/v1/messages", &message(body, 1024 * 1024)).status, 201, "{body:?}");
        host.ask("POST", "/v1/messages", &message(body, 1024 * 1024 + 1)).problem(413);
    }
    assert_eq!(host.accepted(), 3);
}

#[test]
fn json_is_taken_under_any_content_type_and_nothing_else_under_none() {
    let host = Host::start();
    let bearer = format!("Bearer {}", host.token);
    let post = |kind: Option<&str>, body: &str| {
        let mut headers = vec![("authorization", bearer.as_str())];
        headers.extend(kind.map(|kind| ("content-type", kind)));
        exchange(&host.address, "POST", "/v1/messages", &headers, body.as_bytes()).unwrap()
    };
    let message = json!({"url": "http://127.0.0.1:9/", "not_before": "1d"}).to_string();
    // `curl -d` says that it sends a form.
    let kinds = [
        None,
        Some("application/x-www-form-urlencoded"),
        Some("text/plain"),
        Some("Application/JSON; charset=utf-8"),
    ];
    for kind in kinds {
        assert_eq!(post(kind, &message).status, 201, "{kind:?}");
        assert_eq!(post(kind, "url=http%3A%2F%2F127.0.0.1%3A9%2F").problem(400)["field"], "body", "{kind:?}");
    }
    let problem = post(Some("application/json; charset=utf-16"), &message).problem(415);
    assert_eq!(problem["field"], "Content-Type");
    assert_eq!(host.accepted(), 4);
}

#[test]
fn without_the_token_nothing_is_told_and_nothing_is_stored() {
    let host = Host::start();
    let body = json!({"url": "http://127.0.0.1:9/"}).to_string();
    let last = if host.token.ends_with('0') { '1' } else { '0' };
    let almost = format!("Bearer {}{last}", &host.token[..63]);
    let longer = format!("Bearer {}0", host.token);
    let basic = format!("Basic {}", host.token);
    for header in [None, Some("Bearer "), Some("Bearer wrong"), Some(&*almost), Some(&*longer), Some(&*basic)]
    {
        for (method, path) in [
            ("POST", "/v1/messages"),
            ("GET", "/v1/messages"),
            ("GET", "/v1/status"),
            ("GET", "/metrics"),
            ("GET", "/v1/nothing"),
        ] {
            let mut headers = vec![("content-type", "application/json")];
            headers.extend(header.map(|value| ("authorization", value)));
            let reply = exchange(&host.address, method, path, &headers, body.as_bytes()).unwrap();
            assert_eq!(reply.problem(401)["field"], "Authorization", "{path}");
            assert!(reply.header("www-authenticate").is_some_and(|value| value.starts_with("Bearer")));
            assert!(!reply.text().contains(&host.token));
        }
    }
    assert_eq!(host.accepted(), 0);
}

#[test]
fn paths_and_methods_that_are_not_there_are_problems_too() {
    let host = Host::start();
    for path in ["/v1/nothing", "/v1/messages/", "/", "/v1/dead/0198c5d2-7f3a-7c41-9d55-3b1f2a6e8c90/redo"] {
        host.ask("GET", path, "").problem(404);
    }
    for (method, path, allow) in
        [("PUT", "/v1/messages", "POST"), ("POST", "/v1/status", "GET"), ("POST", "/healthz", "GET")]
    {
        let reply = host.ask(method, path, "");
        reply.problem(405);
        assert!(reply.header("allow").is_some_and(|value| value.contains(allow)), "{reply:?}");
    }
    for path in ["/v1/messages/0198c5d2-7f3a-7c41-9d55-3b1f2a6e8c90", "/v1/messages/nonsense", "/v1/dead/%ff"]
    {
        host.ask("GET", path, "").problem(404);
    }
}

#[test]
fn a_list_that_is_asked_for_wrongly_says_which_parameter() {
    let host = Host::start();
    for (query, field) in [
        ("state=deda", "state"),
        ("stat=dead", "stat"),
        ("limit=0", "limit"),
        ("limit=251", "limit"),
        ("cursor=x", "cursor"),
    ] {
        assert_eq!(host.ask("GET", &format!("/v1/messages?{query}"), "").problem(422)["field"], field);
    }
    assert_eq!(host.ask("GET", "/v1/dead?state=dead", "").problem(422)["field"], "state");
}

#[test]
fn a_key_is_accepted_once() {
    let host = Host::start();
    let message = json!({"url": "http://127.0.0.1:9/", "not_before": "1d", "key": "order-7", "body": "a"});
    let first = host.submit(&message);
    let again = host.ask("POST", "/v1/messages", &message.to_string());
    assert_eq!(again.expect(200), json!({"id": first, "state": "waiting"}));
    assert_eq!(again.header("idempotency-replayed"), Some("true"));

    let mut other = message.clone();
    other["body"] = json!("b");
    let conflict = host.ask("POST", "/v1/messages", &other.to_string()).problem(422);
    assert_eq!((&conflict["field"], &conflict["id"]), (&json!("key"), &json!(first)));

    // The header is the same key; two different ones are none.
    let bearer = format!("Bearer {}", host.token);
    let with_header = |key: &str, message: &Value| {
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
            ("idempotency-key", key),
        ];
        exchange(&host.address, "POST", "/v1/messages", &headers, message.to_string().as_bytes()).unwrap()
    };
    let mut without = message.clone();
    without.as_object_mut().unwrap().remove("key");
    assert_eq!(with_header("order-7", &without).expect(200)["id"], json!(first));
    assert_eq!(with_header("order-8", &message).problem(422)["field"], "Idempotency-Key");
    assert_eq!(host.accepted(), 1);
}

#[test]
fn what_was_accepted_is_a_replay_after_its_deadline_and_under_other_settings() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("relent.toml");
    let launch = |settings: &str| {
        std::fs::write(&file, settings).unwrap();
        let mut command = host::serve(&folder.path().join("data"));
        command.arg("--config").arg(&file);
        Host::launch(command, folder.path())
    };
    let mut host = launch("[policies.orders]\n");
    let url = "http://127.0.0.1:9/";
    let measure = host.submit(&json!({"url": url, "deadline": "5s"}));
    let soon = &host.get(&format!("/v1/messages/{measure}"))["deadline"];
    let messages = [
        json!({"url": url, "key": "deadline", "deadline": soon}),
        json!({"url": url, "key": "policy", "policy": "orders", "not_before": "1d"}),
        json!({"url": url, "key": "limit", "body": "x".repeat(2000), "not_before": "1d"}),
    ];
    let ids = messages.each_ref().map(|message| host.submit(message));
    host.stop();

    let host = launch("body_limit = 1000\n");
    let changed = |message: &Value, field: &str, value: &str| {
        let mut message = message.clone();
        message[field] = json!(value);
        message.to_string()
    };
    let mut without_key = messages[0].clone();
    without_key.as_object_mut().unwrap().remove("key");
    host::eventually("the deadline is past", || {
        let reply = host.ask("POST", "/v1/messages", &changed(&without_key, "method", "POST"));
        (reply.status == 422 && reply.text().contains("is past")).then_some(())
    });
    for (message, id) in messages.iter().zip(&ids) {
        let reply = host.ask("POST", "/v1/messages", &message.to_string());
        assert_eq!(reply.expect(200)["id"], json!(id), "{message}");
        assert_eq!(reply.header("idempotency-replayed"), Some("true"));
        let conflict = host.ask("POST", "/v1/messages", &changed(message, "method", "PUT")).problem(422);
        assert_eq!((&conflict["field"], &conflict["id"]), (&json!("key"), &json!(id)), "{conflict}");
    }
    for (message, status, field) in
        [(&messages[0], 422, "deadline"), (&messages[1], 422, "policy"), (&messages[2], 413, "body")]
    {
        let reply = host.ask("POST", "/v1/messages", &changed(message, "key", "unknown"));
        assert_eq!(reply.problem(status)["field"], field);
    }
}
