//! What makes a policy impossible, refused with the field's name and the arithmetic; and what makes it doubtful.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::{fmt, time::Duration};

use super::Policy;
use crate::{
    backoff::Backoff,
    jitter::Jitter,
    retry::{Over, ServerWaitMode},
    text::DurationText,
};

/// A setting that cannot be, with the field's name and the way out.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Invalid {
    /// The field, as it is written in TOML: `retry.max_attempts`.
    pub field: String,
    /// What is wrong with it and what would be right.
    pub reason: String,
}

/// A setting that works but is probably not what was meant.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Warning {
    /// The field, as it is written in TOML.
    pub field: String,
    /// What happens, with the arithmetic.
    pub reason: String,
}

impl Invalid {
    /// A refusal of a field.
    pub fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into() }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.reason)
    }
}

impl core::error::Error for Invalid {}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.reason)
    }
}
