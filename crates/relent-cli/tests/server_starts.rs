//! How a server starts, and when it refuses to.

mod host;

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use host::{Host, eventually, exchange, serve, serve_after, serve_on};
use serde_json::json;

struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// The address is in its file a moment before the start is logged.
fn line_of_the_start(host: &Host) -> serde_json::Value {
    eventually("the start is logged", || {
        host.log_lines().into_iter().find(|line| line["message"] == "relent serves")
    })
}

fn run(command: &mut Command) -> Ended {
    let output = command.output().unwrap();
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn the_first_start_makes_a_token_that_its_owner_alone_can_read() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut host = Host::launch(serve(&data), folder.path());
    let token = host.token.clone();
    assert!(token.len() == 64 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{token}");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data.join("token")), 0o600);
    assert_eq!(mode(&data), 0o700, "nobody else reads what messages carry");
    let line = line_of_the_start(&host);
    assert_eq!(line["address"], json!(format!("http://{}", host.address)));
    assert_eq!(line["data"], json!(data));
    assert_eq!(line["token"], json!(data.join("token")));
    assert!(!host.log().contains(&token));
    host.stop();
    assert!(!data.join("address").exists(), "a server that is gone has no address");
    assert_eq!(Host::launch(serve(&data), folder.path()).token, token, "the second start keeps it");
}

#[test]
fn the_health_checks_need_no_token() {
    let host = Host::start();
    for path in ["/healthz", "/readyz"] {
        assert_eq!(exchange(&host.address, "GET", path, &[], b"").unwrap().status, 200, "{path}");
    }
}

#[test]
fn an_address_that_others_can_reach_needs_a_token_from_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let refused = run(&mut serve_on(&data, "0.0.0.0:0"));
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("RELENT_TOKEN"), "{}", refused.stderr);
    assert!(!data.exists(), "nothing is made before that");
    let empty = run(serve_on(&data, "0.0.0.0:0").env("RELENT_TOKEN", ""));
    assert_eq!(empty.code, Some(2), "{}", empty.stderr);

    let mut command = serve_on(&data, "0.0.0.0:0");
    command.env("RELENT_TOKEN", "a-secret-of-ours");
    let mut host = Host::launch(command, folder.path());
    host.address = host.address.replace("0.0.0.0", "127.0.0.1");
    host.ask("GET", "/v1/status", "").problem(401);
    host.token = "a-secret-of-ours".to_owned();
    assert_eq!(host.accepted(), 0);
    assert!(!data.join("token").exists(), "no second token lies about");
}

#[test]
fn two_servers_on_one_folder_are_refused() {
    let host = Host::start();
    let second = run(&mut serve(&host.data));
    assert_eq!(second.code, Some(1), "{}", second.stderr);
    assert!(
        second.stderr.contains("another server") && second.stderr.contains("--data"),
        "{}",
        second.stderr
    );
    assert_eq!(host.accepted(), 0, "the first goes on");
}

#[test]
fn an_address_in_use_is_named() {
    let (host, folder) = (Host::start(), tempfile::tempdir().unwrap());
    let second = run(&mut serve_on(folder.path(), &host.address));
    assert_eq!(second.code, Some(1));
    assert!(second.stderr.contains(&host.address) && second.stderr.contains("--listen"), "{}", second.stderr);
}

#[test]
fn the_printed_settings_read_back_to_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("relent.toml"));
    let flags = ["--drain", "1500ms", "--body-limit", "300000", "--synchronous", "off", "--in-flight", "7"];
    let printed = run(serve(&data).args(flags).arg("--print-config"));
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    assert!(!data.exists(), "printing starts nothing");
    fs::write(&file, format!("{}\n[policies.orders.retry]\nmax_attempts = 7\n", printed.stdout)).unwrap();
    let print = |file: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_relent"));
        run(command.args(["serve", "--print-config", "--config"]).arg(file))
    };
    let second = print(&file);
    assert_eq!(second.code, Some(0), "{}", second.stderr);
    for line in [
        "drain = \"1s500ms\"",
        "body_limit = 300000",
        "synchronous = \"off\"",
        "in_flight = 7",
        "max_attempts = 7",
    ] {
        assert!(second.stdout.lines().any(|found| found == line), "{line} is not in\n{}", second.stdout);
    }
    let third = folder.path().join("third.toml");
    fs::write(&third, &second.stdout).unwrap();
    assert_eq!(print(&third).stdout, second.stdout);
}

