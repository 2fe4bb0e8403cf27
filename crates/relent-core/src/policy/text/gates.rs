//! The limits of one place in the pipeline as they are written.

use alloc::format;

use serde::{Deserialize, Serialize};

use super::{Scalar, WordOr, read, write};
use crate::{
    concurrency::ConcurrencyPolicy,
    policy::{Gates, Invalid},
    rate::RatePolicy,
};

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct GatesText {
    concurrency: Option<WordOr<ConcurrencyText>>,
    rate: Option<WordOr<RateText>>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct ConcurrencyText {
    limit: Option<Scalar>,
    queue: Option<Scalar>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct RateText {
    permits: Option<Scalar>,
    per: Option<Scalar>,
    burst: Option<Scalar>,
}

impl GatesText {
    pub(super) fn write_to(self, slot: &str, gates: &mut Gates) -> Result<(), Invalid> {
        let field = format!("{slot}.concurrency");
        read::table_or_none(&field, &mut gates.concurrency, self.concurrency, |text, base| {
            text.over(&field, base)
        })?;
        let field = format!("{slot}.rate");
        read::table_or_none(&field, &mut gates.rate, self.rate, |text, base| text.over(&field, base))
    }
}

impl ConcurrencyText {
    /// The limit; without a base nobody waits unless the text says so.
    fn over(self, field: &str, base: Option<&ConcurrencyPolicy>) -> Result<ConcurrencyPolicy, Invalid> {
        let missing = |name: &str| missing(field, name, "a concurrency limit has limit and queue");
        let mut limit = base.map(|policy| policy.limit);
        set(&mut limit, &format!("{field}.limit"), self.limit, read::count)?;
        let mut queue = base.map_or(0, |policy| policy.queue);
        read::set(&mut queue, &format!("{field}.queue"), self.queue, read::count)?;
        Ok(ConcurrencyPolicy { limit: limit.ok_or_else(|| missing("limit"))?, queue })
    }
}

impl RateText {
    /// The limit; without a base they are spaced evenly unless the text says how many may go at once.
    fn over(self, field: &str, base: Option<&RatePolicy>) -> Result<RatePolicy, Invalid> {
        let missing = |name: &str| missing(field, name, "a rate limit has permits, per and burst");
        let mut permits = base.map(|policy| policy.permits);
        set(&mut permits, &format!("{field}.permits"), self.permits, read::count)?;
        let mut per = base.map(|policy| policy.per);
        set(&mut per, &format!("{field}.per"), self.per, read::length)?;
        let mut burst = base.map_or(1, |policy| policy.burst);
        read::set(&mut burst, &format!("{field}.burst"), self.burst, read::count)?;
        Ok(RatePolicy {
            permits: permits.ok_or_else(|| missing("permits"))?,
            per: per.ok_or_else(|| missing("per"))?,
            burst,
        })
    }
}

fn set<T>(
    slot: &mut Option<T>,
    field: &str,
    written: Option<Scalar>,
    read: impl FnOnce(&str, Scalar) -> Result<T, Invalid>,
) -> Result<(), Invalid> {
    read::set(slot, field, written, |field, written| read(field, written).map(Some))
}

fn missing(field: &str, name: &str, has: &str) -> Invalid {
    Invalid::new(format!("{field}.{name}"), format!("it is missing; {has}"))
}

impl From<&Gates> for GatesText {
    fn from(gates: &Gates) -> Self {
        let concurrency = gates.concurrency.map(|policy| ConcurrencyText {
            limit: Some(write::count(policy.limit)),
            queue: Some(write::count(policy.queue)),
        });
        let rate = gates.rate.map(|policy| RateText {
            permits: Some(write::count(policy.permits)),
            per: Some(write::length(policy.per)),
            burst: Some(write::count(policy.burst)),
        });
        Self { concurrency: Some(write::table_or_none(concurrency)), rate: Some(write::table_or_none(rate)) }
    }
}
