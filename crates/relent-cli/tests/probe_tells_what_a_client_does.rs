//! `relent probe` and `relent probe serve` as a shell sees them.

mod support;

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, Stdio},
};

use serde_json::Value;
use support::relent;

/// A client without a retry, in a shell that can open sockets.
const CLIENT: &str = r#"
at=${RELENT_PROBE_URL#http://}; at=${at%%/*}
exec 3<>"/dev/tcp/${at%:*}/${at#*:}"
printf '%s /probe HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n' "$RELENT_PROBE_METHOD" >&3
read -r -t 1 _ status _ <&3 && [ "$status" = 200 ]
"#;

#[test]
fn a_card_is_text_or_json_or_a_page_and_fails_where_a_check_does() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("card.html");
    let mut command = relent();
    command.args(["probe", "--json", "--copies", "8", "--patience", "3s", "--html"]).arg(&page);
    let ended = command.args(["--", "bash", "-c", CLIENT]).output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{}", String::from_utf8_lossy(&ended.stderr));
    let card: Value = serde_json::from_slice(&ended.stdout).unwrap();
    let verdict = |name: &str| {
        let checks = card["checks"].as_array().unwrap();
        checks.iter().find(|check| check["name"] == name).expect(name)["verdict"].as_str().unwrap().to_owned()
    };
    for (name, expected) in [
        ("repeats-503", "failed"),
        ("stops-at-401", "passed"),
        ("post-503-once", "passed"),
        ("few-attempts", "passed"),
        ("gives-up-on-silence", "passed"),
        ("same-key", "undecided"),
        ("jitters", "undecided"),
    ] {
        assert_eq!(verdict(name), expected, "{name}: {card:#}");
    }
    let counted: u64 =
        ["passed", "failed", "undecided"].map(|one| card["grade"][one].as_u64().unwrap()).iter().sum();
    assert_eq!(counted, card["checks"].as_array().unwrap().len() as u64);
    assert_eq!(card["schedule"]["curve"], "undecided");
    assert!(fs::read_to_string(page).unwrap().contains("repeats-503"));
}

#[test]
fn a_client_that_asks_for_nothing_is_wrong_use() {
    let ended = relent().args(["probe", "--", "true"]).output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains("{url}") && said.contains("ended with code 0"), "{said}");
    assert_eq!(relent().args(["probe"]).output().unwrap().status.code(), Some(2));
    let ended = relent().args(["probe", "--time", "0s", "--", "true"]).output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.code() == Some(2) && said.contains("the time was up before"), "{said}");
}

#[test]
fn a_page_that_cannot_be_written_is_refused_before_the_client_is_run() {
    let ended = relent().args(["probe", "--html", "/nonexistent/card.html", "--", "true"]).output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("/nonexistent/card.html") && !said.contains("probing"), "{said}");
}

#[test]
fn a_script_is_served_and_what_arrives_is_told() {
    let flags = ["--script", "503 asks 2s, 200", "--by", "path", "--on", "POST /orders/* = 201", "--json"];
    let mut serving = Serving::start(&flags);
    let told: Vec<Value> = ["GET /a", "GET /a", "POST /orders/7"]
        .into_iter()
        .map(|place| {
            let answer = serving.ask(place);
            assert!(answer.starts_with("HTTP/1.1 "), "{answer}");
            serving.told()
        })
        .collect();
    let statuses: Vec<u64> = told.iter().map(|one| one["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [503, 200, 201]);
    assert_eq!((&told[2]["method"], &told[2]["path"]), (&Value::from("POST"), &Value::from("/orders/7")));
    assert_eq!(told[2]["headers"]["host"], "test");
}

#[test]
fn a_script_that_is_not_understood_or_would_serve_everyone_is_refused() {
    for (flags, part) in [
        (&["--script", "503 asks"][..], "--script"),
        (&["--by", "colour"], "header:NAME"),
        (&["--on", "/x 503"], "POST /orders/* = 503"),
        (&["--listen", "0.0.0.0:0"], "--allow-remote"),
    ] {
        let ended = relent().args(["probe", "serve"]).args(flags).output().unwrap();
        assert_eq!(ended.status.code(), Some(2), "{flags:?}");
        let said = String::from_utf8(ended.stderr).unwrap();
        assert!(said.contains(part), "{flags:?}: {said}");
    }
}

#[test]
fn an_address_that_is_taken_is_told_with_the_way_out() {
    let first = Serving::start(&[]);
    let ended = relent().args(["probe", "serve", "--listen", &first.address]).output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains(&first.address) && said.contains("another with --listen"), "{said}");
}

struct Serving {
    child: Child,
    address: String,
    lines: BufReader<std::process::ChildStdout>,
}

impl Serving {
    fn start(flags: &[&str]) -> Self {
        let mut command = relent();
        command.args(["probe", "serve", "--listen", "127.0.0.1:0"]).args(flags);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address =
            line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).expect(&line).to_owned();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, address, lines }
    }

    fn ask(&self, place: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "{place} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn told(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
