//! A pipeline in plain fields: the core's states, asked in the pipeline's order by one thread that owns the time.

use std::time::Duration;

use relent::{
    BreakerState, Decision, ErrorClass, Gates, History, Observed, Policy, Refusal, ScriptedOutcome,
    StopReason, Timestamp, Verdict,
    breaker::{Mode, Ticket},
    budget::{BudgetState, Loan},
    concurrency,
    rate::Gcra,
};

use crate::{
    drivers::ROUTE,
    gates::Ended,
    lives::{Life, Planned},
};

/// A pipeline's controls.
pub(crate) struct Twin {
    policy: Policy,
    admission: Place,
    pub(crate) budget: Option<BudgetState>,
    attempt: Place,
    pub(crate) breaker: Option<BreakerState>,
    /// How long after its end an attempt is given up: a blocking one is heard when it comes back.
    late: Duration,
}

/// The two limits of one place.
struct Place {
    policy: Gates,
    gcra: Option<Gcra>,
    word: u64,
    /// Whether somebody else holds the one place in flight.
    is_taken: bool,
}

/// One call under way.
struct Course {
    history: History,
    attempts: u32,
    loan: Option<Loan>,
}

struct Began {
    at: Timestamp,
    ticket: Option<Ticket>,
}

enum Halt {
    Refused(Refusal),
    TooLate(Timestamp),
}

impl Twin {
    pub(crate) fn new(life: &Life, late: Duration) -> Self {
        let policy = life.policy.clone();
        Self {
            late,
            admission: Place::new(policy.admission),
            budget: policy.budget.as_ref().map(BudgetState::new),
            attempt: Place::new(policy.attempt),
            breaker: policy.breaker.as_ref().map(|breaker| BreakerState::new(breaker, life.seed)),
            policy,
        }
    }

    /// One call, from its beginning to its end.
    pub(crate) fn call(&mut self, planned: &Planned, started: Timestamp) -> Ended {
        [self.admission.is_taken, self.attempt.is_taken] = planned.held;
        let upstream = planned.upstream.map(|length| started.after(length));
        let history = self.policy.begin(planned.seed, started, upstream, None);
        let mut course = Course { history, attempts: 0, loan: None };
        if let Some(budget) = &mut self.budget {
            budget.on_call(started);
        }
        let ended = self.attempts(&mut course, &planned.script);
        if let Some(budget) = &mut self.budget {
            if let Some(loan) = course.loan.take() {
                budget.on_unsent(loan);
            }
            budget.on_end();
        }
        ended
    }

    fn attempts(&mut self, course: &mut Course, script: &[ScriptedOutcome]) -> Ended {
        let mut now = course.history.started;
        loop {
            let began = match self.begin(course, now) {
                Ok(began) => began,
                Err(ended) => return ended,
            };
            let outcome = script[course.attempts as usize % script.len()];
            course.attempts += 1;
            let (verdict, ended) = self.outcome(course, outcome, began.at);
            if let (Some(breaker), Some(ticket)) = (&mut self.breaker, began.ticket) {
                let _told = breaker.record(ticket, verdict, ended.since(began.at), ended);
            }
            self.settle(course, verdict, ended);
            match self.policy.retry.conclude(&mut course.history, verdict, ended) {
                Decision::Stop(reason) => return course.ended(reason, None, ended),
                Decision::Retry(wait) => {
                    now = ended.after(wait.length);
                    if let Some(refusal) = self.refused(course, verdict, ended, now) {
                        return course.refused(refusal, ended);
                    }
                }
            }
        }
    }

    /// What an attempt comes to, and when.
    fn outcome(&self, course: &Course, outcome: ScriptedOutcome, began: Timestamp) -> (Verdict, Timestamp) {
        let give_up_at = self.policy.give_up_at(&course.history, began);
        let ended = began.after(outcome.took);
        let (observed, server_wait, ended) = match ended > give_up_at {
            true => (Observed::Error(ErrorClass::Timeout), None, give_up_at.after(self.late)),
            false => (outcome.observed, outcome.server_wait, ended),
        };
        (self.policy.classify.verdict(observed, ROUTE, server_wait), ended)
    }

