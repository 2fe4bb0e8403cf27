//! What the tests would not notice: faults planted one by one, by cargo-mutants, in the code that decides.
//!
//! A fault that no test sees (a *survivor*) is a missing test, or a change that changes nothing. Those that are the
//! latter, or that are accepted, stand with their reason in `docs/mutants.md`; any other makes the command fail.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    metadata::target_folder,
    run::{command, root},
};

/// Plants faults in the parts of those names, or in all.
pub(crate) fn run(names: &[&str]) -> Result<(), String> {
    let parts = chosen(names)?;
    let tool = installed()?;
    let accepted = accepted()?;
    let mut unknown = 0;
    for part in parts {
        unknown += part.plant(&tool)?.report(part.name, &accepted);
    }
    let builds = builds()?;
    fs::remove_dir_all(&builds).map_err(|error| format!("{}: {error}", builds.display()))?;
    match unknown {
        0 => Ok(()),
        _ => {
            Err(format!("{unknown} survivors that {ACCEPTED} does not list; test them away, or say why not"))
        }
    }
}

/// Files that are tested by the same tests.
#[derive(Debug)]
struct Part {
    name: &'static str,
    package: &'static str,
    /// Below the package's `src`, as cargo-mutants' globs.
    files: &'static [&'static str],
    /// The integration tests that run at once with the unit tests. Those of the core need none; the live controls have few
    /// unit tests.
    at_once: &'static [&'static str],
    /// Those that run on what was missed. (Each that is linked costs time for every fault, and all would cost minutes.)
    afterwards: &'static [&'static str],
    /// Of the tests at once and of those afterwards.
    paces: [Pace; 2],
}

const PARTS: [Part; 7] = [
    Part {
        name: "retry",
        package: "relent-core",
        files: &["retry.rs", "policy/pace.rs"],
        at_once: &[],
        afterwards: &["cases", "defaults", "golden", "laws", "presets", "validate"],
        paces: CORE,
    },
    Part {
        name: "budget",
        package: "relent-core",
        files: &["budget.rs", "budget/**/*.rs"],
        at_once: &[],
        afterwards: &["laws_budget", "laws_loan", "model_budget", "presets", "validate_controls"],
        paces: CORE,
    },
    Part {
        name: "breaker",
        package: "relent-core",
        files: &["breaker.rs", "breaker/*.rs", "window.rs", "window/*.rs"],
        at_once: &[],
        afterwards: &["model_breaker", "presets_meet_an_outage", "validate_controls"],
        paces: CORE,
    },
    Part {
        name: "settlement",
        package: "relent-core",
        files: &["settlement.rs"],
        at_once: &[],
        afterwards: &[],
        paces: CORE,
    },
    Part {
        name: "live-budget",
        package: "relent",
        files: &["control/budget.rs", "control/budget/*.rs"],
        at_once: &["budget_cases", "budget_is_the_twin_of_the_core"],
        afterwards: &["budget_threads", "the_straight_way_is_the_same_call"],
        paces: LIVE,
    },
    Part {
        name: "live-breaker",
        package: "relent",
        files: &["control/breaker.rs", "control/breaker/*.rs", "control/window.rs", "control/window/*.rs"],
        at_once: &["breaker_agrees_with_its_twin", "breaker_cases"],
        afterwards: &[
            "breaker_beats_its_peers",
            "events_tell_the_whole_call",
            "gates_cases",
            "layers_stand_in_one_order",
            "neighbours_of_calls",
            "opentelemetry_measures_calls",
            "the_straight_way_is_the_same_call",
        ],
        paces: LIVE,
    },
    Part {
        name: "live-limits",
        package: "relent",
        files: &[
            "control/concurrency.rs",
            "control/concurrency/*.rs",
            "control/rate.rs",
            "control/rate/*.rs",
        ],
        at_once: &["limit_concurrency", "limit_rate"],
        afterwards: &[
            "blocking_calls",
            "gates_cases",
            "neighbours_of_controls",
            "opentelemetry_measures_calls",
            "the_straight_way_is_the_same_call",
        ],
        paces: LIVE,
    },
];

