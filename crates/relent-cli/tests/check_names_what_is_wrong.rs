//! `relent check` on the real binary: its exit codes, what it reads, and what it prints for people and for programs.

mod support;

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::Value;
use support::{Ended, Run as _, relent};

fn check(args: &[&str]) -> Ended {
    relent().arg("check").args(args).run()
}

fn example(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name).display().to_string()
}

/// A file with this text, gone with the folder.
fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path: PathBuf = folder.path().join(name);
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

const NO_JITTER: &str = "total_timeout = \"5s\"\n[retry]\njitter = \"none\"\n";

#[test]
fn sound_is_0_findings_are_1_and_what_cannot_be_read_is_2() {
    let folder = tempfile::tempdir().unwrap();
    let faulty = file(&folder, "faulty.toml", NO_JITTER);
    let impossible = file(&folder, "impossible.toml", "attempt_timeout = \"0s\"\n");
    let sound = check(&[]);
    assert!(sound.done().contains("sound: nothing is found"));
    let found = check(&[&faulty]);
    assert_eq!(found.code, Some(1));
    assert!(found.stdout.contains("no_jitter (retry.jitter)"), "{}", found.stdout);
    assert!(found.stdout.contains("mend it: retry.jitter = \"full\""), "{}", found.stdout);
    let unread = check(&[&faulty, &impossible, "no-such-file"]);
    assert!(unread.stdout.contains("no_jitter"), "the others are checked all the same: {}", unread.stdout);
    let told = unread.failed(2);
    assert!(told.contains("impossible.toml: attempt_timeout: 0s makes no sense here"), "{told}");
    assert!(told.contains("no-such-file: No such file"), "{told}");
}

#[test]
fn the_examples_are_sound() {
    for name in ["live.toml", "durable.toml", "server.toml"] {
        let shown = check(&[&example(name)]).done();
        assert!(shown.contains("sound: nothing is found"), "{shown}");
    }
}

#[test]
fn every_question_of_both_articles_is_answered() {
    let shown = check(&["--preset", "durable"]).stdout;
    for question in [
        "does it back off?",
        "does it jitter?",
        "does it stop, by attempts?",
        "by time?",
        "by budget?",
        "where does the work go?",
        "who finds out?",
        "what does it repeat?",
        "is that safe?",
        "can anyone see it retry?",
        "what is the end-to-end deadline?",
        "how long may one attempt take?",
        "which outcomes are transient?",
        "is repetition safe after a time-out?",
        "how many layers retry?",
        "jitter, and Retry-After respected?",
        "concurrency and breaker limits?",
        "attempts apart from operations?",
        "do fault tests prove it?",
    ] {
        assert!(shown.contains(question), "{question}: {shown}");
    }
    assert!(shown.contains("nobody_finds_out (alert)"), "{shown}");
}

#[test]
fn json_holds_the_same_for_programs() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{ "A": { "AttemptTimeout": { "Timeout": "00:00:02" }, "TotalRequestTimeout": { "Timeout": "00:00:05" } } }"#;
    let handler = file(&folder, "appsettings.json", text);
    let ended = check(&[&handler, "--json"]);
    assert_eq!(ended.code, Some(1));
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(json["sound"], false);
    let retry = &json["files"][0]["retries"][0];
    assert_eq!((&retry["place"], &retry["format"]), (&"A".into(), &"microsoft".into()));
    let findings = retry["findings"].as_array().unwrap();
    let found = |name: &str| findings.iter().find(|finding| finding["name"] == name).expect(name);
    let reach = found("attempts_out_of_reach");
    assert_eq!(reach["field"], "A:Retry:MaxRetryAttempts");
    assert_eq!((&reach["mend"], &reach["value"]), (&"A:Retry:MaxRetryAttempts = 2".into(), &2.into()));
    let figures = &retry["figures"];
    assert_eq!((&figures["attempts_at_best"], &figures["attempts_at_worst"]), (&3.into(), &2.into()));
    assert_eq!(figures["longest_call_s"], 5.0);
    assert!((figures["fail_at_once"]["attempts"]["3"].as_f64().unwrap() - 0.82).abs() < 0.02, "{figures}");
    assert_eq!(retry["limits"][0]["name"], "hints_in_step");
    assert_eq!(retry["answers"].as_array().unwrap().len(), 19);
}

