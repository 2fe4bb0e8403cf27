//! What the tests of the server share: the real binary on a free port and a temporary folder, HTTP written out by
//! hand, and a receiver that answers when it is told to.

#![allow(dead_code, unused_imports, reason = "each test binary uses its own part of this")]
#![expect(clippy::disallowed_methods, reason = "real processes and sockets live in real time")]

mod http;
mod receiver;
#[path = "../request/mod.rs"]
mod request;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

pub(crate) use http::{Reply, exchange};
pub(crate) use receiver::Receiver;

/// A running server, killed when dropped.
pub(crate) struct Host {
    child: Child,
    /// The data folder.
    pub(crate) data: PathBuf,
    /// `host:port`.
    pub(crate) address: String,
    /// The API token.
    pub(crate) token: String,
    log: PathBuf,
    folder: Option<tempfile::TempDir>,
}

/// `relent serve`, not started yet, with nothing of this process's settings.
pub(crate) fn serve(data: &Path) -> Command {
    serve_on(data, "127.0.0.1:0")
}

/// The same on an address.
pub(crate) fn serve_on(data: &Path, listen: &str) -> Command {
    let mut command = serve_as_it_is(data, listen);
    command.args(["--allow-target", "127.0.0.0/8", "--log", "json"]);
    command
}

/// The same with no flag but for the folder and the address.
pub(crate) fn serve_as_it_is(data: &Path, listen: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_relent"));
    for (name, _) in env::vars().filter(|(name, _)| name.starts_with("RELENT_")) {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).arg("serve").arg("--data").arg(data);
    command.args(["--listen", listen]);
    command
}

/// A server in a process that a shell has prepared so.
pub(crate) fn serve_after(preparation: &str, folder: &Path) -> Command {
    let server = serve(&folder.join("data"));
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{preparation}; exec \"$0\" \"$@\""));
    command.arg(server.get_program()).args(server.get_args()).stdin(Stdio::null());
    for (name, _) in server.get_envs() {
        command.env_remove(name);
    }
    command
}

impl Host {
    /// A server on a folder of its own.
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    /// The same with more flags.
    pub(crate) fn with(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = serve(&folder.path().join("data"));
        command.args(flags);
        let mut host = Self::launch(command, folder.path());
        host.folder = Some(folder);
        host
    }

    /// The same with a settings file.
    pub(crate) fn configured(settings: &str, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("relent.toml");
        fs::write(&file, settings).unwrap();
        let mut command = serve(&folder.path().join("data"));
        command.arg("--config").arg(file).args(flags);
        let mut host = Self::launch(command, folder.path());
        host.folder = Some(folder);
        host
    }

    /// A server on `folder`, which stays when the server is gone.
    pub(crate) fn launch(mut command: Command, folder: &Path) -> Self {
        let (data, log) = (folder.join("data"), folder.join("log"));
        // What an earlier server left must not be taken for this one's.
        let _ = fs::remove_file(data.join("address"));
        let child = command.stderr(fs::File::create(&log).unwrap()).stdout(Stdio::null()).spawn().unwrap();
        let mut host = Self { child, data, address: String::new(), token: String::new(), log, folder: None };
        host.address = eventually("the server listens", || {
            if let Some(status) = host.child.try_wait().unwrap() {
                panic!("the server ended ({status}): {}", host.log());
            }
            let text = fs::read_to_string(host.data.join("address")).ok()?;
            Some(text.trim().strip_prefix("http://")?.to_owned())
        });
        host.token = fs::read_to_string(host.data.join("token")).unwrap_or_default().trim().to_owned();
        host
    }

    /// Asks with the token.
    #[track_caller]
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> Reply {
        let bearer = format!("Bearer {}", self.token);
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        exchange(&self.address, method, path, &headers, body.as_bytes()).unwrap()
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Value {
        self.ask("GET", path, "").expect(200)
    }

    /// Submits a message, which must be accepted, and returns its id.
    #[track_caller]
    pub(crate) fn submit(&self, message: &Value) -> String {
        let reply = self.ask("POST", "/v1/messages", &message.to_string());
        reply.expect(201)["id"].as_str().unwrap().to_owned()
    }

    /// Submits a message that is not due for a day.
    pub(crate) fn submit_for_later(&self) -> String {
        self.submit(&json!({"url": "http://127.0.0.1:9/", "not_before": "1d"}))
    }

    /// Waits until a message is in that state.
    #[track_caller]
    pub(crate) fn wait_for(&self, id: &str, state: &str) -> Value {
        eventually(&format!("{id} is {state}"), || {
            let message = self.get(&format!("/v1/messages/{id}"));
            (message["state"] == state).then_some(message)
        })
    }

    /// How many messages are stored.
    pub(crate) fn accepted(&self) -> u64 {
        self.get("/v1/status")["accepted"].as_u64().unwrap()
    }

    /// Sends a signal: `TERM`, `INT`, `KILL`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status();
        assert!(sent.unwrap().success());
    }

    /// Lets go of the pipe that is its standard input.
    pub(crate) fn close_stdin(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Waits until the process has ended.
    #[track_caller]
    pub(crate) fn ended(&mut self) -> ExitStatus {
        eventually("the server ends", || self.child.try_wait().unwrap())
    }

    /// Ends the server in order.
    pub(crate) fn stop(&mut self) {
        self.signal("TERM");
        let status = self.ended();
        assert!(status.success(), "{status}: {}", self.log());
    }

    /// Everything it has logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// The log, a JSON object a line.
    pub(crate) fn log_lines(&self) -> Vec<Value> {
        self.log().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Polls until there is an answer.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let give_up = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(answer) = poll() {
            return answer;
        }
        assert!(Instant::now() < give_up, "after 60 s still not: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
