//! The TOML of a scenario, field by field.

use serde::Deserialize;
use toml::Table;

use super::{
    Scenario, Unusable,
    check::{Checked as _, unusable},
    set,
};

impl Scenario {
    /// Reads a scenario. What may be left out stands behind a `#`, with what then counts.
    ///
    /// ```toml
    /// id = "S4"                     # the file's name by custom
    /// title = "a stall fills the queue"
    /// duration = "300s"
    /// # control = "no retry policy passes, because …": its gates do not count
    ///
    /// [dependency]
    /// workers = 10
    /// service = "10ms"              # on average
    /// # spread = "exponential"      # or "constant"
    /// queue = 20000                 # requests that may wait; one more is rejected
    /// # reject_cost = "0s"          # a worker's time for each rejection
    /// # answer = "1ms"              # until an answer is there that needs no work
    /// # drop_expired = false        # true: it knows the callers' deadlines
    /// # cache = { hit = "5ms", miss = "20ms", ratio = 0.95, fill = 0.00005 }   # in place of service
    /// # fail_status = 503
    /// # reject_status = 429
    ///
    /// [callers]
    /// kind = "open"                 # rate; or "closed": callers, think; or "herd": callers, at
    /// rate = 850                    # calls a second
    /// # clients = 1                 # processes, each with a budget and a breaker of its own
    /// # repeat = "safe"             # safe | keyed | unsafe | "policy": what the policy says
    /// # give_up = "next"            # next | again | never
    ///
    /// # [layers]
    /// # count = 1                   # services on the way, each with the whole policy
    /// # cancel_downwards = false
    ///
    /// [[effect]]                    # any number
    /// kind = "speed"                # speed (to) | refuse | hang (share) | fail (share) | load (times) | flush
    /// to = 0.0                      # | maintenance
    /// from = "130s"
    /// for = "10s"                   # left out: to the end
    ///
    /// # [[window]]                  # summed up apart
    /// # name = "late"
    /// # from = "200s"
    /// # for = "60s"
    ///
    /// # [recovery]
    /// # of = "calls"                # or "attempts"
    ///
    /// [[gate]]
    /// measure = "recovery"          # arrivals_per_call | success | rescued | peak | breakers_opened
    /// # over = "trigger"            # a window
    /// at_most = 1.25                # or at_least
    /// # times = "no_retries"        # the bound is so many times what no retries give
    /// # breaker = true              # only for policies with (or without) a breaker
    /// ```
    ///
    /// `settings` replace single values: `callers.rate=700`, `effect.0.for=20s`; the last one wins.
    ///
    /// # Errors
    ///
    /// [`Unusable`] with the field, what is wrong with it and the way out.
    pub fn parse(text: &str, settings: &[(&str, &str)]) -> Result<Self, Unusable> {
        let wrong = |error: &dyn std::fmt::Display| Unusable::new("", error.to_string().trim_end());
        let written: ScenarioText = if settings.is_empty() {
            toml::from_str(text).map_err(|error| wrong(&error))?
        } else {
            let mut table: Table = text.parse().map_err(|error: toml::de::Error| wrong(&error))?;
            for (key, value) in settings {
                set::set(&mut table, key, value)?;
            }
            table.try_into().map_err(|error: toml::de::Error| wrong(&error))?
        };
        written.checked()
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a scenario")]
pub(super) struct ScenarioText {
    pub(super) id: String,
    #[serde(default)]
    pub(super) title: String,
    pub(super) duration: String,
    pub(super) control: Option<String>,
    pub(super) dependency: DependencyText,
    pub(super) callers: CallersText,
    #[serde(default)]
    pub(super) layers: LayersText,
    #[serde(default, rename = "effect")]
    pub(super) effects: Vec<EffectText>,
    #[serde(default, rename = "window")]
    pub(super) windows: Vec<WindowText>,
    #[serde(default)]
    pub(super) recovery: RecoveryText,
    #[serde(default, rename = "gate")]
    pub(super) gates: Vec<GateText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, [dependency]")]
pub(super) struct DependencyText {
    pub(super) workers: u32,
    pub(super) service: Option<String>,
    pub(super) spread: Option<String>,
    pub(super) queue: u32,
    pub(super) reject_cost: Option<String>,
    pub(super) answer: Option<String>,
    #[serde(default)]
    pub(super) drop_expired: bool,
    pub(super) cache: Option<CacheText>,
    pub(super) fail_status: Option<u16>,
    pub(super) reject_status: Option<u16>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, [dependency.cache]")]
pub(super) struct CacheText {
    pub(super) hit: String,
    pub(super) miss: String,
    pub(super) ratio: f64,
    pub(super) fill: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, [callers]")]
pub(super) struct CallersText {
    pub(super) kind: String,
    pub(super) rate: Option<f64>,
    pub(super) callers: Option<u32>,
    pub(super) think: Option<String>,
    pub(super) at: Option<String>,
    pub(super) clients: Option<u32>,
    pub(super) repeat: Option<String>,
    pub(super) give_up: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, [layers]")]
pub(super) struct LayersText {
    pub(super) count: Option<u32>,
    #[serde(default)]
    pub(super) cancel_downwards: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, [[effect]]")]
pub(super) struct EffectText {
    pub(super) kind: String,
    pub(super) from: String,
    #[serde(rename = "for")]
    pub(super) length: Option<String>,
    pub(super) to: Option<f64>,
    pub(super) share: Option<f64>,
    pub(super) times: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, [[window]]")]
pub(super) struct WindowText {
    pub(super) name: String,
    pub(super) from: String,
    #[serde(rename = "for")]
    pub(super) length: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, [recovery]")]
pub(super) struct RecoveryText {
    pub(super) of: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, [[gate]]")]
pub(super) struct GateText {
    pub(super) measure: String,
    pub(super) over: Option<String>,
    pub(super) at_most: Option<f64>,
    pub(super) at_least: Option<f64>,
    pub(super) times: Option<String>,
    pub(super) breaker: Option<bool>,
}

/// A word out of a list, or a sentence that names the list.
pub(super) fn word<T: Copy>(field: &str, written: &str, known: &[(&str, T)]) -> Result<T, Unusable> {
    known.iter().find(|(name, _)| *name == written).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        unusable(field, format!("\"{written}\" is not known; write one of {}", names.join(", ")))
    })
}
