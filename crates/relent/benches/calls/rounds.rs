//! One thread, in rounds: every row in turn, each about as long, and the best round of each.
//!
//! A round is short, so that even on a busy machine some are left alone; and as the rows take turns, the best rounds of
//! all of them are of the same quiet moments.

use std::time::{Duration, Instant};

use crate::{
    counting::counted,
    work::{Work, deeper},
};

/// What a row comes to, per call.
pub(crate) struct Figures {
    /// Nanoseconds that pass, by one thread, in the best round.
    pub(crate) ns: f64,
    pub(crate) allocations: f64,
    /// The same for two threads at once, where they were asked for.
    pub(crate) together: Option<Together>,
}

/// Two threads at once.
pub(crate) struct Together {
    /// Nanoseconds that pass for each call of either: half as many as for one if neither hinders the other.
    pub(crate) ns: f64,
    /// How many rounds both threads had a processor each from beginning to end; no other counts.
    pub(crate) undisturbed: usize,
}

pub(crate) fn measure(rows: &[&'static Work]) -> Vec<Figures> {
    let calls: Vec<u32> =
        rows.iter().map(|work| calls_of_a_round(ROUND, |calls| took(work, calls, 0))).collect();
    let mut best = vec![f64::INFINITY; rows.len()];
    for round in 0..ROUNDS {
        for (place, work) in rows.iter().enumerate() {
            best[place] = best[place].min(per_call(took(work, calls[place], round), calls[place]));
        }
    }
    let figures = |(place, ns): (usize, f64)| {
        let allocations = allocations(rows[place], calls[place]);
        Figures { ns, allocations, together: None }
    };
    best.into_iter().enumerate().map(figures).collect()
}

/// For each call.
pub(crate) fn allocations(work: &Work, calls: u32) -> f64 {
    f64::from(counted(|| work(calls)).1) / f64::from(calls)
}

/// How many calls make up a round of at least that length, given how long so many take.
pub(crate) fn calls_of_a_round(round: Duration, mut took: impl FnMut(u32) -> Duration) -> u32 {
    let mut calls = 1;
    loop {
        let lasted = took(calls);
        if lasted >= round {
            return calls;
        }
        calls = if lasted < round / 4 { calls * 4 } else { calls * 2 };
    }
}

pub(crate) fn per_call(lasted: Duration, calls: u32) -> f64 {
    lasted.as_secs_f64() * 1e9 / f64::from(calls)
}

fn took(work: &Work, calls: u32, round: usize) -> Duration {
    let began = Instant::now();
    deeper(round, work, calls);
    began.elapsed()
}

const ROUND: Duration = Duration::from_micros(500);
const ROUNDS: usize = 200;
