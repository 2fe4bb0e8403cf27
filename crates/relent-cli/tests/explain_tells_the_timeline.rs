//! `relent explain` on the real binary: what it says is the core's, and what it cannot read it names.

mod support;

use std::fs;

use serde_json::Value;
use support::{Ended, Run as _, relent};

fn explain(args: &[&str]) -> Ended {
    relent().arg("explain").args(args).run()
}

#[test]
fn a_script_gives_the_cores_timeline_and_the_classification() {
    let shown = explain(&["--preset", "durable", "--outcomes", "503,timeout,200", "--seed", "7"]).done();
    let policy = relent_core::Policy::durable();
    let script = relent_core::parse_script("503,timeout,200").unwrap();
    let history = policy.begin(7, relent_core::Timestamp::ZERO, None, None);
    let timeline = relent_core::timeline(&policy, history, relent_core::Route::default(), &script);
    assert!(shown.contains(&timeline.to_string()), "{shown}");
    assert!(shown.contains("throttled  429"), "{shown}");
    assert!(shown.contains("blocked"), "every error class stands in the table: {shown}");
}

#[test]
fn the_same_seed_gives_the_same_timeline_and_another_seed_another() {
    let under = |seed| explain(&["--preset", "durable", "--outcomes", "9x 503", "--seed", seed]).done();
    assert_eq!(under("7"), under("7"));
    assert_ne!(under("7"), under("8").replace("seed 8", "seed 7"));
}

#[test]
fn json_holds_every_step_with_its_wait() {
    let args = ["--preset", "durable", "--outcomes", "429 asks 2s takes 100ms,200", "--json"];
    let json: Value = serde_json::from_str(&explain(&args).done()).unwrap();
    let steps = json["timeline"]["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 2);
    assert_eq!(steps[0]["outcome"], "429");
    assert_eq!(steps[0]["ended_s"], 0.1);
    let wait = &steps[0]["wait"];
    assert_eq!(
        (&wait["origin"], &wait["asked_s"], &wait["floor_s"]),
        (&"server".into(), &2.0.into(), &2.0.into())
    );
    let (length, draw) = (wait["length_s"].as_f64().unwrap(), wait["draw_s"].as_f64().unwrap());
    assert!((length - 2.0 - draw).abs() < 1e-6 && length <= 7.0, "{wait}");
    assert_eq!(json["timeline"]["end"], "succeeded");
    assert_eq!(json["classification"]["throttled"], serde_json::json!(["429"]));
    assert_eq!(json["policy"]["retry"]["backoff"]["factor"], 4);
}

#[test]
fn an_unsafe_call_stops_as_ambiguous_and_repeat_says_how_it_goes_on() {
    let stopped = explain(&["--outcomes", "503,200"]).done();
    assert!(stopped.contains("stop: ambiguous") && stopped.contains("--repeat keyed"), "{stopped}");
    let goes_on = explain(&["--outcomes", "503,200", "--repeat", "keyed"]).done();
    assert!(goes_on.contains("stop: succeeded"), "{goes_on}");
}

#[test]
fn without_a_script_the_whole_policy_is_shown_and_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let shown = explain(&["--preset", "durable"]).done();
    let text = shown.split_once("\n\n").unwrap().1.split_once("\nwhat it does").unwrap().0;
    let file = folder.path().join("policy.toml");
    fs::write(&file, text).unwrap();
    let again = explain(&[file.to_str().unwrap()]).done();
    assert_eq!(again.split_once('\n').unwrap().1, shown.split_once('\n').unwrap().1);
}

#[test]
fn the_policies_that_people_know_from_elsewhere_are_there_by_name() {
    let help = explain(&["--help"]).done();
    let shown = |name: &str| explain(&["--preset", name]).done();
    for (name, setting, words) in [
        ("default", "kind = \"loan\"", "waits     up to 200ms, 400ms, 800ms, 1.6s (full jitter)"),
        ("durable", "business_deadline = \"3d\"", "ends      at the latest 3d after it was accepted"),
        (
            "microsoft-standard",
            "jitter = \"polly_v2\"",
            "breaker   opens where 10 % fail of at least 100 in 30s",
        ),
        (
            "grpc-a6",
            "token_ratio = 0.1",
            "budget    gRPC's: 10 tokens; a failure costs 1, a success earns 0.1",
        ),
        ("aws-2026", "capacity = 500", "throttled  up to 1s, 2s (full jitter)"),
        ("azure-core", "base = \"800ms\"", "waits     640ms to 960ms, 1.28s to 1.92s, 2.56s to 3.84s"),
        ("envoy", "kind = \"share\"", "budget    20 % of what is in flight, 3 retries at least"),
    ] {
        assert!(help.contains(&format!("`{name}`")), "{name} in\n{help}");
        assert!(shown(name).contains(setting), "{}", shown(name));
        assert!(shown(name).contains(words), "{words} in\n{}", shown(name));
    }
}

