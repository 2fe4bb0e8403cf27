//! What `check` says of every preset and of both documents' settings, against what was written down before it could
//! say anything (`expected/`).

use std::{collections::BTreeMap, fs, path::Path};

use relent_check::{Document, Format, PerSecond, Report, Verdict, World, check, of_policy};
use relent_core::{Policy, Preset, parse_duration};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    subject: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    preset: Option<String>,
    format: Option<String>,
    text: Option<String>,
    #[serde(default)]
    flags: Flags,
    #[serde(default)]
    findings: BTreeMap<String, String>,
    #[serde(default)]
    limits: BTreeMap<String, String>,
    cannot_tell: Option<Vec<String>>,
    #[serde(default)]
    figures: FiguresRow,
    #[serde(default)]
    shares: SharesRow,
    /// For people only.
    #[serde(default)]
    #[expect(dead_code, reason = "the reasons are for people")]
    because: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Flags {
    layers: Option<u32>,
    load: Option<u64>,
    capacity: Option<u64>,
    callers: Option<u32>,
    hosts: Option<u32>,
    deadline: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FiguresRow {
    at_best: Option<toml::Value>,
    at_worst: Option<u32>,
    longest: Option<String>,
    in_an_outage: Option<f64>,
    through_layers: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SharesRow {
    fast: BTreeMap<String, u32>,
    slow: BTreeMap<String, u32>,
    cut_short: Option<u32>,
}

impl Row {
    fn world(&self) -> World {
        let flags = &self.flags;
        let rate = |number: Option<u64>| number.map(|number| PerSecond::from_milli(number * 1000));
        World {
            layers: flags.layers,
            load: rate(flags.load),
            capacity: rate(flags.capacity),
            callers: flags.callers,
            hosts: flags.hosts,
            deadline: flags.deadline.as_deref().map(|text| parse_duration(text).unwrap()),
        }
    }

    fn report(&self) -> Report {
        if let Some(preset) = &self.preset {
            return check(&of_policy(Preset::from_name(preset).unwrap().policy()), &self.world());
        }
        let text = self.text.as_deref().unwrap();
        let detected =
            Document::parse(text, None, &Policy::live()).unwrap_or_else(|why| panic!("{}: {why}", self.name));
        let named = Format::from_name(self.format.as_deref().unwrap()).unwrap();
        let forced = Document::parse(text, Some(named), &Policy::live()).unwrap();
        let [subject] = detected.subjects.as_slice() else {
            panic!("{}: {} subjects", self.name, detected.subjects.len());
        };
        assert_eq!(subject.format, named, "{}", self.name);
        assert_eq!(
            subject.policy, forced.subjects[0].policy,
            "{}: the format is found by what stands there",
            self.name
        );
        check(subject, &self.world())
    }
}

fn rows() -> Vec<Row> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expected");
    let mut rows = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = fs::read_to_string(&path).unwrap();
            let file: File =
                toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            rows.extend(file.subject);
        }
    }
    rows
}

#[test]
fn every_subject_has_the_findings_that_it_deserves_and_no_others() {
    let mut wrong = Vec::new();
    for row in rows() {
        let report = row.report();
        let found: Vec<&str> = sorted(report.findings.iter().map(|finding| finding.name));
        let expected: Vec<&str> = sorted(row.findings.keys().map(String::as_str));
        let limits: Vec<&str> = sorted(report.limits.iter().map(|limit| limit.name));
        let expected_limits: Vec<&str> = sorted(row.limits.keys().map(String::as_str));
        if found != expected || limits != expected_limits {
            wrong.push(format!(
                "{}\n  findings {found:?}\n  expected {expected:?}\n  limits   {limits:?}\n  expected {expected_limits:?}",
                row.name
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_a_file_does_not_tell_is_not_guessed() {
    for row in rows() {
        let Some(expected) = &row.cannot_tell else { continue };
        let report = row.report();
        let told = report.answers.iter().filter(|answer| answer.verdict == Verdict::CannotTell);
        let told: Vec<&str> = sorted(told.map(|answer| answer.question.name()));
        assert_eq!(told, sorted(expected.iter().map(String::as_str)), "{}", row.name);
    }
}

#[test]
fn the_arithmetic_gives_the_figures_of_the_sources() {
    for row in rows() {
        let (name, figures) = (&row.name, row.report().figures);
        match &row.figures.at_best {
            Some(toml::Value::Integer(best)) => {
                assert_eq!(figures.at_best.map(i64::from), Some(*best), "{name}: at best");
            }
            Some(_) => assert_eq!(figures.at_best, None, "{name}: at best without limit"),
            None => {}
        }
        if let Some(worst) = row.figures.at_worst {
            assert_eq!(figures.at_worst.and_then(|worst| worst.begin), Some(worst), "{name}: at worst");
        }
        if let Some(longest) = &row.figures.longest {
            let longest = parse_duration(longest).unwrap();
            assert_eq!(figures.longest, Some(longest), "{name}: the longest that a caller waits");
        }
        let near = |milli: u64, expected: f64| ((milli as f64) / 1000.0 - expected).abs() < 0.005;
        if let Some(expected) = row.figures.in_an_outage {
            let milli = figures.outage.attempts_milli;
            assert!(
                milli.is_some_and(|milli| near(milli, expected)),
                "{name}: {milli:?} for {expected} in an outage"
            );
        }
        if let Some(expected) = row.figures.through_layers {
            let through = figures.through_layers.expect("layers were said").1;
            assert!(near(through, expected), "{name}: {through} for {expected} through the layers");
        }
    }
}

#[test]
fn the_shares_of_runs_are_those_of_the_sources_own_formula() {
    for row in rows() {
        let (name, figures) = (&row.name, row.report().figures);
        for (expected, tally) in
            [(&row.shares.fast, &figures.at_once), (&row.shares.slow, &figures.timing_out)]
        {
            for (attempts, percent) in expected {
                let tally = tally.as_ref().expect("there is a bound");
                let calls = tally.by_attempts.get(&attempts.parse().unwrap()).copied().unwrap_or_default();
                let share = tally.share_milli(calls);
                assert!(
                    share.abs_diff(percent * 10) <= 20,
                    "{name}: {attempts} attempts in {share} ‰ for {percent} %"
                );
            }
        }
        if let Some(percent) = row.shares.cut_short {
            let tally = figures.timing_out.as_ref().expect("there is a bound");
            let share = tally.share_milli(tally.cut_short);
            assert!(share.abs_diff(percent * 10) <= 20, "{name}: cut short in {share} ‰ for {percent} %");
        }
    }
}

fn sorted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names
}
