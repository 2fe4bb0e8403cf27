//! Running cargo.

use std::{
    env, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

/// Runs cargo in the project's root; an exit code other than 0 is an error.
pub(crate) fn cargo(args: &[&str], envs: &[(&str, &str)]) -> Result<(), String> {
    eprintln!("$ cargo {}", args.join(" "));
    let status = command(args, envs).status().map_err(|error| format!("cargo does not start: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`cargo {}` failed ({status})", args.join(" "))) }
}

/// Runs cargo, shows what it prints, and stops it if it goes on for longer; that is an error, too.
pub(crate) fn cargo_within(limit: Duration, args: &[&str]) -> Result<(), String> {
    let shown = format!("cargo {}", args.join(" "));
    eprintln!("$ {shown}");
    let failed = |error| format!("`{shown}`: {error}");
    let mut child = command(args, &[]).stdout(Stdio::piped()).spawn().map_err(failed)?;
    let mut output = child.stdout.take().ok_or("no output")?;
    let (ended, end) = mpsc::channel();
    // It ends when the child closes its output, by itself or because it is killed below.
    let printer = thread::spawn(move || {
        let copied = io::copy(&mut output, &mut io::stdout());
        let _nobody_waits_any_more = ended.send(());
        copied
    });
    let in_time = end.recv_timeout(limit).is_ok();
    if !in_time {
        child.kill().map_err(failed)?;
    }
    let status = child.wait().map_err(failed)?;
    match printer.join() {
        Ok(copied) => copied.map_err(failed)?,
        Err(_) => return Err(format!("`{shown}`: its output could not be shown")),
    };
    match (in_time, status.success()) {
        (true, true) => Ok(()),
        (true, false) => Err(format!("`{shown}` failed ({status})")),
        (false, _) => Err(format!("`{shown}` had not ended after {limit:?}")),
    }
}

/// Runs cargo and returns what it prints.
pub(crate) fn cargo_output(args: &[&str]) -> Result<String, String> {
    cargo_output_in(&[], args)
}

/// [`cargo_output`], in an environment of its own.
pub(crate) fn cargo_output_in(envs: &[(&str, &str)], args: &[&str]) -> Result<String, String> {
    let output = command(args, envs).output().map_err(|error| format!("cargo does not start: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "`cargo {}` failed: {}",
            args.join(" "),
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("cargo printed no UTF-8: {error}"))
}

/// A cargo command in the project's root.
pub(crate) fn command(args: &[&str], envs: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).envs(envs.iter().copied()).current_dir(root());
    command
}

/// The project's root.
pub(crate) fn root() -> PathBuf {
    // As cargo says when it runs this: a target folder may be shared by several clones, and with it this program.
    let own =
        env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    own.parent().map(Path::to_path_buf).unwrap_or_default()
}

/// Every Rust file of the project, with its path from the root.
pub(crate) fn rust_files() -> Result<Vec<(String, String)>, String> {
    let mut files = Vec::new();
    for folder in ["crates", "tests", "xtask", "examples", "fuzz"] {
        let folder = root().join(folder);
        if folder.is_dir() {
            walk(&folder, &mut files).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
    }
    files.sort();
    Ok(files)
}

fn walk(folder: &Path, files: &mut Vec<(String, String)>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            walk(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
            files.push((name, std::fs::read_to_string(&path)?));
        }
    }
    Ok(())
}
