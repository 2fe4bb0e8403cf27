//! Where calls come from: a stream that does not care what becomes of them, callers who each wait for theirs, or a
//! herd.

use relent_core::{Refusal, Timestamp};

use super::{World, call::Origin};
use crate::{
    agenda::Kind,
    chance::float_nanos,
    scenario::{CallersKind, EffectKind, GiveUp},
};

/// The stream's state.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// Raised when the load changes: the arrival that was drawn under the old one is void.
    epoch: u32,
    /// The mean gap between two calls, in nanoseconds. 0: none come.
    gap: f64,
}

impl World<'_> {
    /// Callers begin.
    pub(super) fn open(&mut self) {
        match self.scenario.callers.kind {
            CallersKind::Open { .. } => self.change_load(),
            CallersKind::Closed { callers, think } => {
                for caller in 0..callers {
                    let pause = self.chance.pauses.exponential(float_nanos(think));
                    self.agenda.put(Timestamp::from_nanos(pause), Kind::Wake, caller, 0);
                }
            }
            CallersKind::Herd { callers, at } => {
                for caller in 0..callers {
                    self.agenda.put(Timestamp::ZERO.after(at), Kind::Wake, caller, 0);
                }
            }
        }
    }

    /// The load is another from now on. Gaps are without memory, so the next is drawn anew.
    pub(super) fn change_load(&mut self) {
        let CallersKind::Open { rate } = self.scenario.callers.kind else { return };
        let now = self.now;
        let on = self.scenario.effects.iter().filter(|effect| effect.from <= now && now < effect.until);
        let load = on.fold(rate, |load, effect| match effect.kind {
            EffectKind::Load(times) => load * times,
            _ => load,
        });
        let gap = if load > 0.0 { 1e9 / load } else { 0.0 };
        #[expect(clippy::float_cmp, reason = "the same sum of the same numbers, or another load")]
        let same = gap == self.source.gap;
        if !same {
            self.source = Source { epoch: self.source.epoch.wrapping_add(1), gap };
            self.next_arrival();
        }
    }

    fn next_arrival(&mut self) {
        if self.source.gap > 0.0 {
            let gap = self.chance.arrivals.exponential(self.source.gap);
            let at = self.now.after(std::time::Duration::from_nanos(gap));
            self.agenda.put(at, Kind::Arrival, 0, self.source.epoch);
        }
    }

    /// The stream's next call.
    #[inline]
    pub(super) fn arrival(&mut self, epoch: u32) {
        if epoch == self.source.epoch {
            self.next_arrival();
            self.begin(0, Origin::Stream);
        }
    }

    /// A caller's next call.
    pub(super) fn wake(&mut self, caller: u32) {
        self.begin(0, Origin::Caller(caller));
    }

    /// A caller's call has ended.
    pub(super) fn caller_goes_on(&mut self, caller: u32, succeeded: bool, refusal: Option<Refusal>) {
        let again = !succeeded && self.scenario.callers.give_up == GiveUp::Again;
        let pause = match self.scenario.callers.kind {
            _ if again => {
                refusal.map_or(0, |refusal| u64::try_from(refusal.advised.as_nanos()).unwrap_or(u64::MAX))
            }
            CallersKind::Closed { think, .. } => self.chance.pauses.exponential(float_nanos(think)),
            CallersKind::Open { .. } | CallersKind::Herd { .. } => return,
        };
        self.agenda.put(self.now.after(std::time::Duration::from_nanos(pause)), Kind::Wake, caller, 0);
    }
}
