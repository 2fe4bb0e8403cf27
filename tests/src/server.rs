//! A `relent serve` of one's own: a real process on a temporary data folder and a free port, that can be
//! killed, started again and asked to end. It ends with its fixture, by its own process id.

use std::{
    ffi::OsString,
    fs::{self, File},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output},
    thread,
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{binary, client::Client, wall};

/// A server and its folder. If a test fails, the folder stays and its name is printed.
pub struct Server {
    folder: Option<TempDir>,
    environment: Vec<(OsString, OsString)>,
    child: Option<Child>,
    at: SocketAddr,
    token: String,
    starts: u32,
}

impl Server {
    /// Starts a server with this configuration file.
    ///
    /// # Panics
    ///
    /// If it is not ready in time; with its log.
    #[track_caller]
    pub fn start(config: &str) -> Self {
        let mut server = Self::prepare(config);
        server.restart();
        server
    }

    /// A server that is not started yet.
    ///
    /// # Panics
    ///
    /// If there is no room for its folder.
    pub fn prepare(config: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("relent-test-").tempdir().expect("a temporary folder");
        fs::write(folder.path().join("relent.toml"), config).expect("the folder can be written");
        fs::create_dir(folder.path().join("data")).expect("the folder can be written");
        Self {
            folder: Some(folder),
            environment: Vec::new(),
            child: None,
            at: SocketAddr::from(([127, 0, 0, 1], 0)),
            token: String::new(),
            starts: 0,
        }
    }

    /// The same with a variable in the environment of every start.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Starts the server (again) on the same data folder and waits until it is ready.
    ///
    /// # Panics
    ///
    /// If it runs already, or is not ready in time; with its log.
    #[track_caller]
    pub fn restart(&mut self) {
        if let Err(why) = self.try_restart() {
            panic!("relent serve: {why}; its log:\n{}", self.log());
        }
    }

    /// Starts the server (again).
    ///
    /// # Errors
    ///
    /// A sentence: it ended at once, or is not ready in time.
    pub fn try_restart(&mut self) -> Result<(), String> {
        assert!(self.child.is_none(), "the server runs already");
        let address = self.data().join("address");
        // The address of the last start would be believed.
        if address.exists() {
            fs::remove_file(&address).map_err(|error| format!("{}: {error}", address.display()))?;
        }
        self.starts += 1;
        let log = File::create(self.log_file(self.starts)).map_err(|error| format!("no log: {error}"))?;
        let copy = log.try_clone().map_err(|error| format!("no log: {error}"))?;
        let mut command = Command::new(binary::relent());
        command.arg("serve").arg("--config").arg(self.path().join("relent.toml"));
        command.arg("--data").arg(self.data()).args(["--listen", "127.0.0.1:0"]);
        command.env_remove("RELENT_TOKEN").envs(self.environment.iter().cloned()).stdout(log).stderr(copy);
        self.child = Some(command.spawn().map_err(|error| format!("does not start: {error}"))?);
        match wall::poll(READY_WITHIN, || self.is_ready()) {
            Some(Ok(())) => Ok(()),
            Some(Err(status)) => {
                self.child = None;
                Err(format!("ended before it was ready: {status}"))
            }
            None => {
                self.kill();
                Err(format!("not ready within {READY_WITHIN:?}"))
            }
        }
    }

    /// Kills the server with SIGKILL, as a power cut or the kernel would, and waits until it is gone.
    ///
    /// # Panics
    ///
    /// If it does not run.
    #[track_caller]
    pub fn kill(&mut self) {
        let mut child = self.child.take().expect("the server runs");
        child.kill().expect("one's own child can be killed");
        child.wait().expect("one's own child can be waited for");
    }

    /// Asks the server to end with SIGTERM and waits for it.
    ///
    /// # Panics
    ///
    /// If it does not run, or has not ended within `limit`.
    #[track_caller]
    pub fn terminate(&mut self, limit: Duration) -> ExitStatus {
        self.signal_term();
        let child = self.child.as_mut().expect("the server runs");
        let ended = wall::poll(limit, || child.try_wait().expect("one's own child can be waited for"));
        let Some(status) = ended else {
            panic!("SIGTERM: still there after {limit:?}; its log:\n{}", self.log())
        };
        self.child = None;
        status
    }

