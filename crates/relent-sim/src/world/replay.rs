//! One call against a script instead of a dependency: the simulated driver held to what every other driver does.

use std::time::Duration;

use relent_core::{
    Decision, ErrorClass, History, Observed, Policy, Route, Script, Step, StopReason, Timeline, Timestamp,
    Verdict,
};

use super::{World, call::Origin};
use crate::{
    agenda::Kind,
    scenario::{Callers, CallersKind, Dependency, GiveUp, RecoveryOf, Scenario, Spread},
};

/// A script that answers in the dependency's place, and what came of it.
#[derive(Debug)]
pub(super) struct Scripted<'a> {
    route: Route<'a>,
    script: &'a Script,
    steps: Vec<Step>,
    /// How the call ended, and when; without a reason where the script did.
    ended: Option<(Option<StopReason>, Timestamp)>,
    history: History,
}

/// What `relent_core::timeline` is for, by the simulator's own driver: the call goes through the agenda, its timers and
/// the order of its events. What calls share (budget, breaker, limits) has no part in it.
pub(crate) fn replay(policy: &Policy, history: History, route: Route<'_>, script: &Script) -> Timeline {
    let scenario = nobody();
    let mut policy = policy.clone();
    (policy.budget, policy.breaker) = (None, None);
    (policy.admission, policy.attempt) = Default::default();
    let mut world = World::new(&scenario, &policy, history.seed);
    while world.agenda.next().is_some() {} // the scenario's own callers
    world.now = history.started;
    world.scripted = Some(Scripted { route, script, steps: Vec::new(), ended: None, history });
    world.begin_with(0, Origin::Stream, history);
    while world.scripted.as_ref().is_some_and(|scripted| scripted.ended.is_none())
        && let Some(event) = world.agenda.next()
    {
        world.now = event.at;
        world.happen(event);
    }
    let at = world.now;
    let Some(Scripted { steps, ended, history, .. }) = world.scripted else {
        return Timeline { steps: Vec::new(), end: None, at, history };
    };
    let (end, at) = ended.unwrap_or((None, at));
    Timeline { steps, end, at, history }
}

impl World<'_> {
    /// The attempt goes to the script, if there is one.
    pub(super) fn send_to_script(&mut self, call: u32) -> bool {
        let Some(scripted) = &mut self.scripted else { return false };
        let state = &self.calls[call as usize];
        match scripted.script.get(scripted.steps.len()) {
            None => scripted.ended = Some((None, self.now)),
            Some(outcome) => {
                let at = self.now.after(outcome.took);
                if at <= state.give_up_at {
                    self.agenda.put(at, Kind::Answer, call, state.epoch);
                }
            }
        }
        true
    }

    /// What the script's answer means.
    pub(super) fn scripted_verdict(&self, call: u32) -> Option<Verdict> {
        let scripted = self.scripted.as_ref()?;
        let outcome = scripted.script.get(scripted.steps.len())?;
        let classify = &self.tiers[self.tier_of(call)].policy.classify;
        Some(classify.verdict(outcome.observed, scripted.route, outcome.server_wait))
    }

    /// What the end of a scripted attempt's time means: by the route's own rules.
    pub(super) fn scripted_time_out(&self, call: u32) -> Option<Verdict> {
        let scripted = self.scripted.as_ref()?;
        let classify = &self.tiers[self.tier_of(call)].policy.classify;
        Some(classify.verdict(TIMED_OUT, scripted.route, None))
    }

    /// Writes down what was decided.
    pub(super) fn write_down(&mut self, call: u32, began: Timestamp, verdict: Verdict, decision: Decision) {
        let Some(scripted) = &mut self.scripted else { return };
        let place = scripted.steps.len();
        let outcome = &scripted.script[place];
        // In time: the answer, at its own moment.
        let answered = began.after(outcome.took) == self.now && outcome.took < Duration::MAX;
        let observed = if answered { outcome.observed } else { TIMED_OUT };
        let number = u32::try_from(place).map_or(u32::MAX, |place| place.saturating_add(1));
        scripted.steps.push(Step { number, began, ended: self.now, observed, verdict, decision });
        scripted.history = self.calls[call as usize].history;
    }

    /// The scripted call has ended.
    pub(super) fn script_ended(&mut self, call: u32, reason: StopReason) {
        if let Some(scripted) = &mut self.scripted {
            scripted.history = self.calls[call as usize].history;
            scripted.ended = Some((Some(reason), self.now));
        }
    }
}

/// A scenario in which nobody calls.
fn nobody() -> Scenario {
    Scenario {
        id: "replay".into(),
        title: String::new(),
        duration: Duration::from_secs(1),
        dependency: Dependency {
            workers: 1,
            service: Duration::from_millis(1),
            spread: Spread::Constant,
            queue: 0,
            reject_cost: Duration::ZERO,
            answer: Duration::from_millis(1),
            drop_expired: false,
            cache: None,
            fail_status: 503,
            reject_status: 429,
        },
        callers: Callers {
            kind: CallersKind::Herd { callers: 0, at: Duration::ZERO },
            clients: 1,
            repeat: None,
            give_up: GiveUp::Next,
        },
        layers: 1,
        cancel_downwards: false,
        effects: Vec::new(),
        windows: Vec::new(),
        recovery: RecoveryOf::Calls,
        gates: Vec::new(),
        control: None,
    }
}

const TIMED_OUT: Observed = Observed::Error(ErrorClass::Timeout);
