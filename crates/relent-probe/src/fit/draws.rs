//! Jitters whose waits lean on the wait before: their likelihoods for runs of waits.

use super::Sample;

/// How well a model explains the waits, and how it draws.
#[derive(Clone, Debug)]
pub(super) struct Draws {
    pub(super) likelihood: f64,
    pub(super) base: f64,
    pub(super) cap: Option<f64>,
    /// Where each wait lies in the interval it was drawn from, 0 to 1.
    pub(super) places: Vec<f64>,
}

/// Uniform from the base to three times the last wait, or to the cap.
pub(super) fn decorrelated(sample: &Sample, capped: Capped) -> Draws {
    let all = || sample.runs.iter().flatten().copied();
    let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    let cap = match capped {
        Capped::No => f64::INFINITY,
        Capped::AtTheGreatest => most,
    };
    let candidates = (0..=60).map(|step| least * (1.0 - 0.002 * f64::from(step)));
    // Under a cap that the first draw reaches already, no wait leans on another: that is a constant curve's interval.
    let candidates = candidates.filter(|base| cap > 3.05 * base);
    let best = candidates.map(|base| {
        let intervals = sample.runs.iter().flat_map(|run| {
            run.iter().enumerate().map(move |(number, wait)| {
                let last = if number == 0 { base } else { run[number - 1].max(base) };
                (*wait, base, (3.0 * last).min(cap).max(base))
            })
        });
        let (likelihood, places) = uniform(intervals);
        Draws { likelihood, base, cap: cap.is_finite().then_some(cap), places }
    });
    best.reduce(Draws::better).unwrap_or_else(Draws::hopeless)
}

/// Whether a cap is part of a model.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Capped {
    No,
    AtTheGreatest,
}

/// Polly's second decorrelated jitter: the sum of the first k waits is `base ÷ 1.4 × f(k − 1 + U)`, with
/// `f(t) = 2^t × tanh √(4t)` and U uniform.
pub(super) fn polly(sample: &Sample) -> Draws {
    // The least base for which no sum lies beyond its greatest value, and a little around it for stalls.
    let needed =
        sums(sample).map(|(number, sum)| sum * SCALE / curve((number + 1) as f64)).fold(0.0, f64::max);
    let candidates = (0..=80).map(|step| needed * (0.7 + 0.006 * f64::from(step)));
    let table = Inverse::new();
    let best = candidates.map(|base| {
        let mut likelihood = 0.0;
        let mut places = Vec::new();
        for (number, sum) in sums(sample) {
            let place = table.at(sum * SCALE / base) - number as f64;
            let slope = slope((number as f64 + place.clamp(0.001, 1.0)).max(0.001));
            let density = SCALE / base / slope;
            likelihood += if (-EDGE..=1.0 + EDGE).contains(&place) { density.ln() } else { -OUTSIDE };
            places.push(place);
        }
        Draws { likelihood, base, cap: None, places }
    });
    best.reduce(Draws::better).unwrap_or_else(Draws::hopeless)
}

fn sums(sample: &Sample) -> impl Iterator<Item = (usize, f64)> {
    sample.runs.iter().flat_map(|run| {
        run.iter().enumerate().scan(0.0, |sum, (number, wait)| {
            *sum += wait;
            Some((number, *sum))
        })
    })
}

fn curve(t: f64) -> f64 {
    t.exp2() * (4.0 * t).sqrt().tanh()
}

fn slope(t: f64) -> f64 {
    (curve(t + 1e-4) - curve(t)) / 1e-4
}

/// The curve, which only rises, read backwards.
struct Inverse(Vec<f64>);

impl Inverse {
    fn new() -> Self {
        Self((0..=20 * PER_ONE).map(|step| curve(f64::from(step) / f64::from(PER_ONE))).collect())
    }

    /// The `t` of a value.
    fn at(&self, value: f64) -> f64 {
        let above = self.0.partition_point(|known| *known < value).clamp(1, self.0.len() - 1);
        let (low, high) = (self.0[above - 1], self.0[above]);
        ((above - 1) as f64 + (value - low) / (high - low)) / f64::from(PER_ONE)
    }
}

/// The likelihood of waits that are drawn uniformly, each from its interval, and their places in it.
pub(super) fn uniform(intervals: impl Iterator<Item = (f64, f64, f64)>) -> (f64, Vec<f64>) {
    let mut likelihood = 0.0;
    let mut places = Vec::new();
    for (wait, low, high) in intervals {
        let width = (high - low).max(NARROWEST);
        let place = (wait - low) / width;
        let slack = EDGE.max(0.004 / width);
        likelihood += if (-slack..=1.0 + slack).contains(&place) { -width.ln() } else { -OUTSIDE };
        places.push(place);
    }
    (likelihood, places)
}

impl Draws {
    pub(super) fn better(self, other: Self) -> Self {
        if other.likelihood > self.likelihood { other } else { self }
    }

    pub(super) const fn hopeless() -> Self {
        Self { likelihood: f64::NEG_INFINITY, base: 0.0, cap: None, places: Vec::new() }
    }
}

const SCALE: f64 = 1.4;
/// Steps of the inverse for one wait: straight between them, it is off by less than a thousandth of a wait.
const PER_ONE: u32 = 256;
/// What a wait outside of its interval costs: a stalled run is a chance of one in 400 and worth no other model.
pub(super) const OUTSIDE: f64 = 6.0;
/// How far outside still counts as the measurement's doing.
const EDGE: f64 = 0.01;
/// Intervals narrower than what can be measured are not more likely for it.
const NARROWEST: f64 = 0.010;
