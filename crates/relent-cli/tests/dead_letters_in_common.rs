//! `relent dead` for many letters at once: those that have something in common, and none that was not meant.

mod support;

use std::{
    collections::BTreeSet,
    io::Write as _,
    process::{Command, Stdio},
};

use http::StatusCode;
use relent_probe::{Answer, Head};
use serde_json::{Value, json};
use support::{Ended, Receiver, Run as _, Server, relent, request};

/// A server with dead letters of three reasons for two destinations.
struct Night {
    server: Server,
    shop: Receiver,
    mail: Receiver,
    /// Two for the shop, one for the mail.
    permanent: [String; 3],
    /// For the shop.
    exhausted: [String; 2],
    /// For the shop; it may have been carried out.
    ambiguous: String,
}

impl Night {
    fn fall() -> Self {
        let (server, shop, mail) = (Server::start(), Receiver::open(), Receiver::open());
        let send = |url: String| server.send(&[&url, "--policy", "quick"]);
        let permanent = [send(shop.url("/422")), send(shop.url("/422")), send(mail.url("/422"))];
        let exhausted = [send(shop.url("/503")), send(shop.url("/503"))];
        let ambiguous = server.send(&[&shop.url("/500"), "--policy", "quick", "--repeat", "unsafe"]);
        for id in permanent.iter().chain(&exhausted).chain([&ambiguous]) {
            server.wait_for(id, "dead");
        }
        Self { server, shop, mail, permanent, exhausted, ambiguous }
    }

    fn dead(&self, flags: &[&str]) -> BTreeSet<String> {
        let args = [&["dead", "ls"], flags].concat();
        let page = self.server.json(&args);
        let id = |item: &Value| item["id"].as_str().unwrap().to_owned();
        page["items"].as_array().unwrap().iter().map(id).collect()
    }
}

fn set<'a>(ids: impl IntoIterator<Item = &'a String>) -> BTreeSet<String> {
    ids.into_iter().cloned().collect()
}

#[test]
fn the_list_shows_what_letters_have_in_common_and_adds_it_up() {
    let night = Night::fall();
    let Night { server, shop, mail, permanent, exhausted, ambiguous } = &night;
    assert_eq!(night.dead(&["--reason", "permanent"]), set(permanent));
    assert_eq!(
        night.dead(&["--reason", "ambiguous,attempts_exhausted"]),
        set(exhausted.iter().chain([ambiguous]))
    );
    let both = ["--reason", "permanent", "--reason", "ambiguous", "--to", &mail.url("")];
    assert_eq!(night.dead(&both), set([&permanent[2]]));
    assert_eq!(night.dead(&["--to", &shop.url(""), "--to", &mail.url("/"), "--all"]).len(), 6);

    let listed = server.command(&["dead", "ls"]).done();
    let last = listed.lines().next_back().unwrap();
    let told = "6 shown: 3 permanent, 2 attempts_exhausted, 1 ambiguous; ";
    assert_eq!(last, format!("{told}5 to {}, 1 to {}", shop.url(""), mail.url("")), "{listed}");
}

#[test]
fn a_filter_that_filters_nothing_is_wrong_use() {
    let server = Server::start();
    for (flags, says) in [
        (
            ["--reason", "exhausted"],
            "--reason: no letter is dead for the reason \"exhausted\"; there are permanent, ",
        ),
        (["--to", "shop.example"], "--to: \"shop.example\" is not a destination"),
        (["--to", "http://shop.example/hook"], "without a path"),
        (["--reason", ""], "--reason: "),
        (["--to", ""], "--to: "),
    ] {
        for command in ["ls", "redrive", "discard"] {
            let said = server.command(&["dead", command, flags[0], flags[1]]).failed(2);
            assert!(said.contains(says), "{command}: {said}");
        }
    }
    let both = server.command(&["dead", "redrive", "--reason", "permanent", &"0".repeat(32)]).failed(2);
    assert!(both.contains("cannot be used with"), "{both}");
    server.command(&["dead", "ls", "--cursor", "x"]).failed(2);
}

