//! Curves without their scale: the first wait is 1.

/// How a curve grows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Family {
    Constant,
    Linear,
    Exponential,
}

/// A curve whose first value is 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) family: Family,
    pub(super) factor: f64,
    /// Its greatest value; infinite where it has no cap.
    pub(super) cap: f64,
}

impl Shape {
    pub(super) fn at(&self, number: usize) -> f64 {
        let grown = match self.family {
            Family::Constant => 1.0,
            Family::Linear => (number + 1) as f64,
            Family::Exponential => self.factor.powi(i32::try_from(number).unwrap_or(i32::MAX)),
        };
        grown.min(self.cap)
    }

    /// How many numbers it takes to write it down, its scale included.
    pub(super) fn parameters(&self) -> f64 {
        let factor = if self.family == Family::Exponential { 1.0 } else { 0.0 };
        let cap = if self.cap.is_finite() { 1.0 } else { 0.0 };
        1.0 + factor + cap
    }

    /// Every shape that is tried for runs of this length.
    pub(super) fn all(length: usize) -> Vec<Self> {
        let free = |family, factor| Self { family, factor, cap: f64::INFINITY };
        let mut shapes = vec![free(Family::Constant, 1.0)];
        if length < 2 {
            return shapes;
        }
        shapes.extend(free(Family::Linear, 1.0).capped(length));
        for step in 0..=FACTORS {
            let factor = LEAST * STEP.powf(f64::from(step));
            shapes.extend(free(Family::Exponential, factor).capped(length));
        }
        shapes
    }

    /// The shape, and the same with caps between its second value and its last. A cap is seen where at least one
    /// wait before it grew and the last was held back.
    fn capped(self, length: usize) -> Vec<Self> {
        let mut shapes = vec![self];
        if length >= 3 {
            let (low, high) = (self.at(1).ln(), self.at(length - 1).ln());
            shapes.extend((0..CAPS).map(|step| {
                let cap = (low + (high - low) * f64::from(step) / f64::from(CAPS)).exp();
                Self { cap, ..self }
            }));
        }
        shapes
    }
}

/// Factors from 1.1 to 6.2; what is reported is a mean over the likely ones.
const LEAST: f64 = 1.1;
const FACTORS: u32 = 60;
/// From one factor that is tried to the next.
pub(super) const STEP: f64 = 1.029;
const CAPS: u32 = 10;
