//! `relent call` on the real binary: one request under a policy, what it tells, and how it ends for a script.

mod support;

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use http::StatusCode;
use relent_probe::{Act, Answer, Dependency, Head};
use serde_json::Value;
use support::{Ended, Run as _, relent, request};

/// A receiver that does these things, one after another; the last for all that follow.
fn receiver(acts: impl IntoIterator<Item = Act>) -> Dependency {
    let (acts, next) = (acts.into_iter().collect::<Vec<_>>(), AtomicUsize::new(0));
    request::receiver(move |_: &Head<'_>| {
        let index = next.fetch_add(1, Ordering::SeqCst).min(acts.len() - 1);
        acts[index].clone()
    })
}

fn says(status: u16, body: &'static str) -> Act {
    Answer::new(StatusCode::from_u16(status).unwrap()).with_body(body).into()
}

/// Four attempts with hardly a pause.
const QUICK: &str = "\
attempt_timeout = \"5s\"
total_timeout = \"30s\"
[retry]
max_attempts = 4
jitter = \"none\"
backoff = { kind = \"constant\", wait = \"2ms\" }
";

struct Quick {
    folder: tempfile::TempDir,
}

impl Quick {
    fn new(more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("policy.toml"), format!("{more}{QUICK}")).unwrap();
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn call(&self, args: &[&str]) -> Ended {
        relent().arg("call").arg("--policy").arg(self.path().join("policy.toml")).args(args).run()
    }
}

#[test]
fn attempts_go_to_stderr_and_the_body_to_stdout() {
    let receiver = receiver([says(503, "busy"), says(503, "busy"), says(200, "seven apples\n")]);
    let ended = Quick::new("").call(&[&receiver.url("/stock")]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "seven apples\n"));
    let told: Vec<&str> = ended.stderr.lines().filter(|line| !line.contains(": warning: ")).collect();
    assert!(told[0].starts_with("relent: attempt 1: 503 after "), "{told:?}");
    assert_eq!(told[1], "relent: waiting 2ms (backoff)");
    assert!(told[4].starts_with("relent: attempt 3: 200 after "), "{told:?}");
    assert!(told[5].starts_with("relent: succeeded after 3 attempts in "), "{told:?}");
    assert_eq!(told.len(), 6);
    let requests = request::requests(&receiver);
    assert!(requests.iter().all(|request| request.line == "GET /stock HTTP/1.1"));
    assert!(requests[2].headers.contains(&"x-relent-attempt: 3".to_owned()));
}

#[test]
fn what_is_doubtful_in_a_file_is_told_and_a_built_in_policy_is_not_doubted() {
    let receiver = receiver([says(200, "")]);
    let url = receiver.url("/");
    let hopeful = Quick::new("").call(&["--deadline", "1s", &url]).stderr;
    assert!(hopeful.starts_with("relent: warning: "), "{hopeful}");
    for args in [&[][..], &["--deadline", "1s"], &["--preset", "envoy"]] {
        let told = relent().arg("call").args(args).arg(&url).run().stderr;
        assert!(told.starts_with("relent: attempt 1: 200 after "), "{args:?}: {told}");
    }
}

#[test]
fn silence_and_a_head_can_be_had() {
    let receiver = receiver([says(200, "seven apples\n")]);
    let ended = Quick::new("").call(&["-s", "-i", &receiver.url("/stock")]);
    assert_eq!(ended.stderr, "");
    assert!(ended.stdout.starts_with("HTTP/1.1 200 OK\n"), "{}", ended.stdout);
    assert!(ended.stdout.ends_with("\n\nseven apples\n"), "{}", ended.stdout);
}

#[test]
fn method_headers_and_body_go_out_as_they_are_written() {
    let receiver = receiver([says(200, "")]);
    let quick = Quick::new("");
    let file = quick.path().join("body");
    fs::write(&file, b"{\"order\": 7}\r\n").unwrap();
    let body = format!("@{}", file.display());
    let url = receiver.url("/orders?a=b");
    quick
        .call(&[
            "-X",
            "PUT",
            "-H",
            "content-type: application/json",
            "-H",
            "x-a: b:c",
            "--data-binary",
            &body,
            &url,
        ])
        .done();
    quick.call(&["-d", "x=1", &url]).done();
    let requests = request::requests(&receiver);
    assert_eq!(
        (requests[0].line.as_str(), &*requests[0].body),
        ("PUT /orders?a=b HTTP/1.1", &b"{\"order\": 7}\r\n"[..])
    );
    assert!(requests[0].headers.contains(&"x-a: b:c".to_owned()));
    assert!(requests[0].headers.iter().any(|line| line.starts_with("user-agent: relent/")));
    assert_eq!((requests[1].line.as_str(), &*requests[1].body), ("POST /orders?a=b HTTP/1.1", &b"x=1"[..]));
}

#[test]
fn an_answer_that_is_no_success_ends_with_1_and_its_body() {
    let receiver = receiver([says(404, "nope")]);
    let ended = Quick::new("").call(&[&receiver.url("/stock")]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), "nope"));
    assert!(ended.stderr.contains("relent: permanent after 1 attempt in "), "{}", ended.stderr);
}

