//! The TOML of a scenario, field by field.

use serde::Deserialize;
use toml::Table;

use super::{
    Scenario, Unusable,
    check::{Checked as _, unusable},
    set, written,
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
    #[serde(deserialize_with = "written::text")]
    pub(super) id: String,
    #[serde(default, deserialize_with = "written::text")]
    pub(super) title: String,
    #[serde(deserialize_with = "written::length")]
    pub(super) duration: String,
    #[serde(default, deserialize_with = "written::text")]
    pub(super) control: Option<String>,
    pub(super) dependency: DependencyText,
    pub(super) callers: CallersText,
    #[serde(default)]
    pub(super) layers: LayersText,
    #[serde(default, rename = "effect", deserialize_with = "written::tables")]
    pub(super) effects: Vec<EffectText>,
    #[serde(default, rename = "window", deserialize_with = "written::tables")]
    pub(super) windows: Vec<WindowText>,
    #[serde(default)]
    pub(super) recovery: RecoveryText,
    #[serde(default, rename = "gate", deserialize_with = "written::tables")]
    pub(super) gates: Vec<GateText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, [dependency]")]
pub(super) struct DependencyText {
    #[serde(deserialize_with = "written::count")]
    pub(super) workers: u32,
    #[serde(default, deserialize_with = "written::length")]
    pub(super) service: Option<String>,
    #[serde(default, deserialize_with = "written::text")]
    pub(super) spread: Option<String>,
    #[serde(deserialize_with = "written::count")]
    pub(super) queue: u32,
    #[serde(default, deserialize_with = "written::length")]
    pub(super) reject_cost: Option<String>,
    #[serde(default, deserialize_with = "written::length")]
    pub(super) answer: Option<String>,
    #[serde(default, deserialize_with = "written::truth")]
    pub(super) drop_expired: bool,
    pub(super) cache: Option<CacheText>,
    #[serde(default, deserialize_with = "written::status")]
    pub(super) fail_status: Option<u16>,
    #[serde(default, deserialize_with = "written::status")]
    pub(super) reject_status: Option<u16>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, [dependency.cache]")]
pub(super) struct CacheText {
    #[serde(deserialize_with = "written::length")]
    pub(super) hit: String,
    #[serde(deserialize_with = "written::length")]
    pub(super) miss: String,
    #[serde(deserialize_with = "written::number")]
    pub(super) ratio: f64,
    #[serde(deserialize_with = "written::number")]
    pub(super) fill: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, [callers]")]
pub(super) struct CallersText {
    #[serde(deserialize_with = "written::text")]
    pub(super) kind: String,
    #[serde(default, deserialize_with = "written::number")]
    pub(super) rate: Option<f64>,
    #[serde(default, deserialize_with = "written::count")]
    pub(super) callers: Option<u32>,
    #[serde(default, deserialize_with = "written::length")]
    pub(super) think: Option<String>,
    #[serde(default, deserialize_with = "written::length")]
    pub(super) at: Option<String>,
    #[serde(default, deserialize_with = "written::count")]
    pub(super) clients: Option<u32>,
    #[serde(default, deserialize_with = "written::text")]
    pub(super) repeat: Option<String>,
    #[serde(default, deserialize_with = "written::text")]
    pub(super) give_up: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, [layers]")]
pub(super) struct LayersText {
    #[serde(default, deserialize_with = "written::count")]
    pub(super) count: Option<u32>,
    #[serde(default, deserialize_with = "written::truth")]
    pub(super) cancel_downwards: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, [[effect]]")]
pub(super) struct EffectText {
    #[serde(deserialize_with = "written::text")]
    pub(super) kind: String,
    #[serde(deserialize_with = "written::length")]
    pub(super) from: String,
    #[serde(default, rename = "for", deserialize_with = "written::length")]
    pub(super) length: Option<String>,
    #[serde(default, deserialize_with = "written::number")]
    pub(super) to: Option<f64>,
    #[serde(default, deserialize_with = "written::number")]
    pub(super) share: Option<f64>,
    #[serde(default, deserialize_with = "written::number")]
    pub(super) times: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, [[window]]")]
pub(super) struct WindowText {
    #[serde(deserialize_with = "written::text")]
    pub(super) name: String,
    #[serde(deserialize_with = "written::length")]
    pub(super) from: String,
    #[serde(default, rename = "for", deserialize_with = "written::length")]
    pub(super) length: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, [recovery]")]
pub(super) struct RecoveryText {
    #[serde(default, deserialize_with = "written::text")]
    pub(super) of: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, [[gate]]")]
pub(super) struct GateText {
    #[serde(deserialize_with = "written::text")]
    pub(super) measure: String,
    #[serde(default, deserialize_with = "written::text")]
    pub(super) over: Option<String>,
    #[serde(default, deserialize_with = "written::number")]
    pub(super) at_most: Option<f64>,
    #[serde(default, deserialize_with = "written::number")]
    pub(super) at_least: Option<f64>,
    #[serde(default, deserialize_with = "written::text")]
    pub(super) times: Option<String>,
    #[serde(default, deserialize_with = "written::truth")]
    pub(super) breaker: Option<bool>,
}

/// A word out of a list, or a sentence that names the list.
pub(super) fn word<T: Copy>(field: &str, written: &str, known: &[(&str, T)]) -> Result<T, Unusable> {
    known.iter().find(|(name, _)| *name == written).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        unusable(field, format!("\"{written}\" is not known; write one of {}", names.join(", ")))
    })
}
