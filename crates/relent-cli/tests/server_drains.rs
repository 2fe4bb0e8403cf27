//! SIGTERM ends a server in order: nothing that was promised is lost, and nothing is counted that was cut off.

mod host;

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    process::Stdio,
};

use host::{Host, Receiver, eventually, serve};
use serde_json::json;

/// A server with one message in flight to a receiver that does not answer yet.
fn in_flight(folder: &std::path::Path, flags: &[&str]) -> (Host, Receiver, String) {
    let receiver = Receiver::holding();
    let mut command = serve(&folder.join("data"));
    command.args(flags);
    let host = Host::launch(command, folder);
    let id = host.submit(&json!({"url": receiver.url()}));
    eventually("the attempt is under way", || (!receiver.seen().is_empty()).then_some(()));
    (host, receiver, id)
}

#[test]
fn an_attempt_in_flight_may_finish_and_meanwhile_nothing_new_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (mut host, receiver, id) = in_flight(folder.path(), &["--drain", "60s"]);
    host.signal("TERM");
    let refused = eventually("the drain has begun", || {
        let reply = host.ask("POST", "/v1/messages", &json!({"url": receiver.url()}).to_string());
        (reply.status == 503).then_some(reply)
    });
    refused.problem(503);
    assert!(refused.header("retry-after").is_some());
    host.ask("GET", "/readyz", "").problem(503);
    assert_eq!(host.ask("GET", "/healthz", "").status, 200);
    let status = host.get("/v1/status");
    assert_eq!((&status["draining"], &status["in_flight"]), (&json!(true), &json!(1)));
    receiver.answer_with(200);
    let ended = host.ended();
    assert!(ended.success(), "{ended}: {}", host.log());

    let host = Host::launch(serve(&folder.path().join("data")), folder.path());
    let message = host.get(&format!("/v1/messages/{id}"));
    assert_eq!((&message["state"], &message["attempts"]), (&json!("delivered"), &json!(1)));
}

#[test]
fn an_attempt_that_hangs_is_put_back_uncounted_as_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let (mut host, receiver, id) = in_flight(folder.path(), &["--drain", "100ms"]);
    host.stop();

    let host = Host::launch(serve(&folder.path().join("data")), folder.path());
    // The next server sends it again at once: shutdown is not the receiver's failure and no backoff follows.
    eventually("it is sent again", || (receiver.seen().len() == 2).then_some(()));
    receiver.answer_with(200);
    let message = host.wait_for(&id, "delivered");
    assert_eq!(message["log"][0]["outcome"], "unknown", "{message}");
    assert_eq!(message["log"][1]["outcome"], "200", "{message}");
    assert_eq!(message["waits"][0]["origin"], "shutdown", "{message}");
}

#[test]
fn a_second_signal_ends_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (mut host, receiver, id) = in_flight(folder.path(), &["--drain", "10m"]);
    host.signal("INT");
    eventually("the drain has begun", || (host.ask("GET", "/readyz", "").status == 503).then_some(()));
    host.signal("TERM");
    assert_eq!(host.ended().code(), Some(1));

    receiver.answer_with(200);
    let host = Host::launch(serve(&folder.path().join("data")), folder.path());
    // As after a crash: the attempt is unknown and counts as a loss, so the policy decides on a wait.
    let message = eventually("its attempt is known to be unknown", || {
        let message = host.get(&format!("/v1/messages/{id}"));
        (message["log"][0]["outcome"] == "unknown").then_some(message)
    });
    assert_ne!(message["state"], "dead");
}

#[test]
fn a_terminal_that_goes_away_drains_the_server() {
    if hangups_are_ignored() {
        eprintln!("skipped: this process ignores SIGHUP (nohup), and so would the server that it starts");
        return;
    }
    let mut host = Host::start();
    host.signal("HUP");
    let ended = host.ended();
    assert!(ended.success(), "{ended}: {}", host.log());
    assert!(host.log().contains("SIGHUP"), "{}", host.log());
}

/// Whether this process was started so, by what Linux says of it; elsewhere it is taken not to be.
fn hangups_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_that_was_to_ignore_its_terminal_outlives_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut host = Host::launch(host::serve_after("trap '' HUP", folder.path()), folder.path());
    host.signal("HUP");
    host.signal("TERM");
    let ended = host.ended();
    // Were SIGHUP heard, one of the two would be the second signal, which ends at once.
    assert!(ended.success() && !host.log().contains("SIGHUP"), "{ended}: {}", host.log());
}

#[test]
fn a_server_that_is_asked_to_ends_with_whoever_holds_its_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = serve(&folder.path().join("data"));
    command.arg("--until-stdin-closes").stdin(Stdio::piped());
    let mut host = Host::launch(command, folder.path());
    assert_eq!(host.ask("GET", "/readyz", "").status, 200);
    host.close_stdin();
    let ended = host.ended();
    assert!(ended.success(), "{ended}: {}", host.log());
    assert!(host.log().contains("end of standard input"), "{}", host.log());
}

#[test]
fn an_idle_connection_does_not_hold_the_end() {
    let mut host = Host::start();
    let mut idle = TcpStream::connect(&host.address).unwrap();
    write!(idle, "GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    assert!(idle.read(&mut [0; 512]).unwrap() > 0);
    let half = TcpStream::connect(&host.address).unwrap();
    write!(&half, "POST /v1/mess").unwrap();
    host.stop();
}
