//! The leave to make one call, which comes back whatever becomes of the call.

use std::{borrow::Borrow, fmt, time::Duration};

use relent_core::{
    Timestamp, Verdict,
    breaker::{Mode, Recorded, Ticket, Transition},
};

use super::Breaker;

/// The leave to make one call.
///
/// # Cancellation safety
///
/// Dropping it counts nothing: the caller gave up, or the call was never made. A probe's place goes back, and the
/// next caller takes it.
#[must_use = "dropped at once it counts nothing"]
pub struct Permit<B: Borrow<Breaker> = Breaker> {
    breaker: B,
    ticket: Ticket,
}

impl<B: Borrow<Breaker>> Permit<B> {
    #[inline]
    pub(super) const fn new(breaker: B, ticket: Ticket) -> Self {
        Self { breaker, ticket }
    }

    /// The change of mode that letting this call through brought about: it found the break over.
    pub fn transition(&self) -> Option<Transition> {
        self.ticket.transition()
    }

    /// Whether the call is a probe.
    pub const fn is_probe(&self) -> bool {
        matches!(self.ticket.phase.mode(), Mode::HalfOpen)
    }

    /// Records how the call ended.
    ///
    /// `took` is looked at only where the policy names slow calls, `now` only where the window is of time or the
    /// result opens the breaker.
    #[inline]
    pub fn record(self, verdict: Verdict, took: Duration, now: Timestamp) -> Recorded {
        self.record_with(verdict, took, || now)
    }

    /// As [`Permit::record`], for a caller who would read the clock for the breaker alone: it is read at most
    /// once, and only where it matters.
    #[inline]
    pub fn record_with(
        mut self,
        verdict: Verdict,
        took: Duration,
        clock: impl FnOnce() -> Timestamp,
    ) -> Recorded {
        let ticket = self.ticket;
        let shared = &self.breaker.borrow().0;
        let Some(mark) = shared.policy.mark(verdict, took) else {
            return Recorded::Uncounted;
        };
        let recorded = shared.record(ticket, mark, clock);
        self.ticket.probe = None;
        recorded
    }
}

impl<B: Borrow<Breaker>> Drop for Permit<B> {
    #[inline]
    fn drop(&mut self) {
        if let Some(probe) = self.ticket.probe {
            self.breaker.borrow().0.give_back(probe);
        }
    }
}

impl<B: Borrow<Breaker>> fmt::Debug for Permit<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}
