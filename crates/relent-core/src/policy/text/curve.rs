//! A backoff as it is written: its kind, and the fields that this kind has.

use alloc::{format, vec::Vec};

use super::{BackoffText, Scalar, read, write};
use crate::{backoff::Backoff, policy::Invalid};

impl BackoffText {
    /// The curve; what is left out is as in `base` if that is of the same kind.
    pub(super) fn over(self, field: &str, base: &Backoff) -> Result<Backoff, Invalid> {
        let kind = match &self.kind {
            Some(name) => read::word(&format!("{field}.kind"), name, &KINDS, |kind| kind)?,
            None => base.kind(),
        };
        self.refuse_what_is_not_of(kind, field)?;
        let base = if base.kind() == kind { Self::from(base) } else { Self::default() };
        let place = |name: &str| format!("{field}.{name}");
        let missing = |name: &str| {
            let list = fields(kind).join(", ");
            Invalid::new(place(name), format!("it is missing; a backoff of kind {kind} has {list}"))
        };
        let length = |name: &str, own: Option<Scalar>, base: Option<Scalar>| {
            read::length(&place(name), own.or(base).ok_or_else(|| missing(name))?)
        };
        Ok(match kind {
            CONSTANT => Backoff::Constant(length("wait", self.wait, base.wait)?),
            LINEAR => Backoff::Linear {
                base: length("base", self.base, base.base)?,
                max: length("max", self.max, base.max)?,
            },
            EXPONENTIAL => {
                let factor = self.factor.or(base.factor).ok_or_else(|| missing("factor"))?;
                Backoff::Exponential {
                    base: length("base", self.base, base.base)?,
                    factor_milli: read::thousandths(&place("factor"), factor)?,
                    max: length("max", self.max, base.max)?,
                }
            }
            _ => {
                let waits = self.waits.or(base.waits).ok_or_else(|| missing("waits"))?;
                let lengths = waits.into_iter().map(|wait| read::length(&place("waits"), wait));
                Backoff::Steps(lengths.collect::<Result<Vec<_>, _>>()?)
            }
        })
    }

    fn refuse_what_is_not_of(&self, kind: &str, field: &str) -> Result<(), Invalid> {
        let known = fields(kind);
        let given = [
            ("wait", self.wait.is_some()),
            ("base", self.base.is_some()),
            ("factor", self.factor.is_some()),
            ("max", self.max.is_some()),
            ("waits", self.waits.is_some()),
        ];
        let Some((name, _)) = given.iter().find(|(name, given)| *given && !known.contains(name)) else {
            return Ok(());
        };
        let reason = format!("a backoff of kind {kind} has no {name}; it has {}", known.join(", "));
        Err(Invalid::new(format!("{field}.{name}"), reason))
    }
}

impl From<&Backoff> for BackoffText {
    fn from(curve: &Backoff) -> Self {
        let kind = Some(curve.kind().into());
        match curve {
            Backoff::Constant(wait) => Self { kind, wait: Some(write::length(*wait)), ..Self::default() },
            Backoff::Linear { base, max } => Self {
                kind,
                base: Some(write::length(*base)),
                max: Some(write::length(*max)),
                ..Self::default()
            },
            Backoff::Exponential { base, factor_milli, max } => Self {
                kind,
                base: Some(write::length(*base)),
                factor: Some(write::thousandths(*factor_milli)),
                max: Some(write::length(*max)),
                ..Self::default()
            },
            Backoff::Steps(waits) => Self {
                kind,
                waits: Some(waits.iter().copied().map(write::length).collect()),
                ..Self::default()
            },
        }
    }
}

impl Backoff {
    /// The word for this curve in a policy's text.
    const fn kind(&self) -> &'static str {
        match self {
            Self::Constant(_) => CONSTANT,
            Self::Linear { .. } => LINEAR,
            Self::Exponential { .. } => EXPONENTIAL,
            Self::Steps(_) => STEPS,
        }
    }
}

/// The fields of a kind of backoff.
fn fields(kind: &str) -> &'static [&'static str] {
    match kind {
        CONSTANT => &["wait"],
        LINEAR => &["base", "max"],
        EXPONENTIAL => &["base", "factor", "max"],
        _ => &["waits"],
    }
}

const KINDS: [&str; 4] = [CONSTANT, LINEAR, EXPONENTIAL, STEPS];
const CONSTANT: &str = "constant";
const LINEAR: &str = "linear";
const EXPONENTIAL: &str = "exponential";
const STEPS: &str = "steps";
