//! Jitters whose interval is a fixed part of a curve: the tightest interval of each kind over one shape.
//!
//! Only the extremes of each wait's number matter to it, so thousands of shapes are tried in a moment.

use super::{
    Sample,
    draws::{self, OUTSIDE},
    shape::Shape,
};

/// Which part of the curve a wait is drawn from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Part {
    /// From zero to the curve.
    Full,
    /// From half of it.
    Equal,
    /// From a share of it.
    Proportional,
    /// From the curve to a length above it.
    Additive,
}

/// A kind over a shape, at its best.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    pub(super) part: Part,
    pub(super) shape: Shape,
    pub(super) likelihood: f64,
    /// The least value of the first wait and its greatest. For [`Part::Additive`] the curve's first value, and
    /// the greatest addition.
    pub(super) low: f64,
    pub(super) high: f64,
}

/// The waits, and of each number what a tightest interval depends on.
#[derive(Debug)]
pub(super) struct Points {
    all: Vec<(usize, f64)>,
    numbers: Vec<Extremes>,
    /// How many waits may have been lengthened by a stalled machine: one in forty, or one in eight of a busy one.
    stalls: usize,
    /// What one such wait costs: about its chance.
    cost: f64,
}

#[derive(Debug)]
struct Extremes {
    count: f64,
    least: f64,
    /// The greatest, one more than may have been stalled.
    greatest: Vec<f64>,
}

impl Points {
    pub(super) fn new(sample: &Sample) -> Self {
        let all: Vec<_> = sample.runs.iter().flat_map(|run| run.iter().copied().enumerate()).collect();
        let (one_in, cost) = if sample.is_busy() { (8, OUTSIDE / 2.0) } else { (40, OUTSIDE) };
        let stalls = all.len() / one_in;
        let extremes = |column: super::Column| Extremes {
            count: column.0.len() as f64,
            least: column.0[0],
            greatest: column.0.iter().rev().take(stalls + 1).copied().collect(),
        };
        Self { numbers: sample.columns().map(extremes).collect(), all, stalls, cost }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The greatest of all waits as `seen` sees them, largest first, one more than may have been stalled.
    fn greatest(&self, seen: impl Fn(usize, f64) -> f64) -> Vec<f64> {
        let numbers = self.numbers.iter().enumerate();
        let mut values: Vec<f64> = numbers
            .flat_map(|(number, one)| one.greatest.iter().map(move |wait| (number, *wait)))
            .map(|(number, wait)| seen(number, wait))
            .collect();
        values.sort_by(|one, other| other.total_cmp(one));
        values.truncate(self.stalls + 1);
        values
    }

    fn least(&self, seen: impl Fn(usize, f64) -> f64) -> f64 {
        self.numbers
            .iter()
            .enumerate()
            .map(|(number, one)| seen(number, one.least))
            .fold(f64::INFINITY, f64::min)
    }
}

impl Spread {
    /// The tightest interval that covers all waits but a few that stalled.
    pub(super) fn over(part: Part, shape: Shape, points: &Points) -> Self {
        if part == Part::Additive {
            return Self::above(shape, points);
        }
        let scaled = |number: usize, wait: f64| wait / shape.at(number);
        let least = points.least(scaled);
        let grown: f64 =
            points.numbers.iter().enumerate().map(|(number, one)| one.count * shape.at(number).ln()).sum();
        let tries = points.greatest(scaled).into_iter().enumerate().map(|(stalled, high)| {
            let kept = (points.len() - stalled) as f64;
            let low = match part {
                Part::Full => 0.0,
                Part::Equal if least >= 0.5 * high * 0.97 => 0.5 * high,
                Part::Equal => return Self::none(part, shape),
                Part::Proportional | Part::Additive => least,
            };
            let width = (high - low).max(1e-6);
            let likelihood = -grown - kept * width.ln() - stalled as f64 * points.cost;
            Self { part, shape, likelihood, low, high }
        });
        tries.reduce(Self::better).unwrap_or_else(|| Self::none(part, shape))
    }

    /// The highest curve that no wait lies below, and the band above it.
    fn above(shape: Shape, points: &Points) -> Self {
        let low = points.least(|number, wait| wait / shape.at(number));
        let spans = points.greatest(|number, wait| wait - low * shape.at(number)).into_iter().enumerate();
        let tries = spans.map(|(stalled, span)| {
            let high = span.max(1e-6);
            let kept = (points.len() - stalled) as f64;
            let likelihood = -kept * high.ln() - stalled as f64 * points.cost;
            Self { part: Part::Additive, shape, likelihood, low, high }
        });
        tries.reduce(Self::better).unwrap_or_else(|| Self::none(Part::Additive, shape))
    }

    const fn none(part: Part, shape: Shape) -> Self {
        Self { part, shape, likelihood: f64::NEG_INFINITY, low: 0.0, high: 0.0 }
    }

    fn better(self, other: Self) -> Self {
        if other.likelihood > self.likelihood { other } else { self }
    }

    /// How many numbers it takes to write it down.
    pub(super) fn parameters(&self) -> f64 {
        let more = match self.part {
            Part::Full | Part::Equal => 0.0,
            Part::Proportional | Part::Additive => 1.0,
        };
        self.shape.parameters() + more
    }

    /// Where each wait lies in its interval.
    pub(super) fn places(&self, points: &Points) -> Vec<f64> {
        let intervals = points.all.iter().map(|(number, wait)| {
            let at = self.shape.at(*number);
            match self.part {
                Part::Additive => (*wait, self.low * at, self.low * at + self.high),
                _ => (*wait, self.low * at, self.high * at),
            }
        });
        draws::uniform(intervals).1
    }
}
