//! The demo's server: this very binary as a child, `relent serve` with settings and a folder of its own.

use std::{
    env, fs,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, bail};
use http::Method;
use relent::{Clock as _, TokioClock};

use crate::client::Client;

/// A server that is ended when this is dropped.
pub(super) struct Server {
    child: Child,
    /// The store, the token and the address.
    pub(super) data: PathBuf,
    log: PathBuf,
}

impl Server {
    /// Starts it in `folder` on a free port; [`Server::ready`] waits for it.
    pub(super) fn start(folder: &Path) -> anyhow::Result<Self> {
        let (data, config, log) =
            (folder.join("data"), folder.join("relent.toml"), folder.join("server.log"));
        fs::write(&config, SETTINGS).with_context(|| format!("{} cannot be written", config.display()))?;
        let out = fs::File::create(&log).with_context(|| format!("{} cannot be written", log.display()))?;
        let mut command = Command::new(env::current_exe().context("the path of this program is not known")?);
        command.arg("serve").arg("--config").arg(&config).arg("--data").arg(&data);
        command.args(["--listen", "127.0.0.1:0", "--allow-target", "127.0.0.0/8", "--log", "json"]);
        // Its standard input is a pipe that we hold: a demo that is killed leaves no server behind.
        command.arg("--until-stdin-closes");
        // What the shell says about another server must not reach this one.
        for (name, _) in env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"RELENT_")) {
            command.env_remove(name);
        }
        // A Ctrl-C goes to a terminal's whole process group; the demo ends its server itself, in its own order.
        command.process_group(0).stdin(Stdio::piped()).stdout(out.try_clone()?).stderr(out);
        let child = command.spawn().context("the server cannot be started")?;
        Ok(Self { child, data, log })
    }

    /// Waits until it answers.
    ///
    /// # Errors
    ///
    /// It ended, or did not answer within [`PATIENCE`]; the end of its log is in the error.
    pub(super) async fn ready(&mut self) -> anyhow::Result<Client> {
        let give_up = TokioClock.now().after(PATIENCE);
        loop {
            if let Some(status) = self.child.try_wait().context("the server's state is not known")? {
                bail!("the server ended at once ({status}); its log ends:\n{}", self.log_tail());
            }
            if let Ok(client) = Client::of_folder(&self.data)
                && client.ask(Method::GET, "/v1/status").await.is_ok()
            {
                return Ok(client);
            }
            if TokioClock.now() > give_up {
                bail!("the server did not answer within {PATIENCE:?}; its log ends:\n{}", self.log_tail());
            }
            TokioClock.sleep(Duration::from_millis(20)).await;
        }
    }

    fn log_tail(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_else(|error| error.to_string());
        let lines: Vec<&str> = text.lines().collect();
        crate::output::plain_block(&lines[lines.len().saturating_sub(5)..].join("\n"), 2)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Killed, not drained: the demo is over, and a relent that cannot bear this would not be worth showing.
        // Both fail only if it has ended by itself, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A policy in a hurry, so that an hour of trouble fits into seconds. [`super::temper::SLOW`] is longer than its
/// attempts and the receiver's "closed" longer than the waits that it obeys.
const SETTINGS: &str = r#"[policies.demo]
attempt_timeout = "3s"
business_deadline = "1m"

[policies.demo.retry]
max_attempts = 6
backoff = { kind = "exponential", base = "500ms", factor = 2, max = "5s" }
server_wait = { mode = "above", limit = "10s", over = "stop" }
"#;

const PATIENCE: Duration = Duration::from_secs(20);
