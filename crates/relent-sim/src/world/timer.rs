//! The end of an attempt's time, and of what it had asked of others.
//!
//! Most attempts end long before their time-out, so a timer stands for a place among the calls and not for an attempt:
//! one that fires too early is set anew. An agenda of ten thousand timers that nobody needs would be slow.

use relent_core::{StopReason, Timestamp};

use super::{
    World,
    call::{NOBODY, Origin, State},
};
use crate::agenda::Kind;

impl World<'_> {
    /// Sees to it that a timer is down that fires no later than the end of what the call does. One that fires too
    /// early is set anew then.
    #[inline]
    pub(super) fn set_timer(&mut self, call: u32) {
        let state = &mut self.calls[call as usize];
        if state.give_up_at < state.timer {
            state.timer = state.give_up_at;
            self.agenda.put(state.timer, Kind::TimeUp, call, 0);
        }
    }

    /// A timer fired.
    pub(super) fn time_up(&mut self, call: u32) {
        let state = &mut self.calls[call as usize];
        if state.timer != self.now {
            return;
        }
        state.timer = Timestamp::MAX;
        match state.state {
            State::Free | State::Waiting | State::Booked(_) => {}
            State::Running | State::InLine(_) if state.give_up_at > self.now => self.set_timer(call),
            State::Running => {
                let verdict = self.tiers[usize::from(state.tier)].timed_out();
                let verdict = self.scripted_time_out(call).unwrap_or(verdict);
                self.abandon_child(call);
                self.conclude(call, verdict);
            }
            State::InLine(at) => {
                let deadline = state.history.deadlines.earliest();
                let reason = deadline.map_or(StopReason::TotalTimeout, |(_, reason)| reason);
                state.state = State::Waiting;
                self.gauges.waiting -= 1;
                self.step_out(call, at);
                self.end(call, reason, None);
            }
        }
    }

    /// An attempt was given up: where services stop what they asked of others, so does the one below.
    fn abandon_child(&mut self, call: u32) {
        let child = std::mem::replace(&mut self.calls[call as usize].child, NOBODY);
        if child == NOBODY || !self.scenario.cancel_downwards {
            return;
        }
        let state = &mut self.calls[child as usize];
        let was = std::mem::replace(&mut state.state, State::Waiting);
        state.origin = Origin::Stream; // nobody waits for it any more
        match was {
            State::Free => return,
            State::Running => {
                self.gauges.in_flight -= 1;
                let client = &mut self.tiers[usize::from(state.tier)].clients[state.client as usize];
                // It was sent, so it is not lent again.
                if let (Some(loan), Some(budget)) = (state.loan.take(), &mut client.budget) {
                    budget.on_retry_failure(loan);
                }
            }
            State::Waiting | State::Booked(_) => self.gauges.waiting -= 1,
            State::InLine(at) => {
                self.gauges.waiting -= 1;
                self.step_out(child, at);
            }
        }
        self.abandon_child(child);
        self.end(child, StopReason::Cancelled, None);
    }
}