#[test]
fn what_is_about_to_be_done_is_told_and_done_only_when_agreed_to() {
    let night = Night::fall();
    let Night { server, shop, exhausted, permanent, ambiguous, .. } = &night;
    let to = shop.url("");
    let ended = server.command(&["dead", "redrive", "--to", &to]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    let lines: Vec<String> = words(&ended.stderr);
    assert_eq!(lines[0], "relent: to send again: 4 dead letters");
    assert_eq!(lines[1], format!("2 attempts_exhausted {to}"));
    assert_eq!(lines[2], format!("2 permanent {to}"));
    assert!(lines[3].ends_with("only where --reason names them: 1 dead letter"), "{lines:?}");
    assert_eq!(lines[4], format!("1 ambiguous {to}"));
    assert!(lines[5].contains("nothing was done") && lines[5].contains("--yes"), "{lines:?}");
    assert_eq!(night.dead(&[]).len(), 6);

    shop.mend();
    let ended = server.command(&["dead", "redrive", "--to", &to, "--yes"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let line = |id: &String| format!("{id}  waiting, cycle 1");
    let sent: BTreeSet<String> = ended.stdout.lines().map(str::to_owned).collect();
    assert_eq!(sent, exhausted.iter().chain(&permanent[..2]).map(line).collect());
    assert!(ended.stderr.ends_with("relent: 4 sent again\n"), "{}", ended.stderr);
    for id in exhausted.iter().chain(&permanent[..2]) {
        server.wait_for(id, "delivered");
    }
    assert_eq!(night.dead(&[]), set([ambiguous, &permanent[2]]), "neither the ambiguous one nor another's");

    let ended = server.command(&["dead", "redrive", "--to", &to, "--reason", "ambiguous", "--yes"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    server.wait_for(ambiguous, "delivered");
}

#[test]
fn a_first_try_takes_no_more_than_its_limit() {
    let night = Night::fall();
    let (server, flags) = (&night.server, ["--reason", "permanent", "--limit", "1", "--yes"]);
    night.mail.mend();
    let outcomes = server.json(&[&["dead", "redrive"], &flags[..]].concat());
    assert_eq!(outcomes, json!([{"id": night.permanent[2], "state": "waiting", "cycle": 1}]), "the newest");
    server.wait_for(&night.permanent[2], "delivered");
    assert_eq!(night.dead(&["--reason", "permanent"]).len(), 2);
}

#[test]
fn what_is_of_no_use_is_discarded_together() {
    let night = Night::fall();
    let (server, to) = (&night.server, night.shop.url(""));
    let ended = server.command(&["dead", "discard", "--to", &to, "--reason", "permanent", "--yes"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("to discard: 2 dead letters"), "{}", ended.stderr);
    assert!(ended.stderr.ends_with("relent: 2 discarded\n"), "{}", ended.stderr);
    for id in &night.permanent[..2] {
        assert_eq!(server.json(&["show", id])["state"], "discarded");
    }
    let none = server.command(&["dead", "discard", "--to", &to, "--reason", "permanent", "--json"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), "[]\n"));
    assert!(none.stderr.contains("no dead letter is like that"), "{}", none.stderr);
    assert_eq!(night.dead(&[]).len(), 4);
}

#[test]
#[cfg(target_os = "linux")]
fn who_sits_at_a_terminal_is_asked() {
    let night = Night::fall();
    for (answer, code, left) in [("n\n", 1, 3), ("y\n", 0, 1)] {
        let Some(ended) = at_a_terminal(&night.server, &night.shop.url(""), answer) else {
            eprintln!("skipped: there is no `script` of util-linux to make a terminal");
            return;
        };
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.stdout.contains("discard them? [y/N]"), "{ended:?}");
        assert_eq!(night.dead(&["--reason", "permanent"]).len(), left);
    }
}

/// Discards what is permanent for a destination, with a terminal on all sides; `None` where there is no `script`.
#[cfg(target_os = "linux")]
fn at_a_terminal(server: &Server, to: &str, answer: &str) -> Option<Ended> {
    let plain = relent();
    let binary = plain.get_program().to_str().unwrap();
    let data = server.data.display();
    let line = format!("'{binary}' dead discard --reason permanent --to '{to}' --data '{data}'");
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    for (name, _) in plain.get_envs() {
        script.env_remove(name);
    }
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = script.spawn().ok()?;
    // Held to the end: the end of what is typed is the end of the terminal.
    let mut keyboard = child.stdin.take().unwrap();
    keyboard.write_all(answer.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(keyboard);
    Some(output.into())
}

/// The list that is worked off here was made before a colleague sent one of the letters again: a server that shows the
/// old list, and says of that letter what a real one says.
#[test]
fn what_somebody_else_sent_again_meanwhile_is_told_and_no_error() {
    let night = Night::fall();
    let server = &night.server;
    let page = server.json(&["dead", "ls", "--reason", "attempts_exhausted"]).to_string();
    server.command(&["dead", "redrive", &night.exhausted[0]]).done();
    night.server.wait_for(&night.exhausted[0], "dead");
    let refused = server.command(&["dead", "redrive", "--json", NOBODY]);
    assert_eq!(refused.code, Some(1), "by its id it stays an error");
    let anew = json!({
        "type": "urn:relent:problem:wrong-state", "title": "The message's state does not allow it", "status": 409,
        "detail": "the message was sent again since you saw it, and is dead anew; look at it first",
    });
    let stale = request::receiver(move |request: &Head<'_>| {
        let (status, body) = match request.path {
            path if path.starts_with("/v1/dead?") => (StatusCode::OK, page.clone()),
            path if path.ends_with("/redrive?cycle=0") => (StatusCode::CONFLICT, anew.to_string()),
            _ => (StatusCode::NOT_FOUND, String::new()),
        };
        Answer::new(status).with_body(body).into()
    });
    let args = ["dead", "redrive", "--reason", "attempts_exhausted", "--yes", "--server", &stale.url("")];
    let ended = server.command(&args);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stdout.matches("left as it is: the message was sent again").count(), 2, "{ended:?}");
    assert!(ended.stderr.ends_with("0 sent again, 2 changed meanwhile and left as they are\n"), "{ended:?}");
    let outcomes = relent().args(args).arg("--json").arg("--data").arg(&server.data).run().done();
    let outcomes: Value = serde_json::from_str(&outcomes).unwrap();
    assert_eq!(outcomes[0]["left"]["status"], 409, "{outcomes}");
}

/// Each line with single blanks.
fn words(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

const NOBODY: &str = "0198c5d2-7f3a-7c41-9d55-3b1f2a6e8c90";