#[test]
fn standard_input_is_a_file_like_another() {
    let mut child = relent()
        .args(["check", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"AWS_RETRY_MODE=legacy\n").unwrap();
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(
        ended.stdout.contains("standard input the environment: the retries of an AWS SDK"),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.contains("mend it: AWS_RETRY_MODE=standard"), "{}", ended.stdout);
}

#[test]
fn what_is_said_of_the_world_is_asked_about() {
    let shown = check(&["--preset", "envoy", "--load", "850", "--capacity", "1000"]).stdout;
    assert!(
        shown.contains("850 × 1.2 = 1,020 attempts a second against 1,000: it cannot recover"),
        "{shown}"
    );
    let shown = check(&["--layers", "3"]).stdout;
    assert!(shown.contains("3: without budgets 125 calls at the bottom for one at the top"), "{shown}");
    let shown = check(&["--deadline", "2s"]).stdout;
    assert!(shown.contains("outlasts_caller (total_timeout)"), "{shown}");
    let shown = check(&["--preset", "microsoft-standard", "--hosts", "50"]).stdout;
    assert!(!shown.contains("breaker_trips_on_one_host"), "{shown}");
}

#[test]
fn wrong_use_says_what_is_right() {
    for (args, told) in [
        (&["--preset", "fast"][..], "write one of default, durable"),
        (&["--load", "many"], "--load: \"many\" is not a number a second"),
        (&["--load", "-5"], "--load: \"-5\" is not a number a second"),
        (&["--callers", "7"], "--callers needs --capacity"),
        (&["--capacity", "7"], "--capacity needs --load or --callers"),
        (&["--deadline", "0s"], "--deadline: a caller that has no time makes no call"),
        (&["--deadline", "2"], "--deadline: \"2\" is not a duration"),
        (&["--format", "nginx", "x"], "possible values"),
    ] {
        let said = check(args).failed(2);
        assert!(said.contains(told), "{args:?}: {said}");
    }
}

/// `kubectl … | relent check -` must not be sound where kubectl failed.
#[test]
fn nothing_is_not_sound() {
    let folder = tempfile::tempdir().unwrap();
    assert!(check(&[&file(&folder, "empty.toml", "\n")]).failed(2).contains("empty.toml: it is empty"));
    let said = check(&[&file(&folder, "retry.toml", "retry = 5\n")]).failed(2);
    assert!(said.contains("expected a table"), "{said}");
    let said = check(&[&file(&folder, "slip.toml", "atempt_timeout = \"5s\"\n")]).failed(2);
    assert!(said.contains("did you mean `attempt_timeout`?"), "{said}");
}

/// Each is YAML, or looks like it.
#[test]
fn a_slip_in_a_file_called_toml_is_told_as_one_of_toml() {
    let folder = tempfile::tempdir().unwrap();
    for text in ["attempt_timeout: 5s\n", "[retry\nmax_attempts=3\n", "[\ntotal_timeout=\"1s\"\n"] {
        let said = check(&[&file(&folder, "slip.toml", text)]).failed(2);
        assert!(said.contains("slip.toml: not TOML: ") && said.contains("line "), "{said}");
    }
}

#[test]
fn a_change_of_several_lines_is_shown_with_each_on_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let text = "resilience4j.retry.instances.a.max-attempts=2\n";
    let shown = check(&[&file(&folder, "application.properties", text)]).stdout;
    let indented = "\n               resilience4j.circuitbreaker.instances.a.minimumNumberOfCalls=20\n";
    assert!(shown.contains(indented), "{shown}");
}

/// A file of somebody else may hold anything, and a terminal obeys what it is sent.
#[test]
fn nothing_in_a_file_steers_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let text = "{ \"\\u001b[2J\": { \"Retry\": { \"MaxRetryAttempts\": 3, \"Delay\": \"\\u001b[31m\" } } }";
    let ended = check(&[&file(&folder, "evil.json", text)]);
    assert!(!ended.stdout.contains('\u{1b}') && ended.stdout.contains("u{1b}"), "{}", ended.stdout);
}
