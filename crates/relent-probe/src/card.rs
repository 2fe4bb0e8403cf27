//! The report card: what was seen, and which checks it passed.

mod facts;
mod html;
mod text;

use std::time::Duration;

use crate::{
    check::{Verdict, checks},
    fit::Fit,
    suite::{Observations, waits},
    trial::Exit,
};

/// A report card. The grade is the count of named checks passed.
#[derive(Clone, Debug)]
pub struct Card {
    /// The command line that was probed.
    pub command: String,
    /// How many copies failed together.
    pub copies: u32,
    /// How long each was watched.
    pub patience: Duration,
    /// How long all took.
    pub took: Duration,
    /// How late the machine's timers were while waits were measured: three in four were less.
    pub lateness: Duration,
    /// What was seen, each under its name.
    pub facts: Vec<Fact>,
    /// The fitted schedule.
    pub fit: Option<Fit>,
    /// Every check with its verdict.
    pub checks: Vec<Judged>,
    /// Every trial with what came of it.
    pub trials: Vec<Told>,
}

/// Something that was seen.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fact {
    /// Its name.
    pub name: &'static str,
    /// What was seen.
    pub value: String,
}

/// A check with its verdict.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The check's name.
    pub name: &'static str,
    /// What it demands.
    pub demands: &'static str,
    /// Where the demand comes from.
    pub source: &'static str,
    /// What it found.
    pub verdict: Verdict,
}

/// A trial in numbers.
#[derive(Clone, Debug)]
pub struct Told {
    /// Its name.
    pub name: &'static str,
    /// What the dependency did.
    pub script: String,
    /// What was asked for.
    pub method: &'static str,
    /// Each copy that was run.
    pub runs: Vec<Run>,
}

/// One run in numbers.
#[derive(Clone, Debug)]
pub struct Run {
    /// How many requests arrived.
    pub attempts: usize,
    /// The waits between them.
    pub waits: Vec<Duration>,
    /// How the client ended.
    pub exit: Exit,
}

/// How many checks were passed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Grade {
    /// Passed.
    pub passed: usize,
    /// Failed.
    pub failed: usize,
    /// Not decided.
    pub undecided: usize,
}

impl Card {
    /// The card of what was observed.
    pub fn new(observed: &Observations) -> Self {
        let judged = checks().map(|check| Judged {
            name: check.name,
            demands: check.demands,
            source: check.source,
            verdict: check.judge(observed),
        });
        Self {
            command: observed.line.clone(),
            copies: observed.suite.copies,
            patience: observed.suite.patience,
            took: observed.took,
            lateness: observed.lateness,
            facts: facts::of(observed),
            fit: observed.fit.clone(),
            checks: judged.collect(),
            trials: observed.trials.values().map(|trial| Told::new(observed, trial)).collect(),
        }
    }

    /// How many checks were passed.
    pub fn grade(&self) -> Grade {
        let count = |name: &str| self.checks.iter().filter(|check| check.verdict.name() == name).count();
        Grade { passed: count("passed"), failed: count("failed"), undecided: count("undecided") }
    }

    /// The card for a terminal. What came from the command line stands in it as it is.
    pub fn text(&self) -> String {
        text::of(self)
    }

    /// The card as a page that needs nothing else.
    pub fn html(&self) -> String {
        html::of(self)
    }
}

impl Told {
    fn new(observed: &Observations, trial: &crate::trial::Trial) -> Self {
        let runs = observed.copies(trial.name).iter().map(|seen| Run {
            attempts: seen.arrivals.len(),
            waits: waits(&seen.arrivals),
            exit: seen.exit,
        });
        Self {
            name: trial.name,
            script: trial.script.clone(),
            method: trial.ask.method,
            runs: runs.collect(),
        }
    }
}
