//! `relent sim` on the real binary: what it prints, what it writes, how it ends, and what it refuses by name.

mod support;

use std::fs;

use serde_json::Value;
use support::{Ended, Run as _, relent};

fn sim(args: &[&str]) -> Ended {
    relent().arg("sim").args(args).run()
}

#[test]
fn a_run_tells_the_same_every_time_and_nothing_of_its_progress_when_piped() {
    let ended = sim(&["run", "S8", "--policy", "plain-loop", "--seed", "7"]);
    assert_eq!(ended.stderr, "");
    let shown = ended.done();
    for part in
        ["policy plain-loop, seed 7", "REQUESTS/CALL", "trigger", "recovery  ", "total timeout", "FAIL"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(sim(&["run", "S8", "--policy", "plain-loop", "--seed", "7"]).done(), shown);
    assert_ne!(
        sim(&["run", "S8", "--policy", "plain-loop", "--seed", "8"]).done(),
        shown.replace("seed 7", "seed 8")
    );
}

#[test]
fn programs_get_the_same_figures_as_json_and_as_csv() {
    let json: Value = serde_json::from_str(&sim(&["run", "S9b", "--json"]).done()).unwrap();
    assert_eq!(json["windows"]["all"]["calls"], 2000);
    assert_eq!(json["points"].as_array().unwrap().len(), 60);
    let csv = sim(&["run", "S9b", "--csv"]).done();
    let eleventh: Vec<&str> = csv.lines().nth(11).unwrap().split(',').collect();
    let point = &json["points"][10];
    assert_eq!((eleventh[0], eleventh[1]), ("10", "2000"));
    assert_eq!(point["requests"].to_string(), eleventh[4]);
    let stall: Value =
        serde_json::from_str(&sim(&["run", "S4", "--policy", "plain-loop", "--json"]).done()).unwrap();
    assert_eq!(stall["recovery"], "never");
    assert!(stall["recovery_without_retries"]["after_s"].as_f64().unwrap() > 40.0);
    assert_eq!(stall["gates"][0]["verdict"], "fail");
}

#[test]
fn a_page_is_written_whole_and_says_what_was_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    let args = ["run", "S8", "--policy", "microsoft-standard", "--html", file.to_str().unwrap()];
    let ended = sim(&args);
    assert!(ended.stderr.contains("report.html"), "{}", ended.stderr);
    ended.done();
    let page = fs::read_to_string(&file).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
    for part in ["microsoft-standard", "polly_v2", "Breakers", "trigger", "Amplification"] {
        assert!(page.contains(part), "{part}");
    }
    let missing = ["run", "S8", "--html", "/nonexistent/report.html"];
    assert!(sim(&missing).failed(1).contains("/nonexistent/report.html"));
}

#[test]
fn a_standard_scenario_is_a_file_that_can_be_copied_and_changed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    fs::write(&file, sim(&["list", "S8"]).done()).unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(sim(&["run", file]).done(), sim(&["run", "S8"]).done());
    let changed = sim(&["run", file, "--set", "callers.rate=10", "--set", "id=mine"]).done();
    assert!(changed.starts_with("mine  three services"), "{changed}");
    assert_ne!(changed, sim(&["run", file]).done());
    let listed = sim(&["list"]).done();
    assert_eq!(listed.lines().count(), 19, "{listed}");
}

#[test]
fn a_gate_names_what_failed_and_a_control_does_not_count() {
    let failed = sim(&["gate", "--policy", "plain-loop", "--scenario", "S8,S9b"]);
    assert_eq!(failed.code, Some(1));
    assert!(failed.stdout.ends_with("failed: S8\n"), "{}", failed.stdout);
    let passed = sim(&["gate", "--scenario", "S8,S7b"]).done();
    assert!(passed.contains("fail (control)") && passed.ends_with("passed\n"), "{passed}");
    let json = sim(&["gate", "--scenario", "S7b,S8", "--json"]).done();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["passed"], &json["scenarios"][0]["gates"][0]["verdict"]),
        (&true.into(), &"fail".into())
    );
}

#[test]
fn two_policies_stand_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let mine = folder.path().join("mine.toml");
    fs::write(&mine, "repeat = \"safe\"\n[retry]\nmax_attempts = 2\n").unwrap();
    let mine = mine.to_str().unwrap();
    let shown = sim(&["compare", "plain-loop", mine, "--scenario", "S8"]).done();
    assert!(shown.contains("plain-loop") && shown.contains("mine.toml"), "{shown}");
    let failed: Vec<&str> = shown.lines().filter(|line| line.starts_with("failed: ")).collect();
    assert_eq!(failed.len(), 1, "{shown}");
    assert!(
        failed[0].starts_with("failed: S8 under plain-loop: requests for each call, from ten seconds in: ")
    );
    assert!(failed[0].ends_with(", at most 1.10"), "{failed:?}");
    let json = sim(&["compare", "plain-loop", mine, "--scenario", "S8", "--json"]).done();
    let json: Value = serde_json::from_str(&json).unwrap();
    let ratio = |place: usize| {
        json["scenarios"][0][place]["windows"]["trigger"]["requests_per_call"].as_f64().unwrap()
    };
    assert!(ratio(0) > 10.0 && ratio(1) < 1.5, "{} and {}", ratio(0), ratio(1));
    let calls = |place: usize| &json["scenarios"][0][place]["windows"]["trigger"]["calls"];
    assert_eq!(calls(0), calls(1), "both meet the same arrivals");
}

