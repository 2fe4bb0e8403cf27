//! On the way to an attempt: room for so many, and a place in the rate's sequence, once for the call and once for each
//! attempt. Who is let in later goes on where it stood.

use std::time::Duration;

use relent_core::{Refusal, Timestamp};

use super::{
    World,
    call::{At, State},
    limits::{Entry, Limits},
};
use crate::agenda::Kind;

/// What came of asking a limit.
pub(super) enum Passed {
    Yes,
    Later,
    Refused(Refusal),
}

impl World<'_> {
    /// Asks the limits at a place.
    #[inline]
    pub(super) fn pass(&mut self, call: u32, at: At) -> Passed {
        let state = &mut self.calls[call as usize];
        let client = &mut self.tiers[usize::from(state.tier)].clients[state.client as usize];
        let limits = match at {
            At::Admission => &mut client.admission,
            At::Attempt => &mut client.attempt,
        };
        let Some(limits) = limits else {
            state.holds[at as usize] = at == At::Admission;
            return Passed::Yes;
        };
        match limits.enter(call) {
            Entry::In => self.has_room(call, at),
            Entry::Refused(refusal) => Passed::Refused(refusal),
            Entry::InLine => self.stand_in_line(call, at),
        }
    }

    /// Nobody stands in line for a dependency whose breaker is open.
    fn stand_in_line(&mut self, call: u32, at: At) -> Passed {
        let state = &self.calls[call as usize];
        if let Some(refusal) = self.tiers[usize::from(state.tier)].open_at(state.client, self.now) {
            self.step_out(call, at);
            return Passed::Refused(refusal);
        }
        self.wait_at(call, State::InLine(at));
        self.set_timer(call);
        Passed::Later
    }

    /// There is room for it at a place; then the rate's moment is booked.
    fn has_room(&mut self, call: u32, at: At) -> Passed {
        let latest = self.cut(call).before(NANO);
        let now = self.now;
        self.calls[call as usize].holds[at as usize] = true;
        match self.limits(call, at).map_or(Ok(None), |limits| limits.book(now, latest)) {
            Ok(None) => Passed::Yes,
            Ok(Some((place, moment))) => {
                self.calls[call as usize].booked[at as usize] = Some(place);
                if moment <= now {
                    return Passed::Yes;
                }
                self.wait_at(call, State::Booked(at));
                self.agenda.put(moment, Kind::Turn, call, self.calls[call as usize].epoch);
                Passed::Later
            }
            Err(refusal) => Passed::Refused(refusal),
        }
    }

    pub(super) fn limits(&mut self, call: u32, at: At) -> Option<&mut Limits> {
        let state = &self.calls[call as usize];
        let client = &mut self.tiers[usize::from(state.tier)].clients[state.client as usize];
        match at {
            At::Admission => client.admission.as_deref_mut(),
            At::Attempt => client.attempt.as_deref_mut(),
        }
    }

    pub(super) fn step_out(&mut self, call: u32, at: At) {
        if let Some(limits) = self.limits(call, at) {
            limits.step_out(call);
        }
    }

    /// Up to when a wait at a gate may last: what is left must be enough for an attempt.
    fn cut(&self, call: u32) -> Timestamp {
        let state = &self.calls[call as usize];
        let retry = &self.tiers[usize::from(state.tier)].policy.retry;
        let deadline = state.history.deadlines.earliest();
        deadline.map_or(Timestamp::MAX, |(at, _)| at.before(retry.reserve).before(retry.min_attempt))
    }

    fn wait_at(&mut self, call: u32, state: State) {
        let cut = self.cut(call);
        let waits = &mut self.calls[call as usize];
        waits.state = state;
        waits.epoch = waits.epoch.wrapping_add(1);
        waits.give_up_at = cut;
        self.gauges.waiting += 1;
    }

    /// A gate lets in a call that waited there.
    pub(super) fn let_in(&mut self, call: u32, epoch: u32) {
        let waits = &mut self.calls[call as usize];
        if waits.epoch != epoch {
            return;
        }
        let state = std::mem::replace(&mut waits.state, State::Waiting);
        self.gauges.waiting -= 1;
        if let State::InLine(at) = state {
            match self.has_room(call, at) {
                Passed::Yes => {}
                Passed::Later => return,
                Passed::Refused(refusal) => return self.refuse(call, refusal),
            }
        }
        self.seek(call);
    }

    /// Gives room at a place back, and lets in who has waited for it.
    #[inline]
    pub(super) fn make_room(&mut self, call: u32, at: At) {
        if !std::mem::take(&mut self.calls[call as usize].holds[at as usize]) {
            return;
        }
        if let Some(next) = self.limits(call, at).and_then(Limits::leave) {
            self.calls[next as usize].holds[at as usize] = true;
            self.agenda.put(self.now, Kind::Turn, next, self.calls[next as usize].epoch);
        }
    }
}

const NANO: Duration = Duration::from_nanos(1);
