//! What the tests of the commands share: the real binary, a real server, a receiver on a real socket.
//!
//! Ports are the system's choice, folders are temporary, and waiting is polling with a deadline.

#![allow(dead_code, unused_imports, reason = "each test binary uses its own part of this")]
#![expect(clippy::disallowed_methods, reason = "real processes live in real time")]

mod receiver;
#[path = "../request/mod.rs"]
pub(crate) mod request;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

pub(crate) use receiver::Receiver;

/// The binary under test, with nothing of this process's settings.
pub(crate) fn relent() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_relent"));
    for (name, _) in env::vars().filter(|(name, _)| name.starts_with("RELENT_")) {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// Standard output of a command that must have ended with 0.
    #[track_caller]
    pub(crate) fn done(self) -> String {
        assert_eq!(self.code, Some(0), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self.stdout
    }

    /// Standard error of a command that must have ended with this code.
    #[track_caller]
    pub(crate) fn failed(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self.stderr
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Runs a command to its end.
pub(crate) trait Run {
    fn run(&mut self) -> Ended;
}

impl Run for Command {
    fn run(&mut self) -> Ended {
        self.output().unwrap().into()
    }
}

/// A running server, killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) data: PathBuf,
    /// `http://host:port`.
    pub(crate) url: String,
    _folder: tempfile::TempDir,
}

impl Server {
    /// Starts one whose `[policies.quick]` gives up within a second and whose `[policies.slow]` waits for an hour.
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (data, config) = (folder.path().join("data"), folder.path().join("relent.toml"));
        fs::write(&config, POLICIES).unwrap();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let mut command = relent();
        command.arg("serve").arg("--config").arg(&config).arg("--data").arg(&data);
        command.args(["--listen", "127.0.0.1:0", "--allow-target", "127.0.0.0/8"]);
        let child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        let mut server = Self { child, data, url: String::new(), _folder: folder };
        server.url = server.wait_until_it_answers();
        server
    }

    fn wait_until_it_answers(&mut self) -> String {
        eventually("the server answers", || {
            if let Some(status) = self.child.try_wait().unwrap() {
                let log = fs::read_to_string(self._folder.path().join("log")).unwrap();
                panic!("the server ended ({status}): {log}");
            }
            let address = fs::read_to_string(self.data.join("address")).ok()?;
            (self.command(&["status"]).code == Some(0)).then(|| address.trim().to_owned())
        })
    }

    /// Runs a command against this server, found by its data folder.
    pub(crate) fn command(&self, args: &[&str]) -> Ended {
        relent().args(args).arg("--data").arg(&self.data).run()
    }

    /// The same with `--json`, parsed; it must end with 0.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let ended = relent().args(args).arg("--json").arg("--data").arg(&self.data).run();
        serde_json::from_str(&ended.done()).unwrap()
    }

    /// Sends a message and returns its id.
    #[track_caller]
    pub(crate) fn send(&self, args: &[&str]) -> String {
        let mut all = vec!["send"];
        all.extend(args);
        self.command(&all).done().trim().to_owned()
    }

    /// Waits until the message is in that state, and returns it.
    pub(crate) fn wait_for(&self, id: &str, state: &str) -> Value {
        eventually(&format!("{id} is {state}"), || {
            let message = self.json(&["show", id]);
            (message["state"] == state).then_some(message)
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Polls until there is an answer.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let give_up = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(answer) = poll() {
            return answer;
        }
        assert!(Instant::now() < give_up, "after 30 s still not: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The lines of a file of JSON lines.
pub(crate) fn json_lines(file: &Path) -> Vec<Value> {
    fs::read_to_string(file).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const POLICIES: &str = r#"
[policies.quick]
attempt_timeout = "1s"
business_deadline = "1m"
[policies.quick.retry]
max_attempts = 3
backoff = { kind = "constant", wait = "50ms" }

[policies.slow]
business_deadline = "2d"
[policies.slow.retry]
backoff = { kind = "constant", wait = "1h" }
jitter = "none"
"#;
