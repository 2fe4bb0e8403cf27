//! The published vectors of the original, an exact reckoning, and the ends of the range.

use alloc::{vec, vec::Vec};

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const MICROSECOND: Duration = Duration::from_micros(1);

fn draw(number: u32, base: Duration, cap: Duration) -> Draw {
    Draw { seed: 7, cycle: 0, number, ceiling: base, base, cap, last: Duration::ZERO }
}

/// The wait `n` of a sequence whose generator always answers `fraction`.
fn constant_draws(n: u32, fraction: u64) -> Duration {
    let before = if n == 1 { 0 } else { height(n - 2, fraction) };
    length(2 * height(n - 1, fraction) - before, n, &draw(n, SECOND, Duration::MAX))
}

#[test]
fn a_generator_that_always_says_one_half_gives_pollys_waits() {
    let vector = [0.897_405, 1.093_004, 2.035_748, 4.045_979, 8.083_632, 16.163_663];
    for (n, seconds) in (1..).zip(vector) {
        let (wait, expected) = (constant_draws(n, 1 << 63), Duration::from_secs_f64(seconds));
        assert!(wait.abs_diff(expected) <= MICROSECOND, "{n}: {wait:?} for {expected:?}");
    }
}

#[test]
fn a_generator_that_always_says_zero_gives_pollys_waits() {
    let vector = [0.0, 1.377_182, 1.460_067, 2.865_850, 5.717_807, 11.430_272];
    for (n, seconds) in (1..).zip(vector) {
        let (wait, expected) = (constant_draws(n, 0), Duration::from_secs_f64(seconds));
        assert!(wait.abs_diff(expected) <= MICROSECOND, "{n}: {wait:?} for {expected:?}");
    }
}

/// The same digits on every machine: taken once from a reckoning with sixty decimal digits.
#[test]
fn the_integers_are_those_of_an_exact_reckoning() {
    for (whole, fraction, expected) in EXACT {
        let off = height(whole, fraction).abs_diff(expected);
        assert!(off <= 512, "{whole} {fraction:#x}: off by {off} of 2^60");
    }
}

#[test]
fn what_is_over_the_cap_is_the_cap() {
    let capped = |n, cap| waits(&draw(n, SECOND, cap));
    for (n, cap) in [(30, 4), (60, 86_400), (100, 1), (u32::MAX, 9)] {
        assert_eq!(capped(n, Duration::from_secs(cap)), [Duration::from_secs(cap); 3], "wait {n}");
    }
    assert_eq!(capped(u32::MAX, Duration::MAX)[2], Duration::from_nanos(u64::MAX));
    let all = [Duration::from_nanos(u64::MAX); 3];
    assert_eq!(waits(&draw(90, Duration::MAX, Duration::MAX)), all, "it neither wraps nor panics");
}

#[test]
fn a_sum_that_has_not_grown_is_no_wait_however_late_it_is() {
    for n in [1, 2, 63, 189, 190, 200, u32::MAX] {
        assert_eq!(length(0, n, &draw(n, SECOND, Duration::MAX)), Duration::ZERO, "wait {n}");
    }
}

/// Against every course of draws on a grid, whose ends are the ends of the draws.
#[test]
fn the_least_that_waits_take_together_is_that_of_the_best_course() {
    let most = |n: u32, end: u64| if end == 4 { 4 * height(n, 0) } else { 2 * height(n - 1, end << 62) };
    for cap in [Duration::MAX, SECOND, SECOND * 2, Duration::from_millis(2_500), SECOND * 4] {
        let mut ends = Ends::START;
        let mut courses: Vec<(u64, Duration)> = vec![(0, Duration::ZERO)];
        for n in 1..=6 {
            let from = |end: u64| if n == 1 { 0 } else { most(n - 1, end) };
            let step = |(end, took): (u64, Duration)| {
                (0..=4).map(move |next| {
                    let growth = most(n, next).saturating_sub(from(end) / 2);
                    (next, took + length(growth, n, &draw(n, SECOND, cap)))
                })
            };
            courses = courses.into_iter().flat_map(step).collect();
            let best = courses.iter().map(|(_, took)| *took).min().unwrap();
            let least = ends.extend(n, &[draw(n, SECOND, cap)]);
            assert!(least.abs_diff(best) <= MICROSECOND, "{n} waits under {cap:?}: {least:?} for {best:?}");
        }
    }
}

#[test]
fn a_wait_lies_in_the_range_that_the_draw_before_it_left() {
    for seed in 0..2_000 {
        for number in 1..40 {
            let draw = Draw { seed, ..draw(number, SECOND, Duration::MAX) };
            let [least, drawn, most] = waits(&draw);
            assert!(least <= drawn && drawn <= most, "seed {seed}, wait {number}");
        }
    }
}

#[test]
fn the_waits_add_up_to_what_the_last_draw_reached() {
    for seed in 0..500 {
        let mut sum = Duration::ZERO;
        for number in 1..=12 {
            let draw = Draw { seed, ..draw(number, SECOND, Duration::MAX) };
            sum += waits(&draw)[1];
            let reached = length(2 * height(number - 1, draw.bits()), number, &draw);
            assert!(sum.abs_diff(reached) <= Duration::from_nanos(30), "seed {seed}, wait {number}");
        }
    }
}

#[test]
fn the_longest_sequence_is_that_of_the_greatest_draws() {
    let longest = |n| longest(&draw(n, SECOND, Duration::MAX));
    for n in 1..=20 {
        let (longest, drawn) = (longest(n), constant_draws(n, u64::MAX));
        assert!(longest >= drawn && longest - drawn <= SECOND / 1000, "{n}: {longest:?} {drawn:?}");
        assert_eq!(longest.subsec_nanos() % 1_000_000, 0, "{n}: {longest:?}");
    }
}

/// `(whole, fraction, f ÷ 2^whole in 2⁻⁶⁰)`.
const EXACT: [(u32, u64, u128); 9] = [
    (0, 0x0, 0),
    (0, 0x1, 536_870_912),
    (0, 0x8000000000000000, 1_448_492_427_997_414_149),
    (0, 0xffffffffffffffff, 2_222_896_256_207_016_915),
    (1, 0x0, 1_111_448_128_103_508_458),
    (3, 0x123456789abcdef0, 1_208_988_076_263_139_002),
    (12, 0xfedcba9876543210, 2_298_747_922_391_608_117),
    (47, 0x4000000000000000, 1_371_062_456_314_964_635),
    (120, 0x1, 1_152_921_504_606_846_976),
];
