//! One service among those that stand between the callers and the dependency: a policy, and the processes that run
//! it, each with controls of its own.

use relent_core::{
    BudgetPolicy, ErrorClass, Observed, Policy, Refusal, Route, Timestamp, Verdict,
    breaker::{BreakerState, Mode, Transition},
    budget::BudgetState,
};

use super::limits::Limits;
use crate::{
    chance::Chance,
    measure::{Gauges, Recorder},
    scenario::Dependency,
    server::Answer,
};

/// A service.
#[derive(Debug)]
pub(crate) struct Tier {
    pub(crate) policy: Policy,
    pub(crate) clients: Vec<Client>,
    observed: Answers,
    /// What the policy's classification says of an answer; asked once, since all requests are of one route.
    verdicts: Verdicts,
}

/// A process.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) budget: Option<BudgetState>,
    pub(crate) breaker: Option<Box<BreakerState>>,
    pub(crate) admission: Option<Box<Limits>>,
    pub(crate) attempt: Option<Box<Limits>>,
}

#[derive(Clone, Copy, Debug)]
struct Answers {
    failed: Observed,
    rejected: Observed,
}

#[derive(Clone, Copy, Debug)]
struct Verdicts {
    served: Verdict,
    failed: Verdict,
    refused: Verdict,
    rejected: Verdict,
    timed_out: Verdict,
}

impl Tier {
    pub(crate) fn new(policy: &Policy, clients: u32, dependency: &Dependency, seeds: &mut Chance) -> Self {
        let observed = Answers {
            failed: Observed::Status(dependency.fail_status),
            rejected: Observed::Status(dependency.reject_status),
        };
        let verdict = |observed| policy.classify.verdict(observed, Route::default(), None);
        let verdicts = Verdicts {
            served: verdict(Observed::Status(200)),
            failed: verdict(observed.failed),
            refused: verdict(Observed::Error(ErrorClass::Connect)),
            rejected: verdict(observed.rejected),
            timed_out: verdict(Observed::Error(ErrorClass::Timeout)),
        };
        let clients = (0..clients).map(|_| Client::new(policy, seeds.bits())).collect();
        Self { policy: policy.clone(), clients, observed, verdicts }
    }

    /// What an answer means.
    #[inline]
    pub(crate) fn verdict(&self, answer: Answer) -> Verdict {
        match answer {
            Answer::Served => self.verdicts.served,
            Answer::Failed => self.verdicts.failed,
            Answer::Refused => self.verdicts.refused,
            Answer::Rejected(None) => self.verdicts.rejected,
            Answer::Rejected(asked) => {
                self.policy.classify.verdict(self.observed.rejected, Route::default(), asked)
            }
        }
    }

    /// What a client's breaker would say at `at`, where it is open and only time (or a hand) can change that.
    pub(crate) fn open_at(&self, client: u32, at: Timestamp) -> Option<Refusal> {
        let policy = self.policy.breaker.as_ref()?;
        let status = self.clients[client as usize].breaker.as_ref()?.status();
        match status.mode {
            Mode::Open => status.until.filter(|until| at < *until).map(|until| policy.refusal(until, at)),
            Mode::Isolated => Some(policy.isolated()),
            _ => None,
        }
    }

    /// What the end of an attempt's time means.
    pub(crate) const fn timed_out(&self) -> Verdict {
        self.verdicts.timed_out
    }
}

impl Client {
    fn new(policy: &Policy, seed: u64) -> Self {
        Self {
            budget: policy.budget.as_ref().map(BudgetState::new),
            breaker: policy.breaker.as_ref().map(|breaker| Box::new(BreakerState::new(breaker, seed))),
            admission: Limits::new(&policy.admission),
            attempt: Limits::new(&policy.attempt),
        }
    }
}

/// Counts a breaker's change.
pub(crate) fn changed(transition: Option<Transition>, gauges: &mut Gauges, recorder: &mut Recorder) {
    let Some(Transition { from, to, .. }) = transition else { return };
    for (mode, gauge) in [(Mode::Open, &mut gauges.open), (Mode::HalfOpen, &mut gauges.half_open)] {
        *gauge = gauge.saturating_sub(u32::from(from == mode)) + u32::from(to == mode);
    }
    if to == Mode::Open {
        recorder.breaker_opened();
    }
}

/// The policy of a call that is never given up: its curve and its jitter alone.
pub(crate) fn never_given_up(policy: &Policy) -> Policy {
    let mut policy = policy.clone();
    policy.retry.max_attempts = None;
    policy.total_timeout = None;
    policy.business_deadline = None;
    policy.budget = None::<BudgetPolicy>;
    policy
}
