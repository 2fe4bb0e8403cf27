//! The services that tests need: found, started or installed, and said aloud.

mod clients;
mod compiler;
mod postgres;

use std::{
    env,
    process::{Command, Stdio},
};

/// What may be done to have a service.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Effort {
    /// Look for it, and start what is installed.
    Start,
    /// Install it if it is not there.
    Install,
}

/// Has every service, and prints where each is, in the form in which a shell takes it. What is no service but was
/// promised is installed with them.
pub(crate) fn run() -> Result<(), String> {
    cpp()?;
    let (name, url) = postgres::have(Effort::Install)?;
    println!("export {name}={url}");
    Ok(())
}

/// What the tests must be told. A service that `RELENT_TEST_REQUIRE` names is installed if need be, and without it
/// there are no tests; another is only started, and without it its tests say that they are skipped.
pub(crate) fn for_tests() -> Result<Vec<(String, String)>, String> {
    let effort = if is_required("postgres") { Effort::Install } else { Effort::Start };
    match postgres::have(effort) {
        Ok(found) => Ok(vec![found]),
        Err(why) if effort == Effort::Install => Err(why),
        Err(why) => {
            say(&format!("{why}. Its tests are skipped; `cargo xtask services` installs it."));
            Ok(Vec::new())
        }
    }
}

/// Has what the clients run on that we did not write.
pub(crate) fn for_clients() -> Result<(), String> {
    clients::have()
}

/// Whether there is a C++ compiler. Where `RELENT_TEST_REQUIRE` names `c++`, one is installed if need be.
pub(crate) fn cpp() -> Result<bool, String> {
    let effort = if is_required("c++") { Effort::Install } else { Effort::Start };
    compiler::have(effort)
}

fn is_required(service: &str) -> bool {
    let required = env::var("RELENT_TEST_REQUIRE").unwrap_or_default();
    required.split(',').any(|named| named.trim() == service)
}

fn say(what: &str) {
    eprintln!("services: {what}");
}

/// Installs Debian's packages, and says so.
fn install(packages: &[&str]) -> Result<(), String> {
    let names = packages.join(", ");
    if !is_installed("apt-get") {
        return Err(format!(
            "{names} must be there, and there is no apt-get to install them: install them yourself"
        ));
    }
    say(&format!("{names}: installed from Debian's packages"));
    as_root(&["apt-get", "update", "--quiet"])?;
    as_root(&[&["apt-get", "install", "--yes", "--quiet", "--no-install-recommends"], packages].concat())
}

/// Runs a command as root, and says so; an exit code other than 0 is an error.
fn as_root(command: &[&str]) -> Result<(), String> {
    let words: Vec<&str> = if is_root()? { command.to_vec() } else { [&["sudo", "-n"], command].concat() };
    let shown = words.join(" ");
    say(&format!("$ {shown}"));
    let status = Command::new(words[0])
        .args(&words[1..])
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .status()
        .map_err(|error| format!("`{shown}` does not start: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{shown}` failed ({status})")) }
}

fn is_root() -> Result<bool, String> {
    Ok(output(&["id", "-u"])?.trim() == "0")
}

/// What a command prints.
fn output(command: &[&str]) -> Result<String, String> {
    let shown = command.join(" ");
    let output = Command::new(command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("`{shown}` does not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{shown}` failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("`{shown}` printed no UTF-8: {error}"))
}

/// Whether there is such a command.
fn is_installed(command: &str) -> bool {
    let found =
        Command::new("sh").args(["-c", &format!("command -v {command}")]).stdout(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}