impl Part {
    /// Plants every fault twice: before the tests that are quick to build and catch most, and what they miss before the
    /// others.
    fn plant(&self, tool: &Path) -> Result<Found, String> {
        let folder = target_folder()?.join("mutants").join(self.name);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        eprintln!("planting faults in {} (a copy is built first)", self.name);
        let first = [vec![LIB.to_string()], built(self.at_once)].concat();
        self.mutate(tool, &folder, &self.paces[0], &first)?;
        let found = Found::read(&folder)?;
        if found.missed.is_empty() && found.timeouts == 0 || self.afterwards.is_empty() {
            return Ok(found);
        }
        eprintln!("planting what was missed in {} before the tests of more than that", self.name);
        let second = [vec!["--iterate".to_string()], built(self.afterwards)].concat();
        self.mutate(tool, &folder, &self.paces[1], &second)?;
        let second = Found::read(&folder)?;
        Ok(Found {
            caught: found.caught + second.caught,
            unviable: found.unviable + second.unviable,
            ..second
        })
    }

    /// Runs cargo-mutants on a copy of the tree. (What it should build must be said to all of its cargo commands: what
    /// stands after `--` it says to those alone that run the tests, and builds the rest for each fault in vain.)
    fn mutate(&self, tool: &Path, folder: &Path, pace: &Pace, args: &[String]) -> Result<(), String> {
        let Pace { optimised, timeout_seconds } = *pace;
        let mut mutants = Command::new(tool);
        mutants.current_dir(root()).args(["mutants", "--package", self.package, "--no-shuffle"]);
        mutants.args(["--jobs", "1", "--cap-lints", "true", "--timeout", timeout_seconds]);
        mutants.arg("--output").arg(folder);
        for file in self.files {
            mutants.arg("--file").arg(format!("crates/{}/src/{file}", self.package));
        }
        mutants.arg("--all-features").args(args);
        // The workspace says so of the core, which its other members ask a lot.
        mutants.arg(format!("--cargo-arg=--config=profile.dev.package.relent-core.opt-level={optimised}"));
        // Each copy has what does not change built by the one before it, and builds what a fault changes alone.
        mutants.env("CARGO_TARGET_DIR", builds()?).env("CARGO_INCREMENTAL", "1");
        mutants.env("CARGO_PROFILE_DEV_OPT_LEVEL", optimised).env("CARGO_PROFILE_DEV_DEBUG", "none");
        // Property tests draw the same cases in every run, and look for no smaller one that fails too.
        mutants.env("PROPTEST_RNG_SEED", "1").env("PROPTEST_MAX_SHRINK_ITERS", "0");
        mutants.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
        let status = mutants.status().map_err(|error| format!("{}: {error}", tool.display()))?;
        match status.code() {
            // All caught; some missed; some ran out of time.
            Some(0 | 2 | 3) => Ok(()),
            _ => Err(format!("cargo-mutants failed ({status}); its logs are in {}", folder.display())),
        }
    }
}

/// How the tests are built, and how long they may run: amply, so that what has run for longer runs for ever.
#[derive(Debug)]
struct Pace {
    optimised: &'static str,
    timeout_seconds: &'static str,
}

/// The integration tests are a little optimised, for they draw a lot of cases.
const CORE: [Pace; 2] =
    [Pace { optimised: "0", timeout_seconds: "30" }, Pace { optimised: "1", timeout_seconds: "240" }];
/// Most of their time is the compiler's.
const LIVE: [Pace; 2] =
    [Pace { optimised: "0", timeout_seconds: "60" }, Pace { optimised: "0", timeout_seconds: "60" }];

/// Where the copies are built, as long as the command runs: what is built of one is of no use to the next run.
fn builds() -> Result<PathBuf, String> {
    Ok(target_folder()?.join("mutants").join("builds"))
}

/// What has cargo build those integration tests.
fn built(tests: &[&str]) -> Vec<String> {
    tests.iter().map(|test| format!("--cargo-arg=--test={test}")).collect()
}

/// What became of the faults.
struct Found {
    caught: usize,
    unviable: usize,
    timeouts: usize,
    missed: Vec<String>,
}

impl Found {
    /// Reads what cargo-mutants wrote.
    fn read(folder: &Path) -> Result<Self, String> {
        let lines = |name: &str| {
            let file = folder.join("mutants.out").join(name);
            let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            Ok::<_, String>(text.lines().map(str::to_string).collect::<Vec<_>>())
        };
        Ok(Self {
            caught: lines("caught.txt")?.len(),
            unviable: lines("unviable.txt")?.len(),
            timeouts: lines("timeout.txt")?.len(),
            missed: lines("missed.txt")?,
        })
    }

