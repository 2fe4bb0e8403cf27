//! What the handles of a breaker share, and the two questions that every call asks.

use relent_core::{
    BreakerPolicy, Refusal, Timestamp,
    breaker::{CHANGING, Mode, Phase, Probe, Recorded, Slot, Standing, Status, Tally, Ticket, next_place},
    window::{Counts, Grade, Mark},
};

use crate::{
    control::window::{Counters, Epoch, Line, Moment, Tagged, tag},
    sync::atomic::{AtomicU64, Ordering, fence},
};

/// The breaker itself.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) policy: BreakerPolicy,
    /// A call that takes more nanoseconds is slow.
    pub(super) slow_after: u64,
    pub(super) seed: u64,
    /// A [`Phase`]: read by every call, written only when the mode changes.
    pub(super) state: AtomicU64,
    /// Until when it is open, in nanoseconds; belongs to the state while that is open and settled.
    pub(super) until: AtomicU64,
    /// A [`Slot`] for each probe; they belong to the state while that is half-open and settled.
    pub(super) slots: Box<[AtomicU64]>,
    /// Failures in a row.
    row: Line<Tagged>,
    window: Counters,
}

impl Shared {
    pub(super) fn new(policy: BreakerPolicy, seed: u64) -> Self {
        let window = if policy.has_rates() { Counters::new(policy.window) } else { Counters::Off };
        Self {
            seed,
            state: AtomicU64::new(Phase::START.word()),
            until: AtomicU64::new(0),
            slots: (0..policy.probes).map(|_| AtomicU64::new(Slot::FREE.word())).collect(),
            row: Line(Tagged::new()),
            window,
            slow_after: policy.slow_after_nanos(),
            policy,
        }
    }

    #[inline]
    pub(super) fn phase(&self) -> Phase {
        Phase::from_word(self.state.load(Ordering::Acquire))
    }

    #[inline]
    pub(super) fn admit(&self, clock: impl FnOnce() -> Timestamp) -> Result<Ticket, Refusal> {
        match self.closed() {
            Some(phase) => Ok(Ticket::plain(phase)),
            None if self.phase().mode() == Mode::Isolated => Err(self.policy.isolated()),
            None => self.admit_at(clock()),
        }
    }

    /// Where it stands, if every call is let through.
    #[inline(always)]
    pub(super) fn closed(&self) -> Option<Phase> {
        let phase = self.phase();
        phase.lets_through().then_some(phase)
    }

    fn admit_at(&self, now: Timestamp) -> Result<Ticket, Refusal> {
        loop {
            let phase = self.phase();
            let admitted = match phase.standing() {
                Standing::Settled(Mode::Open) => {
                    let until = Timestamp::from_nanos(self.until.load(Ordering::Acquire));
                    if now < until {
                        return Err(self.policy.refusal(until, now));
                    }
                    self.half_open(phase, now).map(Ok)
                }
                Standing::Settled(Mode::HalfOpen) => self.probe(phase, now),
                Standing::Settled(Mode::Isolated) => return Err(self.policy.isolated()),
                Standing::Settled(Mode::Closed | Mode::ForcedClosed | Mode::ObserveOnly) => {
                    return Ok(Ticket::plain(phase));
                }
                Standing::Opening | Standing::HalfOpening => return Err(CHANGING),
            };
            if let Some(admitted) = admitted {
                return admitted;
            }
            // Another thread changed the mode meanwhile; it got on, and this one looks again.
        }
    }

    /// Takes a place for a probe. `None`: the breaker has moved on.
    fn probe(&self, phase: Phase, now: Timestamp) -> Option<Result<Ticket, Refusal>> {
        let lease = self.lease(phase, now);
        loop {
            let Some((place, seen)) = next_place(self.places(), now) else {
                let tally = Tally::of(self.places());
                return (self.phase() == phase).then(|| Err(self.policy.all_lent(tally, now)));
            };
            let slot = &self.slots[usize::from(place)];
            if slot.compare_exchange(seen.word(), lease.word(), Ordering::AcqRel, Ordering::Acquire).is_err()
            {
                continue;
            }
            let probe = Probe { place, lease };
            if self.phase() == phase {
                return Some(Ok(Ticket { phase, probe: Some(probe), first: false }));
            }
            self.give_back(probe);
            return None;
        }
    }

    /// Records a good call of a breaker that lets every call through. `false`: it is another, or stands elsewhere, and
    /// nothing was done. It changes no mode: most calls end here.
    #[inline(always)]
    pub(super) fn record_good(&self, phase: Phase, mark: Mark, now: Timestamp) -> bool {
        let is_good = !mark.is_bad() && phase.counts_all() && self.phase() == phase;
        if is_good {
            let epoch = Epoch { state: &self.state, phase };
            // What comes too late is left out, here as there.
            let _counted = self.window.add(epoch, mark, move || now)
                && (self.policy.consecutive_failures.is_none() || self.add_to_row(epoch, mark.grade));
        }
        is_good
    }

    #[inline]
    pub(super) fn record(&self, ticket: Ticket, mark: Mark, clock: impl FnOnce() -> Timestamp) -> Recorded {
        let phase = ticket.phase;
        if self.phase() != phase {
            return Recorded::Stale;
        }
        if phase.counts_all() {
            return self.count(phase, mark, clock);
        }
        match ticket.probe {
            Some(probe) => self.probed(phase, probe, mark, clock),
            None => Recorded::Uncounted,
        }
    }

