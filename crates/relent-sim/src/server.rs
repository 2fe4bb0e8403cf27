//! The dependency: workers behind one queue, and what goes wrong with them.
//!
//! Three things make it more than a delay. A request that its caller has given up is still worked on, unless the
//! dependency knows deadlines. A full queue rejects at once, and that costs a worker's time too. And a cache that was
//! emptied fills only through requests whose callers still wait for the answer.

use std::{collections::VecDeque, time::Duration};

use relent_core::Timestamp;

use crate::{
    agenda::{Agenda, Kind},
    chance::{Chance, Purpose, float_nanos},
    measure::Recorder,
    scenario::{Cache, Dependency, Effect, EffectKind, Spread},
};

/// A request: which attempt of which call, and how long its caller waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) call: u32,
    pub(crate) epoch: u32,
    pub(crate) give_up_at: Timestamp,
}

/// What a request meets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reception {
    /// It will be answered when a worker is done with it, or never.
    Silence,
    /// It is answered now.
    Answer(Answer),
}

/// How a request is answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Answer {
    /// The work is done.
    Served,
    /// It failed.
    Failed,
    /// The connection was refused.
    Refused,
    /// There is no room, or a maintenance that says when it ends.
    Rejected(Option<Duration>),
}

/// The dependency's state.
#[derive(Debug)]
pub(crate) struct Server {
    dependency: Dependency,
    queue: VecDeque<Request>,
    /// Rejections that a worker has yet to spend time on.
    owed: u64,
    workers: Vec<Worker>,
    idle: Vec<u32>,
    condition: Condition,
    hit_ratio: f64,
    service: Chance,
    fate: Chance,
}

/// What one worker does.
#[derive(Clone, Copy, Debug, Default)]
struct Worker {
    job: Option<Job>,
    /// Work left at `since`, in nanoseconds at normal speed.
    left: u64,
    since: Timestamp,
    /// The whole of the work.
    whole: u64,
    epoch: u32,
}

#[derive(Clone, Copy, Debug)]
enum Job {
    Serve { request: Request, miss: bool },
    Reject,
}

/// What goes wrong at present.
#[derive(Clone, Copy, Debug)]
struct Condition {
    speed: u32,
    refuses: bool,
    hangs: f64,
    fails: f64,
    maintained_until: Option<Timestamp>,
}

impl Server {
    pub(crate) fn new(dependency: &Dependency, seed: u64) -> Self {
        Self {
            dependency: *dependency,
            queue: VecDeque::new(),
            owed: 0,
            workers: vec![Worker::default(); dependency.workers as usize],
            idle: (0..dependency.workers).rev().collect(),
            condition: Condition::HEALTHY,
            hit_ratio: dependency.cache.map_or(0.0, |cache| cache.ratio),
            service: Chance::of(seed, Purpose::Service),
            fate: Chance::of(seed, Purpose::Fate),
        }
    }

    /// How many requests wait.
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// A request arrives.
    #[inline]
    pub(crate) fn receive(&mut self, request: Request, now: Timestamp, agenda: &mut Agenda) -> Reception {
        let condition = self.condition;
        if condition.refuses {
            return Reception::Answer(Answer::Refused);
        }
        if self.fate.happens(condition.hangs) {
            return Reception::Silence;
        }
        if let Some(until) = condition.maintained_until {
            return Reception::Answer(Answer::Rejected(Some(until.since(now))));
        }
        if self.fate.happens(condition.fails) {
            return Reception::Answer(Answer::Failed);
        }
        if let Some(worker) = self.idle.pop() {
            self.serve(worker, request, now, agenda);
            return Reception::Silence;
        }
        if self.queue.len() < self.dependency.queue as usize {
            self.queue.push_back(request);
            return Reception::Silence;
        }
        self.owed += u64::from(!self.dependency.reject_cost.is_zero());
        Reception::Answer(Answer::Rejected(None))
    }

    /// A worker has come to the end of its work. The request that it served, if it did and `epoch` is its own.
    #[inline]
    pub(crate) fn done(&mut self, worker: u32, epoch: u32) -> Option<Finished> {
        let state = &mut self.workers[worker as usize];
        if state.epoch != epoch {
            return None;
        }
        let work = Duration::from_nanos(state.whole);
        Some(match state.job.take()? {
            Job::Serve { request, miss } => Finished { request: Some(request), miss, work },
            Job::Reject => Finished { request: None, miss: false, work },
        })
    }

    /// A caller who still waited has got what a miss brought.
    pub(crate) fn fill(&mut self) {
        if let Some(Cache { fill, .. }) = self.dependency.cache {
            self.hit_ratio += (1.0 - self.hit_ratio) * fill;
        }
    }

    /// The worker turns to what is next.
    #[inline]
    pub(crate) fn go_on(&mut self, worker: u32, now: Timestamp, agenda: &mut Agenda) {
        if self.owed > 0 {
            self.owed -= 1;
            let cost = u64::try_from(self.dependency.reject_cost.as_nanos()).unwrap_or(u64::MAX);
            return self.begin(worker, Job::Reject, cost, now, agenda);
        }
        while let Some(request) = self.queue.pop_front() {
            if !(self.dependency.drop_expired && request.give_up_at <= now) {
                return self.serve(worker, request, now, agenda);
            }
        }
        self.idle.push(worker);
    }

