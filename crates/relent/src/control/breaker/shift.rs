//! How a call changes the mode: it takes the state into one in which everybody is refused, writes down what
//! belongs to the next, and only then says that it is reached.
//!
//! Nobody waits for it meanwhile, and whoever loses the race to begin has nothing to do: the change is made.

use relent_core::{
    Timestamp,
    breaker::{Judgement, Mode, Phase, Probe, Recorded, Slot, Tally, Ticket, Transition, Trip},
    window::Mark,
};

use super::shared::Shared;
use crate::sync::atomic::{Ordering, fence};

impl Shared {
    /// The break is over: makes the places ready and takes the first. `None`: another thread was quicker.
    pub(super) fn half_open(&self, open: Phase, now: Timestamp) -> Option<Ticket> {
        let phase = open.half_opened();
        if !self.step(open, phase.unsettled()) {
            return None;
        }
        let lease = self.lease(phase, now);
        for (place, slot) in self.slots.iter().enumerate() {
            let first = if place == 0 { lease } else { Slot::FREE };
            slot.store(first.word(), Ordering::Release);
        }
        self.state.store(phase.word(), Ordering::Release);
        Some(Ticket { phase, probe: Some(Probe { place: 0, lease }), first: true })
    }

    /// A probe ended.
    pub(super) fn probed(
        &self,
        phase: Phase,
        probe: Probe,
        mark: Mark,
        clock: impl FnOnce() -> Timestamp,
    ) -> Recorded {
        let slot = &self.slots[usize::from(probe.place)];
        let (lease, done) = (probe.lease.word(), Slot::done(mark).word());
        if slot.compare_exchange(lease, done, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return Recorded::Stale;
        }
        // Of probes that end together, the last to write must see them all, or nobody would judge.
        fence(Ordering::SeqCst);
        match self.policy.judge(Tally::of(self.places())) {
            Judgement::Wait => Recorded::Counted,
            Judgement::Open(trip) => self.trip(phase, trip, clock()),
            Judgement::Close if self.step(phase, phase.closed()) => {
                changed(Transition { from: Mode::HalfOpen, to: Mode::Closed, trip: None, until: None })
            }
            Judgement::Close => Recorded::Counted,
        }
    }

    /// Opens; or, where it merely observes, says that it would have and begins afresh.
    pub(super) fn trip(&self, from: Phase, trip: Trip, now: Timestamp) -> Recorded {
        if from.mode() == Mode::ObserveOnly {
            return match self.step(from, from.observing()) {
                true => changed(Transition {
                    from: Mode::ObserveOnly,
                    to: Mode::ObserveOnly,
                    trip: Some(trip),
                    until: None,
                }),
                false => Recorded::Counted,
            };
        }
        let until = now.after(self.policy.break_length(from.opened(), self.seed));
        match self.open(from, until) {
            true => changed(Transition {
                from: from.mode(),
                to: Mode::Open,
                trip: Some(trip),
                until: Some(until),
            }),
            false => Recorded::Counted,
        }
    }

    /// `false`: another thread was quicker.
    pub(super) fn open(&self, from: Phase, until: Timestamp) -> bool {
        let opened = from.opened();
        if !self.step(from, opened.unsettled()) {
            return false;
        }
        self.until.store(until.as_nanos(), Ordering::Release);
        self.state.store(opened.word(), Ordering::Release);
        true
    }

    pub(super) fn step(&self, from: Phase, to: Phase) -> bool {
        self.state.compare_exchange(from.word(), to.word(), Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

const fn changed(transition: Transition) -> Recorded {
    Recorded::Changed(transition)
}
