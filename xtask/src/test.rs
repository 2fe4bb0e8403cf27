//! Every test, and one line at the end that counts them all.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use crate::{
    examples,
    metadata::target_folder,
    run::{cargo, command},
    services,
};

/// Builds everything once, then runs the suites: with nextest where it is installed (all suites side by side),
/// otherwise with cargo's own runner; doc tests with cargo's in both cases. Services are started if they are there, and
/// installed if `RELENT_TEST_REQUIRE` names them. The examples come last, where no filter
/// leaves them out.
pub(crate) fn run(filter: &[&str]) -> Result<(), String> {
    let workspace = ["--workspace", "--all-features"];
    let targets = ["--lib", "--bins", "--tests"];
    cargo(&[&["test", "--no-run"][..], &workspace, &targets].concat(), &[])?;
    let binary = target_folder()?.join("debug").join("relent").display().to_string();
    let services = services::for_tests()?;
    let mut counts = Counts { binary, services, ..Counts::default() };
    if nextest_is_installed() {
        let runner = ["nextest", "run", "--no-fail-fast", "--no-tests=pass"];
        counts.take("Summary [", &[&runner[..], &workspace, &targets, filter].concat())?;
    } else {
        counts.take(
            "test result:",
            &[&["test", "--no-fail-fast"][..], &workspace, &targets, filter].concat(),
        )?;
    }
    counts.take("test result:", &[&["test", "--doc", "--no-fail-fast"][..], &workspace, filter].concat())?;
    if filter.is_empty() {
        counts.take_examples()?;
    }
    println!("{} passed, {} failed, {} skipped", counts.passed, counts.failed, counts.skipped);
    if counts.runs_failed > 0 { Err("the tests failed".into()) } else { Ok(()) }
}

/// Probes clients that we did not write, and our own, one after the other: what is measured is real time.
pub(crate) fn clients() -> Result<(), String> {
    services::for_clients()?;
    for test in ["clients_that_we_did_not_write", "suite_tells_relents_own_policies"] {
        let chosen = ["test", "--package", "relent-probe", "--test", test];
        let alone = ["--", "--ignored", "--test-threads", "1", "--nocapture"];
        cargo(&[&chosen[..], &alone].concat(), &[("RELENT_TEST_REQUIRE", "curl,node,python3,cargo")])?;
    }
    Ok(())
}

#[derive(Default)]
struct Counts {
    /// The binary that was just built, for the tests that start it.
    binary: String,
    /// Where the services are.
    services: Vec<(String, String)>,
    passed: u64,
    failed: u64,
    skipped: u64,
    runs_failed: u32,
}

impl Counts {
    /// Runs one test command, shows what it prints, and adds up its summaries: the lines that begin with `summary`.
    fn take(&mut self, summary: &str, args: &[&str]) -> Result<(), String> {
        eprintln!("$ cargo {}", args.join(" "));
        let failed = |error| format!("`cargo {}` does not run: {error}", args.join(" "));
        let mut merged = Command::new("sh");
        let cargo = command(args, &[]);
        merged.arg("-c").arg("exec \"$0\" \"$@\" 2>&1").arg(cargo.get_program()).args(cargo.get_args());
        merged.current_dir(crate::run::root()).env("RELENT_TEST_BINARY", &self.binary);
        merged.envs(self.services.iter().map(|(name, value)| (name, value)));
        let mut child = merged.stdout(Stdio::piped()).spawn().map_err(failed)?;
        let before = self.failed;
        for line in BufReader::new(child.stdout.take().ok_or("no output")?).lines() {
            let line = line.map_err(failed)?;
            println!("{line}");
            if line.trim_start().starts_with(summary) {
                self.count(&line);
            }
        }
        if !child.wait().map_err(failed)?.success() {
            self.runs_failed += 1;
            if self.failed == before {
                self.failed += 1; // it failed without a summary: a build error, or a runner that died
            }
        }
        Ok(())
    }

    /// Runs the examples, each as one test.
    fn take_examples(&mut self) -> Result<(), String> {
        let (passed, failed) = examples::run()?;
        self.passed += passed;
        self.failed += failed;
        self.runs_failed += u32::from(failed > 0);
        Ok(())
    }

    /// `test result: ok. 3 passed; 0 failed; 1 ignored; …` of cargo, or nextest's
    /// `Summary [ 1.2s] 7 tests run: 6 passed (1 slow), 1 failed, 2 skipped`.
    fn count(&mut self, line: &str) {
        let words: Vec<&str> = line.split([' ', ';', ',', '.']).filter(|word| !word.is_empty()).collect();
        for pair in words.windows(2) {
            let Ok(number) = pair[0].parse::<u64>() else { continue };
            match pair[1] {
                "passed" => self.passed += number,
                "failed" | "timed" => self.failed += number,
                "ignored" | "skipped" => self.skipped += number,
                _ => {}
            }
        }
    }
}

fn nextest_is_installed() -> bool {
    command(&["nextest", "--version"], &[])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_runners_summaries_are_counted() {
        let mut counts = Counts::default();
        counts.count("test result: FAILED. 3 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.1s");
        counts.count("     Summary [   1.204s] 9 tests run: 7 passed (1 slow), 2 failed, 4 skipped");
        assert_eq!((counts.passed, counts.failed, counts.skipped), (10, 3, 6));
    }
}