#[test]
fn a_policy_file_counts_over_the_preset() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.toml");
    fs::write(&file, "repeat = \"safe\"\n[retry]\nmax_attempts = 2\njitter = \"none\"\n").unwrap();
    let shown = explain(&[file.to_str().unwrap(), "--outcomes", "9x 503"]).done();
    assert!(shown.contains("shop.toml, repeat safe"), "{shown}");
    assert!(shown.contains("wait 200ms (backoff)"), "{shown}");
    assert!(shown.contains("stop: attempts_exhausted"), "{shown}");
}

#[test]
fn routes_with_rules_of_their_own_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("routes.toml");
    let route =
        "[[classify.route]]\nmethod = \"GET\"\npath = \"/orders/*\"\nstatus = { 404 = \"not_now\" }\n";
    fs::write(&file, route).unwrap();
    let shown = explain(&[file.to_str().unwrap()]).done();
    assert!(shown.contains("on GET /orders/*: 404 not now"), "{shown}");
}

#[test]
fn a_doubtful_policy_is_explained_with_a_warning_and_what_is_meant_with_a_note() {
    let told = |preset: &str| explain(&["--preset", preset, "--outcomes", "503"]).stderr;
    assert!(told("default").starts_with("relent: note: retry.max_attempts: 5 × 2 s"), "{}", told("default"));
    assert!(told("envoy").starts_with("relent: warning: retry.max_attempts: 2 × 15 s"), "{}", told("envoy"));
    let json: Value = serde_json::from_str(&explain(&["--preset", "default", "--json"]).done()).unwrap();
    let warning = &json["warnings"][0];
    let named = ["severity", "doubt", "field"].map(|key| warning[key].as_str().unwrap());
    assert_eq!(named, ["note", "late_attempts_are_cut", "retry.max_attempts"]);
}

#[test]
fn what_is_wrong_is_named_with_exit_2() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let unknown = file("unknown.toml", "attempts = 3\n");
    let negative = file("negative.toml", "attempt_timeout = \"-1s\"\n");
    let impossible = file("impossible.toml", "[retry]\nmax_attempts = 0\n");
    let broken = file("broken.toml", "attempt_timeout = \n");
    let slip = file("slip.toml", "[retry]\nbackof = \"1s\"\n");
    let empty = file("empty.toml", " \n");
    let server = file("server.toml", "listen = \"127.0.0.1:0\"\n[policies.shop]\nrepeat = \"keyed\"\n");
    let cases: &[(&[&str], &[&str])] = &[
        (&["--outcomes", "503,tiemout"], &["\"tiemout\"", "header_timeout", "lost"]),
        (&["--outcomes", "503 after 2s"], &["\"after\"", "asks 2s"]),
        (&["--outcomes", "99"], &["\"99\"", "100 to 999"]),
        (&["--preset", "forever"], &["\"forever\"", "default, durable, microsoft-standard"]),
        (&[&unknown], &["unknown.toml", "attempts", "attempt_timeout"]),
        (&[&negative], &["attempt_timeout", "negative"]),
        (&[&impossible], &["retry.max_attempts", "1 or more"]),
        (&[&broken], &["broken.toml", "line 1"]),
        (&[&slip], &["slip.toml", "line 2", "did you mean `backoff`?"]),
        (&[&empty], &["empty.toml: it is empty", "default"]),
        (&[&server], &["server.toml", "[policies.NAME]", "relent check"]),
        (&["no-such-policy.toml"], &["no-such-policy.toml", "No such file"]),
        (&["--repeat", "sometimes"], &["sometimes", "keyed"]),
        (&["--seed", "one"], &["--seed"]),
    ];
    for (args, named) in cases {
        let ended = explain(args);
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{args:?}");
        for word in *named {
            assert!(ended.stderr.contains(word), "{args:?} must name {word}: {}", ended.stderr);
        }
    }
}
