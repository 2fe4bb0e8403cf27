//! Polly's decorrelated jitter, second version, in integers.
//!
//! With `f(t) = 2^t × tanh √(4t)` and a uniform `U` for each wait, the waits up to the `n`-th add up to
//! `f(n − 1 + Uₙ) × base ÷ 1.4`: each wait is what that sum grew by. So a wait follows from its own draw and the
//! one before it, both of which the seed gives, and nothing is carried along.
//!
//! The original computes in floating point, whose powers and tangents differ between platforms. Here every step
//! is an operation on integers that count 2⁻⁶⁰, so a wait repeats to the nanosecond on every machine; below an
//! hour it is within a few nanoseconds of the formula.
//!
//! # Source
//!
//! Polly 8, `src/Polly.Core/Retry/RetryHelper.cs`, `DecorrelatedJitterBackoffV2`, with its factors 4.0 and 1/1.4.
//! What is over the cap is the cap, as there; late waits mostly are, and callers come back together.

#[cfg(test)]
mod tests;

use core::time::Duration;

use super::Draw;
use crate::time::saturating_nanos;

/// The least that the wait of this draw could have been after the wait before it, the wait, and the most.
pub(super) fn waits(draw: &Draw) -> [Duration; 3] {
    let n = draw.number.max(1);
    let before = match n {
        1 => 0,
        _ => height(n - 2, Draw { number: n - 1, ..*draw }.bits()),
    };
    let most = 4 * height(n, 0);
    let drawn = (2 * height(n - 1, draw.bits())).min(most);
    [2 * height(n - 1, 0), drawn, most].map(|reached| length(reached.saturating_sub(before), n, draw))
}

/// The most of the wait if every draw up to it was the greatest: of all sequences, the one that takes longest
/// as a whole. Rounded up to a thousandth of the base, since people read it.
pub(super) fn longest(draw: &Draw) -> Duration {
    let n = draw.number.max(1);
    let before = if n == 1 { 0 } else { 2 * height(n - 1, 0) };
    let exact = length((4 * height(n, 0)).saturating_sub(before), n, draw);
    let step = (saturating_nanos(draw.base) / 1000).max(1);
    let rounded = saturating_nanos(exact).div_ceil(step).saturating_mul(step);
    Duration::from_nanos(rounded).min(draw.cap)
}

/// The most of the wait after the least of draws before it.
pub(super) fn longest_alone(draw: &Draw) -> Duration {
    let n = draw.number.max(1);
    let before = if n == 1 { 0 } else { height(n - 2, 0) };
    length((4 * height(n, 0)).saturating_sub(before), n, draw)
}

/// The mean of the wait. The sums have means of their own, and a wait's is what they differ by; the mean of a sum
/// over its draw is taken at the middle of so many equal parts.
pub(super) fn mean(draw: &Draw) -> Duration {
    let n = draw.number.max(1);
    let sum = |whole| {
        let middle = |part: u64| height(whole, (2 * part + 1) << (64 - 1 - PARTS.trailing_zeros()));
        (0..PARTS).map(middle).sum::<u128>() / u128::from(PARTS)
    };
    let before = if n == 1 { 0 } else { sum(n - 2) };
    length((2 * sum(n - 1)).saturating_sub(before), n, draw)
}

/// The least time after which a sum of waits can have been reached, for each end of its last draw.
///
/// A wait counts for no more than its cap, which bends the sum of waits downwards in every draw; so its least lies
/// at the ends of all draws, and from wait to wait only the two ends of the last need to be remembered.
#[derive(Clone, Copy)]
pub(super) struct Ends([Duration; 2]);

impl Ends {
    /// Before the first wait, which leans on no draw.
    pub(super) const START: Self = Self([Duration::ZERO, Duration::MAX]);

    /// With the `n`-th wait, of which the shorter of those by `curves` counts.
    pub(super) fn extend(&mut self, n: u32, curves: &[Draw]) -> Duration {
        let befores = if n == 1 { [0; 2] } else { [height(n - 2, 0), 2 * height(n - 1, 0)] };
        let reached = [2 * height(n - 1, 0), 4 * height(n, 0)];
        let to = |reached: u128| {
            let from = |(before, took): (u128, &Duration)| {
                let growth = reached.saturating_sub(before);
                let wait = curves.iter().map(|draw| length(growth, n, draw)).min().unwrap_or_default();
                took.saturating_add(wait)
            };
            befores.into_iter().zip(&self.0).map(from).min().unwrap_or_default()
        };
        self.0 = reached.map(to);
        self.0[0].min(self.0[1])
    }
}

/// `growth` in units of 2^(n−2), times the base and 1/1.4, and no more than the cap.
fn length(growth: u128, n: u32, draw: &Draw) -> Duration {
    let scaled = growth * u128::from(saturating_nanos(draw.base)) / 7 * 5;
    // The units' 2^(n−2) and the 2⁻⁶⁰ that growth counts.
    let nanos = match n.min(FAR).checked_sub(2 + POINT) {
        None => scaled >> (2 + POINT - n),
        Some(_) if scaled == 0 => 0,
        Some(up) if up <= scaled.leading_zeros() => scaled << up,
        Some(_) => u128::MAX,
    };
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).min(draw.cap)
}

/// `f(t) ÷ 2^whole` for t = `whole` + `fraction` ÷ 2⁶⁴: below 2.
fn height(whole: u32, fraction: u64) -> u128 {
    let whole = whole.min(FAR);
    let t = (u128::from(whole) << 112) | (u128::from(fraction) << 48);
    // √t counts 2⁻⁵⁶.
    let four_roots = t.isqrt() << (POINT - 56 + 2);
    let q = exp_minus(four_roots);
    let tanh = ((ONE - q) << POINT) / (ONE + q);
    let left = LN_2 - times(LN_2, u128::from(fraction >> 4));
    times(2 * exp_minus(left), tanh)
}

/// e^−x.
fn exp_minus(x: u128) -> u128 {
    let (halvings, rest) = (x / LN_2, x % LN_2);
    let series = (1..=TERMS).rev().fold(ONE, |sum, k| ONE - times(sum, rest) / k);
    u32::try_from(halvings).ok().and_then(|halvings| series.checked_shr(halvings)).unwrap_or(0)
}

const fn times(a: u128, b: u128) -> u128 {
    (a * b) >> POINT
}

const POINT: u32 = 60;
const ONE: u128 = 1 << POINT;
/// A power of two; the growth within one draw bends so little that more change no microsecond.
const PARTS: u64 = 64;
/// The natural logarithm of 2.
const LN_2: u128 = 799_144_290_325_165_979;
/// ln 2 to this power, divided by its factorial, is below 2⁻⁶⁰.
const TERMS: u128 = 20;
/// From here on every wait is longer than there are nanoseconds.
const FAR: u32 = 200;
