//! What a scenario must keep to be possible, each with the field's name and the way out.

mod scalar;

use std::time::Duration;

use relent_core::{Idempotency, Timestamp};

use self::scalar::{length, moment, numbered, share, speed, status, stretch, times, within};
use super::{
    Cache, Callers, CallersKind, Dependency, Effect, EffectKind, Gate, GiveUp, Measure, RecoveryOf, Relative,
    Scenario, Side, Spread, Unusable, Window,
    text::{
        CacheText, CallersText, DependencyText, EffectText, GateText, LayersText, ScenarioText, WindowText,
        word,
    },
};
use crate::{measure::MOST_WINDOWS, report::STANDARD_WINDOWS};

/// What is written, made into what it means.
pub(super) trait Checked {
    type Into;
    fn checked(self) -> Result<Self::Into, Unusable>;
}

pub(super) fn unusable(field: &str, reason: impl Into<String>) -> Unusable {
    Unusable::new(field, reason)
}

impl Checked for ScenarioText {
    type Into = Scenario;

    fn checked(self) -> Result<Scenario, Unusable> {
        let duration = length("duration", &self.duration)?;
        if duration.is_zero() || duration > LONGEST {
            return Err(unusable("duration", "it is to be between a moment and ten days"));
        }
        if self.id.trim().is_empty() {
            return Err(unusable("id", "it is empty; write a short name, such as the file's"));
        }
        let end = Timestamp::ZERO.after(duration);
        let dependency = self.dependency.checked()?;
        let callers = self.callers.checked()?;
        let LayersText { count, cancel_downwards } = self.layers;
        let effects = numbered("effect", self.effects, |field, text| effect(field, text, end))?;
        let windows = numbered("window", self.windows, |field, text| window(field, text, end))?;
        let recovery = word("recovery.of", self.recovery.of.as_deref().unwrap_or("calls"), RECOVERIES)?;
        let scenario = Scenario {
            id: self.id,
            title: self.title,
            duration,
            dependency,
            callers,
            layers: within("layers.count", count.unwrap_or(1), 1, MOST_LAYERS)?,
            cancel_downwards,
            effects,
            windows,
            recovery,
            gates: Vec::new(),
            control: self.control,
        };
        whole(&scenario)?;
        let gates = numbered("gate", self.gates, |field, text| gate(field, text, &scenario))?;
        Ok(Scenario { gates, ..scenario })
    }
}

/// What several parts must keep together.
fn whole(scenario: &Scenario) -> Result<(), Unusable> {
    let is_open = matches!(scenario.callers.kind, CallersKind::Open { .. });
    for (number, effect) in scenario.effects.iter().enumerate() {
        let field = format!("effect[{number}].kind");
        if matches!(effect.kind, EffectKind::Load(_)) && !is_open {
            return Err(unusable(&field, "only open callers have a load; set callers.callers instead"));
        }
        if effect.kind == EffectKind::Flush && scenario.dependency.cache.is_none() {
            return Err(unusable(&field, "there is no cache to flush; write dependency.cache"));
        }
    }
    let most = MOST_WINDOWS - STANDARD_WINDOWS.len();
    if scenario.windows.len() > most {
        return Err(unusable("window", format!("there are more than {most}; leave some out")));
    }
    Ok(())
}

impl Checked for DependencyText {
    type Into = Dependency;

    fn checked(self) -> Result<Dependency, Unusable> {
        let cache = self.cache.map(Checked::checked).transpose()?;
        let service = match (&self.service, &cache) {
            (Some(service), None) => moment("dependency.service", service)?,
            (None, Some(cache)) => cache.miss,
            (Some(_), Some(_)) => {
                return Err(unusable(
                    "dependency.service",
                    "a cache says how long it takes; keep one of the two",
                ));
            }
            (None, None) => {
                return Err(unusable("dependency.service", "it is missing; write for example \"10ms\""));
            }
        };
        Ok(Dependency {
            workers: within("dependency.workers", self.workers, 1, MOST_WORKERS)?,
            service,
            spread: word("dependency.spread", self.spread.as_deref().unwrap_or("exponential"), SPREADS)?,
            queue: self.queue,
            reject_cost: length("dependency.reject_cost", self.reject_cost.as_deref().unwrap_or("0s"))?,
            answer: moment("dependency.answer", self.answer.as_deref().unwrap_or("1ms"))?,
            drop_expired: self.drop_expired,
            cache,
            fail_status: status("dependency.fail_status", self.fail_status.unwrap_or(503))?,
            reject_status: status("dependency.reject_status", self.reject_status.unwrap_or(429))?,
        })
    }
}

