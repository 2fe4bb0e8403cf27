//! The live breaker against the exact one: on one thread they never differ; among threads the difference is
//! bounded by the threads.

#![cfg(not(loom))]

use std::{sync::Barrier, thread, time::Duration};

use proptest::{option, prelude::*};
use relent::{
    Backoff, BreakerPolicy, BreakerState, Cause, Neutral, Sent, SlowCalls, Timestamp, Verdict, Window,
    breaker::{Mode, Recorded, Ticket},
    control::{Breaker, Permit},
};

const FAILURE: Verdict = Verdict::Failure { cause: Cause::Throttled, sent: Sent::Maybe, server_wait: None };
const MILLI: u64 = 1_000_000;

#[derive(Clone, Debug)]
enum Event {
    Pass(u64),
    /// The next event reads a clock that is behind, as another thread's reading may be.
    Behind(u64),
    Admit,
    Record(usize, Verdict, u64),
    Drop(usize),
    Hand(Hand),
}

#[derive(Clone, Copy, Debug)]
enum Hand {
    Isolate,
    ForceOpen(u64),
    ForceClosed,
    ObserveOnly,
    Close,
}

fn event() -> impl Strategy<Value = Event> {
    let verdict = prop_oneof![
        5 => Just(FAILURE),
        4 => Just(Verdict::Success),
        1 => Just(Verdict::Permanent),
        1 => Just(Verdict::Neutral(Neutral::OwnFault)),
    ];
    let hand = prop_oneof![
        1 => Just(Hand::Isolate),
        1 => (1..100 * MILLI).prop_map(Hand::ForceOpen),
        1 => Just(Hand::ForceClosed),
        1 => Just(Hand::ObserveOnly),
        2 => Just(Hand::Close),
    ];
    prop_oneof![
        30 => Just(Event::Admit),
        30 => (any::<usize>(), verdict, 0..20 * MILLI)
            .prop_map(|(pick, verdict, took)| Event::Record(pick, verdict, took)),
        10 => (0..20 * MILLI).prop_map(Event::Pass),
        2 => (0..5_000 * MILLI).prop_map(Event::Pass),
        2 => (0..20 * MILLI).prop_map(Event::Behind),
        4 => any::<usize>().prop_map(Event::Drop),
        2 => hand.prop_map(Event::Hand),
    ]
}

prop_compose! {
    fn policy()(
        failure_rate_milli in option::of(1..=1000u32),
        slow in option::of((1..20 * MILLI, 1..=1000u32)),
        consecutive in 1..6u32,
        with_consecutive in any::<bool>(),
        window in prop_oneof![
            (1..30u32).prop_map(Window::Count),
            (MILLI..500 * MILLI).prop_map(|nanos| Window::Time(Duration::from_nanos(nanos))),
        ],
        min_calls in 1..12u32,
        break_time in 1..50 * MILLI,
        break_jitter_milli in 0..=1000u32,
        probes in 1..=16u32,
        probe_timeout in MILLI..60 * MILLI,
    ) -> BreakerPolicy {
        let base = Duration::from_nanos(break_time);
        let nothing_else = failure_rate_milli.is_none() && slow.is_none();
        BreakerPolicy {
            failure_rate_milli,
            slow_calls: slow.map(|(longer_than, rate_milli)| SlowCalls {
                longer_than: Duration::from_nanos(longer_than),
                rate_milli,
            }),
            consecutive_failures: (with_consecutive || nothing_else).then_some(consecutive),
            window,
            min_calls: match window {
                Window::Count(calls) => min_calls.min(calls),
                Window::Time(_) => min_calls,
            },
            break_time: Backoff::Exponential { base, factor_milli: 1500, max: base * 20 },
            break_jitter_milli,
            probes,
            probe_timeout: Duration::from_nanos(probe_timeout),
        }
    }
}

struct Pair {
    live: Breaker,
    exact: BreakerState,
    under_way: Vec<(Permit, Ticket)>,
    now: u64,
    behind: u64,
}

impl Pair {
    fn step(&mut self, event: &Event) -> Result<(), TestCaseError> {
        let at = Timestamp::from_nanos(self.now.saturating_sub(std::mem::take(&mut self.behind)));
        match *event {
            Event::Pass(nanos) => self.now += nanos,
            Event::Behind(nanos) => self.behind = nanos,
            Event::Admit => {
                prop_assert_eq!(self.live.refusal(at), self.exact.clone().admit(at).err());
                match (self.live.admit_owned(at), self.exact.admit(at)) {
                    (Ok(permit), Ok(ticket)) => {
                        prop_assert_eq!(permit.transition(), ticket.transition());
                        self.under_way.push((permit, ticket));
                    }
                    (live, exact) => prop_assert_eq!(live.err(), exact.err()),
                }
            }
            Event::Record(pick, verdict, took) => {
                if let Some((permit, ticket)) = self.take(pick) {
                    let took = Duration::from_nanos(took);
                    let exact = self.exact.record(ticket, verdict, took, at);
                    prop_assert_eq!(permit.record(verdict, took, at), exact);
                }
            }
            Event::Drop(pick) => {
                if let Some((permit, ticket)) = self.take(pick) {
                    drop(permit);
                    self.exact.give_back(ticket);
                }
            }
            Event::Hand(hand) => self.by_hand(hand)?,
        }
        prop_assert_eq!(self.live.status(), self.exact.status());
        prop_assert_eq!(self.live.counts(at), self.exact.counts(at));
        Ok(())
    }