#[test]
fn what_may_have_been_carried_out_ends_with_3() {
    for (act, stdout) in [(says(503, "busy"), "busy"), (Act::Reset, ""), (Act::Close, "")] {
        let receiver = receiver([act, says(201, "done")]);
        let ended = Quick::new("").call(&["-d", "an order", &receiver.url("/orders")]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(3), stdout), "{}", ended.stderr);
        assert!(ended.stderr.contains("ambiguous after 1 attempt"), "{}", ended.stderr);
        assert_eq!(request::requests(&receiver).len(), 1);
    }
}

#[test]
fn a_key_makes_it_safe_and_the_last_word_counts() {
    let receiver_of = |acts: Vec<Act>| receiver(acts);
    for (given, expected) in [("--idempotency-key", None), ("--idempotency-key=order-7", Some("order-7"))] {
        let receiver = receiver_of(vec![Act::Reset, says(503, ""), says(201, "done")]);
        let ended = Quick::new("").call(&["-d", "an order", &receiver.url("/orders"), given]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "done"), "{}", ended.stderr);
        let requests = request::requests(&receiver);
        let key = |line: &&String| line.starts_with("idempotency-key: ");
        let keys: Vec<&String> =
            requests.iter().filter_map(|request| request.headers.iter().find(key)).collect();
        assert!(keys.len() == 3 && keys.iter().all(|key| *key == keys[0]), "{keys:?}");
        assert!(expected.is_none_or(|expected| keys[0].ends_with(expected)), "{keys:?}");
    }
    // Nobody knows what became of it, though repeating it does no harm.
    let receiver = receiver([Act::Reset]);
    let ended = Quick::new("").call(&["-d", "an order", &receiver.url("/orders"), "--idempotency-key"]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert_eq!(request::requests(&receiver).len(), 4);
}

/// The key that the receiver was sent.
fn key_sent(receiver: &Dependency) -> String {
    let requests = request::requests(receiver);
    let value = |line: &String| line.strip_prefix("idempotency-key: ").map(str::to_owned);
    requests[0].headers.iter().find_map(value).expect("a key")
}

#[test]
fn a_key_that_was_made_is_told_whoever_asked_for_one() {
    for (args, policy) in [
        (&["--idempotency-key"][..], ""),
        (&["--repeat", "keyed"], ""),
        (&[], "repeat = \"keyed\"\n"),
        (&["-s", "--repeat", "keyed"], ""),
    ] {
        let receiver = receiver([Act::Reset]);
        let url = receiver.url("/orders");
        let ended = Quick::new(policy).call(&[args, &["-d", "an order", &url]].concat());
        let key = key_sent(&receiver);
        assert_eq!(
            (ended.code, request::requests(&receiver).len()),
            (Some(3), 4),
            "{args:?}: {}",
            ended.stderr
        );
        let told = ended.stderr.find(&format!("relent: idempotency key: {key}\n"));
        let before = told.is_some_and(|at| at < ended.stderr.find("attempt 1").unwrap());
        assert!(before || args.contains(&"-s"), "{args:?}: {}", ended.stderr);
        let advice = format!("repeat it under its key: --idempotency-key '{key}'\n");
        assert!(ended.stderr.ends_with(&advice), "{args:?}: {}", ended.stderr);

        let ended = Quick::new(policy).call(&[args, &["--json", "-d", "an order", &url]].concat());
        let json: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!((ended.code, &json["exit_code"]), (Some(3), &3.into()));
        assert_eq!(json["attempts"].as_array().unwrap().len(), 4);
        let sent = request::requests(&receiver)[4].headers.clone();
        assert!(sent.contains(&format!("idempotency-key: {}", json["idempotency_key"].as_str().unwrap())));
    }
}

#[test]
fn one_attempt_that_may_have_been_carried_out_is_enough_for_3() {
    let keyed = &["--idempotency-key", "-d", "an order"][..];
    for (acts, args, code) in [
        (vec![Act::Reset], &["-X", "DELETE"][..], 3),
        (vec![Act::Reset], &["-X", "GET"], 1),
        (vec![Act::Reset], &["-X", "OPTIONS"], 1),
        (vec![Act::Reset, says(404, "gone")], &["-X", "DELETE"], 3),
        (vec![says(404, "never was")], &["-X", "DELETE"], 1),
        (vec![Act::Reset, says(503, ""), Act::Close, says(503, "")], keyed, 3),
        (vec![says(503, "")], keyed, 3),
        (vec![says(409, "in progress")], keyed, 3),
        (vec![says(409, "a conflict")], &["-d", "an order"], 1),
        (vec![says(422, "no")], keyed, 1),
        (vec![says(500, "")], &["-d", "an order"], 3),
        (vec![says(303, "")], &["-d", "an order"], 3),
        (vec![says(308, "")], &["-d", "an order"], 1),
        (vec![Act::Reset, says(200, "")], &["-X", "DELETE"], 0),
    ] {
        let receiver = receiver(acts.clone());
        let ended = Quick::new("").call(&[args, &[&receiver.url("/orders")]].concat());
        assert_eq!(ended.code, Some(code), "{acts:?} {args:?}: {}", ended.stderr);
    }
}

