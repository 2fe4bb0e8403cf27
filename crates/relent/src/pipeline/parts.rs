//! What calls ask of their pipeline, whatever its clock and its classifier are.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::Arc,
    thread,
};

use relent_core::{Pace, Policy, Timestamp};

use super::Parts;
use crate::{
    event::{Event, Observe, Scene},
    gates::Controls,
    nesting::Identity,
    overrun::Tally,
    switch::{self, Retries},
};

impl Parts {
    #[inline]
    pub(crate) fn policy(&self) -> &Policy {
        &self.shared.policy
    }

    #[inline]
    pub(crate) fn pace(&self) -> &Pace {
        &self.shared.pace
    }

    #[inline]
    pub(crate) fn straight_for(&self) -> Option<u64> {
        self.shared.straight_for
    }

    #[inline]
    pub(crate) fn controls(&self) -> &Controls {
        &self.controls
    }

    pub(crate) fn dependency(&self) -> Option<&Arc<str>> {
        self.dependency.as_ref()
    }

    #[inline]
    pub(crate) const fn identity(&self) -> Identity {
        self.identity
    }

    pub(crate) fn tally(&self) -> &Arc<Tally> {
        &self.shared.overruns
    }

    #[inline]
    pub(crate) fn draw_seed(&self) -> u64 {
        self.shared.seeds.draw()
    }

    /// What the two switches say together.
    pub(crate) fn retries(&self) -> Retries {
        match switch::retries() {
            Retries::On => self.shared.retries.state(),
            Retries::Off => Retries::Off,
        }
    }

    /// Whether anybody is told of events.
    #[inline]
    pub(crate) const fn is_observed(&self) -> bool {
        self.observer.is_some()
    }

    /// Tells the observer, if there is one; otherwise the event is not even put together.
    #[inline]
    pub(crate) fn tell<'e>(&self, call: u64, at: Timestamp, event: impl FnOnce() -> Event<'e>) {
        if let Some(observer) = &self.observer {
            self.tell_observer(&**observer, call, at, event);
        }
    }

    /// Out of line, so that calls which nobody listens to do not carry it along.
    #[cold]
    #[inline(never)]
    fn tell_observer<'e>(
        &self,
        observer: &dyn Observe,
        call: u64,
        at: Timestamp,
        event: impl FnOnce() -> Event<'e>,
    ) {
        let (dependency, alert) = (self.dependency.as_deref(), self.policy().alert.as_deref());
        let tell = || observer.observe(Scene { dependency, call, at, alert }, &event());
        // A call that a panic drops tells of its end; another panic then would end the process.
        match thread::panicking() {
            false => tell(),
            true => drop(panic::catch_unwind(AssertUnwindSafe(tell))),
        }
    }
}
