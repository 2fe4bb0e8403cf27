//! `relent demo`: what it says is true, judged from the receiver's own log; and however it ends, nothing of it is
//! left behind.

#![expect(clippy::disallowed_methods, reason = "a real process is timed and waited for")]

mod support;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::TcpStream,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;
use support::{Run as _, eventually, json_lines, relent};

/// What the receiver's log says, counted anew.
#[derive(Debug, Default)]
struct Recount {
    first_try: u64,
    recovered: u64,
    dead: BTreeMap<&'static str, u64>,
    redriven: u64,
    requests_before: u64,
    requests: u64,
    recognised: u64,
    /// Answers other than 200 in time, before the receiver was mended.
    failed: BTreeMap<String, u64>,
}

impl Recount {
    fn of(log: &[Value]) -> Self {
        let mut orders: BTreeMap<u64, Vec<&Value>> = BTreeMap::new();
        for line in log {
            orders.entry(line["order"].as_u64().unwrap()).or_default().push(line);
        }
        let mut recount = Self { requests: log.len() as u64, ..Self::default() };
        recount.recognised = count(log.iter(), |line| line["done"] == "before" && line["answer"] == "200");
        for (order, lines) in orders {
            assert_attempts_are_numbered_and_keyed(order, &lines);
            recount.add(&lines);
        }
        recount
    }

    fn add(&mut self, lines: &[&Value]) {
        let (after, before): (Vec<&Value>, Vec<&Value>) =
            lines.iter().partition(|line| line["mended"] == true);
        self.requests_before += before.len() as u64;
        for line in before.iter().filter(|line| line["answer"] != "200") {
            *self.failed.entry(line["answer"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        let last = before.last().unwrap();
        match last["answer"].as_str().unwrap() {
            "200" if before.len() == 1 => self.first_try += 1,
            "200" => self.recovered += 1,
            "422" => *self.dead.entry("permanent").or_default() += 1,
            "503" if last["asked_s"] == 3600 => *self.dead.entry("server_wait_too_long").or_default() += 1,
            _ => {
                assert_eq!(before.len(), 6, "the policy allows six attempts: {before:?}");
                *self.dead.entry("attempts_exhausted").or_default() += 1;
            }
        }
        assert_eq!(after.is_empty(), last["answer"] == "200", "what was dead, and only that, is sent again");
        self.redriven += count(after.into_iter(), |line| line["answer"] == "200");
    }
}

fn assert_attempts_are_numbered_and_keyed(order: u64, lines: &[&Value]) {
    let keys: BTreeSet<&str> = lines.iter().map(|line| line["key"].as_str().unwrap()).collect();
    assert_eq!(keys.into_iter().collect::<Vec<_>>(), [format!("order-{order}")], "one key for all attempts");
    for (number, line) in (1..).zip(lines) {
        assert_eq!(line["attempt"].as_str().unwrap(), format!("{number}"), "{line}");
    }
}

fn count<'a>(lines: impl Iterator<Item = &'a Value>, wanted: impl Fn(&Value) -> bool) -> u64 {
    lines.filter(|line| wanted(line)).count() as u64
}

#[test]
fn what_the_demo_says_is_what_the_receiver_saw() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("receiver.jsonl");
    let began = Instant::now();
    let ended = relent().args(["demo", "--json", "--receiver-log"]).arg(&log).run();
    assert!(began.elapsed() < Duration::from_secs(60), "it took {:?}", began.elapsed());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);

    let said: Value = serde_json::from_str(&ended.stdout).unwrap();
    let saw = Recount::of(&json_lines(&log));
    let (before, after) = (&said["before"], &said["after"]);
    assert_eq!(before["orders"], 1000);
    assert_eq!(before["first_try"], saw.first_try);
    assert_eq!(before["recovered"], saw.recovered);
    assert_eq!(before["dead"], serde_json::to_value(&saw.dead).unwrap());
    assert_eq!(attempts_that_arrived(before), saw.requests_before);
    assert_eq!(attempts_that_arrived(after), saw.requests);
    assert_eq!(after["recognised"], saw.recognised);
    assert_eq!(said["sent_again"], saw.dead.values().sum::<u64>());
    assert_eq!(after["redriven"], saw.redriven);
    assert_eq!((&after["dead"], &said["dead_left"]), (&serde_json::json!({}), &0.into()));
    assert_eq!(saw.first_try + saw.recovered + saw.redriven, 1000, "every order was carried out in the end");
    assert_eq!(said["amplification"].as_f64().unwrap(), after["attempts"].as_f64().unwrap() / 1000.0);
    assert_eq!(said["sound"], true);
    for (status, heard) in [("503", "503"), ("429", "429"), ("422", "422"), ("no answer", "reset")] {
        assert_eq!(before["failed"][heard], saw.failed[status], "{status}");
    }
    assert_eq!(before["failed"]["header_timeout"], saw.failed["200 too late"]);
    assert_the_story_says(&ended.stderr, &saw);
}