#[test]
fn an_answer_whose_body_breaks_off_is_no_success() {
    let cut = || Act::from(Answer::new(StatusCode::CREATED).with_body("{\"order\": 7}").cut_in_half());
    for (args, code) in [(&["-d", "an order"][..], 3), (&[], 1)] {
        let receiver = receiver([cut()]);
        let ended = Quick::new("").call(&[args, &[&receiver.url("/orders")]].concat());
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        assert!(ended.stderr.contains("the answer's body broke off"), "{}", ended.stderr);
        let ended = Quick::new("").call(&[args, &["--json", &receiver.url("/orders")]].concat());
        let json: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!((ended.code, &json["exit_code"]), (Some(code), &code.into()));
        assert!(json["error"].as_str().unwrap().contains("broke off"), "{json}");
    }
}

#[test]
fn repeat_says_more_or_less_than_the_method() {
    for (method, repeat, sends) in [("POST", "safe", 4), ("GET", "never", 1), ("GET", "unsafe", 1)] {
        let receiver = receiver([says(503, "busy")]);
        let ended = Quick::new("").call(&["-X", method, "--repeat", repeat, &receiver.url("/")]);
        assert_eq!(request::requests(&receiver).len(), sends, "{method} {repeat}: {}", ended.stderr);
    }
}

#[test]
fn what_was_not_sent_ends_with_1_and_names_the_failure() {
    let nobody = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let ended = Quick::new("").call(&["-d", "an order", &format!("http://{nobody}/")]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert!(ended.stderr.contains("attempt 4: connect (Connection refused"), "{}", ended.stderr);
    assert!(ended.stderr.contains("attempts_exhausted after 4 attempts"), "{}", ended.stderr);
}

#[test]
fn json_holds_the_answer_and_every_attempt() {
    let receiver = receiver([Act::Close, says(200, "seven apples")]);
    let ended = Quick::new("").call(&["-s", "--json", "--idempotency-key=k-7", &receiver.url("/stock")]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&json["reason"], &json["exit_code"]), (&"succeeded".into(), &0.into()));
    assert_eq!(json["idempotency_key"], "k-7");
    assert_eq!((&json["answer"]["status"], &json["answer"]["body"]), (&200.into(), &"seven apples".into()));
    let attempts = json["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 2);
    assert_eq!(
        (&attempts[0]["outcome"], &attempts[0]["wait"]["origin"]),
        (&"reset".into(), &"backoff".into())
    );
    assert_eq!((&attempts[1]["outcome"], &attempts[1]["wait"]), (&"200".into(), &Value::Null));

    let nobody = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let ended = Quick::new("").call(&["--json", &format!("http://{nobody}/")]);
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((ended.code, &json["exit_code"], &json["answer"]), (Some(1), &1.into(), &Value::Null));
    assert!(json["error"].as_str().unwrap().contains("gave up after 4 attempts"), "{json}");
}

#[test]
fn a_deadline_that_wants_hours_is_pointed_to_the_server() {
    let receiver = receiver([says(200, "")]);
    for args in [&["--deadline", "3h"][..], &["--preset", "durable"]] {
        let said = relent().arg("call").args(args).arg(receiver.url("/")).run().failed(2);
        assert!(said.contains("relent serve") && said.contains("relent send"), "{said}");
    }
    relent().args(["call", "--preset", "durable", "--deadline", "10s"]).arg(receiver.url("/")).run().done();
    assert_eq!(request::requests(&receiver).len(), 1);
}

#[test]
fn what_is_written_wrong_ends_with_2_and_says_what_is_right() {
    let quick = Quick::new("");
    for (args, says) in [
        (&["example.com/x"][..], "write an absolute http or https URL"),
        (&["http:///x"], "write an absolute http or https URL"),
        (&["http://exa mple.com/"], "write an absolute http or https URL"),
        (&["gopher://x/"], "write an absolute http or https URL"), // RT-15
        (&["http://x/", "-H", "no colon"], "is not a header"),
        (&["http://x/", "-H", "bad name: x"], "-H \"bad name: x\""),
        (&["http://x/", "-X", "NO METHOD"], "is not a method"),
        (&["http://x/", "--deadline", "soon"], "--deadline: "),
        (&["http://x/", "--deadline", "0s"], "--deadline: 0s makes no sense here"),
        (&["http://x/", "--deadline", "-1s"], "--deadline: \"-1s\" is not a duration: it is negative"),
        (&["http://x/", "--idle", "soon"], "--idle: "),
        (&["http://x/", "-d", "@no-such-file"], "-d @no-such-file: "),
        (&["http://x/", "--idempotency-key=a b"], "an idempotency key is "),
        (&["http://x/", "--cacert", "/nowhere/ca.pem"], "No such file"),
    ] {
        let said = quick.call(args).failed(2);
        assert!(said.contains(says), "{args:?}: {said}");
    }
    let said = relent().args(["call", "http://x/", "--preset", "best"]).run().failed(2);
    assert!(said.contains("there is no policy \"best\""), "{said}");
}
