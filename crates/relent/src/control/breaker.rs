//! The circuit breaker in force: its state in one atomic word, its counts in cells that threads share.
//!
//! A call that a closed breaker lets through costs one load to enter; to leave, one compare-and-swap on the
//! window (on the thread's own cells, where the window is of time) and nothing at all where only failures in a
//! row are counted. Nobody ever waits: whoever comes while another thread changes the mode is refused.

mod hand;
mod permit;
mod shared;
mod shift;

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
};

use relent_core::{
    BreakerPolicy, Invalid, Refusal, Timestamp, Verdict,
    breaker::{Phase, Status, Ticket, Transition},
    window::{Counts, Grade, Mark},
};

pub use permit::Permit;

use self::shared::Shared;
use crate::sync::Arc;

/// A circuit breaker that threads share. Clones are the same breaker.
///
/// It is told the time and reads no clock. What changes its mode comes back as a value, so that whoever owns it
/// can tell observers when no lock is held; there is none here.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use relent::{Backoff, BreakerPolicy, Timestamp, Verdict, breaker::Mode, control::Breaker};
///
/// let breaker = Breaker::new(&BreakerPolicy {
///     failure_rate_milli: None,
///     consecutive_failures: Some(2),
///     break_time: Backoff::Constant(Duration::from_secs(5)),
///     break_jitter_milli: 0,
///     probes: 1,
///     ..BreakerPolicy::default()
/// })?;
///
/// let now = Timestamp::from_secs(10);
/// for _ in 0..2 {
///     let permit = breaker.admit(now).expect("it is closed");
///     let _told = permit.record(Verdict::TIMED_OUT, Duration::from_secs(1), now);
/// }
/// let refusal = breaker.admit(now).unwrap_err();
/// assert_eq!(refusal.until, Some(Timestamp::from_secs(15)));
///
/// let now = Timestamp::from_secs(15);
/// let probe = breaker.admit(now).expect("its break is over");
/// assert!(breaker.admit(now).is_err(), "one probe at a time");
/// let told = probe.record(Verdict::Success, Duration::from_millis(3), now);
/// assert_eq!(told.transition().map(|change| change.to), Some(Mode::Closed));
/// # Ok::<_, relent::Invalid>(())
/// ```
///
/// # Ordering
///
/// On one thread it does exactly what [`BreakerState`](relent_core::BreakerState) does. Among threads, the counts
/// that a failing call looks at may lack those that other threads are recording at that moment, at most one for
/// each; and of threads that fail together, the last sees them all. A result of an earlier state is never
/// counted in a later one, no more probes are let through than the policy says, and each change of mode is told
/// to exactly one caller.
#[derive(Clone)]
pub struct Breaker(Arc<Shared>);

impl Breaker {
    /// A closed breaker, whose breaks are drawn from chance of its own.
    ///
    /// # Errors
    ///
    /// An impossible policy is refused with the field's name and the arithmetic.
    pub fn new(policy: &BreakerPolicy) -> Result<Self, Invalid> {
        Self::with_seed(policy, RandomState::new().hash_one(0))
    }

    /// A closed breaker with a given supply of chance: the same seed draws the same breaks.
    ///
    /// # Errors
    ///
    /// As [`Breaker::new`].
    pub fn with_seed(policy: &BreakerPolicy, seed: u64) -> Result<Self, Invalid> {
        policy.validate()?;
        Ok(Self(Arc::new(Shared::new(policy.clone(), seed))))
    }

    /// Lets a call through, or says when to come back.
    ///
    /// # Errors
    ///
    /// The refusal of [`Gate::Breaker`](relent_core::Gate::Breaker): until the break is over, or until the first
    /// probe is taken for lost. No moment is known where somebody isolated it, nor in the instant of a change.
    #[inline]
    pub fn admit(&self, now: Timestamp) -> Result<Permit<&Self>, Refusal> {
        self.admit_with(|| now)
    }

    /// As [`Breaker::admit`], for a caller who would read the clock for the breaker alone: it is read only where
    /// it matters, and a closed breaker never does.
    ///
    /// # Errors
    ///
    /// As [`Breaker::admit`].
    #[inline]
    pub fn admit_with(&self, clock: impl FnOnce() -> Timestamp) -> Result<Permit<&Self>, Refusal> {
        Ok(Permit::new(self, self.0.admit(clock)?))
    }

