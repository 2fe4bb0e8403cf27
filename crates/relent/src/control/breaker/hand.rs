//! Changes by hand.
//!
//! These alone wait, for the few stores of a thread that is just changing the mode: a person's word must not be
//! lost to a race, and no call comes this way.

use relent_core::{
    Timestamp,
    breaker::{Mode, Phase, Standing, Transition},
};

use super::shared::Shared;
use crate::sync::yield_now;

impl Shared {
    pub(super) fn isolate(&self) -> Option<Transition> {
        self.set(Phase::isolated)
    }

    pub(super) fn force_closed(&self) -> Option<Transition> {
        self.set(Phase::forced_closed)
    }

    pub(super) fn observe_only(&self) -> Option<Transition> {
        self.set(Phase::observing)
    }

    pub(super) fn close(&self) -> Option<Transition> {
        self.set(Phase::closed)
    }

    pub(super) fn force_open(&self, until: Timestamp) -> Option<Transition> {
        let from = self.until_done(|phase| self.open(phase, until)).mode();
        (from != Mode::Open).then_some(Transition { from, to: Mode::Open, trip: None, until: Some(until) })
    }

    fn set(&self, next: fn(Phase) -> Phase) -> Option<Transition> {
        let phase = self.until_done(|phase| self.step(phase, next(phase)));
        let (from, to) = (phase.mode(), next(phase).mode());
        (from != to).then_some(Transition { from, to, trip: None, until: None })
    }

    /// Repeats a change until no other thread is quicker, and returns the phase that it was made from.
    fn until_done(&self, change: impl Fn(Phase) -> bool) -> Phase {
        loop {
            let phase = self.phase();
            match phase.standing() {
                Standing::Settled(_) if change(phase) => return phase,
                Standing::Settled(_) => {}
                Standing::Opening | Standing::HalfOpening => yield_now(),
            }
        }
    }
}
