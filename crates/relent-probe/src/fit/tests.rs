//! Synthetic arrivals of every curve with every jitter, with the noise of a real machine, under many seeds.

use std::time::Duration;

use relent::{Backoff, Cause, Decision, Jitter, Policy, Sent, SplitMix64, Timestamp, Verdict};

use super::{Curve, FirstRetry, Fit, JitterKind, fit};

/// As many runs as the suite makes unless it is told otherwise.
const RUNS: u64 = 50;
const SEEDS: u64 = 12;

const CURVES: [Backoff; 6] = [
    Backoff::Constant(Duration::from_millis(200)),
    Backoff::Linear { base: Duration::from_millis(150), max: Duration::MAX },
    Backoff::Exponential { base: Duration::from_millis(100), factor_milli: 2000, max: Duration::MAX },
    Backoff::Exponential { base: Duration::from_millis(200), factor_milli: 3000, max: Duration::MAX },
    Backoff::Exponential { base: Duration::from_millis(400), factor_milli: 1500, max: Duration::MAX },
    Backoff::Exponential {
        base: Duration::from_millis(100),
        factor_milli: 2000,
        max: Duration::from_millis(400),
    },
];

const JITTERS: [Jitter; 4] =
    [Jitter::None, Jitter::Full, Jitter::Equal, Jitter::Proportional { below_milli: 200, above_milli: 200 }];

/// The waits that relent's own core gives one call whose attempts all fail, each measured on a busy machine.
fn run(backoff: &Backoff, jitter: Jitter, seed: u64, length: u32) -> Vec<Duration> {
    let mut policy = Policy::live();
    policy.retry.backoff = backoff.clone();
    policy.retry.jitter = jitter;
    policy.retry.max_attempts = Some(length + 1);
    policy.total_timeout = Some(Duration::from_secs(86_400));
    let mut history = policy.begin(seed, Timestamp::ZERO, None, None);
    let failed = Verdict::Failure { cause: Cause::Error, sent: Sent::No, server_wait: None };
    let mut waits = Vec::new();
    while let Decision::Retry(wait) = policy.retry.conclude(&mut history, failed, Timestamp::ZERO) {
        waits.push(wait.length + noise(seed * 64 + waits.len() as u64));
    }
    waits
}

/// 0.5 to 4 ms, and in one of a hundred waits a stall of 30 ms.
fn noise(seed: u64) -> Duration {
    let bits = SplitMix64::new(seed).bits();
    let stall = if bits.is_multiple_of(100) { 30_000 } else { 0 };
    Duration::from_micros(500 + (bits >> 32) % 3500 + stall)
}

fn runs(seed: u64, draw: impl Fn(u64, u32) -> Vec<Duration>) -> Vec<Vec<Duration>> {
    (0..RUNS).map(|run| draw(seed * 1000 + run, 5)).collect()
}

/// Fits under every seed: none may name another kind or curve, and nearly all must name the right one.
fn all_seeds(
    what: &str,
    draw: impl Fn(u64, u32) -> Vec<Duration>,
    right: impl Fn(&Fit) -> Result<(), String>,
) {
    let mut told = 0;
    for seed in 0..SEEDS {
        let fitted = fit(&runs(seed, &draw));
        let undecided = matches!(fitted.jitter, JitterKind::Undecided { .. })
            || matches!(fitted.curve, Curve::Undecided { .. });
        match right(&fitted) {
            Ok(()) => told += 1,
            Err(_) if undecided => {}
            Err(why) => panic!("{what}, seed {seed}: {why}\n{fitted:#?}"),
        }
    }
    assert!(told * 10 >= SEEDS * 9, "{what}: only {told} of {SEEDS} were told");
}

fn close(name: &str, seen: Duration, expected: Duration, share: f64) -> Result<(), String> {
    let (seen, expected) = (seen.as_secs_f64(), expected.as_secs_f64());
    // What a measurement adds to every wait, it adds to the base.
    let fits = (seen - expected).abs() <= share * expected + 0.006;
    if fits { Ok(()) } else { Err(format!("{name}: {seen} and not {expected}")) }
}

fn curve_is(fitted: &Fit, backoff: &Backoff) -> Result<(), String> {
    match (&fitted.curve, backoff) {
        (Curve::Constant { wait }, Backoff::Constant(length)) => close("wait", *wait, *length, 0.05),
        (Curve::Linear { base, cap: None }, Backoff::Linear { base: expected, .. }) => {
            close("base", *base, *expected, 0.06)
        }
        (
            Curve::Exponential { base, factor, factor_range, cap },
            Backoff::Exponential { base: expected, factor_milli, max },
        ) => {
            close("base", *base, *expected, 0.08)?;
            let right = f64::from(*factor_milli) / 1000.0;
            if (factor - right).abs() > 0.1 * right {
                return Err(format!("factor {factor} and not {right}"));
            }
            if !(factor_range.0 * 0.98..=factor_range.1 * 1.02).contains(&right) {
                return Err(format!("{right} is not in {factor_range:?}"));
            }
            match (cap, *max < Duration::from_secs(60)) {
                (Some(cap), true) => close("cap", *cap, *max, 0.1),
                (None, false) => Ok(()),
                _ => Err(format!("cap {cap:?} and not {max:?}")),
            }
        }
        _ => Err("another curve".to_owned()),
    }
}

