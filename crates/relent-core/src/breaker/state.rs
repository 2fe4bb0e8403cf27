//! A breaker in plain fields: one thread, no atomics, the exact twin of the live one.

use core::time::Duration;

use crate::{
    decision::Refusal,
    time::Timestamp,
    verdict::Verdict,
    window::{Counts, Grade, Mark, WindowState},
};

use super::{
    BreakerPolicy, Mode, Phase, Probe, Recorded, Slot, Status, Tally, Transition, Trip, next_place,
    rules::Judgement,
};

/// The leave to make one call. To be ended by [`BreakerState::record`] or [`BreakerState::give_back`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use = "a probe that is neither recorded nor given back keeps its place until its time-out"]
pub struct Ticket {
    /// Where the breaker stood when it let the call through.
    pub phase: Phase,
    /// The probe's hold on its place, if the call is a probe.
    pub probe: Option<Probe>,
    /// Whether this call is the one that found the break over.
    pub first: bool,
}

impl Ticket {
    /// That of a call which is no probe.
    #[inline]
    pub const fn plain(phase: Phase) -> Self {
        Self { phase, probe: None, first: false }
    }

    /// The change of mode that letting this call through brought about.
    pub fn transition(&self) -> Option<Transition> {
        self.first.then_some(Transition { from: Mode::Open, to: Mode::HalfOpen, trip: None, until: None })
    }
}

/// A breaker's state in plain fields, for simulations.
#[derive(Clone, Debug)]
pub struct BreakerState {
    policy: BreakerPolicy,
    seed: u64,
    phase: Phase,
    until: Timestamp,
    slots: [Slot; BreakerPolicy::MOST_PROBES as usize],
    window: WindowState,
    row: u32,
}

impl BreakerState {
    /// A closed breaker. The seed is its whole supply of chance.
    pub fn new(policy: &BreakerPolicy, seed: u64) -> Self {
        let window = if policy.has_rates() { WindowState::new(policy.window) } else { WindowState::Off };
        Self {
            policy: policy.clone(),
            seed,
            phase: Phase::START,
            until: Timestamp::ZERO,
            slots: [Slot::FREE; BreakerPolicy::MOST_PROBES as usize],
            window,
            row: 0,
        }
    }

    /// A call asks to be let through.
    ///
    /// # Errors
    ///
    /// The refusal of [`Gate::Breaker`](crate::Gate::Breaker): until the break is over, or until the first probe
    /// is taken for lost; without a moment where somebody isolated it.
    pub fn admit(&mut self, now: Timestamp) -> Result<Ticket, Refusal> {
        match self.phase.mode() {
            Mode::Closed | Mode::ForcedClosed | Mode::ObserveOnly => Ok(Ticket::plain(self.phase)),
            Mode::Isolated => Err(self.policy.isolated()),
            Mode::Open if now < self.until => Err(self.policy.refusal(self.until, now)),
            Mode::Open => {
                self.phase = self.phase.half_opened();
                self.slots = [Slot::FREE; BreakerPolicy::MOST_PROBES as usize];
                self.probe(now).map(|ticket| Ticket { first: true, ..ticket })
            }
            Mode::HalfOpen => self.probe(now),
        }
    }

    /// A call ended.
    pub fn record(&mut self, ticket: Ticket, verdict: Verdict, took: Duration, now: Timestamp) -> Recorded {
        let Some(mark) = self.policy.mark(verdict, took) else {
            self.give_back(ticket);
            return Recorded::Uncounted;
        };
        if ticket.phase != self.phase {
            return Recorded::Stale;
        }
        match (self.phase.mode(), ticket.probe) {
            (Mode::Closed | Mode::ObserveOnly, _) => self.count(mark, now),
            (Mode::HalfOpen, Some(probe)) => self.probed(probe, mark, now),
            _ => Recorded::Uncounted,
        }
    }

    /// A call ended without a result, or was never made.
    pub fn give_back(&mut self, ticket: Ticket) {
        if let Some(slot) = ticket.probe.and_then(|probe| self.held(probe)) {
            *slot = Slot::FREE;
        }
    }

