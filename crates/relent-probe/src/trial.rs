//! One run of a client against one script: what arrived, and how the client ended.

use std::{sync::Arc, time::Duration};

use relent::{Clock as _, Invalid, Timestamp, UnixClock};
use tokio::{io::AsyncReadExt as _, process::ChildStderr, sync::Semaphore};

use crate::{
    client::{Ask, Client, Running},
    dependency::Dependency,
    record::{Arrival, End},
    script::Script,
};

/// What a client is run against.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Its name in reports.
    pub name: &'static str,
    /// What the dependency does, as [`Script::parse`] reads it.
    pub script: String,
    /// What the client is asked to do.
    pub ask: Ask,
    /// How many copies of the client are run, each against a dependency of its own.
    pub copies: u32,
    /// Whether the client is told to stop on the way.
    pub interruption: Interruption,
}

/// Whether a client is told to stop.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Interruption {
    /// It ends by itself, or when our patience does.
    None,
    /// It gets SIGTERM shortly after its first request arrived.
    Terminated,
}

/// What one run showed.
#[derive(Clone, Debug)]
pub struct Seen {
    /// What arrived, in order.
    pub arrivals: Vec<Arrival>,
    /// How the client ended.
    pub exit: Exit,
    /// When it had ended, or was killed.
    pub ended: Timestamp,
    /// When it was told to stop, if it was.
    pub told: Option<Timestamp>,
    /// The end of what it wrote to standard error.
    pub stderr: String,
}

/// How a client ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Exit {
    /// With this code.
    Code(i32),
    /// By a signal that was not ours.
    Signal,
    /// It was still at work when our patience ended, and was killed.
    CutOff,
}

/// What trials share: how many run at a time, and until when.
#[derive(Clone, Debug)]
pub(crate) struct Bench {
    pub(crate) clock: UnixClock,
    /// How long a client may take after its first request.
    pub(crate) patience: Duration,
    /// When everything must be over.
    pub(crate) deadline: Timestamp,
    /// Clients at work.
    pub(crate) seats: Arc<Semaphore>,
    /// Clients that start up. That costs the processor what the waiting ones would be measured by.
    pub(crate) starting: Arc<Semaphore>,
}

/// Runs one copy. `None` where the time is up before it begins.
///
/// # Errors
///
/// Where the script is wrong, the dependency has no port, or the program does not start.
///
/// # Cancellation safety
///
/// Dropped, the client is killed and the dependency closed.
pub(crate) async fn run(client: &Client, trial: &Trial, bench: &Bench) -> Result<Option<Seen>, Invalid> {
    // Neither semaphore is ever closed.
    let _seat = bench.seats.acquire().await;
    let starting = bench.starting.acquire().await;
    let Some(patience) = bench.patience_left() else { return Ok(None) };
    let dependency = Dependency::open(Script::parse(&trial.script)?)
        .map_err(|error| Invalid::new("dependency", format!("it does not listen: {error}")))?;
    let mut running = client
        .start(&dependency.url("/probe"), &trial.ask)
        .map_err(|error| Invalid::new("command", format!("`{}` does not start: {error}", client.line())))?;
    let mut stderr = Tail::new(running.child.stderr.take());
    let clock = dependency.clock();
    // All arms are cancel safe: waiting for a process, for arrivals and for time loses nothing when dropped.
    tokio::select! {
        _ = running.child.wait() => {}
        () = dependency.until(|arrivals| !arrivals.is_empty()) => {}
        () = stderr.drain() => {}
        () = clock.sleep(START_UP) => {}
    }
    drop(starting);
    let mut told = None;
    if trial.interruption == Interruption::Terminated {
        clock.sleep(BEFORE_TERM).await;
        running.terminate();
        told = Some(clock.now());
    }
    let exit = end(&mut running, &mut stderr, clock, patience).await;
    let ended = clock.now();
    if exit == Exit::CutOff {
        drop(running);
    }
    // The kernel closes a dead process's connections at once; the dependency's thread has to see it.
    tokio::select! {
        () = dependency.until(|arrivals| arrivals.iter().all(|arrival| arrival.end != End::Pending)) => {}
        () = clock.sleep(SETTLING) => {}
    }
    Ok(Some(Seen { arrivals: dependency.arrivals(), exit, ended, told, stderr: stderr.text() }))
}

async fn end(running: &mut Running, stderr: &mut Tail, clock: UnixClock, patience: Duration) -> Exit {
    // As above, all arms are cancel safe.
    tokio::select! {
        status = running.child.wait() => match status.ok().and_then(|status| status.code()) {
            Some(code) => Exit::Code(code),
            None => Exit::Signal,
        },
        () = stderr.drain() => unreachable!("draining never ends"),
        () = clock.sleep(patience) => Exit::CutOff,
    }
}

impl Bench {
    /// How long a client that starts now may take.
    fn patience_left(&self) -> Option<Duration> {
        let left = self.deadline.since(self.clock.now());
        (!left.is_zero()).then_some(left.min(self.patience))
    }
}

/// The end of what a client writes to standard error.
struct Tail {
    pipe: Option<ChildStderr>,
    bytes: Vec<u8>,
}

impl Tail {
    const fn new(pipe: Option<ChildStderr>) -> Self {
        Self { pipe, bytes: Vec::new() }
    }

    /// Reads for ever, so that the client never waits for us.
    async fn drain(&mut self) {
        while let Some(pipe) = &mut self.pipe {
            match pipe.read_buf(&mut self.bytes).await {
                Ok(1..) => {
                    let surplus = self.bytes.len().saturating_sub(LONGEST_TAIL);
                    self.bytes.drain(..surplus);
                }
                Ok(0) | Err(_) => self.pipe = None,
            }
        }
        std::future::pending().await
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).trim().to_owned()
    }
}

/// How long a client may take to send its first request: a runtime that compiles its program needs some seconds.
const START_UP: Duration = Duration::from_secs(20);
/// How long after its first request a client is told to stop: it should hang by then, or wait.
const BEFORE_TERM: Duration = Duration::from_millis(200);
/// How long the dependency may take to see that a dead client's connections are closed.
const SETTLING: Duration = Duration::from_millis(200);
const LONGEST_TAIL: usize = 2000;
