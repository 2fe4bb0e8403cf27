//! The policies that every other is measured against: relent's presets, and a few that differ in their budget alone.

use relent_core::{Policy, PolicyText, Preset};

/// The names of all of them.
pub fn names() -> impl Iterator<Item = &'static str> {
    Preset::ALL.iter().map(|preset| preset.name()).chain(FILES.iter().map(|(name, _)| *name))
}

/// The policy of that name: a preset of relent's, or
///
/// - `no-retries`: one attempt of 2 s,
/// - `plain-loop`: five attempts with full jitter within 5 s, and nothing else,
/// - `grpc-budget`: the same under gRPC's throttling (10 tokens, a tenth back),
/// - `aws-2026-quota`: the same under the AWS SDKs' quota of 2026.
pub fn named(name: &str) -> Option<Policy> {
    if let Some(preset) = Preset::from_name(name) {
        return Some(preset.policy());
    }
    let (_, text) = FILES.iter().find(|(known, _)| *known == name)?;
    let text: PolicyText = toml::from_str(text).ok()?;
    text.over(Policy::live()).ok()
}

/// The same policy without retries, and without what is there for their sake or sheds calls: budget, breaker, limits.
pub fn without_retries(policy: &Policy) -> Policy {
    let mut policy = policy.clone();
    policy.retry.max_attempts = Some(1);
    policy.budget = None;
    policy.breaker = None;
    policy.admission = Default::default();
    policy.attempt = Default::default();
    policy
}

const FILES: &[(&str, &str)] = &[
    ("no-retries", include_str!("../policies/no-retries.toml")),
    ("plain-loop", include_str!("../policies/plain-loop.toml")),
    ("grpc-budget", include_str!("../policies/grpc-budget.toml")),
    ("aws-2026-quota", include_str!("../policies/aws-2026-quota.toml")),
];

#[cfg(test)]
mod tests {
    use relent_core::BudgetPolicy;

    use super::*;

    #[test]
    fn every_name_is_a_policy_that_is_possible() {
        assert_eq!(names().count(), Preset::ALL.len() + FILES.len());
        for name in names() {
            let policy = named(name).unwrap_or_else(|| panic!("{name} cannot be read"));
            assert!(policy.validate().is_ok(), "{name}");
        }
        assert_eq!(named("nonsense"), None);
    }

    #[test]
    fn they_are_the_default_but_for_what_they_are_there_to_show() {
        let plain = named("plain-loop").expect("there");
        for (name, budget) in [("grpc-budget", "Grpc"), ("aws-2026-quota", "Quota")] {
            let policy = named(name).expect("there");
            assert!(format!("{:?}", policy.budget).contains(budget), "{:?}", policy.budget);
            assert_eq!(Policy { budget: None, ..policy }, plain);
        }
        let repeat = plain.repeat;
        let live = Policy { repeat, budget: None, ..Policy::live() };
        assert_eq!(Policy { retry: live.retry.clone(), ..plain }, live);
        assert_eq!(
            without_retries(&Policy { repeat, ..Policy::live() }),
            named("no-retries").expect("there")
        );
        assert!(matches!(Policy::live().budget, Some(BudgetPolicy::Loan(_))));
    }
}