    /// Refuses every call until told otherwise.
    pub fn isolate(&mut self) -> Option<Transition> {
        self.set(self.phase.isolated())
    }

    /// Refuses every call until that moment, and then lets probes through, as if it had tripped.
    pub fn force_open(&mut self, until: Timestamp) -> Option<Transition> {
        self.until = until;
        let transition = self.set(self.phase.opened())?;
        Some(Transition { until: Some(until), ..transition })
    }

    /// Lets every call through and counts nothing, until told otherwise.
    pub fn force_closed(&mut self) -> Option<Transition> {
        self.set(self.phase.forced_closed())
    }

    /// Lets every call through and only says when it would have opened, until told otherwise.
    pub fn observe_only(&mut self) -> Option<Transition> {
        self.set(self.phase.observing())
    }

    /// Closed, and everything forgotten.
    pub fn close(&mut self) -> Option<Transition> {
        self.set(self.phase.closed())
    }

    /// Where it stands.
    pub fn status(&self) -> Status {
        let mode = self.phase.mode();
        Status { mode, opens: self.phase.opens(), until: (mode == Mode::Open).then_some(self.until) }
    }

    /// What its window holds.
    pub fn counts(&self, now: Timestamp) -> Counts {
        self.window.counts(now)
    }

    fn probe(&mut self, now: Timestamp) -> Result<Ticket, Refusal> {
        let Some((place, _)) = next_place(self.probes(), now) else {
            return Err(self.policy.all_lent(Tally::of(self.probes()), now));
        };
        let lease = Slot::lent(now.after(self.policy.probe_timeout), self.phase.generation());
        self.slots[usize::from(place)] = lease;
        Ok(Ticket { phase: self.phase, probe: Some(Probe { place, lease }), first: false })
    }

    fn probes(&self) -> impl Iterator<Item = Slot> {
        self.slots.iter().copied().take(self.policy.probes as usize)
    }

    fn held(&mut self, probe: Probe) -> Option<&mut Slot> {
        self.slots.get_mut(usize::from(probe.place)).filter(|slot| **slot == probe.lease)
    }

    fn probed(&mut self, probe: Probe, mark: Mark, now: Timestamp) -> Recorded {
        let Some(slot) = self.held(probe) else {
            return Recorded::Stale;
        };
        *slot = Slot::done(mark);
        match self.policy.judge(Tally::of(self.probes())) {
            Judgement::Wait => Recorded::Counted,
            Judgement::Close => self.close().map_or(Recorded::Counted, Recorded::Changed),
            Judgement::Open(trip) => self.trip(trip, now),
        }
    }

    fn count(&mut self, mark: Mark, now: Timestamp) -> Recorded {
        if !self.window.add(mark, now) {
            return Recorded::Stale;
        }
        match mark.grade {
            Grade::Success => self.row = 0,
            Grade::Answer => {}
            Grade::Failure => self.row = self.row.saturating_add(1),
        }
        if !mark.is_bad() {
            return Recorded::Counted;
        }
        match self.policy.trips(self.window.counts(now), self.row) {
            Some(trip) => self.trip(trip, now),
            None => Recorded::Counted,
        }
    }

    fn trip(&mut self, trip: Trip, now: Timestamp) -> Recorded {
        let from = self.phase.mode();
        if from == Mode::ObserveOnly {
            let _same_mode = self.set(self.phase.observing());
            return Recorded::Changed(Transition { from, to: from, trip: Some(trip), until: None });
        }
        let opened = self.phase.opened();
        self.until = now.after(self.policy.break_length(opened, self.seed));
        let _told_in_full = self.set(opened);
        Recorded::Changed(Transition { from, to: Mode::Open, trip: Some(trip), until: Some(self.until) })
    }

    /// Goes on to a phase with nothing counted. `None`: the mode is the same.
    fn set(&mut self, phase: Phase) -> Option<Transition> {
        let (from, to) = (self.phase.mode(), phase.mode());
        self.phase = phase;
        self.window.clear();
        self.row = 0;
        (from != to).then_some(Transition { from, to, trip: None, until: None })
    }
}
