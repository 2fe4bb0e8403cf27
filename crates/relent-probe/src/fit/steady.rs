//! The curve of waits that chance does not spread: read off their medians, the simplest that explains them.

use super::{Curve, Sample, secs};

/// The curve that the medians follow, each within the resolution.
pub(super) fn curve(sample: &Sample) -> Curve {
    let medians: Vec<f64> = sample.columns().map(|column| column.median()).collect();
    let near = |seen: f64, expected: f64| (seen - expected).abs() <= sample.resolution(expected);
    let shown = || medians.iter().copied().map(secs).collect();
    let follows = |expected: &dyn Fn(usize) -> f64| {
        medians.iter().enumerate().all(|(number, median)| near(*median, expected(number)))
    };
    let base = medians[0];
    let last = medians[medians.len() - 1];
    if medians.len() == 1 {
        let why = "one wait says nothing of the next".to_owned();
        return Curve::Undecided { why, medians: shown() };
    }
    if follows(&|_| base) {
        let sum: f64 = medians.iter().sum();
        return Curve::Constant { wait: secs(sum / medians.len() as f64) };
    }
    if medians.len() == 2 {
        let why = format!("two waits, the second {:.1} times the first, follow many curves", last / base);
        return Curve::Undecided { why, medians: shown() };
    }
    let capped = near(medians[medians.len() - 2], last);
    let cap = capped.then_some(last);
    let limit = cap.unwrap_or(f64::INFINITY);
    let grows: Vec<f64> =
        medians.iter().copied().take_while(|median| cap.is_none() || !near(*median, limit)).collect();
    let linear = |number: usize| (base * (number + 1) as f64).min(limit);
    let factor = growth(&grows);
    let exponential =
        |number: usize| (base * factor.powi(i32::try_from(number).unwrap_or(i32::MAX))).min(limit);
    match (follows(&linear), follows(&exponential)) {
        (true, false) => Curve::Linear { base: secs(base), cap: cap.map(secs) },
        (false, true) if grows.len() >= 2 => Curve::Exponential {
            base: secs(base),
            factor,
            factor_range: range(sample, &grows, factor),
            cap: cap.map(secs),
        },
        (true, true) | (false, true) => {
            let why = "too few waits lie below the greatest to tell how they grow".to_owned();
            Curve::Undecided { why, medians: shown() }
        }
        (false, false) => Curve::Irregular { medians: shown() },
    }
}

/// The factor of a growing sequence: of its ends, which the measurement disturbs least.
fn growth(grows: &[f64]) -> f64 {
    match grows {
        [first, .., last] => (last / first).powf(1.0 / (grows.len() - 1) as f64),
        _ => 1.0,
    }
}

/// The factors that the resolution allows at the ends.
fn range(sample: &Sample, grows: &[f64], factor: f64) -> (f64, f64) {
    let [first, .., last] = grows else { return (factor, factor) };
    let power = 1.0 / (grows.len() - 1) as f64;
    let doubt = sample.resolution(*first) / first / 2.0 + sample.resolution(*last) / last / 2.0;
    (factor * (1.0 - doubt).max(0.0).powf(power), factor * (1.0 + doubt).powf(power))
}
