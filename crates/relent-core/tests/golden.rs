//! Golden timelines: what a policy makes of a script, printed, and reviewed as a diff.
//!
//! Each `golden/*.txt` holds a policy, a call, and the timeline that they gave when it was last looked at. With
//! `RELENT_BLESS=1` (`cargo xtask tables`) the timelines are written anew instead of compared.

use std::{
    fs,
    path::{Path, PathBuf},
};

use relent_core::{Policy, PolicyText, Route, Timestamp, parse_duration, parse_script, timeline};

/// The parts of a golden file up to the timeline.
struct Case {
    policy: Policy,
    seed: u64,
    upstream: Option<Timestamp>,
    script: String,
}

#[test]
fn every_golden_timeline_is_what_the_core_gives() {
    let bless = std::env::var_os("RELENT_BLESS").is_some_and(|value| value == "1");
    let files = golden_files();
    assert!(files.len() >= 10, "the golden files are missing: {files:?}");
    let mut differ = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a golden file can be read");
        let (asked, _) = text.split_once(TIMELINE).unwrap_or_else(|| panic!("{file:?} has no timeline part"));
        let given = format!("{asked}{TIMELINE}{}\n", printed(&file, asked));
        if bless {
            fs::write(&file, &given).expect("a golden file can be written");
        } else if given != text {
            differ.push(format!("{}\nthe core gives now:\n{given}", file.display()));
        }
    }
    assert!(
        differ.is_empty(),
        "{}\nIf this is meant, write them anew with `cargo xtask tables` and review the diff.",
        differ.join("\n")
    );
}

#[test]
fn a_golden_file_is_not_compared_by_its_heading_alone() {
    let file = Path::new("made up");
    let asked = "--- policy\nrepeat = \"safe\"\n--- call\nseed 1\nscript 503, 200\n";
    assert_ne!(printed(file, asked), printed(file, &asked.replace("seed 1", "seed 2")));
    assert_ne!(printed(file, asked), printed(file, &asked.replace("503", "502")));
    assert_ne!(printed(file, asked), printed(file, &asked.replace("safe", "unsafe")));
}

fn printed(file: &Path, asked: &str) -> String {
    let case = read(file, asked);
    let script = parse_script(&case.script).unwrap_or_else(|error| panic!("{file:?}: {error}"));
    let history = case.policy.begin(case.seed, START, case.upstream, None);
    timeline(&case.policy, history, Route::default(), &script).to_string()
}

fn read(file: &Path, asked: &str) -> Case {
    let (_, asked) = asked.split_once("--- policy\n").unwrap_or_else(|| panic!("{file:?} has no policy"));
    let (policy, call) = asked.split_once("--- call\n").unwrap_or_else(|| panic!("{file:?} has no call"));
    let policy: PolicyText = toml::from_str(policy).unwrap_or_else(|error| panic!("{file:?}: {error}"));
    let policy = policy.over(Policy::live()).unwrap_or_else(|error| panic!("{file:?}: {error}"));
    let mut case = Case { policy, seed: 0, upstream: None, script: String::new() };
    for line in call.lines() {
        match line.split_once(' ') {
            Some(("seed", seed)) => case.seed = seed.parse().expect("a seed is a number"),
            Some(("upstream", length)) => {
                case.upstream = Some(START.after(parse_duration(length).expect("a deadline is a duration")));
            }
            Some(("script", script)) => case.script = script.into(),
            _ => panic!("{file:?}: \"{line}\" is not known; a call has a seed, an upstream and a script"),
        }
    }
    case
}

fn golden_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let entries = fs::read_dir(folder).expect("the golden folder can be read");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    files
}

const TIMELINE: &str = "--- timeline\n";

/// Not zero, so that a time that is not counted from the call's start shows.
const START: Timestamp = Timestamp::from_secs(1_000);
