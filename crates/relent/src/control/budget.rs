//! A retry budget in force, for all calls to a dependency; several pipelines may share one.
//!
//! The numbers are the core's, stepped by compare-and-swap; nothing is locked and nothing allocated. On one
//! thread it is the exact twin of [`BudgetState`](relent_core::budget::BudgetState).

mod guard;
mod loan;
mod ratio;
mod word;

use relent_core::{
    Cause, Invalid, Refusal, Timestamp,
    budget::{
        BudgetPolicy, GrpcPolicy, LoanPolicy, QuotaPolicy, REFUSAL, RatioPolicy, SharePolicy, share::InFlight,
    },
};

pub(crate) use guard::Lent;
pub use guard::{Loan, Underway};

use self::{loan::LoanCells, ratio::RatioCells};
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// A [`BudgetPolicy`] in force. To let several pipelines share one, put it into an `Arc`.
///
/// # Examples
///
/// ```
/// use relent::{BudgetPolicy, Cause, Timestamp, control::Budget};
///
/// let budget = Budget::new(&BudgetPolicy::default())?;
/// let now = Timestamp::from_secs(1);
///
/// let call = budget.on_call(now);
/// budget.on_failure(Cause::Error);
/// let mut loan = budget.try_retry(Cause::Error, now).expect("the first failure may be retried");
/// // … the wait; a loan dropped here would go back …
/// loan.sent();
/// loan.succeeded(now);
/// drop(call);
/// assert_eq!(budget.tokens_milli(now), Some(1_500), "the loan came back with interest");
/// # Ok::<_, relent::Invalid>(())
/// ```
#[derive(Debug)]
pub struct Budget {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Loan(LoanPolicy, LoanCells),
    Grpc(GrpcPolicy, AtomicU32),
    Ratio(RatioPolicy, RatioCells),
    Share(SharePolicy, AtomicU64),
    Quota(QuotaPolicy, AtomicU32),
}

impl Budget {
    /// Puts a budget in force, as it is before the first call.
    ///
    /// # Errors
    ///
    /// [`BudgetPolicy::validate`] refuses a budget that could never let a retry through.
    pub fn new(policy: &BudgetPolicy) -> Result<Self, Invalid> {
        policy.validate()?;
        let kind = match *policy {
            BudgetPolicy::Loan(policy) => Kind::Loan(policy, LoanCells::new(&policy)),
            BudgetPolicy::Grpc(policy) => Kind::Grpc(policy, AtomicU32::new(policy.max_milli)),
            BudgetPolicy::Ratio(policy) => Kind::Ratio(policy, RatioCells::new()),
            BudgetPolicy::Share(policy) => Kind::Share(policy, AtomicU64::new(0)),
            BudgetPolicy::Quota(policy) => Kind::Quota(policy, AtomicU32::new(policy.capacity_milli)),
            _ => return Err(Invalid::new("budget.kind", "this version has no such budget in force")),
        };
        Ok(Self { kind })
    }

    /// The policy in force.
    pub const fn policy(&self) -> BudgetPolicy {
        match &self.kind {
            Kind::Loan(policy, _) => BudgetPolicy::Loan(*policy),
            Kind::Grpc(policy, _) => BudgetPolicy::Grpc(*policy),
            Kind::Ratio(policy, _) => BudgetPolicy::Ratio(*policy),
            Kind::Share(policy, _) => BudgetPolicy::Share(*policy),
            Kind::Quota(policy, _) => BudgetPolicy::Quota(*policy),
        }
    }

