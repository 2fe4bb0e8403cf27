//! A policy's controls in force, in the pipeline's one order, and what a call holds of them.
//!
//! Whoever is refused gives back what was taken before; the breaker is asked last, because its probe is a side
//! effect. What a call holds goes back when it is dropped, so a caller who gives up leaves nothing behind.

mod limits;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use relent_core::{
    Invalid, Policy, Refusal, Timestamp, Verdict,
    breaker::{Mode, Recorded, Transition},
};

pub(crate) use limits::{Halt, Limits, Pass, Queued};

use crate::{
    control::{
        Breaker, Budget, Permit,
        budget::{Loan, Underway},
        concurrency::OwnedPermit,
    },
    event::Lending,
};

/// What a pipeline's calls pass through, from the outermost control to the innermost.
#[derive(Clone, Debug)]
pub(crate) struct Controls {
    pub(crate) admission: Limits,
    pub(crate) budget: Option<Purse>,
    pub(crate) attempt: Limits,
    pub(crate) breaker: Option<Breaker>,
}

/// A budget, and whether it refused last.
#[derive(Clone, Debug)]
pub(crate) struct Purse {
    pub(crate) budget: Arc<Budget>,
    refuses: Arc<AtomicBool>,
}

/// What one call holds.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    controls: &'a Controls,
    underway: Option<Underway<'a>>,
    /// The gates of the call, once it has passed them.
    admission: Option<Pass<'a>>,
    /// For the retry to come, or for the one in flight.
    loan: Option<Loan<'a>>,
    /// Those of the attempt in flight.
    attempt: Pass<'a>,
    permit: Option<Permit<&'a Breaker>>,
}

impl Controls {
    pub(crate) fn new(policy: &Policy) -> Result<Self, Invalid> {
        Ok(Self {
            admission: Limits::new(&policy.admission)?,
            budget: policy.budget.as_ref().map(Budget::new).transpose()?.map(|own| Purse::of(Arc::new(own))),
            attempt: Limits::new(&policy.attempt)?,
            breaker: policy.breaker.as_ref().map(Breaker::new).transpose()?,
        })
    }

    /// What the breaker would say at `at`, where it is open and only time (or a hand) can change that.
    pub(crate) fn is_open_at(&self, at: Timestamp) -> Option<Refusal> {
        let breaker = self.breaker.as_ref()?;
        matches!(breaker.status().mode, Mode::Open | Mode::Isolated).then(|| breaker.refusal(at))?
    }
}

impl Purse {
    pub(crate) fn of(budget: Arc<Budget>) -> Self {
        Self { budget, refuses: Arc::new(AtomicBool::new(false)) }
    }

    /// What has changed, if the budget's last answer was another. Of calls that are answered at the same moment
    /// exactly one is told. The lending side costs a load.
    fn turned(&self, lending: Lending) -> Option<Lending> {
        let refuses = lending == Lending::Refuses;
        let changed = self.refuses.load(Ordering::Relaxed) != refuses
            && self.refuses.swap(refuses, Ordering::Relaxed) != refuses;
        changed.then_some(lending)
    }
}

impl<'a> Held<'a> {
    /// A call begins.
    #[inline]
    pub(crate) fn begin(controls: &'a Controls, now: Timestamp) -> Self {
        Self {
            controls,
            underway: controls.budget.as_ref().map(|purse| purse.budget.on_call(now)),
            admission: None,
            loan: None,
            attempt: Pass::NONE,
            permit: None,
        }
    }

    pub(crate) const fn controls(&self) -> &'a Controls {
        self.controls
    }

    pub(crate) const fn is_admitted(&self) -> bool {
        self.admission.is_some()
    }

    #[inline]
    pub(crate) fn admitted(&mut self, pass: Pass<'a>) {
        self.admission = Some(pass);
    }

    /// The attempt has passed its gates and asks the breaker. If it says yes, what follows is sent.
    #[inline]
    pub(crate) fn enter(
        &mut self,
        mut pass: Pass<'a>,
        now: Timestamp,
    ) -> Result<Option<Transition>, Refusal> {
        let permit = self.controls.breaker.as_ref().map(|breaker| breaker.admit(now)).transpose()?;
        let transition = permit.as_ref().and_then(Permit::transition);
        pass.spend();
        if let Some(admission) = &mut self.admission {
            admission.spend();
        }
        self.attempt = pass;
        self.permit = permit;
        Ok(transition)
    }

    /// The attempt has ended: the breaker and the budget are told, and its places are free.
    ///
    /// An attempt that never reached the dependency keeps its loan for the next.
    #[inline]
    pub(crate) fn conclude(
        &mut self,
        verdict: Verdict,
        took: Duration,
        now: Timestamp,
    ) -> Option<Transition> {
        let recorded = self.permit.take().map(|permit| permit.record(verdict, took, now));
        self.attempt = Pass::NONE;
        if let Some(purse) = &self.controls.budget {
            self.settle(&purse.budget, verdict, now);
        }
        recorded.and_then(Recorded::transition)
    }

    #[inline]
    fn settle(&mut self, budget: &Budget, verdict: Verdict, now: Timestamp) {
        match verdict {
            Verdict::Neutral(_) => {}
            Verdict::Success => match self.loan.take() {
                Some(loan) => loan.succeeded(now),
                None => budget.on_first_success(now),
            },
            Verdict::Permanent => self.keep_loan(),
            Verdict::Failure { cause, .. } => {
                self.keep_loan();
                budget.on_failure(cause);
            }
        }
    }

    fn keep_loan(&mut self) {
        if let Some(loan) = self.loan.take() {
            loan.failed();
        }
    }

    /// Asks the budget for another attempt after that verdict. One that was lent for an attempt which never
    /// reached the dependency is still there.
    ///
    /// Beside the answer, what changed with it.
    pub(crate) fn borrow(
        &mut self,
        verdict: Verdict,
        now: Timestamp,
    ) -> (Result<(), Refusal>, Option<Lending>) {
        let (Some(purse), Verdict::Failure { cause, .. }) = (&self.controls.budget, verdict) else {
            return (Ok(()), None);
        };
        match purse.budget.try_retry(cause, now) {
            Ok(loan) => {
                self.loan = Some(loan);
                (Ok(()), purse.turned(Lending::Lends))
            }
            Err(refusal) => (Err(refusal), purse.turned(Lending::Refuses)),
        }
    }

    /// The places in flight that the attempt's work is to keep until it ends.
    pub(crate) fn share_places(&mut self) -> [Option<Arc<OwnedPermit>>; 2] {
        [self.admission.as_mut().and_then(Pass::share), self.attempt.share()]
    }

    /// The caller gave up during an attempt: the retry was sent, so its loan is not given back.
    pub(crate) fn abandon(&mut self) {
        self.keep_loan();
        self.release();
    }

    /// The call has ended: everything goes back, the innermost first. A loan whose retry was not sent is lent
    /// to others again.
    #[inline]
    pub(crate) fn release(&mut self) {
        self.permit = None;
        self.attempt = Pass::NONE;
        self.loan = None;
        self.admission = None;
        self.underway = None;
    }
}
