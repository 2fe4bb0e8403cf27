//! The standard scenarios, as files that anybody may copy and change.

use super::{Scenario, Unusable};

/// A standard scenario.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Standard {
    /// Its short name.
    pub id: &'static str,
    /// Its file.
    pub text: &'static str,
}

impl Standard {
    /// All of them, in the order in which they are run.
    pub const ALL: &'static [Self] = &[
        Self { id: "S1", text: include_str!("../../scenarios/s1.toml") },
        Self { id: "S2", text: include_str!("../../scenarios/s2.toml") },
        Self { id: "S2b", text: include_str!("../../scenarios/s2b.toml") },
        Self { id: "S3", text: include_str!("../../scenarios/s3.toml") },
        Self { id: "S3b", text: include_str!("../../scenarios/s3b.toml") },
        Self { id: "S4", text: include_str!("../../scenarios/s4.toml") },
        Self { id: "S4b", text: include_str!("../../scenarios/s4b.toml") },
        Self { id: "S5", text: include_str!("../../scenarios/s5.toml") },
        Self { id: "S5b", text: include_str!("../../scenarios/s5b.toml") },
        Self { id: "S5c", text: include_str!("../../scenarios/s5c.toml") },
        Self { id: "S6", text: include_str!("../../scenarios/s6.toml") },
        Self { id: "S7", text: include_str!("../../scenarios/s7.toml") },
        Self { id: "S7b", text: include_str!("../../scenarios/s7b.toml") },
        Self { id: "S8", text: include_str!("../../scenarios/s8.toml") },
        Self { id: "S9", text: include_str!("../../scenarios/s9.toml") },
        Self { id: "S9b", text: include_str!("../../scenarios/s9b.toml") },
        Self { id: "S10", text: include_str!("../../scenarios/s10.toml") },
        Self { id: "S11", text: include_str!("../../scenarios/s11.toml") },
    ];
}

/// The standard scenario of that name, whatever the case of its letters.
pub fn standard(id: &str) -> Option<Standard> {
    Standard::ALL.iter().copied().find(|standard| standard.id.eq_ignore_ascii_case(id))
}

impl Standard {
    /// The scenario, with single values replaced as [`Scenario::parse`] says.
    ///
    /// # Errors
    ///
    /// What a setting makes impossible. Without settings there is none: a test reads every file.
    pub fn scenario(self, settings: &[(&str, &str)]) -> Result<Scenario, Unusable> {
        Scenario::parse(self.text, settings)
    }
}
