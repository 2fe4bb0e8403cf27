//! Running cargo.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// Runs cargo in the project's root; an exit code other than 0 is an error.
pub(crate) fn cargo(args: &[&str], envs: &[(&str, &str)]) -> Result<(), String> {
    eprintln!("$ cargo {}", args.join(" "));
    let status = command(args, envs).status().map_err(|error| format!("cargo does not start: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`cargo {}` failed ({status})", args.join(" "))) }
}

/// Runs cargo and returns what it prints.
pub(crate) fn cargo_output(args: &[&str]) -> Result<String, String> {
    let output = command(args, &[]).output().map_err(|error| format!("cargo does not start: {error}"))?;
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
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// Where cargo puts what it builds.
pub(crate) fn target_folder() -> Result<PathBuf, String> {
    let metadata = cargo_output(&["metadata", "--format-version", "1", "--no-deps"])?;
    let metadata: serde_json::Value =
        serde_json::from_str(&metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    metadata["target_directory"]
        .as_str()
        .map(PathBuf::from)
        .ok_or("cargo metadata names no target folder".into())
}

/// Every Rust file of the project, with its path from the root.
pub(crate) fn rust_files() -> Result<Vec<(String, String)>, String> {
    let mut files = Vec::new();
    for folder in ["crates", "tests", "xtask", "examples"] {
        let folder = root().join(folder);
        if folder.is_dir() {
            walk(&folder, &mut files).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
    }
    files.sort();
    Ok(files)
}

fn walk(folder: &Path, files: &mut Vec<(String, String)>) -> std::io::Result<()> {
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
