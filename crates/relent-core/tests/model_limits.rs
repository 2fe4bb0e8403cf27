//! The limits against naive twins: the rate against a list of all that ever went and a bucket in exact fractions,
//! the occupancy against three plain variables.

use std::time::Duration;

use proptest::prelude::*;
use relent_core::{
    RatePolicy, Timestamp,
    concurrency::Occupancy,
    rate::{Gcra, Place},
};

const NANO: Duration = Duration::from_nanos(1);

/// A bucket that is refilled by time, in the exact fraction of a permit: a permit is `per` parts, a nanosecond
/// brings `permits` of them.
struct Bucket {
    parts: u128,
    at: Timestamp,
    policy: RatePolicy,
}

impl Bucket {
    fn full(policy: RatePolicy) -> Self {
        Self { parts: policy.per.as_nanos() * u128::from(policy.burst), at: Timestamp::ZERO, policy }
    }

    fn refill(&mut self, now: Timestamp) {
        let brought = now.since(self.at).as_nanos() * u128::from(self.policy.permits);
        self.parts = (self.parts + brought).min(self.policy.per.as_nanos() * u128::from(self.policy.burst));
        self.at = self.at.max(now);
    }

    fn available(&mut self, now: Timestamp) -> u128 {
        self.refill(now);
        self.parts / self.policy.per.as_nanos()
    }

    fn try_take(&mut self, now: Timestamp) -> bool {
        let can = self.available(now) > 0;
        self.parts -= if can { self.policy.per.as_nanos() } else { 0 };
        can
    }
}

fn policies() -> impl Strategy<Value = RatePolicy> {
    let periods = prop_oneof![Just(1_000_000_000), 1_000u64..10_000_000_000, Just(60_000_000_000)];
    let permits = prop_oneof![1u32..20, Just(1_000), 1u32..1_000];
    (permits, periods, 1u32..12).prop_map(|(permits, per, burst)| RatePolicy {
        permits,
        per: Duration::from_nanos(per),
        burst,
    })
}

/// Policies whose interval is a whole number of nanoseconds, so that nothing is rounded anywhere.
fn even_policies() -> impl Strategy<Value = RatePolicy> {
    (1u32..100, 1u64..1_000_000, 1u32..12).prop_map(|(permits, interval, burst)| RatePolicy {
        permits,
        per: Duration::from_nanos(interval * u64::from(permits)),
        burst,
    })
}

/// Steps of time as shares of the interval, most of them short, some far beyond the burst.
fn steps() -> impl Strategy<Value = Vec<u64>> {
    let step = prop_oneof![Just(0u64), 0u64..300, 900u64..1_100, 0u64..20_000];
    proptest::collection::vec(step, 1..120)
}

fn moments(policy: RatePolicy, start: u64, steps: &[u64]) -> Vec<Timestamp> {
    let interval = policy.per.as_nanos() / u128::from(policy.permits);
    let mut now = Timestamp::from_nanos(start);
    steps
        .iter()
        .map(|&milli| {
            let step = u64::try_from(interval * u128::from(milli) / 1000).expect("a short step");
            now = now.after(Duration::from_nanos(step));
            now
        })
        .collect()
}

/// What may begin in a window of that length: a burst, and one more for every whole interval. Where the interval
/// is no whole number of nanoseconds, who comes at the first nanosecond that is not too early has come on time, so
/// a window is longer than it reads by less than a tick.
fn allowed(policy: RatePolicy, window: Duration) -> u128 {
    let is_even = policy.per.as_nanos().is_multiple_of(u128::from(policy.permits));
    let window = if is_even { window } else { window + 2 * NANO };
    u128::from(policy.burst) + window.as_nanos() * u128::from(policy.permits) / policy.per.as_nanos()
}