#[test]
fn settings_that_cannot_be_are_wrong_use_and_name_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("relent.toml");
    for (settings, says) in [
        ("lisen = \"127.0.0.1:1\"", "did you mean `listen`?"),
        ("[delivery]\nin_flight = 0", "delivery.in_flight"),
        ("[policies.orders]\nattempt_timeout = \"0s\"", "policies.orders.attempt_timeout"),
        ("[delivery]\nca_file = \"/no/such/file.pem\"", "delivery.ca_file"),
    ] {
        fs::write(&file, settings).unwrap();
        let refused = run(serve(&folder.path().join("data")).arg("--config").arg(&file));
        assert_eq!(refused.code, Some(2), "{settings}: {}", refused.stderr);
        assert!(refused.stderr.contains(says), "{settings}: {}", refused.stderr);
    }
    let missing = run(serve(folder.path()).args(["--config", "/no/such/relent.toml"]));
    assert_eq!(missing.code, Some(2), "{}", missing.stderr);
}

#[test]
fn what_is_doubtful_is_said_at_the_start() {
    let settings = "[store]\nsynchronous = \"off\"\n[policies.a.budget]\nkind = \"loan\"\n[policies.b]\n";
    let host = Host::configured(settings, &[]);
    let warnings: Vec<String> = host
        .log_lines()
        .iter()
        .filter(|line| line["level"] == "WARN")
        .map(|line| line["message"].as_str().unwrap().to_owned())
        .collect();
    assert!(warnings.iter().any(|line| line.contains("power loss")), "{warnings:?}");
    let unheeded: Vec<_> = warnings.iter().filter(|line| line.contains("later release")).collect();
    assert!(
        matches!(unheeded[..], [line] if line.starts_with("policies.a.budget is not applied")),
        "{warnings:?}"
    );
}

#[test]
fn as_many_files_as_allowed_may_be_open_and_few_are_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::launch(serve_after("ulimit -Sn 256; ulimit -Hn 1000", folder.path()), folder.path());
    let lines = host.log_lines();
    let warning = lines.iter().find(|line| line["level"] == "WARN").unwrap_or_else(|| panic!("{lines:?}"));
    assert!(warning["message"].as_str().unwrap().starts_with("few open files"), "{warning}");
    assert_eq!(warning["allowed"], 1000, "{warning}");
}

#[test]
fn with_json_the_settings_are_json_and_so_are_the_logs() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let as_it_is = || host::serve_as_it_is(&data, "127.0.0.1:0");
    let printed = run(as_it_is().args(["--print-config", "--json"]));
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    let settings: serde_json::Value = serde_json::from_str(&printed.stdout).unwrap();
    assert_eq!((&settings["data"], &settings["log"]), (&json!(data), &json!("json")));
    assert_eq!(
        (&settings["delivery"]["in_flight"], &settings["store"]["synchronous"]),
        (&json!(256), &json!("full"))
    );

    let mut command = as_it_is();
    command.arg("--json");
    let host = Host::launch(command, folder.path());
    line_of_the_start(&host);
    let both = run(as_it_is().args(["--json", "--log", "text"]));
    assert_eq!(both.code, Some(2), "{}", both.stderr);
}

#[test]
fn a_configured_policy_may_be_named_and_decides() {
    let settings = "[policies.once.retry]\nmax_attempts = 1\n";
    let (host, receiver) = (Host::configured(settings, &[]), host::Receiver::answering(503));
    let id = host.submit(&json!({"url": receiver.url(), "policy": "once"}));
    let dead = host.wait_for(&id, "dead");
    assert_eq!((&dead["reason"], &dead["policy"]), (&json!("attempts_exhausted"), &json!("once")));
    assert_eq!(receiver.seen().len(), 1);
}