    fn by_hand(&mut self, hand: Hand) -> Result<(), TestCaseError> {
        let until = |nanos| Timestamp::from_nanos(self.now + nanos);
        let (live, exact) = match hand {
            Hand::Isolate => (self.live.isolate(), self.exact.isolate()),
            Hand::ForceOpen(nanos) => {
                (self.live.force_open(until(nanos)), self.exact.force_open(until(nanos)))
            }
            Hand::ForceClosed => (self.live.force_closed(), self.exact.force_closed()),
            Hand::ObserveOnly => (self.live.observe_only(), self.exact.observe_only()),
            Hand::Close => (self.live.close(), self.exact.close()),
        };
        prop_assert_eq!(live, exact);
        Ok(())
    }

    fn take(&mut self, pick: usize) -> Option<(Permit, Ticket)> {
        let count = self.under_way.len();
        (count > 0).then(|| self.under_way.swap_remove(pick % count))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn on_one_thread_the_live_breaker_never_differs_from_the_exact_one(
        policy in policy(),
        seed in any::<u64>(),
        events in prop::collection::vec(event(), 1..400),
    ) {
        let live = Breaker::with_seed(&policy, seed).expect("the policy is possible");
        let mut pair =
            Pair { live, exact: BreakerState::new(&policy, seed), under_way: vec![], now: MILLI, behind: 0 };
        for event in &events {
            pair.step(event)?;
        }
    }
}

/// Lets four threads record at the same time and says how often each thing was told, and what is counted after.
fn storm(window: Window, bad: impl Fn(u32) -> bool + Sync, rate_milli: u32) -> (Breaker, u32) {
    let policy = BreakerPolicy {
        failure_rate_milli: Some(rate_milli),
        window,
        min_calls: 10,
        break_time: Backoff::Constant(Duration::from_secs(1000)),
        ..BreakerPolicy::default()
    };
    let breaker = Breaker::new(&policy).expect("the policy is possible");
    let together = Barrier::new(THREADS);
    let opened = thread::scope(|scope| {
        let record = || {
            together.wait();
            let told = (0..CALLS).map(|call| {
                let Ok(permit) = breaker.admit(NOW) else { return 0 };
                let verdict = if bad(call) { FAILURE } else { Verdict::Success };
                u32::from(permit.record(verdict, Duration::ZERO, NOW).transition().is_some())
            });
            told.sum::<u32>()
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(record)).collect();
        threads.into_iter().map(|thread| thread.join().expect("it does not panic")).sum()
    });
    (breaker, opened)
}

const THREADS: usize = 4;
const CALLS: u32 = 20_000;
const NOW: Timestamp = Timestamp::from_secs(5);

#[test]
fn after_the_storm_of_threads_not_one_call_is_missing_or_counted_twice() {
    for window in [Window::Count(1_000_000), Window::Time(Duration::from_secs(10))] {
        let (breaker, opened) = storm(window, |call| call % 4 == 1, 1000);
        let counts = breaker.counts(NOW);
        let all = THREADS as u64 * u64::from(CALLS);
        assert_eq!((counts.calls, counts.failures, counts.slow), (all, all / 4, 0), "{window:?}");
        assert_eq!((breaker.status().mode, opened), (Mode::Closed, 0));
    }
}

#[test]
fn a_full_ring_holds_its_size_whatever_the_threads_do() {
    let (breaker, opened) = storm(Window::Count(64), |_| false, 500);
    assert_eq!(opened, 0);
    let counts = breaker.counts(NOW);
    assert_eq!((counts.calls, counts.failures), (64, 0));
    let (breaker, opened) = storm(Window::Count(64), |call| call % 3 == 0 && call < 19_000, 1000);
    assert_eq!(opened, 0);
    for _ in 0..64 {
        let permit = breaker.admit(NOW).expect("it is closed");
        assert_eq!(permit.record(Verdict::Success, Duration::ZERO, NOW), Recorded::Counted);
    }
    assert_eq!(breaker.counts(NOW).failures, 0, "every failure that entered has left, and no other");
}

#[test]
fn of_threads_that_fail_together_exactly_one_is_told_that_it_opened() {
    for window in [Window::Count(100), Window::Time(Duration::from_secs(10))] {
        let (breaker, opened) = storm(window, |call| call % 2 == 0, 500);
        assert_eq!((breaker.status().mode, breaker.status().opens, opened), (Mode::Open, 1, 1), "{window:?}");
    }
}