proptest! {
    #[test]
    fn an_even_rate_is_the_exact_bucket(
        policy in even_policies(), start in 0u64..1 << 61, steps in steps(),
    ) {
        let gcra = Gcra::new(&policy).unwrap();
        let (mut word, mut bucket) = (0, Bucket::full(policy));
        for now in moments(policy, start, &steps) {
            prop_assert_eq!(u128::from(gcra.available(word, now)), bucket.available(now));
            let taken = gcra.take(word, now);
            prop_assert_eq!(taken.is_ok(), bucket.try_take(now));
            word = taken.unwrap_or(word);
        }
    }

    #[test]
    fn no_window_however_long_lets_more_through_than_the_policy_says(
        policy in policies(), start in 0u64..1 << 61, steps in steps(),
    ) {
        let gcra = Gcra::new(&policy).unwrap();
        let mut word = 0;
        let mut went: Vec<Timestamp> = Vec::new();
        for now in moments(policy, start, &steps) {
            let Ok(next) = gcra.take(word, now) else { continue };
            word = next;
            went.push(now);
            for (index, first) in went.iter().enumerate() {
                let inside = (went.len() - index) as u128;
                prop_assert!(inside <= allowed(policy, now.since(*first)), "{inside} from {first:?} to {now:?}");
            }
        }
    }

    #[test]
    fn a_refusal_is_right_about_its_moment_to_the_nanosecond(
        policy in policies(), start in 0u64..1 << 61, steps in steps(),
    ) {
        let gcra = Gcra::new(&policy).unwrap();
        let mut word = 0;
        for now in moments(policy, start, &steps) {
            match gcra.take(word, now) {
                Ok(next) => word = next,
                Err(refused) => {
                    let until = refused.until.expect("a rate knows its moment");
                    prop_assert!(until > now);
                    prop_assert_eq!(until.since(now), refused.advised);
                    prop_assert!(gcra.take(word, until).is_ok());
                    prop_assert!(gcra.take(word, until.before(NANO)).is_err());
                    prop_assert!(gcra.available(word, until) > 0);
                    prop_assert_eq!(gcra.available(word, until.before(NANO)), 0);
                }
            }
        }
    }

    #[test]
    fn a_caller_who_obeys_every_refusal_gets_exactly_the_rate(
        policy in policies(), start in 0u64..1 << 61, count in 1u32..400,
    ) {
        let gcra = Gcra::new(&policy).unwrap();
        let start = Timestamp::from_nanos(start);
        let (mut word, mut now) = (0, start);
        for _ in 0..policy.burst + count {
            word = loop {
                match gcra.take(word, now) {
                    Ok(next) => break next,
                    Err(refused) => now = refused.until.expect("a rate knows its moment"),
                }
            };
        }
        // The last of them waits `count` intervals, no matter how many: nothing adds up. Less than a tick for the
        // reading of the beginning, less than a nanosecond for that of the end.
        let exact = (policy.per.as_nanos() * u128::from(count)).div_ceil(u128::from(policy.permits));
        let took = now.since(start).as_nanos();
        prop_assert!((exact.saturating_sub(2)..=exact).contains(&took), "{took} for {exact}");
    }

    #[test]
    fn a_clock_that_goes_back_lets_nothing_more_through(
        policy in policies(), readings in proptest::collection::vec(0u64..5_000_000_000, 1..80),
    ) {
        // CL-02
        let gcra = Gcra::new(&policy).unwrap();
        let (mut word, mut went) = (0, 0);
        for &reading in &readings {
            let now = Timestamp::from_nanos(reading);
            if let Ok(next) = gcra.take(word, now) {
                prop_assert!(next > word, "every permit costs");
                word = next;
                went += 1;
            }
            prop_assert!(gcra.available(word, now) <= policy.burst);
        }
        let span = readings.iter().max().unwrap() - readings.iter().min().unwrap();
        prop_assert!(went <= allowed(policy, Duration::from_nanos(span)));
    }

    #[test]
    fn booking_and_giving_back_keep_to_the_policy(
        policy in policies(),
        acts in proptest::collection::vec((0u8..4, 0u64..2_500, any::<proptest::sample::Index>()), 1..100),
    ) {
        let gcra = Gcra::new(&policy).unwrap();
        let interval = policy.per.as_nanos() / u128::from(policy.permits);
        let (mut word, mut now) = (0, Timestamp::from_secs(1_000));
        let mut booked: Vec<Place> = Vec::new();
        let mut used: Vec<Timestamp> = Vec::new();
        for (act, milli, index) in acts {
            let step = u64::try_from(interval * u128::from(milli) / 1000).expect("a short step");
            now = now.after(Duration::from_nanos(step));
            // Everybody goes when their moment comes.
            booked.retain(|place| {
                let waits = gcra.moment(*place) > now;
                used.extend((!waits).then(|| gcra.moment(*place)));
                waits
            });
            match act {
                0 => if let Ok(next) = gcra.take(word, now) {
                    word = next;
                    used.push(now);
                },
                1 | 2 => {
                    let next = gcra.reserve(word, now, Timestamp::MAX).unwrap();
                    let refused = gcra.take(word, now).map_err(|refusal| refusal.until);
                    prop_assert_eq!(refused.err().flatten().unwrap_or(now), next.at);
                    word = next.word;
                    match next.at > now {
                        true => booked.push(next.place),
                        false => used.push(now),
                    }
                }
                _ if booked.is_empty() => {}
                _ => {
                    let index = index.index(booked.len());
                    let mut freed = booked.remove(index);
                    for behind in &mut booked[index..] {
                        prop_assert!(gcra.may_move_up(*behind, freed, now));
                        std::mem::swap(behind, &mut freed);
                    }
                    // Nobody was let in behind those who wait, so the end of the line always comes back.
                    word = gcra.refund(word, freed).expect("it is the last");
                }
            }
        }
        used.extend(booked.iter().map(|place| gcra.moment(*place)));
        used.sort();
        for (index, first) in used.iter().enumerate() {
            for (inside, last) in (1..).zip(&used[index..]) {
                prop_assert!(inside <= allowed(policy, last.since(*first)), "{inside} from {first:?} to {last:?}");
            }
        }
    }

    #[test]
    fn the_occupancy_is_three_plain_variables(
        limit in 1u32..6, acts in proptest::collection::vec((0u8..6, 1u32..6), 0..200),
    ) {
        let mut state = Occupancy::new(limit);
        let (mut limit, mut in_flight, mut awaited) = (limit, 0, false);
        for (act, number) in acts {
            let next = match act {
                0 => {
                    let enters = !awaited && in_flight < limit;
                    in_flight += u32::from(enters);
                    prop_assert_eq!(state.enter().is_some(), enters);
                    state.enter()
                }
                1 => {
                    let enters = in_flight < limit;
                    in_flight += u32::from(enters);
                    prop_assert_eq!(state.pass_on().is_some(), enters);
                    state.pass_on()
                }
                2 => {
                    in_flight = in_flight.saturating_sub(1);
                    Some(state.leave())
                }
                3 => {
                    awaited = true;
                    Some(state.awaited())
                }
                4 => {
                    awaited = false;
                    Some(state.not_awaited())
                }
                _ => {
                    limit = number;
                    Some(state.with_limit(number))
                }
            };
            state = next.unwrap_or(state);
            prop_assert_eq!(
                (state.limit(), state.in_flight(), state.is_awaited()),
                (limit, in_flight, awaited)
            );
        }
    }
}

#[test]
fn a_token_is_charged_when_it_is_sent_and_not_when_the_wait_begins() {
    // BU-11: empty at 0, half a token a second, one at most; the server asked for 5 s.
    let at = Timestamp::from_secs;
    let policy = RatePolicy { permits: 1, per: Duration::from_secs(2), burst: 1 };
    let gcra = Gcra::new(&policy).unwrap();
    let empty = gcra.take(0, at(0)).unwrap();
    assert_eq!(gcra.available(empty, at(5).before(NANO)), 1, "nothing is charged during the wait");
    let sent = gcra.take(empty, at(5)).expect("not delayed to 7");
    assert_eq!(gcra.available(sent, at(5)), 0, "exactly one is charged");
    assert_eq!(gcra.take(sent, at(5)).unwrap_err().until, Some(at(7)), "and at 5");
}
