//! The commands that speak to a server: what they print for people and for programs, and how they end.

mod support;

use std::{
    fs,
    io::{Read as _, Write as _},
    process::Stdio,
    thread,
};

use serde_json::{Value, json};
use support::{Ended, Receiver, Run as _, Server, eventually, relent};

const NOBODY: &str = "0198c5d2-7f3a-7c41-9d55-3b1f2a6e8c90";

#[test]
fn send_prints_the_id_alone_and_with_json_the_answer() {
    let (server, receiver) = (Server::start(), Receiver::open());
    let url = receiver.url("/200");
    let ended = server.command(&["send", &url, "-d", "{}", "--key", "order-7"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let id = ended.stdout.trim_end().to_owned();
    assert_eq!(ended.stdout, format!("{id}\n"));
    assert_eq!(id.len(), 36);

    let again = server.command(&["send", &url, "-d", "{}", "--key", "order-7"]);
    assert_eq!(again.stdout, format!("{id}\n"));
    assert!(again.stderr.contains("accepted before"), "{}", again.stderr);

    let answer = server.json(&["send", &url]);
    assert_eq!(answer["state"], "waiting");
    assert_ne!(answer["id"], id.as_str());
}

#[test]
fn send_hands_over_method_headers_body_labels_and_key() {
    let (server, receiver) = (Server::start(), Receiver::open());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("order.json");
    fs::write(&file, b"{\"order\": 7}\n").unwrap();
    let body = format!("@{}", file.display());
    let url = receiver.url("/200");
    let id = server.send(&[
        &url,
        "-X",
        "PUT",
        "-H",
        "X-Shop: north: 1",
        "-d",
        &body,
        "--key",
        "k-7",
        "--label",
        "shop=north=1",
        "--repeat",
        "safe",
        "--deadline",
        "1h",
        "--policy",
        "quick",
    ]);
    let message = server.wait_for(&id, "delivered");
    assert_eq!((&message["labels"], &message["repeat"]), (&json!({"shop": "north=1"}), &json!("safe")));
    assert_eq!((&message["key"], &message["policy"]), (&json!("k-7"), &json!("quick")));
    assert_eq!(message["body"], "{\"order\": 7}\n");
    assert!(message["deadline"].is_string());
    let request = receiver.requests().remove(0);
    assert_eq!(request.line, "PUT /200 HTTP/1.1");
    assert_eq!(request.body, b"{\"order\": 7}\n");
    assert!(request.headers.contains(&"x-shop: north: 1".to_owned()), "{:?}", request.headers);
    assert!(request.headers.contains(&"idempotency-key: k-7".to_owned()), "{:?}", request.headers);
}

#[test]
fn send_takes_bytes_from_standard_input_as_they_are() {
    let (server, receiver) = (Server::start(), Receiver::open());
    let mut command = relent();
    command.args(["send", &receiver.url("/200"), "-d", "@-", "--data"]).arg(&server.data);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&[0xff, 0x00, b'\n']).unwrap();
    let id = Ended::from(child.wait_with_output().unwrap()).done();
    server.wait_for(id.trim(), "delivered");
    assert_eq!(receiver.requests()[0].body, [0xff, 0x00, b'\n']);
    let shown = server.command(&["show", id.trim()]).done();
    assert!(shown.contains("not text"), "{shown}");
}

#[test]
fn a_body_may_begin_like_a_flag() {
    let (server, receiver) = (Server::start(), Receiver::open());
    let id = server.command(&["send", &receiver.url("/200"), "-d", "-1"]).done();
    server.wait_for(id.trim(), "delivered");
    assert_eq!(receiver.requests()[0].body, b"-1");
}

#[test]
fn what_the_server_refuses_is_a_sentence_that_names_the_flag() {
    let (server, receiver) = (Server::start(), Receiver::open());
    let url = receiver.url("/200");
    server.send(&[&url, "-d", "one", "--key", "k"]);
    let cases: &[(&[&str], i32, &str)] = &[
        (&["ftp://example.com/"], 2, "URL: has the scheme \"ftp\""),
        (&["foo"], 2, "URL: is not absolute: write for example https://"),
        (&[&url, "--policy", "fancy"], 2, "--policy: there is no policy \"fancy\"; there are: aws-2026"),
        (&[&url, "--deadline", "2001-01-01T00:00:00Z"], 2, "--deadline: is past"),
        (&[&url, "--deadline", "soon"], 2, "--deadline: \"soon\" is not a time; write RFC 3339"),
        (&[&url, "--not-before", "-1h"], 2, "--not-before: \"-1h\" is not a time"),
        (&[&url, "-X", "get"], 2, "-X: methods are case-sensitive: write GET"),
        (&[&url, "-H", "Host: other"], 2, "-H host: comes from the url"),
        (&[&url, "-H", "idempotency-key: x y"], 2, "write --key x y"),
        (&[&url, "--key", "two words"], 2, "--key: must be 1 to 255"),
        (&[&url, "-d", "two", "--key", "k"], 1, "the key belongs to message "),
    ];
    for (args, code, says) in cases {
        let ended = server.command(&[&["send"], *args].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(*code), ""), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(says), "{args:?} must say {says}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
    assert_eq!(server.json(&["status"])["accepted"], 1, "nothing of it was stored");
}

#[test]
fn wrong_use_ends_with_2_and_says_what_to_write() {
    let server = Server::start();
    let cases: &[(&[&str], &str)] = &[
        (&["send"], "URL"),
        (&["send", "http://h/", "-H", "no colon"], "name: value"),
        (&["send", "http://h/", "--label", "no mark"], "name=value"),
        (&["send", "http://h/", "-d", "@"], "standard input"),
        (&["send", "http://h/", "-d", "@no-such-file"], "-d @no-such-file: "),
        (&["send", "http://h/", "--repeat", "sometimes"], "keyed"),
        (&["serve", "--drain", "-3s"], "drain: \"-3s\" is not a duration: it is negative"),
        (&["probe", "--patience", "-3s", "--", "true"], "\"-3s\" is not a duration: it is negative"),
        (&["ls", "--state", "lost"], "in_flight"),
        (&["ls", "--limit", "0"], "1..=250"),
        (&["show", "7"], "0198c5d2"),
        (&["cancel", "7"], "0198c5d2"),
        (&["dead", "redrive"], "ID"),
        (&["status", "--server", "https://example.com"], "http"),
        (&["no-such-command"], "no-such-command"),
    ];
    for (args, way_out) in cases {
        let ended = server.command(args);
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(way_out), "{args:?} must say {way_out}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{args:?}");
    }
}

#[test]
fn without_a_server_a_token_or_the_right_token_the_way_out_is_said() {
    let server = Server::start();
    let empty = tempfile::tempdir().unwrap();
    let no_token = relent().args(["status", "--data"]).arg(empty.path()).run().failed(1);
    assert!(no_token.contains("relent serve") && no_token.contains("--data"), "{no_token}");

    let wrong =
        relent().args(["status", "--data"]).arg(&server.data).env("RELENT_TOKEN", "wrong").run().failed(1);
    assert!(wrong.contains("refused the token from RELENT_TOKEN"), "{wrong}");

    // A port that was free a moment ago: the listener that had it is closed.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let gone = server.command(&["status", "--server", &free]).failed(1);
    assert!(gone.contains(&free) && gone.contains("relent serve"), "{gone}");

    let receiver = Receiver::open();
    let other = server.command(&["status", "--server", &receiver.url("")]).failed(1);
    assert!(other.contains("does not answer like a relent server"), "{other}");

    let no_http = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = no_http.local_addr().unwrap().to_string();
    let answering = thread::spawn(move || {
        let (mut stream, _) = no_http.accept().unwrap();
        let _request = stream.read(&mut [0; 1024]).unwrap();
        stream.write_all(b"502 command not implemented\r\n")
    });
    let smtp = server.command(&["status", "--server", &url]).failed(1);
    answering.join().unwrap().unwrap();
    assert!(smtp.contains("does not answer like a relent server"), "{smtp}");
}

#[test]
fn a_token_from_the_environment_needs_no_folder() {
    let server = Server::start();
    let token = fs::read_to_string(server.data.join("token")).unwrap();
    let empty = tempfile::tempdir().unwrap();
    let mut command = relent();
    command.args(["status", "--server", &server.url, "--data"]).arg(empty.path());
    command.env("RELENT_TOKEN", token.trim()).run().done();
}

#[test]
fn ls_shows_why_each_waits_and_pages_through_all() {
    let (server, receiver) = (Server::start(), Receiver::open());
    assert_eq!(server.command(&["ls"]).done(), "nothing here\n");
    let waiting = server.send(&[&receiver.url("/503"), "--policy", "slow"]);
    let dead = server.send(&[&receiver.url("/422"), "--policy", "quick"]);
    let delivered = server.send(&[&receiver.url(&format!("/200?{}", "x".repeat(300)))]);
    for (id, state) in [(&dead, "dead"), (&delivered, "delivered")] {
        server.wait_for(id, state);
    }
    eventually("the first attempt is over", || {
        (server.json(&["show", &waiting])["log"][0]["outcome"] == "503").then_some(())
    });

    let shown = server.command(&["ls"]).done();
    let line =
        |id: &str| shown.lines().find(|line| line.starts_with(id)).unwrap_or_else(|| panic!("{shown}"));
    assert!(line(&waiting).contains("waiting") && line(&waiting).contains("backoff, due in 59m"), "{shown}");
    assert!(line(&dead).contains("permanent"), "{shown}");
    assert!(line(&delivered).ends_with('…') && line(&delivered).len() < 200, "wide text is cut: {shown}");

    let one = server.command(&["ls", "--state", "dead,delivered", "--limit", "1"]).done();
    assert!(one.contains(&delivered) && !one.contains(&dead), "newest first: {one}");
    let cursor = one.split("--cursor ").nth(1).unwrap().split(',').next().unwrap();
    let two = server.command(&["ls", "--state", "dead,delivered", "--limit", "1", "--cursor", cursor]).done();
    assert!(two.contains(&dead) && !two.contains(&waiting), "{two}");
    let all = server.json(&["ls", "--all"]);
    assert_eq!(all["items"].as_array().unwrap().len(), 3);
    assert_eq!(server.json(&["ls", "--state", "waiting"])["items"][0]["id"], waiting.as_str());
}

#[test]
fn all_goes_on_through_every_page() {
    let (server, receiver) = (Server::start(), Receiver::open());
    let url = receiver.url("/503");
    for _ in 0..3 {
        server.send(&[&url, "--policy", "slow", "--not-before", "1d"]);
    }
    let first = server.json(&["ls", "--limit", "2"]);
    let next = first["next"].as_str().unwrap();
    let rest = server.json(&["ls", "--all", "--cursor", next]);
    assert_eq!(rest["items"].as_array().unwrap().len(), 1);
    assert!(rest["next"].is_null());
}

#[test]
fn show_tells_every_attempt_and_every_wait_with_its_draw() {
    let (server, receiver) = (Server::start(), Receiver::open());
    let id =
        server.send(&[&receiver.url("/asks"), "--policy", "quick", "-H", "Authorization: Bearer secret"]);
    let message = eventually("it waits for what the server asked", || {
        let message = server.json(&["show", &id]);
        (message["waits"][0]["origin"] == "server").then_some(message)
    });
    assert_eq!(message["waits"][0]["asked_s"], 2.0);
    let shown = server.command(&["show", &id]).done();
    for part in [
        "attempt 1  20",
        "429 after ",
        "server asked 2s, plus ",
        " of at most 1s drawn",
        "quick, repeat keyed",
        "authorization: REDACTED",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }

    let drawn = server.send(&[&receiver.url("/503"), "--policy", "quick"]);
    server.wait_for(&drawn, "dead");
    let shown = server.command(&["show", &drawn]).done();
    assert_eq!(shown.matches("of at most 50ms drawn").count(), 2, "{shown}");
    assert!(shown.contains("attempt 3") && shown.contains("attempts_exhausted (the attempts"), "{shown}");
    assert!(shown.contains("waited "), "{shown}");
}

#[test]
fn what_a_receiver_answers_cannot_steer_the_terminal() {
    let (server, receiver) = (Server::start(), Receiver::open());
    let id = server.send(&[&receiver.url("/hostile"), "--policy", "quick"]);
    server.wait_for(&id, "dead");
    for args in [&["show", id.as_str()][..], &["dead", "show", &id], &["ls"], &["dead", "ls"]] {
        let shown = server.command(args).done();
        let steering = |letter: char| (letter.is_control() && letter != '\n') || letter == '\u{202e}';
        assert!(!shown.chars().any(steering), "{args:?}: {shown:?}");
    }
    let shown = server.command(&["show", &id]).done();
    assert!(shown.contains("\\u{1b}[2Jevil") && shown.contains("    second line"), "{shown}");
}

#[test]
fn show_of_a_stranger_fails() {
    let server = Server::start();
    for args in [&["show", NOBODY][..], &["dead", "show", NOBODY]] {
        assert!(server.command(args).failed(1).starts_with("relent: "));
    }
}

#[test]
fn status_counts_everything_and_the_sum_holds() {
    let (server, receiver) = (Server::start(), Receiver::open());
    let dead = server.send(&[&receiver.url("/422"), "--policy", "quick"]);
    let delivered = server.send(&[&receiver.url("/200"), "--policy", "quick"]);
    server.send(&[&receiver.url("/200"), "--not-before", "1d"]);
    server.wait_for(&dead, "dead");
    server.wait_for(&delivered, "delivered");
    let status = server.json(&["status"]);
    let of = |name: &str| status[name].as_u64().unwrap();
    assert_eq!((of("accepted"), of("dead"), of("delivered"), of("waiting")), (3, 1, 1, 1));
    let parts = ["waiting", "in_flight", "held", "delivered", "dead", "discarded", "cancelled"];
    assert_eq!(parts.into_iter().map(of).sum::<u64>(), of("accepted"));
    let shown = server.command(&["status"]).done();
    let lines: Vec<String> =
        shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in ["accepted 3", "delivered 1", "dead 1 see `relent dead ls`"] {
        assert!(lines.iter().any(|shown| shown == line), "{line}: {shown}");
    }
    assert!(shown.contains("permanent (the receiver said no"), "{shown}");
    assert!(shown.contains("2 attempts, 0.667 for each accepted message"), "{shown}");
}

#[test]
fn cancel_stops_what_waits_and_reports_each() {
    let (server, receiver) = (Server::start(), Receiver::open());
    let (one, two) = (
        server.send(&[&receiver.url("/200"), "--not-before", "1d"]),
        server.send(&[&receiver.url("/200"), "--not-before", "1d"]),
    );
    assert_eq!(server.command(&["cancel", &one]).done(), format!("{one}  cancelled\n"));
    let mixed = server.command(&["cancel", &one, &two]);
    assert_eq!(mixed.code, Some(1));
    let lines: Vec<&str> = mixed.stdout.lines().collect();
    assert!(
        lines[0].starts_with(&format!("{one}  refused: ")) && lines[0].contains("cancelled"),
        "{lines:?}"
    );
    assert_eq!(lines[1], format!("{two}  cancelled"));
    assert_eq!(server.json(&["show", &two])["state"], "cancelled");
    assert!(receiver.requests().is_empty(), "a cancelled message is not sent");
}

#[test]
fn dead_letters_are_listed_redriven_and_discarded() {
    let (server, receiver) = (Server::start(), Receiver::open());
    let send = || server.send(&[&receiver.url("/422"), "--policy", "quick"]);
    let ids = [send(), send(), send()];
    ids.iter().for_each(|id| drop(server.wait_for(id, "dead")));
    let listed = server.command(&["dead", "ls"]).done();
    assert!(ids.iter().all(|id| listed.contains(id.as_str())), "{listed}");
    assert_eq!(server.json(&["dead", "ls"])["items"].as_array().unwrap().len(), 3);
    assert!(server.command(&["dead", "show", &ids[0]]).done().contains("permanent"));

    assert_eq!(server.command(&["dead", "discard", &ids[0]]).done(), format!("{}  discarded\n", ids[0]));
    receiver.mend();
    let redriven = server.command(&["dead", "redrive", &ids[1], NOBODY, &ids[0], &ids[2]]);
    assert_eq!(redriven.code, Some(1), "one is unknown and one is not dead: {redriven:?}");
    let lines: Vec<&str> = redriven.stdout.lines().collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0], format!("{}  waiting, cycle 1", ids[1]));
    assert!(lines[1].contains("refused") && lines[2].contains("discarded"), "{lines:?}");
    assert_eq!(lines[3], format!("{}  waiting, cycle 1", ids[2]));
    server.wait_for(&ids[1], "delivered");
    server.wait_for(&ids[2], "delivered");
    assert_eq!(server.command(&["dead", "ls"]).done(), "nothing here\n");
}

