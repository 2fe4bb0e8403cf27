//! Every jitter over every curve, and which of them explains the waits best.

use std::time::Duration;

use super::{
    Curve, Fit, JitterKind, Sample,
    draws::{self, Capped, Draws},
    pinned, secs,
    shape::{self, Family, Shape},
    spread::{Part, Points, Spread},
};

/// Fits waits that runs differ in. `blank` carries the evidence.
pub(super) fn decide(mut sample: Sample, blank: Fit) -> Fit {
    let pinned_at = pinned::take_out(&mut sample);
    let points = Points::new(&sample);
    if points.len() < FEWEST_WAITS {
        let why = format!("{} waits that differ are too few; {FEWEST_WAITS} are needed", points.len());
        let medians = blank.evidence.each.iter().map(|(median, _)| *median).collect();
        return Fit {
            curve: Curve::Undecided { why: why.clone(), medians },
            jitter: JitterKind::Undecided { why },
            pinned_at: pinned_at.map(secs),
            ..blank
        };
    }
    let field = Field::new(&sample, &points);
    let mut entries = field.entries();
    entries.sort_by(|one, other| other.score.total_cmp(&one.score));
    let (best, second) = (&entries[0], &entries[1]);
    let odds = best.score - second.score;
    let distance = kolmogorov(&best.places);
    let mut evidence = blank.evidence.clone();
    evidence.log_odds = Some(odds);
    evidence.runner_up = Some(second.kind.name());
    evidence.ks_distance = Some(distance);
    let jitter = match () {
        () if distance > MOST_DISTANT / (best.places.len() as f64).sqrt() => JitterKind::Irregular,
        () if odds < CLEAR => JitterKind::Undecided {
            why: format!("{} or {}: the waits fit both", best.kind.name(), second.kind.name()),
        },
        () => best.kind.clone(),
    };
    Fit { curve: field.curve(best), jitter, pinned_at: pinned_at.map(secs), evidence, ..blank }
}

/// One kind of jitter at its best.
struct Entry {
    kind: JitterKind,
    score: f64,
    places: Vec<f64>,
    best: Best,
}

enum Best {
    Spread(Part),
    Draws(Draws),
}

struct Field<'a> {
    sample: &'a Sample,
    points: &'a Points,
    shapes: Vec<Shape>,
    /// What one parameter costs.
    price: f64,
}

impl<'a> Field<'a> {
    fn new(sample: &'a Sample, points: &'a Points) -> Self {
        let price = (points.len() as f64).ln();
        Self { sample, points, shapes: Shape::all(sample.length()), price }
    }

    fn entries(&self) -> Vec<Entry> {
        let parts = [Part::Full, Part::Equal, Part::Proportional, Part::Additive];
        let mut entries: Vec<Entry> = parts.into_iter().filter_map(|part| self.spread(part)).collect();
        entries.retain(|entry| !is_another_name(&entry.kind));
        let draws = |kind, draws: Draws| {
            let parameters = if draws.cap.is_some() { 2.0 } else { 1.0 };
            let score = draws.likelihood - parameters * self.price;
            Entry { kind, score, places: draws.places.clone(), best: Best::Draws(draws) }
        };
        for capped in [Capped::No, Capped::AtTheGreatest] {
            entries.push(draws(JitterKind::Decorrelated, draws::decorrelated(self.sample, capped)));
        }
        if entries[entries.len() - 1].score > entries[entries.len() - 2].score {
            let place = entries.len() - 2;
            entries.swap_remove(place);
        } else {
            entries.pop();
        }
        entries.push(draws(JitterKind::PollyV2, draws::polly(self.sample)));
        entries
    }

    fn spread(&self, part: Part) -> Option<Entry> {
        let best = self.all(part).max_by(|one, other| self.score(one).total_cmp(&self.score(other)))?;
        let kind = match part {
            Part::Full => JitterKind::Full,
            Part::Equal => JitterKind::Equal,
            Part::Proportional => {
                JitterKind::Proportional { share: (best.high - best.low) / (best.high + best.low) }
            }
            Part::Additive => JitterKind::Additive { span: secs(best.high) },
        };
        let (score, places) = (self.score(&best), best.places(self.points));
        Some(Entry { kind, score, places, best: Best::Spread(part) })
    }

