//! Whether a policy keeps what a scenario asks of a good one.

use relent_core::Policy;

use crate::{
    policies::without_retries,
    report::{Recovery, Report},
    scenario::{Gate, MEASURES, Measure, Relative, Scenario, Side},
};

/// A scenario that a policy was put through.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Trial {
    /// What the run came to.
    pub report: Report,
    /// What the same run came to without retries, where a gate compares with it.
    pub without: Option<Report>,
    /// Each gate of the scenario in turn.
    pub judgements: Vec<Judgement>,
}

/// What came of one gate.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The gate.
    pub gate: Gate,
    /// What was measured; `None` where there was nothing to measure. A recovery that never came is infinite.
    pub value: Option<f64>,
    /// What it was held to.
    pub bound: f64,
    /// What came of it.
    pub verdict: Verdict,
}

/// What came of a gate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// Kept.
    Pass,
    /// Not kept.
    Fail,
    /// It is for policies of another kind, or there was nothing to measure.
    Skipped,
}

impl Verdict {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Skipped => "skipped",
        }
    }
}

impl Trial {
    /// Runs a scenario under a policy, and once more without retries where a gate compares with that.
    pub fn run(scenario: &Scenario, policy: &Policy, seed: u64) -> Self {
        let report = crate::run(scenario, policy, seed);
        let compares = scenario.gates.iter().any(|gate| gate.relative.is_some());
        let without = compares.then(|| crate::run(scenario, &without_retries(policy), seed));
        Self::judge(scenario, policy, report, without)
    }

    /// Judges a run that has been made. `without` is the same run without retries; gates that compare with it are
    /// skipped where it is not there.
    pub fn judge(scenario: &Scenario, policy: &Policy, report: Report, without: Option<Report>) -> Self {
        let has_breaker = policy.breaker.is_some();
        let judgements = scenario
            .gates
            .iter()
            .map(|gate| Judgement::new(gate, has_breaker, &report, without.as_ref()))
            .collect();
        Self { report, without, judgements }
    }

    /// The gates that failed.
    pub fn failed(&self) -> impl Iterator<Item = &Judgement> {
        self.judgements.iter().filter(|judgement| judgement.verdict == Verdict::Fail)
    }
}

impl Judgement {
    fn new(gate: &Gate, has_breaker: bool, report: &Report, without: Option<&Report>) -> Self {
        let value = measured(gate, report);
        let bound = match gate.relative {
            None => Some(gate.bound),
            Some(Relative::NoRetries) => {
                without.and_then(|without| measured(gate, without)).map(|value| gate.bound * value)
            }
        };
        let bound = bound.map(|bound| match gate.measure {
            Measure::Recovery => bound.max(NOISE),
            _ => bound,
        });
        let verdict = match (value, bound) {
            _ if gate.breaker.is_some_and(|with| with != has_breaker) => Verdict::Skipped,
            (Some(value), Some(bound)) => match gate.side {
                Side::AtMost if value <= bound => Verdict::Pass,
                Side::AtLeast if value >= bound => Verdict::Pass,
                Side::AtMost | Side::AtLeast => Verdict::Fail,
            },
            _ => Verdict::Skipped,
        };
        Self { gate: gate.clone(), value, bound: bound.unwrap_or(gate.bound), verdict }
    }
}

fn measured(gate: &Gate, report: &Report) -> Option<f64> {
    let sums = || report.window(&gate.over);
    match gate.measure {
        Measure::ArrivalsPerCall => sums()?.arrivals_per_call(),
        Measure::Success => sums()?.success_percent(),
        // Where no first attempt failed, nothing was lost.
        Measure::Rescued => Some(sums()?.rescued_percent().unwrap_or(100.0)),
        Measure::Recovery => report.recovery.map(|recovery| match recovery {
            Recovery::After(length) => length.as_secs_f64(),
            Recovery::Never => f64::INFINITY,
        }),
        Measure::Peak => Some(crate::report::float(sums()?.peak) / report.normal_in_bin()?),
        Measure::BreakersOpened => Some(crate::report::float(sums()?.breakers_opened)),
    }
}

