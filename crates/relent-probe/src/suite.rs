//! Everything a client is put through, in an order in which later trials can build on what earlier ones showed.

pub(crate) mod plan;

use std::{collections::BTreeMap, num::NonZero, sync::Arc, thread, time::Duration};

use relent::{Clock as _, Invalid, Timestamp, UnixClock};
use tokio::{sync::Semaphore, task::JoinSet};

use crate::{
    client::Client,
    fit::{Fit, fit_within},
    record::{Arrival, End},
    trial::{self, Bench, Seen, Trial},
};

use plan::Abilities;

/// How a suite is run.
#[derive(Clone, Debug)]
pub struct Suite {
    /// How many copies of the client fail together.
    pub copies: u32,
    /// How many calls one process makes in an outage, where it can make several.
    pub calls: u32,
    /// How long a client is watched after its first request.
    pub patience: Duration,
    /// How long everything may take.
    pub time: Duration,
    /// How many clients are at work at a time.
    pub parallel: u32,
}

impl Default for Suite {
    /// 50 copies, 60 calls, 20 s for each client, 5 minutes for all, 16 at a time.
    fn default() -> Self {
        Self {
            copies: 50,
            calls: 60,
            patience: Duration::from_secs(20),
            time: Duration::from_secs(300),
            parallel: 16,
        }
    }
}

/// What all trials showed.
#[derive(Debug)]
pub struct Observations {
    /// By the trial's name: each copy that was run.
    pub(crate) seen: BTreeMap<&'static str, Vec<Seen>>,
    /// The trials as they were run.
    pub(crate) trials: BTreeMap<&'static str, Trial>,
    pub(crate) abilities: Abilities,
    /// What the waits between the attempts of calls that all fail say.
    pub(crate) fit: Option<Fit>,
    /// How late the machine's own timers were meanwhile: three in four were less.
    pub(crate) lateness: Duration,
    pub(crate) took: Duration,
    pub(crate) suite: Suite,
    pub(crate) line: String,
}

impl Suite {
    /// Runs a client through all trials.
    ///
    /// # Errors
    ///
    /// Where it does not start, or never asks for the URL it is given.
    ///
    /// # Cancellation safety
    ///
    /// Dropped, all its clients are killed.
    pub async fn run(&self, client: &Client) -> Result<Observations, Invalid> {
        let clock = UnixClock::new();
        let began = clock.now();
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let bench = Bench {
            clock,
            patience: self.patience,
            deadline: began.after(self.time),
            seats: Arc::new(Semaphore::new(usize::try_from(self.parallel.max(1)).unwrap_or(1))),
            starting: Arc::new(Semaphore::new(cores.div_ceil(2))),
        };
        let mut observed = Observations {
            seen: BTreeMap::new(),
            trials: BTreeMap::new(),
            abilities: Abilities::default(),
            fit: None,
            lateness: Duration::ZERO,
            took: Duration::ZERO,
            suite: self.clone(),
            line: client.line(),
        };
        observed.add(client, plan::acquaintance(), &bench).await?;
        observed.abilities = Abilities::of(&observed)?;
        observed.add(client, plan::singles(&observed), &bench).await?;
        let lateness = Lateness::watch(clock);
        observed.add(client, plan::outage(&observed), &bench).await?;
        observed.lateness = lateness.ended().await;
        observed.fit = Some(fit_within(&observed.waits(plan::OUTAGE), observed.lateness));
        let lateness = Lateness::watch(clock);
        observed.add(client, plan::hints(&observed), &bench).await?;
        observed.lateness = observed.lateness.max(lateness.ended().await);
        observed.took = clock.now().since(began);
        Ok(observed)
    }
}

impl Observations {
    /// Runs trials side by side.
    async fn add(&mut self, client: &Client, trials: Vec<Trial>, bench: &Bench) -> Result<(), Invalid> {
        let mut runs = JoinSet::new();
        for trial in trials {
            for _ in 0..trial.copies {
                let (client, trial, bench) = (client.clone(), trial.clone(), bench.clone());
                runs.spawn(async move {
                    trial::run(&client, &trial, &bench).await.map(|seen| (trial.name, seen))
                });
            }
            self.seen.insert(trial.name, Vec::new());
            self.trials.insert(trial.name, trial);
        }
        while let Some(run) = runs.join_next().await {
            let run = run.map_err(|error| Invalid::new("trial", format!("a trial panicked: {error}")))?;
            if let (name, Some(seen)) = run? {
                self.seen.entry(name).or_default().push(seen);
            }
        }
        Ok(())
    }

    /// The copies of a trial that were run; none where it was not, or the time was up.
    pub(crate) fn copies(&self, name: &str) -> &[Seen] {
        self.seen.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// The only copy of a trial, where the client asked for its URL.
    pub(crate) fn one(&self, name: &str) -> Option<&Seen> {
        self.copies(name).first().filter(|seen| !seen.arrivals.is_empty())
    }

    /// How many times a client tried in a trial of one copy.
    pub(crate) fn attempts(&self, name: &str) -> Option<usize> {
        self.one(name).map(|seen| seen.arrivals.len())
    }

    /// The waits between attempts, for each copy of a trial: from the end of an answer to the first byte of the next
    /// request.
    pub(crate) fn waits(&self, name: &str) -> Vec<Vec<Duration>> {
        self.copies(name).iter().map(|seen| waits(&seen.arrivals)).collect()
    }
}

pub(crate) fn waits(arrivals: &[Arrival]) -> Vec<Duration> {
    let pair = |pair: &[Arrival]| match pair[0].end {
        End::Pending => None, // the next came while it was still held
        end => end.at().map(|at| pair[1].at.since(at)),
    };
    arrivals.windows(2).map_while(pair).collect()
}

/// How late timers are on this machine while clients run: what the measurement cannot see.
struct Lateness {
    stop: tokio::sync::oneshot::Sender<()>,
    task: tokio::task::JoinHandle<Vec<Duration>>,
}

impl Lateness {
    fn watch(clock: UnixClock) -> Self {
        let (stop, mut stopped) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(async move {
            let mut late = Vec::new();
            loop {
                let due: Timestamp = clock.now().after(TICK);
                // Both arms are cancel safe: a receive and a sleep do nothing but wait.
                tokio::select! {
                    _ = &mut stopped => return late,
                    () = clock.sleep_until(due) => late.push(clock.now().since(due)),
                }
            }
        });
        Self { stop, task }
    }

    /// The lateness that three in four timers kept: as robust as the quartiles that spread is measured by.
    async fn ended(self) -> Duration {
        let _ = self.stop.send(()); // the task waits for it; where it is gone the next line says so
        let mut late = self.task.await.unwrap_or_default();
        late.sort();
        late.get(late.len() * 3 / 4).copied().unwrap_or_default()
    }
}

const TICK: Duration = Duration::from_millis(10);