    /// As [`Breaker::admit`], with a permit that may outlive this handle.
    ///
    /// # Errors
    ///
    /// As [`Breaker::admit`].
    pub fn admit_owned(&self, now: Timestamp) -> Result<Permit<Self>, Refusal> {
        Ok(Permit::new(self.clone(), self.0.admit(|| now)?))
    }

    /// Where it stands, if every call is let through: no other answer needs the time.
    #[inline(always)]
    pub(crate) fn closed(&self) -> Option<Phase> {
        self.0.closed()
    }

    /// As [`Breaker::admit`], for a caller who records the ticket or gives it back.
    pub(crate) fn enter(&self, now: Timestamp) -> Result<Ticket, Refusal> {
        self.0.admit(|| now)
    }

    /// As [`Permit::record`], for a call that lasted from `began` to `ended`: the change of mode that it brought about.
    pub(crate) fn record(
        &self,
        ticket: Ticket,
        verdict: Verdict,
        began: Timestamp,
        ended: Timestamp,
    ) -> Option<Transition> {
        match Mark::of(verdict, self.is_slow(began, ended)) {
            Some(mark) if ticket.probe.is_none() && self.0.record_good(ticket.phase, mark, ended) => None,
            Some(mark) => self.0.record(ticket, mark, || ended).transition(),
            None => {
                self.give_back(ticket);
                None
            }
        }
    }

    /// [`Breaker::record`] for a success of a call that was no probe, as nearly all are.
    #[inline(always)]
    pub(crate) fn succeeded(&self, phase: Phase, began: Timestamp, ended: Timestamp) -> Option<Transition> {
        let quick = Mark { grade: Grade::Success, slow: false };
        match !self.is_slow(began, ended) && self.0.record_good(phase, quick, ended) {
            true => None,
            false => self.succeeded_otherwise(phase, began, ended),
        }
    }

    #[cold]
    #[inline(never)]
    fn succeeded_otherwise(&self, phase: Phase, began: Timestamp, ended: Timestamp) -> Option<Transition> {
        self.record(Ticket::plain(phase), Verdict::Success, began, ended)
    }

    #[inline(always)]
    fn is_slow(&self, began: Timestamp, ended: Timestamp) -> bool {
        ended.as_nanos().saturating_sub(began.as_nanos()) > self.0.slow_after
    }

    /// As dropping a [`Permit`].
    #[inline]
    pub(crate) fn give_back(&self, ticket: Ticket) {
        if let Some(probe) = ticket.probe {
            self.0.give_back(probe);
        }
    }

    /// What [`Breaker::admit`] would say, without asking for a place. `None`: it would let a call through.
    #[inline]
    pub fn refusal(&self, now: Timestamp) -> Option<Refusal> {
        self.0.refusal(now)
    }

    /// What its clones have in common with it and no other breaker has.
    #[cfg(feature = "opentelemetry")]
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Where it stands.
    pub fn status(&self) -> Status {
        self.0.status()
    }

    /// What its window holds at `now`; nothing where the policy has no rates.
    pub fn counts(&self, now: Timestamp) -> Counts {
        self.0.counts(now)
    }

    /// The policy in force.
    pub fn policy(&self) -> &BreakerPolicy {
        &self.0.policy
    }

    /// Refuses every call until told otherwise. `None`: it did already.
    pub fn isolate(&self) -> Option<Transition> {
        self.0.isolate()
    }

    /// Refuses every call until that moment, and then lets probes through, as if it had tripped.
    pub fn force_open(&self, until: Timestamp) -> Option<Transition> {
        self.0.force_open(until)
    }

    /// Lets every call through and counts nothing, until told otherwise. `None`: it did already.
    pub fn force_closed(&self) -> Option<Transition> {
        self.0.force_closed()
    }

    /// Lets every call through, counts, and only says when it would have opened, by a transition from
    /// [`Mode::ObserveOnly`](relent_core::breaker::Mode::ObserveOnly) to itself, after which it begins afresh.
    /// `None`: it did already.
    pub fn observe_only(&self) -> Option<Transition> {
        self.0.observe_only()
    }

    /// Closes it and forgets everything: what it counted, and how often it has opened. `None`: it was closed.
    pub fn close(&self) -> Option<Transition> {
        self.0.close()
    }
}

impl fmt::Debug for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breaker").field("policy", self.policy()).field("status", &self.status()).finish()
    }
}