#[test]
fn several_ids_in_json_are_an_array_with_an_entry_each() {
    let (server, receiver) = (Server::start(), Receiver::open());
    let id = server.send(&[&receiver.url("/422"), "--policy", "quick"]);
    server.wait_for(&id, "dead");
    let ended = server.command(&["dead", "discard", &id, NOBODY, "--json"]);
    assert_eq!(ended.code, Some(1));
    let outcomes: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(outcomes[0], json!({"id": id, "state": "discarded"}));
    assert_eq!((&outcomes[1]["id"], &outcomes[1]["error"]["status"]), (&json!(NOBODY), &json!(404)));
}

#[test]
fn the_exit_codes_are_told_once_and_all_of_them() {
    for flag in ["-h", "--help"] {
        let help = relent().arg(flag).run().done();
        assert_eq!(help.matches("Exit codes:").count(), 1, "{help}");
        assert!(help.contains("of `relent call` also 3"), "{help}");
    }
}

#[test]
fn every_help_page_has_an_example() {
    let mut left = vec![Vec::<String>::new()];
    let mut seen = 0;
    while let Some(path) = left.pop() {
        let help = relent().args(&path).arg("--help").run().done();
        assert!(help.contains("Example") || help.contains("First steps"), "{path:?}: {help}");
        seen += 1;
        let commands = help.split("\nCommands:\n").nth(1).unwrap_or_default();
        for line in commands.lines().take_while(|line| line.starts_with("  ")) {
            let name = line.split_whitespace().next().unwrap();
            if name != "help" && !line.starts_with("   ") {
                left.push(path.iter().cloned().chain([name.to_owned()]).collect());
            }
        }
    }
    assert!(seen >= 15, "only {seen} help pages were found");
}

#[test]
fn a_server_that_never_answers_is_not_waited_for_for_ever() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let ended = relent()
        .args(["status", "--timeout", "100ms", "--server", &address])
        .env("RELENT_TOKEN", "token")
        .run();
    let said = ended.failed(1);
    assert!(said.contains("did not answer within 100ms") && said.contains("--timeout"), "{said}");
}