fn attempts_that_arrived(counts: &Value) -> u64 {
    counts["attempts"].as_u64().unwrap() - counts["unreached"].as_u64().unwrap()
}

/// The lines of a text, with one space between words.
fn words(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// The numbers in the text for people.
fn assert_the_story_says(story: &str, saw: &Recount) {
    let words = words(story);
    let says =
        |start: String| assert!(words.iter().any(|line| line.starts_with(&start)), "\"{start}\" in {story}");
    let dead: u64 = saw.dead.values().sum();
    says(format!("first try {} ", saw.first_try));
    says(format!("recovered {} ", saw.recovered));
    says(format!("dead {dead} "));
    for (reason, number) in &saw.dead {
        says(format!("{number} {reason} ("));
    }
    says(format!("{} repeats", saw.recognised));
    says(format!(
        "3. The receiver is mended, and {dead} dead letters sent again: the list of dead letters is empty."
    ));
    says(format!("delivered at the first try {}", saw.first_try));
    says(format!("delivered after retries {}", saw.recovered));
    says(format!("delivered after a person sent them again {}", saw.redriven));
    says("lost 0".to_owned());
}

#[test]
fn without_json_the_same_story_stands_on_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("receiver.jsonl");
    let args = ["demo", "--orders", "400", "--seed", "11", "--receiver-log"];
    let story = relent().args(args).arg(&log).run().done();
    let log = json_lines(&log);
    let saw = Recount::of(&log);
    assert_the_story_says(&story, &saw);
    let words = words(&story);
    let says =
        |start: &str| assert!(words.iter().any(|line| line.starts_with(start)), "\"{start}\" in {story}");
    says("A shop hands 400 orders to relent.");
    says("1. Accepted: 400 orders in ");

    says("what went wrong on the way");
    let failed = |name: &str| saw.failed.get(name).copied().unwrap_or_default();
    for (name, said, number) in [
        ("429", "the receiver said: not so often", failed("429")),
        ("422", "the receiver did not understand the order", failed("422")),
        ("503", "the receiver was overloaded or closed", failed("503")),
        ("reset", "the receiver hung up without an answer", failed("no answer")),
        ("header_timeout", "no answer within the attempt's time-out", failed("200 too late")),
    ] {
        assert!(number > 0, "{name}: this day is not bad enough to show it");
        says(&format!("{number} {name} ({said})"));
    }
    // What never arrived stands in the story alone; on the loopback there is hardly ever any.
    let unreached: u64 =
        ["connect", "connect_timeout", "not_sent"].map(|name| first_number(&words, name)).iter().sum();
    for (attempts, line) in
        [(saw.requests_before, "each (the amplification)."), (saw.requests, "each; the store")]
    {
        let attempts = attempts + unreached;
        #[expect(clippy::cast_precision_loss, reason = "some hundreds")]
        let each = attempts as f64 / 400.0;
        let numbers = match line.starts_with("each;") {
            true => format!("{attempts} attempts, {each:.3} {line} keeps all its rules; "),
            false => format!("{attempts} attempts for 400 orders: {each:.3} {line}"),
        };
        says(&numbers);
    }
    says("all 400");
    assert_the_policy_is_the_one_in_words(&story, &log);
}

/// The number before a name in the list of what went wrong; 0 where it is not there.
fn first_number(lines: &[String], name: &str) -> u64 {
    let row = lines
        .iter()
        .find_map(|line| line.split_once(' ').filter(|(_, rest)| rest.starts_with(&format!("{name} "))));
    row.map_or(0, |(number, _)| number.parse().unwrap())
}