    /// Asks the server to end with SIGTERM and does not wait.
    ///
    /// # Panics
    ///
    /// If it does not run.
    #[track_caller]
    pub fn signal_term(&self) {
        let id = self.child.as_ref().expect("the server runs").id().to_string();
        // The shell's own `kill`: the standard library sends SIGKILL only.
        let sent = Command::new("sh").args(["-c", "kill -TERM \"$1\"", "sh", &id]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill -TERM {id}");
    }

    /// A new connection to it.
    pub fn client(&self) -> Client {
        Client::new(self.at, &self.token)
    }

    /// Where it listens, and the token it asks for.
    pub fn endpoint(&self) -> (SocketAddr, String) {
        (self.at, self.token.clone())
    }

    /// The data folder.
    pub fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    /// Runs `relent fsck --json` on a copy of the data folder, so that the check cannot mend or move anything.
    ///
    /// # Panics
    ///
    /// If the folder cannot be copied.
    pub fn fsck(&self) -> Output {
        let copy = tempfile::tempdir().expect("a temporary folder");
        for entry in fs::read_dir(self.data()).expect("the data folder") {
            let entry = entry.expect("the data folder");
            fs::copy(entry.path(), copy.path().join(entry.file_name())).expect("a file can be copied");
        }
        binary::run(&["fsck", "--json", "--data", &copy.path().to_string_lossy()])
    }

    /// Checks that `fsck` finds nothing, and returns what it counted.
    ///
    /// # Panics
    ///
    /// If it finds something; with what it says.
    #[track_caller]
    pub fn assert_sound(&self) -> Value {
        let checked = self.fsck();
        let said = [checked.stdout.as_slice(), checked.stderr.as_slice()].concat();
        assert!(checked.status.success(), "fsck: {}\n{}", checked.status, String::from_utf8_lossy(&said));
        serde_json::from_slice(&checked.stdout).expect("fsck --json prints JSON")
    }

    /// Waits until nothing waits, is held or is in flight any more, and returns the last status.
    ///
    /// # Panics
    ///
    /// After `limit`; with the last status.
    #[track_caller]
    pub fn wait_until_idle(&self, limit: Duration) -> Value {
        let mut client = self.client();
        let mut last = Value::Null;
        let idle = wall::poll(limit, || {
            last = client.json("/v1/status");
            let open: u64 = ["waiting", "in_flight", "held"].iter().map(|state| count(&last, state)).sum();
            (open == 0).then_some(())
        });
        assert!(idle.is_some(), "work is left after {limit:?}: {last:#}");
        last
    }

    /// What the server wrote since its last start.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file(self.starts)).unwrap_or_else(|error| format!("(no log: {error})"))
    }

    fn is_ready(&mut self) -> Option<Result<(), ExitStatus>> {
        if let Some(Ok(Some(status))) = self.child.as_mut().map(Child::try_wait) {
            return Some(Err(status));
        }
        let text = fs::read_to_string(self.data().join("address")).ok()?;
        let text = text.trim();
        self.at = text.strip_prefix("http://").unwrap_or(text).parse().ok()?;
        self.token = fs::read_to_string(self.data().join("token")).ok()?.trim().to_string();
        let reply = self.client().send("GET", "/readyz", None).ok()?;
        (reply.status == 200).then_some(Ok(()))
    }

    fn path(&self) -> &Path {
        self.folder.as_ref().expect("the folder lives as long as the fixture").path()
    }

    fn log_file(&self, start: u32) -> PathBuf {
        self.path().join(format!("serve-{start}.log"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.kill();
        }
        if thread::panicking()
            && let Some(folder) = self.folder.take()
        {
            eprintln!("the server's folder is kept: {}", folder.keep().display());
        }
    }
}

/// A count in a status.
///
/// # Panics
///
/// If it is not there.
#[track_caller]
pub fn count(status: &Value, name: &str) -> u64 {
    status[name].as_u64().unwrap_or_else(|| panic!("status without {name}: {status:#}"))
}

/// Recovery included; a debug build on a busy machine takes a second or two.
const READY_WITHIN: Duration = Duration::from_secs(30);
