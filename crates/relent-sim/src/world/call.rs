//! The simulated driver: it owns the agenda's time and has no opinion. Whether to try again and how long to wait is
//! the core's answer, and the controls are asked in the live driver's order.

use relent_core::{History, StopReason, Timestamp, breaker::Ticket, budget::Loan, rate::Place as RatePlace};

use super::{World, gates::Passed, tier::changed};
use crate::{
    agenda::Kind,
    measure::Place,
    server::{Answer, Reception, Request},
};

/// One logical call.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) history: History,
    pub(super) loan: Option<Loan>,
    pub(super) ticket: Option<Ticket>,
    pub(super) began: Timestamp,
    /// When the attempt under way, or a wait at a gate, must end.
    pub(super) give_up_at: Timestamp,
    /// The moment of the timer that is down for this place, so that most attempts need none of their own.
    pub(super) timer: Timestamp,
    /// Raised with every step, so that an event can be told to belong to an earlier one.
    pub(super) epoch: u32,
    pub(super) state: State,
    pub(super) tier: u8,
    pub(super) client: u32,
    pub(super) origin: Origin,
    /// What it asked of the next service, where there is one.
    pub(super) child: u32,
    pub(super) place: Place,
    /// The point in which its attempt arrived at the dependency.
    arrived: u32,
    pub(super) attempts: u32,
    answer: Answer,
    /// Which of the limits it holds room at.
    pub(super) holds: [bool; 2],
    /// Its places in the rates' sequences that are not spent.
    pub(super) booked: [Option<RatePlace>; 2],
}

/// What a call does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum State {
    /// There is none.
    Free,
    /// It waits for its next attempt.
    Waiting,
    /// It stands in the line of a limit.
    InLine(At),
    /// It waits for the moment that a rate booked.
    Booked(At),
    /// An attempt is under way.
    Running,
}

/// Where limits stand.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum At {
    Admission,
    Attempt,
}

/// Who waits for a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Origin {
    /// Nobody in particular.
    Stream,
    /// A caller who goes on when it ends.
    Caller(u32),
    /// An attempt of a call of the service above.
    Above { call: u32, epoch: u32 },
}

