//! The run: the agenda's events in their order, callers at one end and the dependency at the other.

mod call;
mod conclude;
mod gates;
mod limits;
mod replay;
mod source;
mod tier;
mod timer;

use relent_core::{Idempotency, Policy, StopReason, Timestamp};

pub(crate) use self::replay::replay;
use self::{
    call::Call,
    replay::Scripted,
    source::Source,
    tier::{Tier, never_given_up},
};
use crate::{
    agenda::{Agenda, Event, Kind},
    chance::{Chance, Purpose},
    measure::{Gauges, Recorder},
    report::{Report, standard_windows},
    scenario::{GiveUp, Scenario},
    server::Server,
};

/// Everything that there is.
pub(crate) struct World<'a> {
    scenario: &'a Scenario,
    agenda: Agenda,
    now: Timestamp,
    chance: Chances,
    server: Server,
    /// The services, the callers' own first.
    tiers: Vec<Tier>,
    calls: Vec<Call>,
    free: Vec<u32>,
    source: Source,
    repeat: Option<Idempotency>,
    recorder: Recorder,
    gauges: Gauges,
    ends: Ends,
    events: u64,
    /// What answers in the dependency's place.
    scripted: Option<Scripted<'a>>,
}

/// The streams of chance, but for those that the dependency draws from.
struct Chances {
    arrivals: Chance,
    clients: Chance,
    calls: Chance,
    pauses: Chance,
}

/// Why calls ended.
#[derive(Debug, Default)]
struct Ends(Vec<(StopReason, u64)>);

impl<'a> World<'a> {
    /// A world before its first event. The policy is one that was validated.
    pub(crate) fn new(scenario: &'a Scenario, policy: &Policy, seed: u64) -> Self {
        let policy = match scenario.callers.give_up {
            GiveUp::Never => never_given_up(policy),
            GiveUp::Next | GiveUp::Again => policy.clone(),
        };
        let mut calls = Chance::of(seed, Purpose::Calls);
        let tiers = (0..scenario.layers)
            .map(|_| Tier::new(&policy, scenario.callers.clients, &scenario.dependency, &mut calls))
            .collect();
        let mut world = Self {
            scenario,
            agenda: Agenda::default(),
            now: Timestamp::ZERO,
            chance: Chances {
                arrivals: Chance::of(seed, Purpose::Arrivals),
                clients: Chance::of(seed, Purpose::Clients),
                calls,
                pauses: Chance::of(seed, Purpose::Pauses),
            },
            server: Server::new(&scenario.dependency, seed),
            tiers,
            calls: Vec::new(),
            free: Vec::new(),
            source: Source::default(),
            repeat: scenario.callers.repeat,
            recorder: Recorder::new(scenario, standard_windows(scenario)),
            gauges: Gauges::default(),
            ends: Ends::default(),
            events: 0,
            scripted: None,
        };
        world.set_boundaries();
        world.open();
        world
    }

    /// Runs to the scenario's end. `progress` is told the time at every point of the series.
    pub(crate) fn run(mut self, progress: &mut dyn FnMut(Timestamp)) -> Report {
        let end = self.scenario.end();
        while let Some(event) = self.agenda.next() {
            if event.at >= end {
                break;
            }
            if self.recorder.is_due(event.at) {
                let gauges = self.gauges_now();
                self.recorder.turn(event.at, gauges);
                progress(event.at);
            }
            self.now = event.at;
            self.events += 1;
            self.happen(event);
        }
        let gauges = self.gauges_now();
        self.recorder.turn(end.before(std::time::Duration::from_nanos(1)), gauges);
        self.recorder.finish(gauges);
        Report::new(self.scenario, self.recorder, self.ends.0, self.events)
    }

    #[inline]
    fn happen(&mut self, event: Event) {
        match event.kind() {
            Kind::Arrival => self.arrival(event.epoch),
            Kind::Wake => self.wake(event.whom),
            Kind::Retry => self.retry(event.whom, event.epoch),
            Kind::Turn => self.let_in(event.whom, event.epoch),
            Kind::Answer => self.answered(event.whom, event.epoch),
            Kind::Done => self.done(event.whom, event.epoch),
            Kind::Boundary => self.change(),
            Kind::TimeUp => self.time_up(event.whom),
        }
    }

    /// Puts down the moments at which a fault or a window begins or ends.
    fn set_boundaries(&mut self) {
        let effects = self.scenario.effects.iter().flat_map(|effect| [effect.from, effect.until]);
        let windows = self.recorder.windows().iter().flat_map(|window| [window.from, window.until]);
        let mut moments: Vec<Timestamp> = effects.chain(windows).collect();
        moments.sort_unstable();
        moments.dedup();
        for at in moments {
            self.agenda.put(at, Kind::Boundary, 0, 0);
        }
    }

    fn change(&mut self) {
        self.server.change(&self.scenario.effects, self.now, &mut self.agenda);
        self.recorder.change(self.now);
        self.change_load();
    }

    fn gauges_now(&self) -> Gauges {
        Gauges { queued: u32::try_from(self.server.queued()).unwrap_or(u32::MAX), ..self.gauges }
    }
}

impl Ends {
    #[inline]
    fn count(&mut self, reason: StopReason) {
        match self.0.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => self.0.push((reason, 1)),
        }
    }
}
