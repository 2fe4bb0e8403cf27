//! How an attempt ends, and how a call does: the controls are told in their order, the core decides, and what the call
//! held goes back, the innermost first.

use relent_core::{Decision, Refusal, StopReason, Verdict, Wait, breaker::Recorded};

use super::{
    World,
    call::{At, NOBODY, Origin, State},
    tier::changed,
};
use crate::{agenda::Kind, measure::Went, server::Answer};

impl World<'_> {
    /// The attempt has ended. The breaker and the budget are told, in this order, and the core decides.
    #[inline]
    pub(super) fn conclude(&mut self, call: u32, verdict: Verdict) {
        self.gauges.in_flight -= 1;
        let now = self.now;
        let state = &mut self.calls[call as usize];
        state.state = State::Waiting;
        state.epoch = state.epoch.wrapping_add(1);
        state.child = NOBODY;
        let tier = &mut self.tiers[usize::from(state.tier)];
        let client = &mut tier.clients[state.client as usize];
        if let (Some(ticket), Some(breaker)) = (state.ticket.take(), &mut client.breaker) {
            let recorded = breaker.record(ticket, verdict, now.since(state.began), now);
            changed(Recorded::transition(recorded), &mut self.gauges, &mut self.recorder);
        }
        if let Some(budget) = &mut client.budget {
            match (verdict, state.loan.take()) {
                (Verdict::Success, None) => budget.on_first_success(now),
                (Verdict::Success, Some(loan)) => budget.on_retry_success(loan, now),
                (_, Some(loan)) => budget.on_retry_failure(loan),
                (_, None) => {}
            }
            if let Verdict::Failure { cause, .. } = verdict {
                budget.on_failure(cause);
            }
        }
        let decision = tier.policy.retry.conclude(&mut state.history, verdict, now);
        let began = state.began;
        self.write_down(call, began, verdict, decision);
        self.make_room(call, At::Attempt);
        match decision {
            Decision::Stop(reason) => self.end(call, reason, None),
            Decision::Retry(wait) => self.plan(call, verdict, wait),
        }
    }

    /// The core would try again after this wait: so it is, unless the budget or the breaker says no.
    fn plan(&mut self, call: u32, verdict: Verdict, wait: Wait) {
        let state = &mut self.calls[call as usize];
        let client = &mut self.tiers[usize::from(state.tier)].clients[state.client as usize];
        if let (Some(budget), Verdict::Failure { cause, .. }) = (&mut client.budget, verdict) {
            match budget.try_retry(cause, self.now) {
                Ok(loan) => state.loan = Some(loan),
                Err(refusal) => return self.refuse(call, refusal),
            }
        }
        let again = self.now.after(wait.length);
        if let Some(refusal) = self.tiers[usize::from(state.tier)].open_at(state.client, again) {
            return self.refuse(call, refusal);
        }
        self.gauges.waiting += 1;
        self.agenda.put(again, Kind::Retry, call, state.epoch);
    }

    /// A call's wait is over.
    pub(super) fn retry(&mut self, call: u32, epoch: u32) {
        if self.calls[call as usize].epoch == epoch {
            self.gauges.waiting -= 1;
            self.seek(call);
        }
    }

    pub(super) fn refuse(&mut self, call: u32, refusal: Refusal) {
        self.end(call, StopReason::Refused(refusal.by), Some(refusal));
    }

    /// The call has ended: what it held goes back, the innermost first, and who waits for it goes on.
    pub(super) fn end(&mut self, call: u32, reason: StopReason, refusal: Option<Refusal>) {
        self.release(call);
        self.script_ended(call, reason);
        let state = &mut self.calls[call as usize];
        state.state = State::Free;
        state.epoch = state.epoch.wrapping_add(1);
        let (origin, tier, place) = (state.origin, state.tier, state.place);
        let went = Went { succeeded: reason == StopReason::Succeeded, attempts: state.attempts };
        self.free.push(call);
        if tier == 0 {
            self.recorder.call_ended(place, went, self.now);
            self.ends.count(reason);
        }
        match origin {
            Origin::Stream => {}
            Origin::Caller(caller) => self.caller_goes_on(caller, went.succeeded, refusal),
            Origin::Above { call, epoch } if self.is_awaited(call, epoch) => {
                let answer = if went.succeeded { Answer::Served } else { Answer::Failed };
                let verdict = self.tiers[usize::from(tier) - 1].verdict(answer);
                self.conclude(call, verdict);
            }
            Origin::Above { .. } => {}
        }
    }

    fn release(&mut self, call: u32) {
        for at in [At::Attempt, At::Admission] {
            if let Some(place) = self.calls[call as usize].booked[at as usize].take()
                && let Some(limits) = self.limits(call, at)
            {
                limits.give_back(place);
            }
            self.make_room(call, at);
        }
        let state = &mut self.calls[call as usize];
        let client = &mut self.tiers[usize::from(state.tier)].clients[state.client as usize];
        if let (Some(ticket), Some(breaker)) = (state.ticket.take(), &mut client.breaker) {
            breaker.give_back(ticket);
        }
        if let Some(budget) = &mut client.budget {
            if let Some(loan) = state.loan.take() {
                budget.on_unsent(loan);
            }
            budget.on_end();
        }
    }
}
