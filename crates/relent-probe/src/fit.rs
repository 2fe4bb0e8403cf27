//! From waits that were measured to the schedule that made them: its curve, and how chance spreads it.
//!
//! Two questions come first, and need no model. Did the first retry go at once? Do runs differ by more than the
//! measurement does? Where they do not, the curve is read off the medians ([`steady`]). Where they do, every jitter
//! that is in use is laid over every curve, and the likelihoods are compared ([`contest`]).
//!
//! # Source
//!
//! All known jitters draw uniformly from an interval, so a likelihood is the product of the intervals' inverse
//! widths, and the best parameters are the tightest that still cover what was seen. Such parameters converge like
//! 1/n and not like 1/√n, so one of them costs ln n where the Bayesian information criterion (Schwarz, 1978) takes
//! half of that.

mod contest;
mod draws;
mod pinned;
mod shape;
mod spread;
mod steady;

use std::time::Duration;

/// What the waits of a client say about its schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Whether the first retry goes at once, whatever the others do.
    pub first: FirstRetry,
    /// How waits grow, that first one aside.
    pub curve: Curve,
    /// How chance spreads them.
    pub jitter: JitterKind,
    /// Where waits are pinned: the length that chance does not spread although it spreads shorter ones.
    pub pinned_at: Option<Duration>,
    /// What this rests on.
    pub evidence: Evidence,
}

/// Whether the first retry waits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FirstRetry {
    /// It waits as the curve says.
    Waits,
    /// It goes at once, and only then the curve begins.
    AtOnce,
}

/// How waits grow with their number.
#[derive(Clone, Debug, PartialEq)]
pub enum Curve {
    /// There are none: every retry goes at once.
    AtOnce,
    /// Always the same.
    Constant {
        /// The wait, or the greatest that chance allows; for [`JitterKind::Proportional`] its middle, for
        /// [`JitterKind::Additive`] its least.
        wait: Duration,
    },
    /// `base`, `2 × base`, `3 × base` …
    Linear {
        /// The first wait, as above.
        base: Duration,
        /// The greatest, where it was seen.
        cap: Option<Duration>,
    },
    /// `base`, `base × factor`, `base × factor²` …
    Exponential {
        /// The first wait, as above.
        base: Duration,
        /// The growth from wait to wait.
        factor: f64,
        /// The range of factors that explain the waits nearly as well: at least a seventh as likely.
        factor_range: (f64, f64),
        /// The greatest, where it was seen.
        cap: Option<Duration>,
    },
    /// None of these: the medians as they are.
    Irregular {
        /// The median of each wait.
        medians: Vec<Duration>,
    },
    /// It cannot be told.
    Undecided {
        /// Why.
        why: String,
        /// The median of each wait.
        medians: Vec<Duration>,
    },
}

/// How chance spreads a wait below, around or above the curve.
#[derive(Clone, Debug, PartialEq)]
pub enum JitterKind {
    /// Not at all, as far as can be measured.
    None,
    /// From zero to the curve.
    Full,
    /// From half of the curve to all of it.
    Equal,
    /// From `1 − share` to `1 + share` of the curve.
    Proportional {
        /// The share, 0 to 1.
        share: f64,
    },
    /// From the curve to this much above it.
    Additive {
        /// The greatest addition.
        span: Duration,
    },
    /// From the base to three times the wait before.
    Decorrelated,
    /// Polly's decorrelated jitter, second version.
    PollyV2,
    /// Runs differ, but like none of these.
    Irregular,
    /// It cannot be told.
    Undecided {
        /// Why.
        why: String,
    },
}

impl JitterKind {
    /// The kind's name in reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Full => "full",
            Self::Equal => "equal",
            Self::Proportional { .. } => "proportional",
            Self::Additive { .. } => "additive",
            Self::Decorrelated => "decorrelated",
            Self::PollyV2 => "polly_v2",
            Self::Irregular => "irregular",
            Self::Undecided { .. } => "undecided",
        }
    }
}

impl Curve {
    /// The curve's name in reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::AtOnce => "at_once",
            Self::Constant { .. } => "constant",
            Self::Linear { .. } => "linear",
            Self::Exponential { .. } => "exponential",
            Self::Irregular { .. } => "irregular",
            Self::Undecided { .. } => "undecided",
        }
    }
}

