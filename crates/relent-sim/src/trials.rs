//! Many runs at once: each is on its own, so they share the cores and nothing else.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use relent_core::Policy;

use crate::{gate::Trial, scenario::Scenario};

/// Puts each policy through its scenario, on as many threads as there are cores; the trials are in the order of the
/// jobs, whichever ended first. `done` is told, from those threads, of each job that has ended.
///
/// # Panics
///
/// If a run does; the others are run to their end first.
pub fn run_all(jobs: &[(&Scenario, &Policy)], seed: u64, done: &(dyn Fn(usize) + Sync)) -> Vec<Trial> {
    let next = AtomicUsize::new(0);
    let ended: Mutex<Vec<(usize, Trial)>> = Mutex::new(Vec::with_capacity(jobs.len()));
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..cores.min(jobs.len()) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some((scenario, policy)) = jobs.get(number) else { break };
                    let trial = Trial::run(scenario, policy, seed);
                    ended.lock().unwrap_or_else(PoisonError::into_inner).push((number, trial));
                    done(number);
                }
            });
        }
    });
    let mut ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    ended.sort_unstable_by_key(|(number, _)| *number);
    ended.into_iter().map(|(_, trial)| trial).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{policies::named, scenario::standard};

    #[test]
    fn trials_come_in_the_order_of_their_jobs_and_as_if_run_alone() {
        let scenario = |id| standard(id).expect("standard").scenario(&[]).expect("possible");
        let (slow, quick) = (scenario("S3b"), scenario("S9b"));
        let (plain, default) = (named("plain-loop").expect("there"), named("default").expect("there"));
        let told = AtomicUsize::new(0);
        let jobs = [(&slow, &plain), (&quick, &plain), (&quick, &default)];
        let trials = run_all(&jobs, 5, &|_| {
            told.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(told.into_inner(), 3);
        for ((scenario, policy), trial) in jobs.into_iter().zip(&trials) {
            assert_eq!(*trial, Trial::run(scenario, policy, 5), "{}", scenario.id);
        }
    }
}