/// What the first lines promise of the policy is what the receiver saw of it.
fn assert_the_policy_is_the_one_in_words(story: &str, log: &[Value]) {
    let said = words(story).join(" ");
    let policy = "at most 6 attempts of 3s within 1m; waits drawn under 500ms, doubling to 5s; \
                  a receiver that asks for more than 10s is not waited for";
    assert!(said.contains(policy), "{story}");
    let mut orders: BTreeMap<u64, Vec<&Value>> = BTreeMap::new();
    for line in log.iter().filter(|line| line["mended"] == false) {
        orders.entry(line["order"].as_u64().unwrap()).or_default().push(line);
    }
    let most = orders.values().map(Vec::len).max();
    assert_eq!(most, Some(6), "at most 6 attempts, and an overload that lasts takes them all");
    for lines in orders.values() {
        let times: Vec<u64> = lines.iter().map(|line| millis(line["at"].as_str().unwrap())).collect();
        let all = times[times.len() - 1].saturating_sub(times[0]);
        assert!(all < 60_000, "within 1m: {lines:?}");
        let too_long = lines.iter().position(|line| line["asked_s"].as_u64() > Some(10));
        assert!(too_long.is_none_or(|at| at + 1 == lines.len()), "it was waited for: {lines:?}");
        for (pair, times) in lines.windows(2).zip(times.windows(2)) {
            let asked = pair[0]["asked_s"].as_u64().unwrap_or_default() * 1000;
            assert!(times[1] - times[0] >= asked, "sooner than was asked: {pair:?}");
        }
    }
}

/// Milliseconds since the month began, from a time such as `2026-11-30T13:45:07.123Z`.
fn millis(at: &str) -> u64 {
    let number = |from: usize, to: usize| at[from..to].parse::<u64>().unwrap();
    ((number(8, 10) * 24 + number(11, 13)) * 60 + number(14, 16)) * 60_000
        + number(17, 19) * 1000
        + number(20, 23)
}

#[test]
fn the_same_seed_gives_the_same_story_and_keep_keeps_a_sound_store() {
    let folder = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| {
        let args = ["demo", "--orders", "40", "--seed", "5", "--json"];
        let json = relent().args(args).args(more).env("TMPDIR", folder.path()).run().done();
        serde_json::from_str::<Value>(&json).unwrap()
    };
    let (one, other) = (run(&[]), run(&["--keep"]));
    for counts in ["first_try", "recovered", "dead", "attempts"] {
        assert_eq!(one["before"][counts], other["before"][counts], "{counts}");
    }
    let kept: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(kept.len(), 1, "the folder of the second alone is left: {kept:?}");
    let fsck: Value = serde_json::from_str(
        &relent().args(["fsck", "--json", "--data"]).arg(kept[0].join("data")).run().done(),
    )
    .unwrap();
    assert_eq!((&fsck["accepted"], &fsck["delivered"]), (&40.into(), &40.into()));
}

#[test]
fn an_interrupt_ends_the_server_and_removes_the_folder() {
    for signal in ["INT", "TERM"] {
        let folder = tempfile::tempdir().unwrap();
        let mut demo = relent();
        demo.args(["demo", "--orders", "300"]).env("TMPDIR", folder.path());
        let mut demo = demo.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let address = eventually("the demo's server listens", || address_below(folder.path()));
        let kill =
            Command::new("sh").args(["-c", &format!("kill -{signal} {}", demo.id())]).status().unwrap();
        assert!(kill.success());
        let status = eventually("the demo ends", || demo.try_wait().unwrap());
        assert_eq!(status.code(), Some(1), "SIG{signal}");
        assert!(TcpStream::connect(&address).is_err(), "its server is gone");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "its folder is gone");
    }
}

/// The address that a demo's server wrote somewhere below `folder`.
fn address_below(folder: &Path) -> Option<String> {
    let demo = fs::read_dir(folder).unwrap().next()?.unwrap().path();
    let address = fs::read_to_string(demo.join("data/address")).ok()?;
    let address = address.trim().trim_start_matches("http://").to_owned();
    (!address.is_empty()).then_some(address)
}

#[test]
fn a_log_that_cannot_be_written_is_said_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let said = relent()
        .args(["demo", "--receiver-log", "/no/such/folder/log"])
        .env("TMPDIR", folder.path())
        .run()
        .failed(1);
    assert!(said.contains("log"), "{said}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
