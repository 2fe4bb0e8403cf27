//! A breaker as it is written.

use alloc::format;

use serde::{Deserialize, Serialize};

use super::{BackoffText, Scalar, WordOr, read, write};
use crate::{
    breaker::{BreakerPolicy, SlowCalls},
    policy::Invalid,
    window::Window,
};

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct BreakerText {
    failure_rate: Option<Scalar>,
    slow_calls: Option<WordOr<SlowCallsText>>,
    consecutive_failures: Option<Scalar>,
    window: Option<Scalar>,
    min_calls: Option<Scalar>,
    break_time: Option<BackoffText>,
    break_jitter: Option<Scalar>,
    probes: Option<Scalar>,
    probe_timeout: Option<Scalar>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct SlowCallsText {
    longer_than: Option<Scalar>,
    rate: Option<Scalar>,
}

impl BreakerText {
    /// The breaker; what is left out is as in `base`, or as in relent's default.
    pub(super) fn over(self, base: Option<&BreakerPolicy>) -> Result<BreakerPolicy, Invalid> {
        let mut breaker = base.cloned().unwrap_or_default();
        let rate = |field: &str, written| read::none_or(field, written, read::thousandths);
        read::set(&mut breaker.failure_rate_milli, "breaker.failure_rate", self.failure_rate, rate)?;
        read::table_or_none("breaker.slow_calls", &mut breaker.slow_calls, self.slow_calls, slow_calls)?;
        let row = |field: &str, written| read::none_or(field, written, read::count);
        let slot = &mut breaker.consecutive_failures;
        read::set(slot, "breaker.consecutive_failures", self.consecutive_failures, row)?;
        read::set(&mut breaker.window, "breaker.window", self.window, window)?;
        read::set(&mut breaker.min_calls, "breaker.min_calls", self.min_calls, read::count)?;
        if let Some(text) = self.break_time {
            breaker.break_time = text.over("breaker.break_time", &breaker.break_time)?;
        }
        let slot = &mut breaker.break_jitter_milli;
        read::set(slot, "breaker.break_jitter", self.break_jitter, read::thousandths)?;
        read::set(&mut breaker.probes, "breaker.probes", self.probes, read::count)?;
        read::set(&mut breaker.probe_timeout, "breaker.probe_timeout", self.probe_timeout, read::length)?;
        Ok(breaker)
    }
}

fn slow_calls(text: SlowCallsText, base: Option<&SlowCalls>) -> Result<SlowCalls, Invalid> {
    let place = |name| format!("breaker.slow_calls.{name}");
    let missing = |name| {
        let reason = "it is missing; slow calls are those longer_than a time, and a rate of them is too many";
        Invalid::new(place(name), reason)
    };
    let mut longer_than = base.map(|slow| slow.longer_than);
    let some = |field: &str, written| read::length(field, written).map(Some);
    read::set(&mut longer_than, &place("longer_than"), text.longer_than, some)?;
    let mut rate = base.map(|slow| slow.rate_milli);
    let some = |field: &str, written| read::thousandths(field, written).map(Some);
    read::set(&mut rate, &place("rate"), text.rate, some)?;
    Ok(SlowCalls {
        longer_than: longer_than.ok_or_else(|| missing("longer_than"))?,
        rate_milli: rate.ok_or_else(|| missing("rate"))?,
    })
}

/// A time, or a whole number of calls.
fn window(field: &str, written: Scalar) -> Result<Window, Invalid> {
    match written {
        Scalar::Text(_) => read::length(field, written).map(Window::Time),
        Scalar::Whole(_) => read::count(field, written).map(Window::Count),
        Scalar::Real(_) => {
            let reason = format!("{written} is neither a time (\"10s\") nor a whole number of calls (100)");
            Err(Invalid::new(field, reason))
        }
    }
}

impl From<&BreakerPolicy> for BreakerText {
    fn from(breaker: &BreakerPolicy) -> Self {
        let none = || Scalar::Text("none".into());
        let slow = |slow: &SlowCalls| SlowCallsText {
            longer_than: Some(write::length(slow.longer_than)),
            rate: Some(write::thousandths(slow.rate_milli)),
        };
        Self {
            failure_rate: Some(breaker.failure_rate_milli.map_or_else(none, write::thousandths)),
            slow_calls: Some(write::table_or_none(breaker.slow_calls.as_ref().map(slow))),
            consecutive_failures: Some(breaker.consecutive_failures.map_or_else(none, write::count)),
            window: Some(match breaker.window {
                Window::Count(calls) => write::count(calls),
                Window::Time(length) => write::length(length),
            }),
            min_calls: Some(write::count(breaker.min_calls)),
            break_time: Some((&breaker.break_time).into()),
            break_jitter: Some(write::thousandths(breaker.break_jitter_milli)),
            probes: Some(write::count(breaker.probes)),
            probe_timeout: Some(write::length(breaker.probe_timeout)),
        }
    }
}
