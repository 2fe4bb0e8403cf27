//! Policies with a name of their own.

use crate::{decision::names, policy::Policy};

/// A policy with a name of its own.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Preset {
    /// For a caller who waits.
    Default,
    /// For durable work.
    Durable,
}

names!(Preset { Default => "default", Durable => "durable" });

impl Preset {
    /// The policy.
    pub fn policy(self) -> Policy {
        match self {
            Self::Default => Policy::live(),
            Self::Durable => Policy::durable(),
        }
    }
}
