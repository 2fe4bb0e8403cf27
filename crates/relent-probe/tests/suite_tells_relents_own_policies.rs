//! The suite against clients whose policy is known to the digit: relent's own, each attempt a process's own socket.
//!
//! The clients are this test binary, started again with a policy in its environment.

use std::{
    env,
    io::{self, Read as _, Write as _},
    net::{TcpStream, ToSocketAddrs as _},
    process,
    time::Duration,
};

use relent::{
    Attempt, Cause, Classify, Clock as _, Pipeline, Policy, PolicyText, Sent, UnixClock, Verdict as Meaning,
};
use relent_probe::{Card, Client, Curve, Fit, JitterKind, Suite, Verdict};

/// One after the other: side by side each would be the other's noise.
#[test]
#[ignore = "measures real time, which a busy machine stretches: cargo xtask clients"]
fn each_policy_earns_its_own_card() {
    full_jitter_under_a_deadline();
    a_loop_without_jitter_that_is_deaf();
}

fn full_jitter_under_a_deadline() {
    let policy =
        "repeat = 'safe'\n[retry]\nmax_attempts = 4\nbackoff = { kind = 'exponential', base = '300ms' }";
    let card = probe(policy, "honours=yes");
    expect(
        &card,
        "passed",
        &[
            "repeats-503",
            "repeats-429",
            "repeats-reset",
            "stops-at-401",
            "stops-at-422",
            "gives-up",
            "few-attempts",
            "waits-before-retry",
            "backs-off",
            "jitters",
            "waits-as-asked-503",
            "waits-as-asked-429",
            "bounds-what-is-asked",
            "gives-up-on-silence",
            "ends-in-silence",
            "closes-what-it-gives-up",
            "stops-when-told",
            "spreads-out",
            "same-key",
            "whole-body",
        ],
    );
    expect(&card, "undecided", &["keeps-jitter-at-the-cap", "budgets-retries"]);
    let fit = card.fit.as_ref().unwrap();
    assert_eq!(fit.jitter, JitterKind::Full, "{fit:#?}");
    if let Curve::Exponential { base, factor_range, .. } = &fit.curve {
        near(*base, 300, fit);
        assert!((factor_range.0..=factor_range.1).contains(&2.0), "{fit:#?}");
    } else {
        // Few runs on a busy machine may leave open how it grows; they must not say that it does otherwise.
        assert!(
            matches!(&fit.curve, Curve::Undecided { why, .. } if why.contains("exponential")),
            "{fit:#?}"
        );
    }
}

fn a_loop_without_jitter_that_is_deaf() {
    let policy = "repeat = 'safe'\n[retry]\nmax_attempts = 4\njitter = 'none'\nbackoff = { kind = 'constant', wait = '500ms' }";
    let card = probe(policy, "honours=no");
    expect(
        &card,
        "failed",
        &[
            "jitters",
            "backs-off",
            "spreads-out",
            "waits-as-asked-503",
            "waits-as-asked-429",
            "waits-as-asked-date",
            "bounds-what-is-asked",
            "post-503-once",
            "post-reset-once",
            "post-hang-once",
            "notices-half-a-body",
        ],
    );
    let fit = card.fit.as_ref().unwrap();
    assert_eq!(fit.jitter, JitterKind::None, "{fit:#?}");
    let Curve::Constant { wait } = fit.curve else { panic!("{fit:#?}") };
    near(wait, 500, fit);
    assert!(
        card.html().contains("<svg") && !card.html().contains("http"),
        "the page needs nothing from elsewhere"
    );
}

#[test]
fn a_client_that_never_asks_is_refused_with_the_way_out() {
    let client = Client::new(["true"]).unwrap();
    let wrong = runtime().block_on(small().run(&client)).unwrap_err().to_string();
    assert!(wrong.contains("{url}") && wrong.contains("RELENT_PROBE_URL"), "{wrong}");
    let client = Client::new(["/no/such/program"]).unwrap();
    let wrong = runtime().block_on(small().run(&client)).unwrap_err().to_string();
    assert!(wrong.contains("does not start"), "{wrong}");
}

#[test]
fn what_does_not_fit_the_time_is_undecided_and_says_so() {
    let suite = Suite { time: Duration::ZERO, ..small() };
    let client = client("", "");
    let wrong = runtime().block_on(suite.run(&client)).unwrap_err().to_string();
    assert!(wrong.contains("the time was up before"), "{wrong}");
}

fn probe(policy: &str, manner: &str) -> Card {
    let observed = runtime().block_on(small().run(&client(policy, manner))).unwrap();
    Card::new(&observed)
}

fn small() -> Suite {
    Suite { copies: 24, patience: Duration::from_secs(8), time: Duration::from_secs(120), ..Suite::default() }
}

