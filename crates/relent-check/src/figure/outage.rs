//! What retries make of the load: of one call, of a service in an outage, and through layers.

use relent_core::{
    BudgetPolicy,
    budget::{Of, RatioPolicy},
};

use crate::subject::{Part, Subject};

/// Attempts for each call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Outage {
    /// Attempts for each call on average, in thousandths, as long as every attempt fails. `None`: no number can be
    /// given, or none is known.
    pub attempts_milli: Option<u64>,
    /// The same in words.
    pub words: String,
}

/// The most attempts of one call that fails at once. `None`: without limit, or not known.
pub fn of_one_call(subject: &Subject) -> Option<u32> {
    if !subject.retries() {
        return Some(1);
    }
    subject.knows(Part::Attempts).then(|| subject.policy.attempts_at_best()).flatten()
}

/// A service all of whose attempts fail, for a minute and longer.
pub fn of_service(subject: &Subject) -> Outage {
    let one = of_one_call(subject);
    if one == Some(1) {
        return Outage { attempts_milli: Some(1000), words: "it does not retry".into() };
    }
    if subject.is_unreadable(Part::Budget) || subject.is_unreadable(Part::Breaker) {
        return Outage { attempts_milli: None, words: "not told: what bounds it cannot be read".into() };
    }
    match (&subject.policy.budget, &subject.policy.breaker) {
        (Some(budget), _) => budgeted(budget, one),
        (None, Some(breaker)) => Outage {
            attempts_milli: None,
            words: format!(
                "{} until the breaker opens, then its {} alone",
                match one {
                    Some(one) => format!("{one} for each call"),
                    None if subject.knows(Part::Attempts) => "without limit".into(),
                    None => "all its attempts for each call".into(),
                },
                if breaker.probes == 1 { "probe" } else { "probes" }
            ),
        },
        (None, None) => Outage {
            attempts_milli: one.map(|one| u64::from(one) * 1000),
            words: match one {
                Some(one) => format!("{one} for each call, as long as it lasts"),
                None if subject.knows(Part::Attempts) => "nothing bounds it".into(),
                None => "all its attempts for each call, as long as it lasts".into(),
            },
        },
    }
}

/// Retries for each call, in thousandths, that the policy keeps up in steady failure: ρ. `None`: not known.
///
/// Budgets that drain on failed retries keep up none.
pub(crate) fn steady_milli(subject: &Subject) -> Option<u64> {
    let one = of_one_call(subject);
    let most = one.map(|one| u64::from(one.saturating_sub(1)) * 1000);
    match &subject.policy.budget {
        None => most,
        Some(BudgetPolicy::Ratio(ratio)) => Some(most.unwrap_or(u64::MAX).min(extra_milli(ratio))),
        Some(BudgetPolicy::Share(share)) => Some(most.unwrap_or(u64::MAX).min(share.share_milli.into())),
        Some(_) => Some(0),
    }
}

fn budgeted(budget: &BudgetPolicy, one: Option<u32>) -> Outage {
    let most = one.map_or(u64::MAX, |one| u64::from(one) * 1000);
    let bounded = |milli: u64, words: String| Outage { attempts_milli: Some(milli.min(most)), words };
    match budget {
        BudgetPolicy::Loan(loan) if loan.charge_milli > 0 => {
            let minute = u64::from(loan.per_call_milli) * 1000 / u64::from(loan.charge_milli);
            bounded(
                1000 + minute,
                format!("{} over a minute, nearer to 1 the longer it lasts", thousandths(1000 + minute)),
            )
        }
        BudgetPolicy::Loan(_) => Outage { attempts_milli: None, words: "nothing bounds it".into() },
        BudgetPolicy::Grpc(grpc) => {
            let retries = (grpc.max_milli - grpc.max_milli / 2).saturating_sub(1) / 1000;
            bounded(1000, format!("{retries} retries, then 1 for each call"))
        }
        BudgetPolicy::Quota(quota) => {
            let retries = quota.capacity_milli / quota.transient_milli.max(1);
            bounded(1000, format!("{retries} retries, then 1 for each call"))
        }
        BudgetPolicy::Ratio(ratio) => {
            let milli = 1000 + extra_milli(ratio);
            let floor = match ratio.floor_per_second {
                0 => String::new(),
                floor => format!(", and {floor} a second for each process"),
            };
            bounded(milli, format!("{} for each call{floor}", thousandths(milli.min(most))))
        }
        BudgetPolicy::Share(share) if share.share_milli == 0 => Outage {
            attempts_milli: None,
            words: format!("never more than {} retries at a time", share.floor),
        },
        BudgetPolicy::Share(share) => {
            let milli = 1000 + u64::from(share.share_milli);
            let words = format!(
                "about {} for each call where a retry takes as long as a call; more where it takes less",
                thousandths(milli.min(most))
            );
            bounded(milli, words)
        }
        _ => Outage { attempts_milli: None, words: "not known for this budget".into() },
    }
}

/// Retries for each original: of all requests, a share q is q ÷ (1 − q) of the originals.
fn extra_milli(ratio: &RatioPolicy) -> u64 {
    let share = u64::from(ratio.share_milli);
    match ratio.of {
        Of::Originals => share,
        Of::All if share >= 1000 => u64::MAX / 2000,
        Of::All => share * 1000 / (1000 - share),
    }
}

/// What `layers` of these make of one call, in thousandths. `None`: not known.
pub(crate) fn through_milli(attempts_milli: u64, layers: u32) -> u64 {
    (0..layers).fold(1000_u64, |product, _| {
        let next = u128::from(product) * u128::from(attempts_milli) / 1000;
        u64::try_from(next).unwrap_or(u64::MAX)
    })
}

/// Thousandths as a number with at most two decimals: `1.02`, `8`.
pub(crate) fn thousandths(milli: u64) -> String {
    let hundredths = (milli + 5) / 10;
    let (whole, fraction) = (hundredths / 100, hundredths % 100);
    match fraction {
        0 => whole.to_string(),
        _ => format!("{whole}.{}", format!("{fraction:02}").trim_end_matches('0')),
    }
}

#[cfg(test)]
mod tests {
    use relent_core::{Policy, Preset};

    use super::*;
    use crate::subject::Format;

    fn outage(preset: Preset) -> Outage {
        of_service(&Subject::new("", Format::Relent, preset.policy()))
    }

    /// By the published experiments: the loan budget 1.020 arrivals a call over a minute, a ratio of a tenth of all
    /// requests 1.11, a bucket of the AWS SDKs' 35 retries, gRPC's 4.
    #[test]
    fn an_outage_costs_what_was_measured() {
        assert_eq!(outage(Preset::Default).attempts_milli, Some(1020));
        assert_eq!(outage(Preset::GrpcA6).words, "4 retries, then 1 for each call");
        assert_eq!(outage(Preset::Aws2026).words, "35 retries, then 1 for each call");
        let mut tenth = Policy::live();
        tenth.budget = Some(BudgetPolicy::Ratio(RatioPolicy { share_milli: 100, ..RatioPolicy::SRE }));
        let tenth = of_service(&Subject::new("", Format::Relent, tenth));
        assert_eq!(tenth.attempts_milli, Some(1111));
    }

    #[test]
    fn layers_multiply() {
        assert_eq!([1, 2, 3].map(|layers| through_milli(2000, layers)), [2000, 4000, 8000]);
        assert_eq!(through_milli(5000, 3), 125_000);
        assert_eq!(through_milli(3000, 5), 243_000);
        assert_eq!(through_milli(u64::MAX, 9), u64::MAX);
    }
}