fn jitter_is(fitted: &Fit, jitter: Jitter) -> Result<(), String> {
    match (&fitted.jitter, jitter) {
        (JitterKind::None, Jitter::None)
        | (JitterKind::Full, Jitter::Full)
        | (JitterKind::Equal, Jitter::Equal)
        | (JitterKind::Decorrelated, Jitter::Decorrelated)
        | (JitterKind::PollyV2, Jitter::PollyV2) => Ok(()),
        (JitterKind::Proportional { share }, Jitter::Proportional { above_milli, .. }) => {
            let right = f64::from(above_milli) / 1000.0;
            let near = (share - right).abs() <= 0.03;
            if near { Ok(()) } else { Err(format!("share {share} and not {right}")) }
        }
        _ => Err("another jitter".to_owned()),
    }
}

#[test]
fn every_curve_with_every_jitter_is_told() {
    for backoff in &CURVES {
        for jitter in JITTERS {
            let draw = |seed, length| run(backoff, jitter, seed, length);
            all_seeds(&format!("{backoff:?} {jitter:?}"), draw, |fitted| {
                jitter_is(fitted, jitter)?;
                curve_is(fitted, backoff)
            });
        }
    }
}

#[test]
fn fewer_runs_tell_less_and_nothing_wrong() {
    for backoff in &CURVES {
        for jitter in JITTERS {
            for seed in 0..SEEDS {
                let few: Vec<_> = (0..12).map(|nth| run(backoff, jitter, seed * 1000 + nth, 4)).collect();
                let fitted = fit(&few);
                let jitter_told = !matches!(fitted.jitter, JitterKind::Undecided { .. });
                assert!(
                    !jitter_told || same_kind(&fitted, jitter),
                    "{backoff:?} {jitter:?} {seed}: {fitted:#?}"
                );
                let curve_told = !matches!(fitted.curve, Curve::Undecided { .. });
                assert!(
                    !curve_told || same_family(&fitted, backoff),
                    "{backoff:?} {jitter:?} {seed}: {fitted:#?}"
                );
            }
        }
    }
}

fn same_kind(fitted: &Fit, jitter: Jitter) -> bool {
    matches!(fitted.jitter, JitterKind::Proportional { .. }) == matches!(jitter, Jitter::Proportional { .. })
        && (fitted.jitter == JitterKind::None) == (jitter == Jitter::None)
        && (fitted.jitter == JitterKind::Full) == (jitter == Jitter::Full)
        && (fitted.jitter == JitterKind::Equal) == (jitter == Jitter::Equal)
}

fn same_family(fitted: &Fit, backoff: &Backoff) -> bool {
    matches!(
        (&fitted.curve, backoff),
        (Curve::Constant { .. }, Backoff::Constant(_))
            | (Curve::Linear { .. }, Backoff::Linear { .. })
            | (Curve::Exponential { .. }, Backoff::Exponential { .. })
    )
}

#[test]
fn jitters_that_lean_on_the_wait_before_are_told() {
    let doubling = |max| Backoff::Exponential { base: Duration::from_millis(100), factor_milli: 2000, max };
    for jitter in [Jitter::Decorrelated, Jitter::PollyV2] {
        let backoff = doubling(Duration::from_secs(3600));
        let draw = |seed, length| run(&backoff, jitter, seed, length);
        all_seeds(&format!("{jitter:?}"), draw, |fitted| {
            jitter_is(fitted, jitter)?;
            match fitted.curve {
                Curve::Exponential { base, .. } => close("base", base, Duration::from_millis(100), 0.06),
                _ => Err("another curve".to_owned()),
            }
        });
    }
}

#[test]
fn an_addition_that_does_not_grow_is_told_from_a_share_that_does() {
    let draw = |seed: u64, length: u32| {
        let wait = |number: u32| {
            let drawn = SplitMix64::at(seed, u64::from(number)).bits() % 300_000;
            Duration::from_millis(100) * 2_u32.pow(number)
                + Duration::from_micros(drawn)
                + noise(seed * 64 + u64::from(number))
        };
        (0..length).map(wait).collect()
    };
    all_seeds("additive", draw, |fitted| match &fitted.jitter {
        JitterKind::Additive { span } => close("span", *span, Duration::from_millis(300), 0.1),
        _ => Err("another jitter".to_owned()),
    });
}

#[test]
fn jitter_that_is_lost_at_the_cap_is_seen_and_the_rest_is_told() {
    let cap = Duration::from_millis(500);
    let backoff =
        Backoff::Exponential { base: Duration::from_millis(100), factor_milli: 2000, max: Duration::MAX };
    // The cap is put on after the draw, as in linkerd and in tenacity's `wait_exponential_jitter`.
    let jitter = Jitter::Proportional { below_milli: 0, above_milli: 400 };
    let draw = |seed, length| {
        run(&backoff, jitter, seed, length).into_iter().map(|wait| wait.min(cap + noise(seed))).collect()
    };
    all_seeds("lost at the cap", draw, |fitted| {
        let at = fitted.pinned_at.ok_or("nothing is pinned")?;
        close("pinned at", at, cap, 0.02)?;
        match &fitted.jitter {
            JitterKind::Proportional { share } if (share - 1.0 / 6.0).abs() < 0.03 => Ok(()),
            _ => Err("another jitter".to_owned()),
        }
    });
}