#[test]
fn the_documents_numbers_are_reproduced_with_their_differences() {
    let shown = sim(&["paper", "--trials", "20"]).done();
    for part in ["REPORTED", "19,357", "2,033", "5.4 s", "200 clients", "every figure is reproduced"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let json = sim(&["paper", "--trials", "20", "--seed", "7", "--json"]).done();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["seed"], &json["reproduced"]), (&7.into(), &true.into()));
    assert_eq!(json["figures"][0]["difference"], "inside");
}

/// A scenario of somebody else may hold anything, and a terminal obeys what it is sent.
#[test]
fn nothing_in_a_scenario_steers_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("evil.toml");
    let good = sim(&["list", "S8"]).done();
    let evil = good
        .replace("id = \"S8\"", "id = \"\\u001b[31m\"")
        .replace("name = \"from", "name = \"\\u001b[2Jfrom");
    let evil = evil.replace("over = \"from", "over = \"\\u001b[2Jfrom");
    fs::write(&file, &evil).unwrap();
    let file = file.to_str().unwrap();
    for args in [
        &["run", file][..],
        &["gate", "--scenario", file],
        &["compare", "default", "plain-loop", "--scenario", file],
    ] {
        let ended = sim(args);
        assert!(
            !ended.stdout.contains('\u{1b}') && ended.stdout.contains("\\u{1b}"),
            "{args:?}: {}",
            ended.stdout
        );
    }
    fs::write(file, "\u{1b}[2J = 1\n").unwrap();
    let said = sim(&["run", file]).failed(2);
    assert!(!said.contains('\u{1b}') && said.contains("\\u{1b}"), "{said}");
}

#[test]
fn what_cannot_be_run_is_refused_with_the_field_and_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.toml");
    let file = file.to_str().unwrap();
    let good = sim(&["list", "S8"]).done();
    for (from, to, says) in [
        ("rate = 100", "rate = -1", "callers.rate: it is to be above 0"),
        ("rate = 100", "rate = 100\nthink = \"1s\"", "callers.think: callers of the kind open have none"),
        ("kind = \"refuse\"", "kind = \"refuze\"", "effect[0].kind: \"refuze\" is not known"),
        ("for = \"30s\"", "for = \"30\"", "effect[0].for: \"30\" is not a duration: the unit is missing"),
        ("for = \"30s\"", "for = \"1h\"", "lengthen duration"),
        ("workers = 10", "wrokers = 10", "did you mean `workers`?"),
        ("at_most = 1.1", "at_least = 1\nat_most = 1.1", "at_most or at_least"),
        (
            "measure = \"arrivals_per_call\"\nover = \"from",
            "measure = \"arrivals_per_call\"\nover = \"x from",
            "there is no window",
        ),
        ("count = 3", "count = 99", "layers.count: 99 is to be between 1 and 8"),
        ("[layers]", "[callers.layers]", "unknown field `layers`"),
    ] {
        assert!(good.contains(from), "{from}");
        fs::write(file, good.replacen(from, to, 1)).unwrap();
        let said = sim(&["run", file]).failed(2);
        assert!(said.contains("bad.toml") && said.contains(says), "{to}: {said}");
    }
    fs::write(file, "\n").unwrap();
    for (args, says) in [
        (&["run", "S8", "--policy", file][..], "bad.toml: it is empty; write a policy"),
        (&["compare", "default", file, "--scenario", "S8"], "bad.toml: it is empty; write a policy"),
        (&["run", "S8", "--set", "callers.rate=abc"], "expected a number, such as 850"),
        (&["run", "S44"][..], "there is no scenario \"S44\": write a file, or one of S1"),
        (&["run", "S8", "--policy", "plain-lop"], "did you mean \"plain-loop\"?"),
        (&["run", "S8", "--policy", "missing.toml"], "the policy missing.toml cannot be read"),
        (&["run", "S8", "--set", "callers.rate"], "write KEY=VALUE"),
        (&["run", "S8", "--set", "dependency=3"], "expected a table, [dependency]"),
        (&["run", "S8", "--set", "effect.9.for=1s"], "effect.9.for: there is no \"9\" to set"),
        (&["gate", "--scenario", "S1,nothing"], "there is no scenario \"nothing\""),
        (&["list", "S99"], "there is no standard scenario"),
    ] {
        let said = sim(args).failed(2);
        assert!(said.contains(says), "{args:?}: {said}");
    }
}