    /// A call begins, and goes on until the guard is dropped. No budget refuses a first attempt.
    pub fn on_call(&self, now: Timestamp) -> Underway<'_> {
        self.begin(now);
        Underway::of(self)
    }

    /// [`Budget::on_call`], for a caller who says when the call has ended, by [`Budget::end`].
    ///
    /// The default kind is asked in the middle of every call and stands there; the others are called.
    #[inline]
    pub(crate) fn begin(&self, now: Timestamp) {
        match &self.kind {
            Kind::Loan(_, cells) => cells.on_call(now),
            _ => self.begin_other(now),
        }
    }

    #[inline(never)]
    fn begin_other(&self, now: Timestamp) {
        match &self.kind {
            Kind::Ratio(policy, cells) => cells.on_call(policy, now),
            // Two billion calls in flight would be needed for one half of the word to reach the other.
            Kind::Share(_, word) => {
                word.fetch_add(ONE_CALL, Relaxed);
            }
            Kind::Loan(..) | Kind::Grpc(..) | Kind::Quota(..) => {}
        }
    }

    /// A call's first attempt succeeded. Writes nothing where the bucket is full already.
    #[inline]
    pub fn on_first_success(&self, now: Timestamp) {
        match &self.kind {
            Kind::Loan(policy, cells) => cells.on_first_success(policy, now),
            _ => self.on_first_success_other(),
        }
    }

    #[inline(never)]
    fn on_first_success_other(&self) {
        match &self.kind {
            Kind::Grpc(policy, tokens) => word::step(tokens, |tokens| policy.after_success(tokens)),
            Kind::Quota(policy, tokens) => word::step(tokens, |tokens| policy.after_first_success(tokens)),
            Kind::Loan(..) | Kind::Ratio(..) | Kind::Share(..) => {}
        }
    }

    /// A call ends whose first attempt succeeded: [`Budget::on_first_success`] and [`Budget::end`] in one.
    #[inline(always)]
    pub(crate) fn on_only_success(&self, now: Timestamp) {
        match &self.kind {
            Kind::Loan(policy, cells) => cells.on_first_success(policy, now),
            _ => self.on_only_success_other(),
        }
    }

    #[inline(never)]
    fn on_only_success_other(&self) {
        self.on_first_success_other();
        self.end();
    }

    /// An attempt (the first or a retry, the last one as well) failed in a way worth retrying. Told before the
    /// retry is asked for.
    pub fn on_failure(&self, _cause: Cause) {
        if let Kind::Grpc(policy, tokens) = &self.kind {
            word::step(tokens, |tokens| policy.after_failure(tokens));
        }
    }

    /// A retry asks to be let through after a failure of that cause: before its wait, so that retries which wait
    /// are counted.
    ///
    /// # Errors
    ///
    /// The refusal of [`Gate::Budget`](relent_core::Gate::Budget). It names no moment, because the answer
    /// changes when successes return; its advice is for loops that would otherwise call again at once.
    pub fn try_retry(&self, cause: Cause, now: Timestamp) -> Result<Loan<'_>, Refusal> {
        Ok(Loan::of(self, self.lend(cause, now)?))
    }

    /// [`Budget::try_retry`], for a caller who ends the loan.
    pub(crate) fn lend(&self, cause: Cause, now: Timestamp) -> Result<Lent, Refusal> {
        let taken = match &self.kind {
            Kind::Loan(policy, cells) => cells.try_retry(policy, cause, now).map(|charge| (charge, 0)),
            Kind::Grpc(policy, tokens) => policy.allows(tokens.load(Relaxed)).then_some((0, 0)),
            Kind::Ratio(policy, cells) => cells.try_retry(policy, now).map(|slice| (0, slice)),
            Kind::Share(policy, word) => {
                let join = |word| policy.allows(InFlight::unpack(word)).then_some((word + ONE_RETRY, ()));
                word::take64(word, join).map(|()| (0, 0))
            }
            Kind::Quota(policy, tokens) => {
                word::take(tokens, |tokens| policy.charge(tokens, cause)).map(|charge| (charge, 0))
            }
        };
        taken.map(|(charge, slice)| Lent { charge, cause, slice }).ok_or(REFUSAL)
    }

    /// Thousandths of a token that are there at `now`, where the kind has tokens.
    pub fn tokens_milli(&self, now: Timestamp) -> Option<u32> {
        match &self.kind {
            Kind::Loan(policy, cells) => Some(cells.tokens(policy, now)),
            Kind::Grpc(_, tokens) | Kind::Quota(_, tokens) => Some(tokens.load(Relaxed)),
            Kind::Ratio(..) | Kind::Share(..) => None,
        }
    }

    /// A call has ended.
    #[inline]
    pub(crate) fn end(&self) {
        if let Kind::Share(_, word) = &self.kind {
            word.fetch_sub(ONE_CALL, Relaxed);
        }
    }

    /// A retry was not sent: its charge goes back.
    pub(crate) fn give_back(&self, lent: Lent) {
        let Lent { charge, slice, .. } = lent;
        match &self.kind {
            Kind::Loan(policy, cells) => cells.give_back(policy, charge),
            Kind::Ratio(_, cells) => cells.give_back(slice),
            Kind::Quota(policy, tokens) => word::step(tokens, |tokens| policy.returned(tokens, charge)),
            Kind::Share(..) => self.keep(lent),
            Kind::Grpc(..) => {}
        }
    }

    /// A retry succeeded.
    pub(crate) fn repay(&self, lent: Lent, now: Timestamp) {
        let Lent { charge, cause, .. } = lent;
        match &self.kind {
            Kind::Loan(policy, cells) => cells.on_retry_success(policy, charge, cause, now),
            Kind::Grpc(policy, tokens) => word::step(tokens, |tokens| policy.after_success(tokens)),
            Kind::Quota(policy, tokens) => word::step(tokens, |tokens| policy.returned(tokens, charge)),
            Kind::Share(..) => self.keep(lent),
            Kind::Ratio(..) => {}
        }
    }

    /// A retry was sent and did not succeed: its charge is kept.
    pub(crate) fn keep(&self, _: Lent) {
        if let Kind::Share(_, word) = &self.kind {
            word.fetch_sub(ONE_RETRY, Relaxed);
        }
    }
}

/// [`InFlight::pack`]: one call, and one retry.
const ONE_CALL: u64 = 1;
const ONE_RETRY: u64 = 1 << 32;