impl Checked for CacheText {
    type Into = Cache;

    fn checked(self) -> Result<Cache, Unusable> {
        Ok(Cache {
            hit: moment("dependency.cache.hit", &self.hit)?,
            miss: moment("dependency.cache.miss", &self.miss)?,
            ratio: share("dependency.cache.ratio", Some(self.ratio))?,
            fill: share("dependency.cache.fill", Some(self.fill))?,
        })
    }
}

impl Checked for CallersText {
    type Into = Callers;

    fn checked(self) -> Result<Callers, Unusable> {
        let kind = self.kind()?;
        let repeat = match self.repeat.as_deref().unwrap_or("safe") {
            "policy" => None,
            written => Some(Idempotency::from_name(written).ok_or_else(|| {
                let known = "write one of safe, keyed, unsafe, policy";
                unusable("callers.repeat", format!("\"{written}\" is not known; {known}"))
            })?),
        };
        Ok(Callers {
            kind,
            clients: within("callers.clients", self.clients.unwrap_or(1), 1, MOST_CLIENTS)?,
            repeat,
            give_up: word("callers.give_up", self.give_up.as_deref().unwrap_or("next"), GIVING_UP)?,
        })
    }
}

impl CallersText {
    fn kind(&self) -> Result<CallersKind, Unusable> {
        let needs = |field: &str| {
            let field = format!("callers.{field}");
            move || unusable(&field, "it is missing")
        };
        let callers = || {
            let callers = self.callers.ok_or_else(needs("callers"))?;
            within("callers.callers", callers, 1, MOST_CLIENTS)
        };
        let (kind, meant) = match self.kind.as_str() {
            "open" => {
                let rate = self.rate.ok_or_else(needs("rate"))?;
                if !(rate > 0.0 && rate <= MOST_RATE) {
                    return Err(unusable(
                        "callers.rate",
                        "it is to be above 0 and at most ten million a second",
                    ));
                }
                (CallersKind::Open { rate }, ["rate", "rate", "rate"])
            }
            "closed" => {
                let think = length("callers.think", self.think.as_ref().ok_or_else(needs("think"))?)?;
                (CallersKind::Closed { callers: callers()?, think }, ["callers", "think", "think"])
            }
            "herd" => {
                let at = length("callers.at", self.at.as_ref().ok_or_else(needs("at"))?)?;
                (CallersKind::Herd { callers: callers()?, at }, ["callers", "at", "at"])
            }
            other => {
                let known = "write one of open, closed, herd";
                return Err(unusable("callers.kind", format!("\"{other}\" is not known; {known}")));
            }
        };
        let written = [
            ("rate", self.rate.is_some()),
            ("callers", self.callers.is_some()),
            ("think", self.think.is_some()),
            ("at", self.at.is_some()),
        ];
        match written.iter().find(|(field, there)| *there && !meant.contains(field)) {
            Some((field, _)) => {
                let reason = format!("callers of the kind {} have none; leave it out", self.kind);
                Err(unusable(&format!("callers.{field}"), reason))
            }
            None => Ok(kind),
        }
    }
}