/// What a fit rests on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// How many runs there were.
    pub runs: usize,
    /// How many waits, all runs together.
    pub waits: usize,
    /// For each wait of a run: the median, and the spread: twice the distance of its quartiles, which is the whole
    /// width of a uniform draw.
    pub each: Vec<(Duration, Duration)>,
    /// How much more likely the jitter is than the next best kind, as a natural logarithm, parameters paid for.
    pub log_odds: Option<f64>,
    /// The next best kind.
    pub runner_up: Option<&'static str>,
    /// How far what was drawn is from what the fitted jitter draws: the Kolmogorov-Smirnov distance.
    pub ks_distance: Option<f64>,
}

/// Fits runs of waits. `runs[r][i]` is the wait before the retry `i + 1` of the run `r`; runs may differ in length.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use relent_probe::{Curve, JitterKind, fit};
///
/// let run = |noise: u64| [100, 200, 400, 800].map(|ms| Duration::from_millis(ms + noise)).to_vec();
/// let fitted = fit(&[run(1), run(0), run(2), run(1)]);
/// assert_eq!(fitted.jitter, JitterKind::None);
/// assert!(matches!(fitted.curve, Curve::Exponential { factor, .. } if (factor - 2.0).abs() < 0.05));
/// ```
pub fn fit(runs: &[Vec<Duration>]) -> Fit {
    fit_within(runs, Duration::ZERO)
}

/// The same for waits that were measured on a machine whose own timers were late by `lateness`: what is shorter than
/// three times that cannot be told apart either.
pub fn fit_within(runs: &[Vec<Duration>], lateness: Duration) -> Fit {
    let seconds = |run: &Vec<Duration>| run.iter().map(Duration::as_secs_f64).collect();
    let floor = FINEST.max(3.0 * lateness.as_secs_f64());
    let mut sample = Sample { runs: runs.iter().map(seconds).collect(), floor };
    let evidence = Evidence {
        runs: runs.iter().filter(|run| !run.is_empty()).count(),
        waits: runs.iter().map(Vec::len).sum(),
        each: sample.columns().map(|column| (secs(column.median()), secs(column.width()))).collect(),
        ..Evidence::default()
    };
    let nothing = |curve, jitter| Fit {
        first: FirstRetry::Waits,
        curve,
        jitter,
        pinned_at: None,
        evidence: evidence.clone(),
    };
    if evidence.waits == 0 {
        let why = || if runs.is_empty() { UNSEEN } else { ONCE }.to_owned();
        let curve = Curve::Undecided { why: why(), medians: Vec::new() };
        return nothing(curve, JitterKind::Undecided { why: why() });
    }
    if sample.columns().all(|column| column.quantile(0.75) <= sample.none()) {
        return nothing(Curve::AtOnce, JitterKind::None);
    }
    let first = sample.first();
    if first == FirstRetry::AtOnce {
        // What the client takes for no wait at all, it takes for every wait: that much cannot be told apart.
        sample.floor = sample.floor.max(2.0 * sample.column(0).quantile(0.9));
        sample.drop_first();
    }
    let fitted = match sample.differ() {
        Differ::Unknown(why) => {
            let jitter = JitterKind::Undecided { why };
            nothing(steady::curve(&sample), jitter)
        }
        Differ::No => nothing(steady::curve(&sample), JitterKind::None),
        Differ::Yes => contest::decide(sample, nothing(Curve::AtOnce, JitterKind::Irregular)),
    };
    Fit { first, ..fitted }
}

/// Runs of waits, in seconds.
#[derive(Clone, Debug)]
struct Sample {
    runs: Vec<Vec<f64>>,
    /// The least difference that means something.
    floor: f64,
}

/// Whether runs differ by more than the measurement does.
enum Differ {
    Yes,
    No,
    Unknown(String),
}

/// The waits with one number, of all runs that have it, sorted.
#[derive(Clone, Debug)]
struct Column(Vec<f64>);

