//! `relent serve`.

use std::{env, fs, io::Write as _, thread};

use anyhow::Context as _;
use relent_core::Severity;
use tokio::sync::oneshot;
use tracing::{info, warn};

use crate::{
    args::{ServeArgs, Synchronous},
    exit::{Exit, Misuse},
    server::{Server, logs},
    settings::Settings,
};

/// Serves until a signal asks for the end, then drains. A second signal ends at once.
///
/// # Cancellation safety
///
/// As [`Server::drain`].
pub(crate) async fn run(args: ServeArgs) -> anyhow::Result<Exit> {
    let (print_config, json, until_stdin_closes) = (args.print_config, args.json, args.until_stdin_closes);
    let settings = Settings::new(args)?;
    if print_config {
        let text = match json {
            true => settings.to_json().context("the settings cannot be written as JSON")?,
            false => settings.to_toml().context("the settings cannot be written as TOML")?,
        };
        std::io::stdout().write_all(text.as_bytes())?;
        return Ok(Exit::Done);
    }
    logs::init(settings.log, &settings.log_level)?;
    warn_of(&settings)?;
    raise_open_files();
    let mut signals = Signals::new(until_stdin_closes).context("signals cannot be listened for")?;
    let mut server = Server::start(&settings, token()?).await?;
    // Both arms may be dropped: a signal stays with its stream, a failure with its task.
    tokio::select! {
        name = signals.next() => info!(signal = name, "draining: no new messages; attempts in flight may finish"),
        failure = server.failed() => return Err(failure),
    }
    // The drain is dropped only to end the process.
    tokio::select! {
        report = server.drain() => {
            let report = report?;
            info!(delivered = report.delivered, dead = report.dead, put_back = report.left + report.deferred, "ended");
            Ok(Exit::Done)
        }
        name = signals.next() => {
            warn!(signal = name, "ended at once; attempts in flight are unknown and go on at the next start");
            Ok(Exit::Failed)
        }
    }
}

/// The token of the environment, which unlike a flag nobody sees in a list of processes.
fn token() -> anyhow::Result<Option<String>> {
    match env::var("RELENT_TOKEN") {
        Ok(token) => Ok(Some(token)),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => {
            Err(Misuse::new("RELENT_TOKEN may have only visible ASCII characters"))
        }
    }
}

/// Says what works and is probably not meant.
fn warn_of(settings: &Settings) -> anyhow::Result<()> {
    if settings.synchronous == Synchronous::Off {
        warn!("store.synchronous is off: a power loss may take messages that were accepted");
    }
    for (name, policy) in &settings.policies {
        for doubt in policy.validate().with_context(|| format!("policies.{name}"))? {
            match doubt.severity() {
                Severity::Note => info!("policies.{name}.{doubt}"),
                Severity::Warning => warn!("policies.{name}.{doubt}"),
            }
        }
    }
    for section in &settings.unheeded {
        warn!("{section} is not applied to deliveries yet; that is for a later release");
    }
    Ok(())
}

/// The signals that ask for the end.
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    /// The terminal went away. None if the process is to outlive it (`nohup`).
    hangup: Option<tokio::signal::unix::Signal>,
    /// Standard input is closed. None if nobody asked, and once it was told.
    stdin: Option<oneshot::Receiver<()>>,
}

impl Signals {
    /// From now on they do not end the process by themselves.
    fn new(until_stdin_closes: bool) -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let hangup = match is_hangup_ignored() {
            true => None,
            false => Some(signal(SignalKind::hangup())?),
        };
        let (terminate, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let stdin = until_stdin_closes.then(stdin_closed).transpose()?;
        Ok(Self { terminate, interrupt, hangup, stdin })
    }

    /// The next one's name.
    async fn next(&mut self) -> &'static str {
        let hung_up = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        let orphaned = async {
            match &mut self.stdin {
                // Its thread sends or ends, and either way standard input is of no more use.
                Some(closed) => drop(closed.await),
                None => std::future::pending().await,
            }
        };
        // All arms may be dropped: a signal that came stays with its stream.
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            _ = hung_up => "SIGHUP",
            () = orphaned => {
                self.stdin = None;
                "end of standard input"
            }
        }
    }
}

/// Told when standard input ends. A thread of its own waits there: the runtime's would keep the process from ending.
fn stdin_closed() -> std::io::Result<oneshot::Receiver<()>> {
    let (tell, told) = oneshot::channel();
    thread::Builder::new().name("stdin".into()).spawn(move || {
        // What is written there means nothing; an error is an end too.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        // Nobody listens where the server has ended for another reason.
        let _ = tell.send(());
    })?;
    Ok(told)
}

/// Whether whoever started the process had it ignore SIGHUP, which listening for it would undo. Only Linux tells;
/// elsewhere it is taken not to be.
fn is_hangup_ignored() -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores_hangup(&status))
}

/// `SigIgn` is a hexadecimal mask, in which signal 1, SIGHUP, is the lowest bit.
fn ignores_hangup(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// Every destination has connections of its own, and each is an open file: with the usual soft limit of 1024 a few
/// hundred slow ones would leave none for the store and the API.
fn raise_open_files() {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(allowed) if allowed < ENOUGH_FILES => warn!(
            allowed,
            "few open files are allowed, and each connection is one: raise the hard limit (ulimit -Hn) to \
             {ENOUGH_FILES} or more"
        ),
        Ok(_) => {}
        Err(error) => warn!(%error, "the limit of open files cannot be raised"),
    }
}

/// Below it, deliveries to many destinations at once may run out.
const ENOUGH_FILES: u64 = 4096;
