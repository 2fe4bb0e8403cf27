//! The service `orders` (see `src/bin/orders.rs`) as tests use it: on a store of its own, killed and started again.

use std::{
    collections::BTreeMap,
    env,
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use tempfile::TempDir;

use crate::{client::Client, wall};

/// A store of its own for processes of `orders`, gone with it.
pub struct Orders {
    binary: &'static str,
    kind: Kind,
    effect: Effect,
    lease: Duration,
    folder: TempDir,
    schema: String,
}

/// The database.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A file.
    Sqlite,
    /// A schema on a real server.
    Postgres,
}

/// Where an order's effect is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Effect {
    /// In no transaction.
    Outside,
    /// In no transaction, and lost work is done again.
    RunAgain,
    /// In one transaction with the record.
    Shared,
}

impl Orders {
    /// A store. `None` without a database; that is said aloud, and fails where one was promised.
    ///
    /// # Panics
    ///
    /// If `RELENT_TEST_REQUIRE` names the database and it does not answer, or if the binary does not work.
    pub fn prepare(binary: &'static str, kind: Kind, effect: Effect) -> Option<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::SeqCst);
        let schema = format!("relent_orders_{}_{number}", std::process::id());
        let folder = tempfile::tempdir().expect("a folder");
        let orders = Self { binary, kind, effect, lease: LONG, folder, schema };
        let prepared = orders.run("prepare");
        if prepared.status.code() == Some(NO_DATABASE) {
            let why = String::from_utf8_lossy(&prepared.stderr).trim().to_owned();
            let required = env::var("RELENT_TEST_REQUIRE").unwrap_or_default();
            let promised = required.split(',').any(|service| service.trim() == "postgres");
            assert!(!promised, "{why}, and RELENT_TEST_REQUIRE names it");
            println!("SKIPPED: {why}; start one with: cargo xtask services");
            return None;
        }
        assert_ok(&prepared);
        Some(orders)
    }

    /// The same with leases that end soon after their process.
    #[must_use]
    pub fn with_short_leases(mut self) -> Self {
        self.lease = SHORT;
        self
    }

    /// Starts a process, which several may be at once.
    ///
    /// # Panics
    ///
    /// If it does not say where it listens.
    pub fn serve(&self) -> Process {
        let mut command = self.command("serve");
        command.arg(self.lease.as_millis().to_string()).arg(self.effects());
        match self.effect {
            Effect::Outside => {}
            Effect::RunAgain => drop(command.arg("again")),
            Effect::Shared => drop(command.arg("shared")),
        }
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("its output is piped");
        BufReader::new(output).read_line(&mut line).expect("its output can be read");
        let at =
            line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("not listening: {line:?}"));
        Process { child, at: at.parse().expect("an address") }
    }

    /// Lets the orders go on whose keys begin with `gated`.
    ///
    /// # Panics
    ///
    /// If the disk does not let it.
    pub fn open_gate(&self) {
        std::fs::write(self.effects().with_extension("go"), "").expect("a file can be made");
    }

    /// Waits until an order whose key begins with `gated` is being carried out.
    ///
    /// # Panics
    ///
    /// If none comes within a minute.
    pub fn wait_at_gate(&self) {
        let there = self.effects().with_extension("there");
        wall::eventually("an order at the gate", Duration::from_secs(60), || there.exists().then_some(()));
    }

    /// How often each key's order was carried out.
    ///
    /// # Panics
    ///
    /// If that cannot be read.
    pub fn executions(&self) -> BTreeMap<String, usize> {
        let lines = match self.effect {
            Effect::Outside | Effect::RunAgain => std::fs::read_to_string(self.effects()).unwrap_or_default(),
            Effect::Shared => {
                let counted = self.run("count");
                assert_ok(&counted);
                String::from_utf8(counted.stdout).expect("keys are text")
            }
        };
        let mut executions = BTreeMap::new();
        for key in lines.lines() {
            *executions.entry(key.to_owned()).or_default() += 1;
        }
        executions
    }

    fn effects(&self) -> PathBuf {
        self.folder.path().join("effects")
    }

    fn run(&self, command: &str) -> Output {
        self.command(command).output().expect("the binary starts")
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.binary);
        command.arg(name).stdin(Stdio::null());
        match self.kind {
            Kind::Sqlite => command.arg("sqlite").arg(self.folder.path().join("orders.db")),
            Kind::Postgres => command.args(["postgres", &url(), &self.schema]),
        };
        command
    }
}

impl Drop for Orders {
    fn drop(&mut self) {
        // A failure here would hide the test's own.
        drop(self.run("drop"));
    }
}

/// A running process; killed if it is dropped.
pub struct Process {
    child: Child,
    at: SocketAddr,
}

impl Process {
    /// A client of it.
    pub fn client(&self) -> Client {
        Client::new(self.at, "")
    }

    /// Where it listens.
    pub fn at(&self) -> SocketAddr {
        self.at
    }

    /// Stops it as it stands, as a long pause of the machine would.
    ///
    /// # Panics
    ///
    /// If it cannot be stopped.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    /// Lets it go on.
    ///
    /// # Panics
    ///
    /// If it cannot be.
    pub fn go_on(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(sent.expect("there is a command to send signals").success(), "{signal}");
    }

    /// Ends it without a word.
    ///
    /// # Panics
    ///
    /// If it had ended by itself.
    pub fn kill(mut self) {
        assert!(self.child.try_wait().expect("a child can be asked").is_none(), "it ended by itself");
        self.child.kill().expect("a child can be killed");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn assert_ok(output: &Output) {
    assert!(output.status.success(), "orders: {}", String::from_utf8_lossy(&output.stderr));
}

fn url() -> String {
    env::var("RELENT_TEST_POSTGRES").unwrap_or_else(|_| "postgres://postgres@127.0.0.1:5432/postgres".into())
}

/// Longer than any machine stalls.
const LONG: Duration = Duration::from_secs(30);
/// Waited for by tests that kill. On a machine that stalls for longer an outcome is unknown without a kill.
const SHORT: Duration = Duration::from_secs(2);

/// The exit code of `orders prepare`.
const NO_DATABASE: i32 = 3;