    fn begin(&mut self, course: &Course, mut now: Timestamp) -> Result<Began, Ended> {
        let retry = &self.policy.retry;
        let (deadline, reason) = course.history.deadlines.earliest().expect("there is a total time-out");
        let end = deadline.before(retry.reserve);
        let is_late = match course.history.last_verdict {
            Some(_) => now >= end,
            None => matches!(retry.decide(&course.history, now), Decision::Stop(_)),
        };
        if is_late {
            return Err(course.ended(reason, None, now));
        }
        let cut = end.before(retry.min_attempt);
        let halted = |halt, now| match halt {
            Halt::Refused(refusal) => course.refused(refusal, now),
            Halt::TooLate(cut) => course.ended(reason, None, cut),
        };
        let mut words = [self.admission.word, self.attempt.word];
        if course.attempts == 0 {
            let passed = self.admission.pass(now, cut, self.is_open_at(now));
            (now, words[0]) = passed.map_err(|halt| halted(halt, now))?;
        }
        let passed = self.attempt.pass(now, cut, self.is_open_at(now));
        (now, words[1]) = passed.map_err(|halt| halted(halt, now))?;
        let admitted = self.breaker.as_mut().map(|breaker| breaker.admit(now)).transpose();
        let ticket = admitted.map_err(|refusal| course.refused(refusal, now))?;
        // Only now it is sent, and what it took is spent.
        [self.admission.word, self.attempt.word] = words;
        Ok(Began { at: now, ticket })
    }

    fn settle(&mut self, course: &mut Course, verdict: Verdict, now: Timestamp) {
        let Some(budget) = &mut self.budget else { return };
        match verdict {
            Verdict::Neutral(_) => {}
            Verdict::Success => match course.loan.take() {
                Some(loan) => budget.on_retry_success(loan, now),
                None => budget.on_first_success(now),
            },
            Verdict::Permanent | Verdict::Failure { .. } => {
                if let Some(loan) = course.loan.take() {
                    budget.on_retry_failure(loan);
                }
                if let Verdict::Failure { cause, .. } = verdict {
                    budget.on_failure(cause);
                }
            }
        }
    }

    /// Asked between the core's word and the wait: the budget, and a breaker that is open still when it is over.
    fn refused(
        &mut self,
        course: &mut Course,
        verdict: Verdict,
        now: Timestamp,
        next: Timestamp,
    ) -> Option<Refusal> {
        if let (Some(budget), Verdict::Failure { cause, .. }) = (&mut self.budget, verdict) {
            match budget.try_retry(cause, now) {
                Ok(loan) => course.loan = Some(loan),
                Err(refusal) => return Some(refusal),
            }
        }
        self.is_open_at(next)
    }

    fn is_open_at(&self, at: Timestamp) -> Option<Refusal> {
        let breaker = self.breaker.as_ref()?;
        let is_open = matches!(breaker.status().mode, Mode::Open | Mode::Isolated);
        is_open.then(|| breaker.clone().admit(at).err()).flatten()
    }
}

impl Place {
    fn new(policy: Gates) -> Self {
        let gcra = policy.rate.map(|rate| Gcra::new(&rate).expect("the policy is possible"));
        Self { policy, gcra, word: 0, is_taken: false }
    }

    /// When the attempt is through, and the rate's word then.
    fn pass(&self, now: Timestamp, cut: Timestamp, open: Option<Refusal>) -> Result<(Timestamp, u64), Halt> {
        let is_full = self.is_taken && self.policy.concurrency.is_some();
        let taken = self.gcra.map(|gcra| gcra.take(self.word, now));
        if !is_full && !matches!(taken, Some(Err(_))) {
            return Ok((now, taken.and_then(Result::ok).unwrap_or(self.word)));
        }
        if let Some(refusal) = open {
            return Err(Halt::Refused(refusal));
        }
        if is_full {
            let queue = self.policy.concurrency.map_or(0, |limit| limit.queue);
            return Err(if queue == 0 { Halt::Refused(concurrency::REFUSAL) } else { Halt::TooLate(cut) });
        }
        let Some(gcra) = self.gcra else { return Ok((now, self.word)) };
        let latest = cut.before(Duration::from_nanos(1));
        let booked = gcra.reserve(self.word, now, latest).map_err(Halt::Refused)?;
        Ok((booked.at, booked.word))
    }
}

impl Course {
    fn ended(&self, stop: StopReason, refusal: Option<Refusal>, at: Timestamp) -> Ended {
        Ended { stop, refusal, attempts: self.attempts, at, last_verdict: self.history.last_verdict }
    }

    fn refused(&self, refusal: Refusal, at: Timestamp) -> Ended {
        self.ended(StopReason::Refused(refusal.by), Some(refusal), at)
    }
}