fn client(policy: &str, manner: &str) -> Client {
    let this = env::current_exe().unwrap().display().to_string();
    let policy = format!("PROBED_POLICY={policy}");
    let manner = format!("PROBED_MANNER={manner}");
    Client::new(["env", &policy, &manner, &this, "--exact", "what_the_other_tests_start"]).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[track_caller]
fn expect(card: &Card, verdict: &str, names: &[&str]) {
    for name in names {
        assert_eq!(verdict_of(card, name).name(), verdict, "{name}\n{}", card.text());
    }
}

#[track_caller]
fn verdict_of<'a>(card: &'a Card, name: &str) -> &'a Verdict {
    &card.checks.iter().find(|check| check.name == name).expect(name).verdict
}

/// Within a tenth, and what a busy machine adds to every wait.
#[track_caller]
fn near(seen: Duration, millis: u64, fit: &Fit) {
    let seen = seen.as_secs_f64() * 1000.0;
    let right = millis as f64;
    assert!((right * 0.9..=right * 1.1 + 25.0).contains(&seen), "{seen} ms and not {right}: {fit:#?}");
}

/// Not a test of its own: started by the suite it makes one call, and fails where the call does.
#[test]
fn what_the_other_tests_start() {
    let (Ok(url), Ok(text)) = (env::var("RELENT_PROBE_URL"), env::var("PROBED_POLICY")) else { return };
    let text: PolicyText = toml::from_str(&text).unwrap();
    let policy = text.over(Policy { budget: None, attempt_timeout: ATTEMPT, ..Policy::live() }).unwrap();
    let pipeline = Pipeline::new(policy).unwrap();
    // A panic would spend more time on its backtrace than the suite has patience.
    process::exit(i32::from(pipeline.run_blocking(|attempt| exchange(&url, attempt)).is_err()));
}

/// One request over a connection of its own.
fn exchange(url: &str, attempt: Attempt) -> Result<(), Failure> {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let ask = |name: &str| env::var(name).unwrap_or_default();
    let (method, body, key) = (ask("RELENT_PROBE_METHOD"), ask("RELENT_PROBE_BODY"), ask("RELENT_PROBE_KEY"));
    let address = host.to_socket_addrs()?.next().unwrap();
    let mut stream = TcpStream::connect_timeout(&address, attempt.allowed())?;
    stream.set_read_timeout(Some(attempt.allowed()))?;
    let key = if key.is_empty() { String::new() } else { format!("idempotency-key: {key}\r\n") };
    let length = body.len();
    let head = format!(
        "{method} /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{key}content-length: {length}\r\n\r\n"
    );
    stream.write_all((head + &body).as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status =
        answer.get(9..12).and_then(|status| status.parse().ok()).ok_or(io::ErrorKind::UnexpectedEof)?;
    let asked = answer.lines().find_map(|line| line.strip_prefix("retry-after: ")?.parse().ok());
    let honours = env::var("PROBED_MANNER").is_ok_and(|manner| manner == "honours=yes");
    match status {
        200..300 => Ok(()),
        status => Err(Failure::Status(status, asked.filter(|_| honours).map(Duration::from_secs))),
    }
}

#[derive(Debug)]
enum Failure {
    Status(u16, Option<Duration>),
    Io(#[expect(dead_code, reason = "shown where the client fails")] io::Error),
}

impl<E: Into<io::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Io(error.into())
    }
}

impl Classify for Failure {
    fn classify(&self) -> Meaning {
        let failed = |server_wait| Meaning::Failure { cause: Cause::Error, sent: Sent::Maybe, server_wait };
        match self {
            Self::Status(408 | 429 | 502 | 503 | 504, asked) => failed(*asked),
            Self::Status(..) => Meaning::Permanent,
            Self::Io(_) => failed(None),
        }
    }
}

const ATTEMPT: Duration = Duration::from_millis(800);

#[test]
fn a_suite_that_is_given_up_leaves_no_client_behind() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    // A shell that starts another process, as launchers do.
    let script = format!("sleep 600 & echo $! > '{}'; wait", file.display());
    let client = Client::new(["sh", "-c", &script]).unwrap();
    let suite = small();
    runtime().block_on(async {
        // Both arms are cancel safe: giving up is what is tested.
        tokio::select! {
            _ = suite.run(&client) => panic!("it cannot end"),
            () = eventually(|| std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n'))) => {}
        }
    });
    let pid = std::fs::read_to_string(&file).unwrap();
    let status = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    // What was killed and is not collected yet is a zombie.
    let gone = || status().is_empty() || status().contains(") Z ");
    runtime().block_on(eventually(gone));
}

/// Polls until it is so.
async fn eventually(so: impl Fn() -> bool) {
    let clock = UnixClock::new();
    let give_up = clock.now().after(Duration::from_secs(30));
    while !so() {
        assert!(clock.now() < give_up, "after 30 s it still is not so");
        clock.sleep(Duration::from_millis(5)).await;
    }
}