impl Measure {
    /// Its name, as it is written in a scenario.
    pub fn name(self) -> &'static str {
        MEASURES.iter().find(|(_, measure)| *measure == self).map_or("", |(name, _)| name)
    }

    /// What it is, in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::ArrivalsPerCall => "requests for each call",
            Self::Success => "calls that succeed",
            Self::Rescued => "faltering calls that succeed",
            Self::Recovery => "recovery",
            Self::Peak => "most in 10 ms / the average before",
            Self::BreakersOpened => "breakers opened",
        }
    }

    /// Whether it is of a window.
    pub fn has_window(self) -> bool {
        self != Self::Recovery
    }

    /// A value of it for people.
    pub fn text(self, value: f64) -> String {
        match self {
            _ if value.is_infinite() => "never".into(),
            Self::ArrivalsPerCall | Self::Peak => format!("{value:.2}"),
            // Near the top it is the second decimal that tells a pass from a failure.
            Self::Success | Self::Rescued if (99.0..100.0).contains(&value) => format!("{value:.2} %"),
            Self::Success | Self::Rescued => format!("{value:.1} %"),
            Self::Recovery if value.fract() == 0.0 => format!("{value:.0} s"),
            Self::Recovery => format!("{value:.1} s"),
            Self::BreakersOpened => format!("{value:.0}"),
        }
    }
}

impl Gate {
    /// What it asks, in words: the measure, where, and of which policies.
    pub fn words(&self) -> String {
        let over = if self.measure.has_window() { format!(", {}", self.over) } else { String::new() };
        let of = match self.breaker {
            None => "",
            Some(true) => " (with a breaker)",
            Some(false) => " (without a breaker)",
        };
        format!("{}{over}{of}", self.measure.words())
    }
}

impl Judgement {
    /// The bound, for people.
    pub fn bound_text(&self) -> String {
        let side = match self.gate.side {
            Side::AtMost => "at most",
            Side::AtLeast => "at least",
        };
        let relative = match self.gate.relative {
            Some(Relative::NoRetries) => format!(" ({} × without retries)", self.gate.bound),
            None => String::new(),
        };
        format!("{side} {}{relative}", self.gate.measure.text(self.bound))
    }

    /// What was measured, for people.
    pub fn value_text(&self) -> String {
        self.value.map_or_else(|| "–".into(), |value| self.gate.measure.text(value))
    }
}

/// Recoveries that differ by less, in seconds, differ by chance.
const NOISE: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{policies::named, scenario::Scenario};

    fn scenario(gate: &str) -> Scenario {
        let text = format!("{STALL}\n[[gate]]\n{gate}");
        Scenario::parse(&text, &[]).unwrap_or_else(|error| panic!("{gate}: {error}"))
    }

    fn verdict(gate: &str, policy: &str) -> Verdict {
        let policy = named(policy).expect("a built-in policy");
        Trial::run(&scenario(gate), &policy, 1).judgements[0].verdict
    }

    #[test]
    fn a_bound_is_kept_on_its_own_side() {
        let refused = "measure = 'arrivals_per_call'\nover = 'trigger'\n";
        for (gate, policy, expected) in [
            (format!("{refused}at_most = 1.0"), "no-retries", Verdict::Pass),
            (format!("{refused}at_most = 1.1"), "plain-loop", Verdict::Fail),
            (format!("{refused}at_least = 4.0"), "plain-loop", Verdict::Pass),
            (format!("{refused}at_most = 2\ntimes = 'no_retries'"), "plain-loop", Verdict::Fail),
            (format!("{refused}at_most = 5\ntimes = 'no_retries'"), "plain-loop", Verdict::Pass),
            ("measure = 'success'\nat_least = 1".into(), "no-retries", Verdict::Fail),
            ("measure = 'recovery'\nat_most = 0".into(), "no-retries", Verdict::Pass),
            ("measure = 'rescued'\nover = 'before'\nat_least = 100".into(), "no-retries", Verdict::Pass),
        ] {
            assert_eq!(verdict(&gate, policy), expected, "{gate} under {policy}");
        }
    }

    #[test]
    fn a_gate_for_policies_with_a_breaker_is_for_them_alone() {
        let gate = "measure = 'breakers_opened'\nat_most = 0\nbreaker = true";
        assert_eq!(verdict(gate, "plain-loop"), Verdict::Skipped);
        assert_eq!(verdict(gate, "microsoft-standard"), Verdict::Fail);
    }

    const STALL: &str = "
        id = 'refused'
        duration = '60s'
        [dependency]
        workers = 10
        service = '10ms'
        queue = 100
        [callers]
        kind = 'open'
        rate = 200
        [[effect]]
        kind = 'refuse'
        from = '20s'
        for = '10s'";
}