    /// Prints the counts and the survivors; how many survivors are not accepted.
    fn report(&self, part: &str, accepted: &BTreeMap<String, usize>) -> usize {
        let Self { caught, unviable, timeouts, missed } = self;
        println!(
            "{part}: {caught} caught, {} missed, {unviable} unviable, {timeouts} out of time",
            missed.len()
        );
        let mut left = accepted.clone();
        let mut unknown = 0;
        for survivor in missed {
            let known = left.get_mut(&without_place(survivor)).filter(|left| **left > 0);
            let word = if known.is_some() { "accepted" } else { "SURVIVES" };
            match known {
                Some(left) => *left -= 1,
                None => unknown += 1,
            }
            println!("  {word}  {survivor}");
        }
        unknown
    }
}

/// The parts of those names; without a name, all.
fn chosen(names: &[&str]) -> Result<Vec<&'static Part>, String> {
    if names.is_empty() {
        return Ok(PARTS.iter().collect());
    }
    let named = |name: &&str| {
        PARTS.iter().find(|part| part.name == *name).ok_or_else(|| {
            let known: Vec<_> = PARTS.iter().map(|part| part.name).collect();
            format!("no part is called {name}; there are {}", known.join(", "))
        })
    };
    names.iter().map(named).collect()
}

/// How often each survivor is listed: what stands between backquotes at the beginning of a table's row.
fn accepted() -> Result<BTreeMap<String, usize>, String> {
    let text = fs::read_to_string(root().join(ACCEPTED)).map_err(|error| format!("{ACCEPTED}: {error}"))?;
    let mut accepted = BTreeMap::new();
    for row in text.lines().filter_map(|line| line.strip_prefix("| `")) {
        if let Some((survivor, _)) = row.split_once("` |") {
            *accepted.entry(survivor.replace("\\|", "|")).or_insert(0) += 1;
        }
    }
    Ok(accepted)
}

/// `path:line:column: what` as `path: what`, which outlives other changes of the file.
fn without_place(survivor: &str) -> String {
    let mut parts = survivor.splitn(4, ':');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(path), Some(_), Some(_), Some(what)) => format!("{path}:{what}"),
        _ => survivor.to_string(),
    }
}

/// cargo-mutants: the one on the path, or one of our own below the target folder, installed if it is not there.
fn installed() -> Result<PathBuf, String> {
    let on_path = env::var_os("PATH").and_then(|path| {
        env::split_paths(&path).map(|folder| folder.join("cargo-mutants")).find(|tool| tool.is_file())
    });
    if let Some(tool) = on_path {
        return Ok(tool);
    }
    let folder = target_folder()?.join("tools");
    let tool = folder.join("bin").join("cargo-mutants");
    if !tool.is_file() {
        eprintln!("cargo-mutants {VERSION} is not installed: installing it into {}", folder.display());
        let root = folder.display().to_string();
        let args = ["install", "--locked", "cargo-mutants", "--version", VERSION, "--root", &root];
        let status = command(&args, &[]).status().map_err(|error| format!("cargo install: {error}"))?;
        if !status.success() {
            return Err(format!("cargo-mutants could not be installed ({status})"));
        }
    }
    Ok(tool)
}

/// What has cargo build the unit tests.
const LIB: &str = "--cargo-arg=--lib";
const ACCEPTED: &str = "docs/mutants.md";
const VERSION: &str = "27.1.0";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_survivor_is_known_wherever_it_stands_in_its_file() {
        let survivor = "crates/x/src/a.rs:12:7: replace < with <= in A::b";
        assert_eq!(without_place(survivor), "crates/x/src/a.rs: replace < with <= in A::b");
        assert_eq!(
            without_place("crates/x/src/a.rs:3:1: a::b -> C: with D"),
            "crates/x/src/a.rs: a::b -> C: with D"
        );
    }

    #[test]
    fn every_part_names_files_and_tests_that_are_there() {
        for Part { name, package, files, at_once, afterwards, .. } in &PARTS {
            let package = root().join("crates").join(package);
            for file in files.iter().map(|file| file.split_once('*').map_or(*file, |(folder, _)| folder)) {
                assert!(package.join("src").join(file).exists(), "{name}: {file}");
            }
            for test in at_once.iter().chain(*afterwards) {
                assert!(package.join("tests").join(format!("{test}.rs")).is_file(), "{name}: {test}");
            }
        }
    }

    #[test]
    fn a_part_is_called_by_its_name() {
        assert_eq!(chosen(&["budget", "retry"]).unwrap().len(), 2);
        assert_eq!(chosen(&[]).unwrap().len(), PARTS.len());
        assert!(chosen(&["nothing"]).unwrap_err().contains("retry, budget"));
    }
}