    /// The kind over every shape. Over a constant curve an addition is a proportion by another name.
    fn all(&self, part: Part) -> impl Iterator<Item = Spread> + '_ {
        let sensible = move |shape: &&Shape| part != Part::Additive || shape.family != Family::Constant;
        self.shapes.iter().filter(sensible).map(move |shape| Spread::over(part, *shape, self.points))
    }

    fn score(&self, spread: &Spread) -> f64 {
        spread.likelihood - spread.parameters() * self.price
    }

    fn curve(&self, entry: &Entry) -> Curve {
        match &entry.best {
            Best::Draws(draws) if entry.kind == JitterKind::PollyV2 => Curve::Exponential {
                base: secs(draws.base),
                factor: 2.0,
                factor_range: (2.0, 2.0),
                cap: None,
            },
            Best::Draws(draws) => Curve::Exponential {
                base: secs(draws.base),
                factor: 3.0,
                factor_range: (3.0, 3.0),
                cap: draws.cap.map(secs),
            },
            Best::Spread(part) => self.spread_curve(*part),
        }
    }

    /// The curve of a kind. Its numbers are means over all shapes of its family, each weighed by its likelihood.
    fn spread_curve(&self, part: Part) -> Curve {
        let spreads: Vec<Spread> = self.all(part).collect();
        let family = match self.sample.length() {
            0 | 1 => Err("one wait says nothing of the next".to_owned()),
            length => match self.family(&spreads) {
                Ok(Family::Linear | Family::Exponential) if length == 2 => {
                    Err("it grows, and two waits follow many curves".to_owned())
                }
                told => told,
            },
        };
        match family {
            Ok(family) => Means::new(self, &spreads, family).curve(family),
            Err(why) => {
                let medians = self.sample.columns().map(|column| secs(column.median())).collect();
                Curve::Undecided { why, medians }
            }
        }
    }

    /// The family of the best shapes, or why it cannot be told.
    ///
    /// Nearly every constant curve is nearly a case of one that grows a little and is capped, so what grows pays for
    /// its parameters there. Neither of those that grow is a case of the other: one has to lead by its likelihood alone
    /// and with its parameters paid for.
    fn family(&self, spreads: &[Spread]) -> Result<Family, String> {
        let best = |family: Family, value: &dyn Fn(&Spread) -> f64| {
            spreads
                .iter()
                .filter(|one| one.shape.family == family)
                .map(value)
                .fold(f64::NEG_INFINITY, f64::max)
        };
        let grows = [Family::Linear, Family::Exponential];
        let score = |family| best(family, &|one| self.score(one));
        let likelihood = |family| best(family, &|one| one.likelihood);
        let lead = |one: Family, other: Family, value: &dyn Fn(Family) -> f64| value(one) - value(other);
        let growing = if lead(grows[0], grows[1], &score) > 0.0 { grows[0] } else { grows[1] };
        let both = |one, other| Err(format!("{} or {}: the waits fit both", name(one), name(other)));
        match lead(growing, Family::Constant, &score) {
            constant if constant <= -CLEAR => return Ok(Family::Constant),
            unclear if unclear < CLEAR => return both(Family::Constant, growing),
            _ if self.sample.length() == 2 => return Ok(growing),
            _ => {}
        }
        let clear = |one, other| lead(one, other, &likelihood) >= CLEAR && lead(one, other, &score) >= CLEAR;
        match () {
            () if clear(Family::Linear, Family::Exponential) => Ok(Family::Linear),
            () if clear(Family::Exponential, Family::Linear) => Ok(Family::Exponential),
            () => both(Family::Linear, Family::Exponential),
        }
    }
}

/// Whether a share is that of full or of equal jitter, as far as can be measured: then it is no rival of theirs.
fn is_another_name(kind: &JitterKind) -> bool {
    matches!(kind, JitterKind::Proportional { share } if *share >= 0.88 || (share - 1.0 / 3.0).abs() <= 0.03)
}