fn effect(field: &str, text: EffectText, end: Timestamp) -> Result<Effect, Unusable> {
    let name = |part: &str| format!("{field}.{part}");
    let kind = match text.kind.as_str() {
        "speed" => EffectKind::Speed(speed(&name("to"), text.to)?),
        "refuse" => EffectKind::Refuse,
        "hang" => EffectKind::Hang(share(&name("share"), text.share.or(Some(1.0)))?),
        "fail" => EffectKind::Fail(share(&name("share"), text.share.or(Some(1.0)))?),
        "load" => EffectKind::Load(times(&name("times"), text.times)?),
        "flush" => EffectKind::Flush,
        "maintenance" => EffectKind::Maintenance,
        other => {
            let known = "write one of speed, refuse, hang, fail, load, flush, maintenance";
            return Err(unusable(&name("kind"), format!("\"{other}\" is not known; {known}")));
        }
    };
    let parts = [
        ("to", text.to.is_some(), matches!(kind, EffectKind::Speed(_))),
        ("share", text.share.is_some(), matches!(kind, EffectKind::Hang(_) | EffectKind::Fail(_))),
        ("times", text.times.is_some(), matches!(kind, EffectKind::Load(_))),
        ("for", text.length.is_some(), kind != EffectKind::Flush),
    ];
    if let Some((part, ..)) = parts.iter().find(|(_, written, meant)| *written && !meant) {
        let reason = format!("an effect of the kind {} has none; leave it out", text.kind);
        return Err(unusable(&name(part), reason));
    }
    let (from, until) = stretch(field, &text.from, text.length.as_deref(), end)?;
    let until = if kind == EffectKind::Flush { from } else { until };
    Ok(Effect { from, until, kind })
}

fn window(field: &str, text: WindowText, end: Timestamp) -> Result<Window, Unusable> {
    let name = format!("{field}.name");
    if text.name.trim().is_empty() {
        return Err(unusable(&name, "it is empty"));
    }
    if STANDARD_WINDOWS.contains(&text.name.as_str()) {
        return Err(unusable(&name, format!("\"{}\" is always there; take another name", text.name)));
    }
    let (from, until) = stretch(field, &text.from, text.length.as_deref(), end)?;
    Ok(Window { name: text.name, from, until })
}

fn gate(field: &str, text: GateText, scenario: &Scenario) -> Result<Gate, Unusable> {
    let name = |part: &str| format!("{field}.{part}");
    let (side, bound) = match (text.at_most, text.at_least) {
        (Some(bound), None) => (Side::AtMost, bound),
        (None, Some(bound)) => (Side::AtLeast, bound),
        _ => return Err(unusable(field, "write at_most or at_least, one of the two")),
    };
    if !bound.is_finite() || bound < 0.0 {
        return Err(unusable(field, "the bound is to be a number of at least 0"));
    }
    let measure = word(&name("measure"), &text.measure, MEASURES)?;
    let over = text.over.unwrap_or_else(|| "trigger".to_owned());
    let windows = crate::report::standard_windows(scenario);
    if measure != Measure::Recovery && !windows.iter().any(|window| window.name == over) {
        let known: Vec<&str> = windows.iter().map(|window| window.name.as_str()).collect();
        let reason = format!("there is no window \"{over}\"; write one of {}", known.join(", "));
        return Err(unusable(&name("over"), reason));
    }
    let relative = text.times.map(|text| word(&name("times"), &text, RELATIVES)).transpose()?;
    Ok(Gate { measure, over, side, bound, relative, breaker: text.breaker })
}

const SPREADS: &[(&str, Spread)] = &[("exponential", Spread::Exponential), ("constant", Spread::Constant)];
const GIVING_UP: &[(&str, GiveUp)] =
    &[("next", GiveUp::Next), ("again", GiveUp::Again), ("never", GiveUp::Never)];
const RECOVERIES: &[(&str, RecoveryOf)] = &[("calls", RecoveryOf::Calls), ("attempts", RecoveryOf::Attempts)];
const RELATIVES: &[(&str, Relative)] = &[("no_retries", Relative::NoRetries)];
pub(crate) const MEASURES: &[(&str, Measure)] = &[
    ("arrivals_per_call", Measure::ArrivalsPerCall),
    ("success", Measure::Success),
    ("rescued", Measure::Rescued),
    ("recovery", Measure::Recovery),
    ("peak", Measure::Peak),
    ("breakers_opened", Measure::BreakersOpened),
];

const LONGEST: Duration = Duration::from_secs(10 * 24 * 3600);
const MOST_WORKERS: u32 = 100_000;
const MOST_LAYERS: u32 = 8;
const MOST_CLIENTS: u32 = 1_000_000;
const MOST_RATE: f64 = 1e7;