impl Sample {
    /// How many waits the longest run has.
    fn length(&self) -> usize {
        self.runs.iter().map(Vec::len).max().unwrap_or_default()
    }

    fn column(&self, number: usize) -> Column {
        let mut waits: Vec<f64> = self.runs.iter().filter_map(|run| run.get(number).copied()).collect();
        waits.sort_by(f64::total_cmp);
        Column(waits)
    }

    fn columns(&self) -> impl Iterator<Item = Column> {
        (0..self.length()).map(|number| self.column(number))
    }

    /// What cannot be told apart: 5 % of the wait, or the floor.
    fn resolution(&self, wait: f64) -> f64 {
        (0.05 * wait).max(self.floor)
    }

    /// Whether the machine itself was late.
    fn is_busy(&self) -> bool {
        self.floor > FINEST
    }

    /// A wait up to this is none.
    fn none(&self) -> f64 {
        AT_ONCE.max(self.floor - FINEST)
    }

    /// A first wait that may be no more than a client's own work, before waits that are five times as long: no curve
    /// in use leaps so.
    fn first(&self) -> FirstRetry {
        let (first, second) = (self.column(0), self.column(1));
        let work = first.quantile(0.75);
        let leaps =
            !second.0.is_empty() && work <= SLOWEST_WORK.max(self.floor) && second.median() >= LEAP * work;
        if leaps && second.median() >= 2.0 * AT_ONCE { FirstRetry::AtOnce } else { FirstRetry::Waits }
    }

    fn drop_first(&mut self) {
        for run in &mut self.runs {
            if !run.is_empty() {
                run.remove(0);
            }
        }
        self.runs.retain(|run| !run.is_empty());
    }

    /// Whether runs differ. The first wait, of which there are most, decides; a few later ones may have been drawn
    /// close together, or lie at a cap that chance does not spread.
    fn differ(&self) -> Differ {
        let columns: Vec<Column> = self.columns().filter(|column| column.0.len() >= FEWEST).collect();
        let Some(first) = columns.first() else {
            let why = format!("{} runs are too few to see whether they differ", self.runs.len());
            return Differ::Unknown(why);
        };
        let is_spread = |column: &Column| column.width() > self.resolution(column.median());
        let spread = columns.iter().filter(|column| is_spread(column)).count();
        if is_spread(first) || 2 * spread > columns.len() {
            return Differ::Yes;
        }
        // The narrowest jitter in use spreads a wait over two fifths of it.
        if columns.iter().all(|column| self.resolution(column.median()) > 0.4 * column.median()) {
            let why = format!(
                "differences below {:.0} ms cannot be measured here, and the waits are not much longer",
                self.floor * 1000.0
            );
            return Differ::Unknown(why);
        }
        Differ::No
    }
}

impl Column {
    fn quantile(&self, share: f64) -> f64 {
        let Some(last) = self.0.len().checked_sub(1) else { return 0.0 };
        let place = share * last as f64;
        let below = index(place.floor()).min(last);
        let above = (below + 1).min(last);
        self.0[below] + (self.0[above] - self.0[below]) * (place - below as f64)
    }

    fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The width of the uniform draw that has these quartiles. A stalled run does not move it.
    fn width(&self) -> f64 {
        2.0 * (self.quantile(0.75) - self.quantile(0.25))
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and not negative")]
const fn index(value: f64) -> usize {
    value as usize
}

fn secs(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}

/// Why nothing is told of the waits of clients that made one attempt.
pub(crate) const ONCE: &str = "it did not try again, so there was no wait to measure";
const UNSEEN: &str = "the time was up before it was run for this, so there was no wait to measure";
/// A wait up to this is none: the time that a client needs to read an answer and to send a request.
const AT_ONCE: f64 = 0.015;
/// What an interpreter on a busy machine may take for the same.
const SLOWEST_WORK: f64 = 0.050;
const LEAP: f64 = 5.0;
/// The least difference that means something: a client's own work between an answer and its next request takes 1 to
/// 10 ms, and its timers are exact to 1 to 4.
const FINEST: f64 = 0.020;
/// The fewest waits whose spread means something.
const FEWEST: usize = 4;

#[cfg(test)]
mod tests;
