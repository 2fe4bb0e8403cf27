//! Fuzzing: every parser of a header, each for as long as is asked.
//!
//! The flags are those with which `cargo fuzz --sanitizer none` builds: coverage for libFuzzer to steer by, which
//! every toolchain can give. Memory needs no sanitizer where `unsafe` is forbidden.

use std::{
    env, fs,
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

use crate::{
    run::{cargo, root},
    services,
};

/// A short run, as part of what must hold before something lands. Where there is no C++ compiler it is skipped
/// aloud, unless `RELENT_TEST_REQUIRE` names `c++`.
pub(crate) fn briefly() -> Result<(), String> {
    if services::cpp()? {
        return run(&[]);
    }
    println!("fuzzing is skipped: there is no C++ compiler (c++, or CXX)");
    Ok(())
}

/// Builds all targets and runs each for that many seconds, a few side by side.
pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    let (seconds, only) = match args {
        [] => ("10", None),
        [seconds] => (*seconds, None),
        [seconds, target] => (*seconds, Some(*target)),
        _ => return Err("say for how many seconds each, and which: cargo xtask fuzz 600 retry_after".into()),
    };
    seconds.parse::<u32>().map_err(|_| format!("\"{seconds}\" is not a number of seconds"))?;
    let targets = targets(only)?;
    let built = build()?;
    let side_by_side = thread::available_parallelism().map_or(1, usize::from);
    let mut failed = Vec::new();
    for few in targets.chunks(side_by_side) {
        let mut running = Vec::new();
        for target in few {
            running.push((target, start(&built, target, seconds)?));
        }
        for (target, mut child) in running {
            let status = child.wait().map_err(|error| format!("{target}: {error}"))?;
            let log = fs::read_to_string(log(target)).map_err(|error| format!("{target}: {error}"))?;
            if status.success() {
                println!("{target}: {} inputs, no crash", inputs(&log));
            } else {
                println!("{log}");
                failed.push(target.clone());
            }
        }
    }
    match failed.as_slice() {
        [] => Ok(()),
        failed => Err(format!("{} crashed; the input stands in {}", failed.join(", "), findings().display())),
    }
}

/// The names of the targets: one file each.
fn targets(only: Option<&str>) -> Result<Vec<String>, String> {
    let folder = root().join("fuzz/fuzz_targets");
    let failed = |error| format!("{}: {error}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort();
    match only {
        None => Ok(names),
        Some(only) if names.iter().any(|name| name == only) => Ok(vec![only.to_owned()]),
        Some(only) => Err(format!("there is no target \"{only}\"; there are {}", names.join(", "))),
    }
}

/// Builds them and says where they are.
fn build() -> Result<PathBuf, String> {
    let folder = scratch();
    let target_dir = folder.display().to_string();
    let manifest = root().join("fuzz/Cargo.toml").display().to_string();
    let build = ["build", "--release", "--manifest-path", &manifest, "--target-dir", &target_dir];
    // For the host named as a target, so that build scripts and macros are not instrumented.
    let host = host()?;
    cargo(&[&build[..], &["--target", &host]].concat(), &[("RUSTFLAGS", FLAGS)])?;
    Ok(folder.join(host).join("release"))
}

fn start(built: &Path, target: &str, seconds: &str) -> Result<Child, String> {
    let corpus = scratch().join("corpus").join(target);
    let failed = |error| format!("{target}: {error}");
    fs::create_dir_all(&corpus).map_err(failed)?;
    fs::create_dir_all(findings()).map_err(failed)?;
    let mut command = Command::new(built.join(target));
    command.arg(&corpus).arg(root().join("fuzz/seeds").join(target));
    command.arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-artifact_prefix={}/{target}-", findings().display()));
    command.args(["-max_len=512", "-timeout=5", "-print_final_stats=1", "-verbosity=0"]);
    command.stderr(Stdio::from(File::create(log(target)).map_err(failed)?));
    command.spawn().map_err(failed)
}

/// How many inputs libFuzzer says that it has tried.
fn inputs(log: &str) -> &str {
    let line = log.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    line.map_or("?", str::trim)
}

fn host() -> Result<String, String> {
    let output = Command::new("rustc").arg("-vV").output().map_err(|error| format!("rustc: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc does not name its host".into())
}

/// What is built and learnt stays between runs.
fn scratch() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from).join("fuzz")
}

fn findings() -> PathBuf {
    scratch().join("findings")
}

fn log(target: &str) -> PathBuf {
    findings().join(format!("{target}.log"))
}

const FLAGS: &str = "--cfg fuzzing -Ccodegen-units=1 -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Cllvm-args=-simplifycfg-branch-fold-threshold=0";
