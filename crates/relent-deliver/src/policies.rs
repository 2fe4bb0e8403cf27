//! Policies by name: a message keeps the name alone, so that a corrected policy counts for what is under way.

use std::{collections::BTreeMap, fmt, sync::Arc};

use relent::{Policy, Preset};

/// The policies that messages may name. Always there: the presets, unless a configured policy takes their name.
/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Policies {
    named: Arc<BTreeMap<String, Policy>>,
}

impl Policies {
    /// The policy of a message that names none.
    pub const DEFAULT: &'static str = Preset::Durable.name();

    /// The presets, and these above them. Whoever reads them from a file has validated them.
    pub fn new(configured: impl IntoIterator<Item = (String, Policy)>) -> Self {
        let mut named: BTreeMap<_, _> =
            Preset::ALL.iter().map(|preset| (preset.name().to_owned(), preset.policy())).collect();
        named.extend(configured);
        Self { named: Arc::new(named) }
    }

    /// The policy with that name.
    ///
    /// # Errors
    ///
    /// [`UnknownPolicy`] lists the names that there are.
    pub fn named(&self, name: &str) -> Result<&Policy, UnknownPolicy> {
        self.named.get(name).ok_or_else(|| UnknownPolicy {
            name: name.to_owned(),
            known: self.names().map(str::to_owned).collect(),
        })
    }

    /// Who is to be told of work that the policy with that name gave up.
    pub fn alert(&self, name: &str) -> Option<&str> {
        self.named.get(name)?.alert.as_deref()
    }

    /// Every name, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.named.keys().map(String::as_str)
    }
}

impl Default for Policies {
    fn default() -> Self {
        Self::new([])
    }
}

/// A name that no policy has.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownPolicy {
    /// The name.
    pub name: String,
    /// The names that there are.
    pub known: Vec<String>,
}

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no policy \"{}\"; there are: {}", self.name, self.known.join(", "))
    }
}

impl std::error::Error for UnknownPolicy {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_presets_are_always_there_and_a_configured_policy_may_take_their_name() {
        let own = Policy { attempt_timeout: std::time::Duration::from_secs(7), ..Policy::durable() };
        let policies =
            Policies::new([("durable".to_owned(), own.clone()), ("orders".to_owned(), own.clone())]);
        assert_eq!(policies.named("durable"), Ok(&own));
        assert_eq!(policies.named("orders"), Ok(&own));
        assert_eq!(policies.named("default"), Ok(&Policy::live()));
        assert_eq!(Policies::default().named(Policies::DEFAULT), Ok(&Policy::durable()));
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = Policies::default().named("durabel").unwrap_err();
        let known = "aws-2026, azure-core, default, durable, envoy, grpc-a6, microsoft-standard";
        assert_eq!(error.to_string(), format!("there is no policy \"durabel\"; there are: {known}"));
    }
}