#[test]
fn a_first_retry_at_once_is_told_apart_from_the_curve() {
    let backoff =
        Backoff::Exponential { base: Duration::from_millis(200), factor_milli: 2000, max: Duration::MAX };
    for jitter in [Jitter::None, Jitter::Full] {
        let draw = |seed, length| {
            let first = [noise(seed)];
            first.into_iter().chain(run(&backoff, jitter, seed, length)).collect()
        };
        all_seeds("first at once", draw, |fitted| {
            jitter_is(fitted, jitter)?;
            let at_once = fitted.first == FirstRetry::AtOnce;
            curve_is(fitted, &backoff).and(if at_once { Ok(()) } else { Err("it waits".to_owned()) })
        });
    }
}

#[test]
fn an_interpreter_that_takes_its_time_still_goes_at_once() {
    // Seen of urllib3 on a busy machine: 10 to 40 ms before the retry that is documented to go at once.
    let draw = |seed: u64, length: u32| {
        let slow = Duration::from_millis(8 + SplitMix64::new(seed).bits() % 30);
        let waits = [200, 400, 800, 1600].map(Duration::from_millis);
        [slow].into_iter().chain(waits.map(|wait| wait + noise(seed))).take(length as usize).collect()
    };
    let fitted = fit(&runs(5, draw));
    assert_eq!((fitted.first, &fitted.jitter), (FirstRetry::AtOnce, &JitterKind::None), "{fitted:#?}");
    assert!(
        matches!(fitted.curve, Curve::Exponential { factor, .. } if (factor - 2.0).abs() < 0.1),
        "{fitted:#?}"
    );
}

#[test]
fn retries_that_all_go_at_once_have_no_curve() {
    let fitted = fit(&runs(1, |seed, length| (0..u64::from(length)).map(|n| noise(seed + n)).collect()));
    assert_eq!((fitted.curve, fitted.jitter), (Curve::AtOnce, JitterKind::None));
}

#[test]
fn a_measurement_that_is_too_small_is_undecided_and_says_why() {
    let ms = |list: &[u64]| list.iter().map(|ms| Duration::from_millis(*ms)).collect::<Vec<_>>();
    let nothing = fit(&[vec![], vec![]]);
    assert!(matches!(&nothing.curve, Curve::Undecided { why, .. } if why.contains("did not try again")));
    let two_runs = fit(&[ms(&[100, 200, 400]), ms(&[101, 203, 402])]);
    assert!(
        matches!(&two_runs.jitter, JitterKind::Undecided { why } if why.contains("too few")),
        "{two_runs:?}"
    );
    let one_wait = fit(&[ms(&[100]), ms(&[101]), ms(&[102]), ms(&[100])]);
    assert!(
        matches!(&one_wait.curve, Curve::Undecided { why, .. } if why.contains("one wait")),
        "{one_wait:?}"
    );
    let two_waits = fit(&[ms(&[100, 200]), ms(&[101, 202]), ms(&[102, 201]), ms(&[100, 203])]);
    assert!(matches!(&two_waits.curve, Curve::Undecided { why, .. } if why.contains("many curves")));
    assert_eq!(two_waits.jitter, JitterKind::None);
}

#[test]
fn steps_that_follow_no_curve_are_shown_as_they_are() {
    let ms = |list: [u64; 4]| list.iter().map(|ms| Duration::from_millis(*ms)).collect::<Vec<_>>();
    let fitted = fit(&[
        ms([100, 900, 300, 600]),
        ms([101, 902, 300, 601]),
        ms([100, 900, 301, 600]),
        ms([103, 901, 302, 603]),
    ]);
    assert!(matches!(&fitted.curve, Curve::Irregular { medians } if medians.len() == 4), "{fitted:?}");
}

#[test]
fn draws_like_no_known_jitter_are_irregular() {
    // Half of the runs wait 100 ms, half 300: nobody's interval.
    let draw = |seed: u64, length: u32| {
        let wait = if SplitMix64::new(seed).bits().is_multiple_of(2) { 100 } else { 300 };
        (0..u64::from(length)).map(|n| Duration::from_millis(wait) + noise(seed * 64 + n)).collect()
    };
    let fitted = fit(&runs(3, draw));
    assert_eq!(fitted.jitter, JitterKind::Irregular, "{fitted:#?}");
}

/// A client that was not run has not been seen to give up after one attempt.
#[test]
fn nothing_is_said_of_a_client_that_nobody_watched() {
    let why = |fitted: Fit| match fitted.jitter {
        JitterKind::Undecided { why } => why,
        jitter => panic!("{jitter:?}"),
    };
    assert!(why(fit(&[])).starts_with("the time was up"));
    assert!(why(fit(&[Vec::new()])).starts_with("it did not try again"));
}