impl World<'_> {
    /// A call begins.
    #[inline]
    pub(super) fn begin(&mut self, tier: u8, origin: Origin) {
        let policy = &self.tiers[usize::from(tier)].policy;
        let mut history = policy.begin(self.chance.calls.bits(), self.now, None, None);
        history.idempotency = self.repeat.unwrap_or(history.idempotency);
        self.begin_with(tier, origin, history);
    }

    /// A call begins with that history.
    #[inline]
    pub(super) fn begin_with(&mut self, tier: u8, origin: Origin, history: History) {
        let clients = &mut self.tiers[usize::from(tier)].clients;
        let count = u32::try_from(clients.len()).unwrap_or(u32::MAX);
        let client = if count == 1 { 0 } else { self.chance.clients.below(count) };
        if let Some(budget) = &mut clients[client as usize].budget {
            budget.on_call(self.now);
        }
        let place = if tier == 0 { self.recorder.call_began() } else { Place::default() };
        let call = self.place_for(Call {
            history,
            loan: None,
            ticket: None,
            began: self.now,
            give_up_at: Timestamp::MAX,
            timer: Timestamp::MAX,
            epoch: 0,
            state: State::Waiting,
            tier,
            client,
            origin,
            child: NOBODY,
            place,
            arrived: 0,
            attempts: 0,
            answer: Answer::Served,
            holds: [false; 2],
            booked: [None; 2],
        });
        if let Origin::Above { call: above, .. } = origin {
            self.calls[above as usize].child = call;
        }
        self.seek(call);
    }

    /// A free place for a call; its epoch and its timer go on.
    #[inline]
    fn place_for(&mut self, call: Call) -> u32 {
        let Some(free) = self.free.pop() else {
            self.calls.push(call);
            return u32::try_from(self.calls.len() - 1).unwrap_or(NOBODY);
        };
        let old = &mut self.calls[free as usize];
        let (epoch, timer) = (old.epoch.wrapping_add(1), old.timer);
        *old = Call { epoch, timer, ..call };
        free
    }

    /// Goes on towards the next attempt as far as the deadline and the gates allow.
    pub(super) fn seek(&mut self, call: u32) {
        if let Some(reason) = self.out_of_time(call) {
            return self.end(call, reason, None);
        }
        for at in [At::Admission, At::Attempt] {
            if self.calls[call as usize].holds[at as usize] {
                continue;
            }
            match self.pass(call, at) {
                Passed::Yes => {}
                Passed::Later => return,
                Passed::Refused(refusal) => return self.refuse(call, refusal),
            }
        }
        self.launch(call);
    }

    fn out_of_time(&self, call: u32) -> Option<StopReason> {
        let state = &self.calls[call as usize];
        self.tiers[usize::from(state.tier)].policy.pace().room(&state.history, self.now).err()
    }

    /// The breaker is asked last, and the attempt begins.
    #[inline]
    fn launch(&mut self, call: u32) {
        let state = &mut self.calls[call as usize];
        let tier = &mut self.tiers[usize::from(state.tier)];
        if let Some(breaker) = &mut tier.clients[state.client as usize].breaker {
            match breaker.admit(self.now) {
                Ok(ticket) => {
                    changed(ticket.transition(), &mut self.gauges, &mut self.recorder);
                    state.ticket = Some(ticket);
                }
                Err(refusal) => return self.refuse(call, refusal),
            }
        }
        state.booked = [None; 2];
        state.attempts += 1;
        state.began = self.now;
        state.epoch = state.epoch.wrapping_add(1);
        state.state = State::Running;
        state.give_up_at = tier.policy.give_up_at(&state.history, self.now);
        self.gauges.in_flight += 1;
        self.set_timer(call);
        self.send(call);
    }

    #[inline]
    fn send(&mut self, call: u32) {
        if self.send_to_script(call) {
            return;
        }
        let state = &mut self.calls[call as usize];
        let epoch = state.epoch;
        if usize::from(state.tier) + 1 < self.tiers.len() {
            let tier = state.tier + 1;
            return self.begin(tier, Origin::Above { call, epoch });
        }
        state.arrived = self.recorder.arrived(self.now);
        let request = Request { call, epoch, give_up_at: state.give_up_at };
        match self.server.receive(request, self.now, &mut self.agenda) {
            Reception::Silence => {}
            Reception::Answer(answer) => {
                if matches!(answer, Answer::Rejected(_)) {
                    self.recorder.rejected();
                }
                state.answer = answer;
                self.agenda.put(self.now.after(self.scenario.dependency.answer), Kind::Answer, call, epoch);
            }
        }
    }

    /// An answer that needed no work reached the call.
    pub(super) fn answered(&mut self, call: u32, epoch: u32) {
        if self.is_awaited(call, epoch) {
            let state = &self.calls[call as usize];
            let verdict = self.scripted_verdict(call);
            let verdict =
                verdict.unwrap_or_else(|| self.tiers[usize::from(state.tier)].verdict(state.answer));
            self.conclude(call, verdict);
        }
    }

    /// A worker has done its work.
    #[inline]
    pub(super) fn done(&mut self, worker: u32, epoch: u32) {
        let Some(finished) = self.server.done(worker, epoch) else { return };
        let request = finished.request.filter(|request| self.is_awaited(request.call, request.epoch));
        finished.count(request.is_some(), &mut self.recorder);
        if finished.miss && request.is_some() {
            self.server.fill();
        }
        self.server.go_on(worker, self.now, &mut self.agenda);
        if let Some(Request { call, .. }) = request {
            let state = &self.calls[call as usize];
            self.recorder.answered(state.arrived);
            let verdict = self.tiers[usize::from(state.tier)].verdict(Answer::Served);
            self.conclude(call, verdict);
        }
    }

    #[inline]
    pub(super) fn tier_of(&self, call: u32) -> usize {
        usize::from(self.calls[call as usize].tier)
    }

    #[inline]
    pub(super) fn is_awaited(&self, call: u32, epoch: u32) -> bool {
        let state = &self.calls[call as usize];
        state.epoch == epoch && state.state == State::Running
    }
}

/// No call.
pub(super) const NOBODY: u32 = u32::MAX;