    /// Something began to go wrong, or ceased to.
    pub(crate) fn change(&mut self, effects: &[Effect], now: Timestamp, agenda: &mut Agenda) {
        let speed = self.condition.speed;
        self.condition = Condition::of(effects, now);
        let flushed = |effect: &Effect| effect.kind == EffectKind::Flush && effect.from == now;
        if effects.iter().any(flushed) {
            self.hit_ratio = 0.0;
        }
        if self.condition.speed != speed {
            for worker in 0..self.dependency.workers {
                self.reckon(worker, speed, now, agenda);
            }
        }
    }

    #[inline]
    fn serve(&mut self, worker: u32, request: Request, now: Timestamp, agenda: &mut Agenda) {
        let (mean, miss) = match self.dependency.cache {
            None => (self.dependency.service, false),
            Some(cache) if self.fate.happens(self.hit_ratio) => (cache.hit, false),
            Some(cache) => (cache.miss, true),
        };
        let work = match self.dependency.spread {
            Spread::Exponential => self.service.exponential(float_nanos(mean)),
            Spread::Constant => u64::try_from(mean.as_nanos()).unwrap_or(u64::MAX),
        };
        self.begin(worker, Job::Serve { request, miss }, work, now, agenda);
    }

    #[inline]
    fn begin(&mut self, worker: u32, job: Job, work: u64, now: Timestamp, agenda: &mut Agenda) {
        let state = &mut self.workers[worker as usize];
        let epoch = state.epoch.wrapping_add(1);
        *state = Worker { job: Some(job), left: work, since: now, whole: work, epoch };
        if self.condition.speed > 0 {
            agenda.put(now.after(at_speed(work, self.condition.speed)), Kind::Done, worker, epoch);
        }
    }

    /// The speed has changed: what a worker has left takes another time.
    fn reckon(&mut self, worker: u32, before: u32, now: Timestamp, agenda: &mut Agenda) {
        let state = &mut self.workers[worker as usize];
        if state.job.is_none() {
            return;
        }
        let passed = now.since(state.since).as_nanos() * u128::from(before) / u128::from(NORMAL);
        state.left = state.left.saturating_sub(u64::try_from(passed).unwrap_or(u64::MAX));
        state.since = now;
        state.epoch = state.epoch.wrapping_add(1);
        if self.condition.speed > 0 {
            let at = now.after(at_speed(state.left, self.condition.speed));
            agenda.put(at, Kind::Done, worker, state.epoch);
        }
    }
}

/// Work that has come to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    /// What it was for; a rejection was for nobody.
    pub(crate) request: Option<Request>,
    /// Whether the cache had not had it.
    pub(crate) miss: bool,
    /// How much it was.
    pub(crate) work: Duration,
}

impl Finished {
    /// Counts it as worth its time, or not.
    pub(crate) fn count(&self, useful: bool, recorder: &mut Recorder) {
        recorder.worked(self.work, useful);
    }
}

impl Condition {
    const HEALTHY: Self =
        Self { speed: NORMAL, refuses: false, hangs: 0.0, fails: 0.0, maintained_until: None };

    /// What all effects that are on at `now` come to: speeds multiply, shares of requests that hang or fail are
    /// independent of each other.
    fn of(effects: &[Effect], now: Timestamp) -> Self {
        let on = |effect: &&Effect| effect.from <= now && now < effect.until;
        let either = |one: f64, other: f64| 1.0 - (1.0 - one) * (1.0 - other);
        effects.iter().filter(on).fold(Self::HEALTHY, |condition, effect| match effect.kind {
            EffectKind::Speed(speed) => {
                let both = u64::from(condition.speed) * u64::from(speed) / u64::from(NORMAL);
                Self { speed: u32::try_from(both).unwrap_or(u32::MAX), ..condition }
            }
            EffectKind::Refuse => Self { refuses: true, ..condition },
            EffectKind::Hang(share) => Self { hangs: either(condition.hangs, share), ..condition },
            EffectKind::Fail(share) => Self { fails: either(condition.fails, share), ..condition },
            EffectKind::Maintenance => {
                let until = condition.maintained_until.map_or(effect.until, |other| other.max(effect.until));
                Self { maintained_until: Some(until), ..condition }
            }
            EffectKind::Load(_) | EffectKind::Flush => condition,
        })
    }
}

/// How long work takes at a speed that is not 0.
#[inline]
fn at_speed(work: u64, speed: u32) -> Duration {
    if speed == NORMAL {
        return Duration::from_nanos(work);
    }
    let nanos = u128::from(work) * u128::from(NORMAL) / u128::from(speed.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// The normal speed, in millionths.
const NORMAL: u32 = 1_000_000;

#[cfg(test)]
mod tests;
