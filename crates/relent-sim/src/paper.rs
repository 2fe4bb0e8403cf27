//! The numbers that two documents report, reproduced on relent's own code: "Retries That Fail Better" and "Retry,
//! Timeout, and Backoff".
//!
//! Each is worked out anew (by the core's budgets and decisions, by the simulator, or by arithmetic) and put beside what
//! was reported. Nothing is read from a table of answers.

pub mod contention;
pub mod experiment;
mod layers;
mod quota;
mod random;
mod schedule;
mod sixty;

use std::fmt;

pub use self::random::NetRandom;

/// A figure, beside what was reported.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What was reported of what.
    pub claim: String,
    /// As it was reported.
    pub reported: String,
    /// As it is found.
    pub found: String,
    /// By how much they differ.
    pub difference: String,
    /// Whether they agree as far as they should: to the digit where both are exact, otherwise within what chance or
    /// rounding leaves.
    pub agrees: bool,
}

/// A part of the documents' numbers.
#[derive(Clone, Copy)]
pub struct Part {
    /// What it is about.
    pub title: &'static str,
    reproduce: fn(&Setting) -> Vec<Figure>,
}

/// What to reproduce them with.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The seed of .NET's generator. With 42, the article's, the experiment is held to equality; with any other to the
    /// intervals that a thousand seeds gave.
    pub seed: i32,
    /// How often each random figure is drawn.
    pub trials: u32,
}

impl Default for Setting {
    fn default() -> Self {
        Self { seed: 42, trials: 100 }
    }
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self { title: "10,000 calls under budgets", reproduce: experiment::figures },
        Self { title: "60 calls to a dependency that is down", reproduce: sixty::figures },
        Self { title: "schedules and deadlines", reproduce: schedule::figures },
        Self { title: "layers", reproduce: layers::figures },
        Self { title: "the AWS retry quota", reproduce: quota::figures },
        Self { title: "clients that contend for one row", reproduce: contention::figures },
    ];

    /// Its figures.
    pub fn figures(&self, setting: &Setting) -> Vec<Figure> {
        (self.reproduce)(setting)
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("title", &self.title).finish_non_exhaustive()
    }
}

impl Figure {
    /// A count that is to be met to the digit.
    fn exactly(claim: impl Into<String>, reported: u64, found: u64) -> Self {
        Self {
            claim: claim.into(),
            reported: thousands(reported),
            found: thousands(found),
            difference: signed(found as i64 - reported as i64),
            agrees: found == reported,
        }
    }

    /// A count that is to lie in an interval, both ends included.
    fn within(claim: impl Into<String>, (low, high): (u64, u64), found: u64) -> Self {
        let agrees = (low..=high).contains(&found);
        Self {
            claim: claim.into(),
            reported: format!("{} to {}", thousands(low), thousands(high)),
            found: thousands(found),
            difference: if agrees { "inside".into() } else { "outside".into() },
            agrees,
        }
    }

    /// A quantity that is to be met as closely as `tolerance`.
    fn about(claim: impl Into<String>, reported: f64, found: f64, tolerance: f64, unit: &str) -> Self {
        let digits = if reported.fract() == 0.0 && reported.abs() >= 100.0 { 0 } else { 1 };
        Self {
            claim: claim.into(),
            reported: format!("{reported:.digits$}{unit}"),
            found: format!("{found:.1}{unit}"),
            difference: format!("{:+.1}{unit}", found - reported),
            agrees: (found - reported).abs() <= tolerance,
        }
    }

    /// Something that was said, and what is the case.
    fn said(claim: impl Into<String>, reported: &str, found: impl Into<String>, agrees: bool) -> Self {
        Self {
            claim: claim.into(),
            reported: reported.into(),
            found: found.into(),
            difference: if agrees { "none".into() } else { "it is not so".into() },
            agrees,
        }
    }
}

/// Mean, least and greatest.
fn spread(values: &[f64]) -> (f64, f64, f64) {
    let sum: f64 = values.iter().sum();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (sum / crate::report::float(values.len() as u64), low, high)
}

fn signed(difference: i64) -> String {
    if difference == 0 { "0".into() } else { format!("{difference:+}") }
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_agrees_as_closely_as_it_is_to() {
        assert!(Figure::exactly("", 10_116, 10_116).agrees && !Figure::exactly("", 10_116, 10_117).agrees);
        assert_eq!(Figure::exactly("", 10_116, 9_999).difference, "-117");
        assert!(Figure::within("", (1, 3), 3).agrees && !Figure::within("", (1, 3), 4).agrees);
        assert!(
            Figure::about("", 5.4, 5.5, 0.2, " s").agrees && !Figure::about("", 5.4, 5.7, 0.2, " s").agrees
        );
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(thousands(12), "12");
    }
}