/// The numbers of a family, weighed by likelihood.
struct Means {
    base: Duration,
    factor: f64,
    factor_range: (f64, f64),
    cap: Option<Duration>,
}

impl Means {
    fn new(field: &Field<'_>, spreads: &[Spread], family: Family) -> Self {
        let of_family = || spreads.iter().filter(|one| one.shape.family == family);
        let score = |capped: bool| {
            let alike = of_family().filter(|one| one.shape.cap.is_finite() == capped);
            alike.map(|one| field.score(one)).reduce(f64::max).unwrap_or(f64::NEG_INFINITY)
        };
        let capped = score(true) > score(false) + CLEAR;
        let chosen: Vec<&Spread> = of_family().filter(|one| one.shape.cap.is_finite() == capped).collect();
        let top = chosen.iter().map(|one| one.likelihood).fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = chosen.iter().map(|one| (one.likelihood - top).exp()).collect();
        let all: f64 = weights.iter().sum();
        let mean = |value: &dyn Fn(&Spread) -> f64| {
            chosen.iter().zip(&weights).map(|(one, weight)| value(one) * weight).sum::<f64>() / all
        };
        // The greatest of n uniform draws falls short of the bound by one part in n + 1.
        let stretch = 1.0 + 1.0 / field.points.len() as f64;
        let first = |one: &Spread| match one.part {
            Part::Full | Part::Equal => one.high * stretch,
            Part::Proportional => f64::midpoint(one.low, one.high),
            Part::Additive => one.low,
        };
        let likely = chosen.iter().filter(|one| one.likelihood > top - LIKELY).map(|one| one.shape.factor);
        let (low, high) =
            likely.fold((f64::INFINITY, 0.0_f64), |(low, high), factor| (low.min(factor), high.max(factor)));
        let (base, factor) = (mean(&first), mean(&|one| one.shape.factor));
        let cap = mean(&|one| one.shape.cap);
        // The factors that are tried lie a step apart, and the likely ones reach half a step further. A measurement
        // is in doubt by half its resolution, which growth over many waits outweighs.
        let grew = (0..field.sample.length()).filter(|number| factor.powf(*number as f64) < cap).count();
        let doubt = 1.0 + field.sample.resolution(base) / base / 2.0;
        let reach = shape::STEP.sqrt() * doubt.powf(1.0 / grew.saturating_sub(1).max(1) as f64);
        Self {
            base: secs(base),
            factor,
            factor_range: (low / reach, high * reach),
            cap: capped.then(|| secs(mean(&|one| first(one) * one.shape.cap))),
        }
    }

    fn curve(self, family: Family) -> Curve {
        let Self { base, factor, factor_range, cap } = self;
        match family {
            Family::Constant => Curve::Constant { wait: base },
            Family::Linear => Curve::Linear { base, cap },
            Family::Exponential => Curve::Exponential { base, factor, factor_range, cap },
        }
    }
}

const fn name(family: Family) -> &'static str {
    match family {
        Family::Constant => "constant",
        Family::Linear => "linear",
        Family::Exponential => "exponential",
    }
}

/// The greatest distance between the places' distribution and a uniform one, a few stalled runs aside.
fn kolmogorov(places: &[f64]) -> f64 {
    let mut sorted: Vec<f64> = places.iter().map(|place| place.clamp(0.0, 1.0)).collect();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let apart = |(number, place): (usize, &f64)| {
        let (below, above) = (number as f64 / count, (number + 1) as f64 / count);
        (place - below).abs().max((above - place).abs())
    };
    sorted.iter().enumerate().map(apart).fold(0.0, f64::max)
}

/// A kind is told from the next where it is e³, about twenty, times as likely.
const CLEAR: f64 = 3.0;
/// A factor is likely where it is at least e⁻², about a seventh, as likely as the best.
const LIKELY: f64 = 2.0;
/// The Kolmogorov-Smirnov distance times √n that a right model passes in one of 10,000 samples.
const MOST_DISTANT: f64 = 2.23;
/// Fewer waits tell no kind from another.
const FEWEST_WAITS: usize = 8;