    #[inline]
    fn count(&self, phase: Phase, mark: Mark, clock: impl FnOnce() -> Timestamp) -> Recorded {
        let epoch = Epoch { state: &self.state, phase };
        let mut now = Moment::new(clock);
        if !self.window.add(epoch, mark, || now.get()) {
            return Recorded::Stale;
        }
        if self.policy.consecutive_failures.is_some() && !self.add_to_row(epoch, mark.grade) {
            return Recorded::Stale;
        }
        if mark.is_bad() { self.judge(phase, &mut now) } else { Recorded::Counted }
    }

    /// After a bad call: whether it was one too many.
    #[inline(never)]
    fn judge<F: FnOnce() -> Timestamp>(&self, phase: Phase, now: &mut Moment<F>) -> Recorded {
        // Of threads that fail together, each first writes and then reads: the last to write must see them all.
        fence(Ordering::SeqCst);
        let row = self.row.0.value(tag(phase)).unwrap_or(0);
        match self.policy.trips(self.window.counts(phase, now), row) {
            Some(trip) => self.trip(phase, trip, now.get()),
            None => Recorded::Counted,
        }
    }

    /// `false`: the breaker has moved on.
    fn add_to_row(&self, epoch: Epoch<'_>, grade: Grade) -> bool {
        let step = |next: fn(u32) -> u32| self.row.0.step(epoch.tag(), |_| epoch.holds(), next).is_ok();
        match grade {
            // A row that is not there need not be broken, and a cell that is only read stays in every cache.
            Grade::Success => self.row.0.value(epoch.tag()).unwrap_or(0) == 0 || step(|_| 0),
            Grade::Answer => true,
            Grade::Failure => step(|row| row.saturating_add(1)),
        }
    }

    pub(super) fn give_back(&self, probe: Probe) {
        // Where another probe has the place by now, it is none of ours.
        let _whose = self.slots[usize::from(probe.place)].compare_exchange(
            probe.lease.word(),
            Slot::FREE.word(),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
    }

    /// (While the breaker is open, every call asks.)
    #[inline]
    pub(super) fn refusal(&self, now: Timestamp) -> Option<Refusal> {
        match self.phase().standing() {
            Standing::Settled(Mode::Open) => {
                let until = Timestamp::from_nanos(self.until.load(Ordering::Acquire));
                (now < until).then(|| self.policy.refusal(until, now))
            }
            standing => self.refusal_otherwise(standing, now),
        }
    }

    #[cold]
    #[inline(never)]
    fn refusal_otherwise(&self, standing: Standing, now: Timestamp) -> Option<Refusal> {
        match standing {
            Standing::Settled(Mode::Closed | Mode::ForcedClosed | Mode::ObserveOnly | Mode::Open) => None,
            Standing::Settled(Mode::Isolated) => Some(self.policy.isolated()),
            Standing::Settled(Mode::HalfOpen) => match next_place(self.places(), now) {
                Some(_) => None,
                None => Some(self.policy.all_lent(Tally::of(self.places()), now)),
            },
            Standing::Opening | Standing::HalfOpening => Some(CHANGING),
        }
    }

    pub(super) fn status(&self) -> Status {
        loop {
            let phase = self.phase();
            let until = Timestamp::from_nanos(self.until.load(Ordering::Acquire));
            if self.phase() == phase {
                let open = phase.standing() == Standing::Settled(Mode::Open);
                return Status { mode: phase.mode(), opens: phase.opens(), until: open.then_some(until) };
            }
        }
    }

    pub(super) fn counts(&self, now: Timestamp) -> Counts {
        self.window.counts(self.phase(), &mut Moment::new(|| now))
    }

    pub(super) fn places(&self) -> impl Iterator<Item = Slot> {
        self.slots.iter().map(|slot| Slot::from_word(slot.load(Ordering::Acquire)))
    }

    pub(super) fn lease(&self, phase: Phase, now: Timestamp) -> Slot {
        Slot::lent(now.after(self.policy.probe_timeout), phase.generation())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Mark = Mark { grade: Grade::Success, slow: false };
    const BAD: Mark = Mark { grade: Grade::Failure, slow: false };
    const NOW: Timestamp = Timestamp::from_secs(1);

    /// Opens after two failures in a row. (It has a window too, which is asked for more calls than these tests make.)
    fn shared() -> Shared {
        let (failure_rate_milli, consecutive_failures) = (Some(1000), Some(2));
        Shared::new(BreakerPolicy { failure_rate_milli, consecutive_failures, ..BreakerPolicy::default() }, 1)
    }

    #[test]
    fn the_short_cut_of_good_calls_counts_those_of_where_the_breaker_stands_and_leaves_all_else_alone() {
        let shared = shared();
        assert!(shared.record_good(Phase::START, GOOD, NOW));
        assert!(!shared.record_good(Phase::START, BAD, NOW));
        assert!(!shared.record_good(Phase::START, Mark { slow: true, ..GOOD }, NOW));
        assert_eq!(shared.counts(NOW).calls, 1);
        for by_hand in [Shared::force_closed, Shared::isolate] {
            assert!(by_hand(&shared).is_some());
            assert!(!shared.record_good(Phase::START, GOOD, NOW), "it has moved on");
            assert!(!shared.record_good(shared.phase(), GOOD, NOW), "nothing is counted there");
        }
        assert!(shared.close().is_some());
        assert!(shared.record_good(shared.phase(), GOOD, NOW));
        assert_eq!(shared.counts(NOW).calls, 1);
    }

    #[test]
    fn a_good_call_that_took_the_short_cut_breaks_a_row_of_failures() {
        let shared = shared();
        let fail = || shared.record(Ticket::plain(Phase::START), BAD, || NOW);
        assert_eq!(fail(), Recorded::Counted);
        assert!(shared.record_good(Phase::START, GOOD, NOW));
        assert_eq!(fail(), Recorded::Counted);
        assert!(matches!(fail(), Recorded::Changed(_)));
    }
}
