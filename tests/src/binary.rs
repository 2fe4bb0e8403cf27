//! Finds the `relent` binary that belongs to the running test, and builds it first, so that no test ever judges
//! yesterday's server. `cargo xtask test` has just built it with all the rest and says so in `RELENT_TEST_BINARY`:
//! a second build in the midst of the tests, with other features, would take the file from under the others.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

/// The binary of the profile that this test was built in; built once in each process, which costs a glance at
/// the files where it is fresh.
///
/// # Panics
///
/// If it does not build.
pub fn relent() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(build)
}

/// Runs a command of the binary to its end.
///
/// # Panics
///
/// If it cannot be started.
pub fn run(args: &[&str]) -> Output {
    let ran = Command::new(relent()).args(args).env_remove("RELENT_TOKEN").output();
    ran.unwrap_or_else(|error| panic!("relent {}: {error}", args.join(" ")))
}

/// The folder of the profile: `…/target/debug`. Test executables are in its `deps`.
pub(crate) fn profile_folder() -> PathBuf {
    let test = env::current_exe().expect("a process knows its own executable");
    let folder = test.parent().and_then(Path::parent).expect("a test executable is two folders deep");
    folder.to_path_buf()
}

fn build() -> PathBuf {
    if let Some(named) = env::var_os("RELENT_TEST_BINARY").map(PathBuf::from) {
        assert!(named.exists(), "RELENT_TEST_BINARY names {}, which is not there", named.display());
        return named;
    }
    let folder = profile_folder();
    let target = folder.parent().expect("a profile's folder is in the target folder");
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") => "dev",
        Some(name) => name,
        None => panic!("{} is no profile's folder", folder.display()),
    };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--package", "relent-cli", "--bin", "relent", "--profile", profile]);
    command.arg("--target-dir").arg(target).current_dir(env!("CARGO_MANIFEST_DIR"));
    let built = command.output().expect("cargo is there, since it built this test");
    assert!(built.status.success(), "relent does not build:\n{}", String::from_utf8_lossy(&built.stderr));
    let binary = folder.join("relent");
    assert!(binary.exists(), "{} is not where it was built to", binary.display());
    binary
}
