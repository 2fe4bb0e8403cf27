//! Runs of single calls on the core's own decision, over many seeds: what arithmetic alone cannot say, how often.

use std::{collections::BTreeMap, time::Duration};

use relent_core::{Cause, Decision, Idempotency, Policy, Sent, Timestamp, Verdict};

/// How the attempts of a call go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pace {
    /// Each fails at once.
    AtOnce,
    /// Each takes its whole time-out.
    TimingOut,
}

/// How many attempts begin, over many calls.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    /// Calls by the number of attempts that began.
    pub by_attempts: BTreeMap<u32, u32>,
    /// Calls in which an attempt began that did not have its whole time-out left.
    pub cut_short: u32,
    /// The least that was left to such an attempt.
    pub least_left: Option<Duration>,
    /// All calls.
    pub runs: u32,
}

/// The attempts of one call.
struct Run {
    begun: u32,
    left: Option<Duration>,
}

impl Tally {
    /// Many calls under a policy, all of whose attempts fail in a way worth retrying.
    pub fn of(policy: &Policy, pace: Pace) -> Self {
        // A call without a limit of attempts may have hundreds, and needs no more than a rough picture.
        let runs = if policy.retry.max_attempts.is_some_and(|most| most <= 20) { RUNS } else { FEW };
        let mut tally = Self { runs, ..Self::default() };
        for seed in 0..u64::from(runs) {
            let run = run(policy, seed, pace);
            *tally.by_attempts.entry(run.begun).or_default() += 1;
            if let Some(left) = run.left {
                tally.cut_short += 1;
                tally.least_left = Some(tally.least_left.map_or(left, |least| least.min(left)));
            }
        }
        tally
    }

    /// So many calls as thousandths of all.
    pub fn share_milli(&self, calls: u32) -> u32 {
        let milli = (u64::from(calls) * 1000 + u64::from(self.runs) / 2) / u64::from(self.runs.max(1));
        u32::try_from(milli).unwrap_or(u32::MAX)
    }
}

fn run(policy: &Policy, seed: u64, pace: Pace) -> Run {
    let mut history = policy.begin(seed, Timestamp::ZERO, None, None);
    history.idempotency = Idempotency::Safe;
    let mut now = Timestamp::ZERO;
    let mut run = Run { begun: 0, left: None };
    let cause = if pace == Pace::AtOnce { Cause::Error } else { Cause::Timeout };
    while run.begun < MOST_ATTEMPTS {
        let give_up_at = policy.give_up_at(&history, now);
        run.begun += 1;
        let left = give_up_at.since(now);
        if left < policy.attempt_timeout && pace == Pace::TimingOut {
            run.left = Some(left);
        }
        if pace == Pace::TimingOut {
            now = give_up_at;
        }
        let failed = Verdict::Failure { cause, sent: Sent::No, server_wait: None };
        match policy.retry.conclude(&mut history, failed, now) {
            Decision::Retry(wait) => now = now.after(wait.length),
            Decision::Stop(_) => break,
        }
    }
    run
}

/// The share of calls, in thousandths, whose `n`-th wait is exactly the longest, where each attempt fails at once.
pub(crate) fn pinned_milli(policy: &Policy, n: u32, longest: Duration) -> u32 {
    let mut unbounded = policy.clone();
    unbounded.total_timeout = None;
    unbounded.business_deadline = None;
    unbounded.retry.max_attempts = None;
    let pinned = (0..u64::from(FEW)).filter(|seed| {
        let mut history = unbounded.begin(*seed, Timestamp::ZERO, None, None);
        history.idempotency = Idempotency::Safe;
        let failed = Verdict::Failure { cause: Cause::Error, sent: Sent::No, server_wait: None };
        let last = (0..n).map(|_| unbounded.retry.conclude(&mut history, failed, Timestamp::ZERO)).last();
        matches!(last, Some(Decision::Retry(wait)) if wait.length == longest)
    });
    u32::try_from(pinned.count()).unwrap_or(u32::MAX)
}

/// Enough for a share to be within a point and a half.
const RUNS: u32 = 4_000;
const FEW: u32 = 1_000;
const MOST_ATTEMPTS: u32 = 1_000;
