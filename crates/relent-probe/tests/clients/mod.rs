//! Clients that we did not write: installed from their registries into a cache outside the clone, pinned. And our own,
//! built from the clone.

use std::{
    env,
    ffi::OsString,
    fs,
    fs::File,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use relent_probe::Client;

/// What is not there, and what it takes for `RELENT_TEST_REQUIRE` to insist on it.
pub(crate) struct Missing {
    pub(crate) tool: &'static str,
    pub(crate) why: String,
}

/// A client that is ready to run. Installing takes some seconds where the cache is empty, and nothing after that.
pub(crate) fn install(name: &str) -> Result<Client, Missing> {
    let cache = cache();
    let lock = File::create(cache.join("lock")).unwrap();
    lock.lock().unwrap(); // another test may be installing
    match name {
        "curl" => curl(),
        "urllib3" => python(&cache, "urllib3_retry.py"),
        "tenacity" => python(&cache, "tenacity_retry.py"),
        "got" => got(&cache),
        "reqwest-retry" => reqwest(&cache),
        "relent-call" => relent_call(),
        _ => panic!("nobody knows how to install {name}"),
    }
}

fn curl() -> Result<Client, Missing> {
    says(Command::new("curl").arg("--version"), "curl")?;
    let line = [
        "curl",
        "--silent",
        "--output",
        "/dev/null",
        "--fail",
        "--retry",
        "3",
        "--max-time",
        "1",
        "-X",
        "{method}",
        "-H",
        "Idempotency-Key: {key}",
        "-d",
        "{body}",
        "{url}",
    ];
    Ok(Client::new(line).unwrap())
}

fn python(cache: &Path, script: &str) -> Result<Client, Missing> {
    let folder = cache.join(format!("python-{}", PYTHON.join("-").replace("==", "-")));
    let python = folder.join("bin/python");
    once(&folder, "python3", || {
        says(Command::new("python3").args(["-m", "venv"]).arg(&folder), "python3")?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        says(Command::new(&python).args(pip).args(PYTHON), "python3")
    })?;
    Ok(Client::new([python.into_os_string(), source(script).into_os_string()]).unwrap())
}

fn got(cache: &Path) -> Result<Client, Missing> {
    let folder = cache.join(format!("node-{}", GOT.replace('@', "-")));
    once(&folder, "node", || {
        says(Command::new("node").arg("--version"), "node")?;
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("package.json"), "{\"private\": true}").unwrap();
        let npm = ["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"];
        says(Command::new("npm").args(npm).arg(&folder).arg(GOT).current_dir(&folder), "node")
    })?;
    // A module is looked for from where the script lies.
    let script = folder.join("client.mjs");
    fs::copy(source("got_retry.mjs"), &script).unwrap();
    Ok(Client::new(["node".into(), script.into_os_string()]).unwrap())
}

fn reqwest(cache: &Path) -> Result<Client, Missing> {
    let target = cache.join("reqwest-retry");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--locked", "--manifest-path"]).arg(source("reqwest-retry/Cargo.toml"));
    build.arg("--target-dir").arg(&target);
    for (name, _) in env::vars().filter(|(name, _)| name.starts_with("CARGO") && name != "CARGO_HOME") {
        build.env_remove(name); // this test's own build is none of the client's
    }
    build.env_remove("RUSTFLAGS");
    says(&mut build, "cargo")?;
    Ok(Client::new([target.join("debug/reqwest-retry-client")]).unwrap())
}

/// Built beside this test. Its header is empty where there is no key, as curl's is left out.
fn relent_call() -> Result<Client, Missing> {
    let test = env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap(); // target/debug/deps/this
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--package", "relent-cli", "--bin", "relent", "--target-dir"]);
    says(build.arg(profile.parent().unwrap()).current_dir(env!("CARGO_MANIFEST_DIR")), "cargo")?;
    let relent = profile.join("relent").into_os_string();
    let line =
        ["call", "--silent", "-X", "{method}", "-H", "Idempotency-Key: {key}", "-d", "{body}", "{url}"];
    Ok(Client::new([relent].into_iter().chain(line.map(OsString::from))).unwrap())
}

/// Fills a folder once. A folder that was left half full is emptied first.
fn once(
    folder: &Path,
    tool: &'static str,
    fill: impl FnOnce() -> Result<(), Missing>,
) -> Result<(), Missing> {
    let whole = folder.join("whole");
    if whole.exists() {
        return Ok(());
    }
    if folder.exists() {
        fs::remove_dir_all(folder).unwrap();
    }
    fill()?;
    fs::write(whole, "").map_err(|error| Missing { tool, why: error.to_string() })
}

/// Runs a command that must succeed.
fn says(command: &mut Command, tool: &'static str) -> Result<(), Missing> {
    let missing = |why: String| Missing { tool, why };
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| missing(format!("{}: {error}", command.get_program().display())))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(missing(format!("`{}` failed: {said}", command.get_program().display())))
}

/// Where clients are kept between runs: outside of the clone and of cargo's target folder, which are emptied.
fn cache() -> PathBuf {
    let own = env::var_os("RELENT_TEST_CLIENTS").map(PathBuf::from);
    let xdg = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let base = xdg.or(home).unwrap_or_else(env::temp_dir).join("relent-test-clients");
    let cache = own.unwrap_or(base);
    fs::create_dir_all(&cache).unwrap();
    cache
}

/// A file beside this one.
pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}

const PYTHON: [&str; 3] = ["requests==2.34.2", "urllib3==2.8.0", "tenacity==9.2.1"];
const GOT: &str = "got@14.6.6";
