//! The breaker under every order of its threads: `RUSTFLAGS="--cfg loom" cargo test -p relent --test loom_breaker
//! --release`.

#![cfg(loom)]

use std::time::Duration;

use loom::{model::Builder, thread};
use relent::{
    Backoff, BreakerPolicy, Cause, Sent, Timestamp, Verdict, Window,
    breaker::{Mode, Recorded},
    control::Breaker,
};

const FAILURE: Verdict = Verdict::Failure { cause: Cause::Error, sent: Sent::Maybe, server_wait: None };
const QUICK: Duration = Duration::from_millis(1);
const NOW: Timestamp = Timestamp::from_secs(10);

/// Tries every order in which no thread is interrupted more than so often.
fn in_every_order(interruptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(interruptions);
    builder.check(model);
}

fn policy() -> BreakerPolicy {
    BreakerPolicy {
        failure_rate_milli: Some(500),
        window: Window::Count(4),
        min_calls: 2,
        break_time: Backoff::Constant(Duration::from_secs(5)),
        break_jitter_milli: 0,
        probes: 1,
        probe_timeout: Duration::from_secs(5),
        ..BreakerPolicy::default()
    }
}

fn breaker(policy: &BreakerPolicy) -> Breaker {
    Breaker::with_seed(policy, 1).expect("the policy is possible")
}

/// A breaker whose break is over at [`NOW`].
fn due(probes: u32) -> Breaker {
    let breaker = breaker(&BreakerPolicy { probes, ..policy() });
    let _told = breaker.force_open(NOW);
    breaker
}

/// Fails one call; says whether it was told that this opened the breaker.
fn fail(breaker: &Breaker) -> bool {
    let Ok(permit) = breaker.admit_owned(NOW) else { return false };
    permit.record(FAILURE, QUICK, NOW).transition().is_some()
}

/// Three callers come when the break is over: as many probes go as may, and one is told that it began.
fn callers_meet(probes: u32) {
    let breaker = due(probes);
    let callers: Vec<_> = (0..2)
        .map(|_| {
            let breaker = breaker.clone();
            thread::spawn(move || breaker.admit_owned(NOW).ok())
        })
        .collect();
    let mut admitted = vec![breaker.admit_owned(NOW).ok()];
    admitted.extend(callers.into_iter().map(|caller| caller.join().unwrap()));
    let admitted: Vec<_> = admitted.into_iter().flatten().collect();
    let told = admitted.iter().filter(|permit| permit.transition().is_some()).count();
    assert_eq!(told, 1, "one finds the break over");
    assert!(admitted.len() <= probes as usize, "{} probes", admitted.len());
    assert!(admitted.iter().all(|permit| permit.is_probe()));
    let free = probes as usize - admitted.len();
    let rest: Vec<_> = (0..3).map_while(|_| breaker.admit_owned(NOW).ok()).collect();
    assert_eq!(rest.len(), free, "no place is lost");
}

#[test]
fn never_more_probes_than_one() {
    in_every_order(3, || callers_meet(1));
}

#[test]
fn never_more_probes_than_two() {
    in_every_order(2, || callers_meet(2));
}

#[test]
fn a_dropped_probe_gives_its_place_to_exactly_one() {
    in_every_order(3, || {
        let breaker = due(1);
        let probe = breaker.admit_owned(NOW).unwrap();
        let other = breaker.clone();
        let caller = thread::spawn(move || other.admit_owned(NOW).ok());
        drop(probe);
        let mine = breaker.admit_owned(NOW).ok();
        let theirs = caller.join().unwrap();
        assert_eq!(usize::from(mine.is_some()) + usize::from(theirs.is_some()), 1);
    });
}

#[test]
fn a_lost_probe_and_the_one_in_its_place_are_never_both_heard() {
    in_every_order(3, || {
        let breaker = due(1);
        let lost = breaker.admit_owned(NOW).unwrap();
        let late = NOW.after(Duration::from_secs(6));
        let reporter = thread::spawn(move || lost.record(FAILURE, QUICK, late));
        let heard_next =
            breaker.admit_owned(late).ok().map(|next| next.record(Verdict::Success, QUICK, late));
        let heard_lost = reporter.join().unwrap();
        match breaker.status().mode {
            Mode::Open => {
                assert!(matches!(heard_lost, Recorded::Changed(_)));
                assert!(matches!(heard_next, None | Some(Recorded::Stale)), "{heard_next:?}");
            }
            mode => {
                assert_eq!((mode, heard_lost), (Mode::Closed, Recorded::Stale));
                assert!(matches!(heard_next, Some(Recorded::Changed(_))));
            }
        }
    });
}

#[test]
fn of_probes_that_end_together_one_closes_the_breaker() {
    in_every_order(3, || {
        let breaker = due(2);
        let (one, two) = (breaker.admit_owned(NOW).unwrap(), breaker.admit_owned(NOW).unwrap());
        let other = thread::spawn(move || one.record(Verdict::Success, QUICK, NOW).transition().is_some());
        let mine = two.record(Verdict::Success, QUICK, NOW).transition().is_some();
        assert!(mine ^ other.join().unwrap(), "exactly one is told");
        assert_eq!(breaker.status().mode, Mode::Closed);
    });
}

#[test]
fn of_probes_that_disagree_the_failure_is_never_overlooked() {
    in_every_order(3, || {
        let breaker = due(2);
        let (one, two) = (breaker.admit_owned(NOW).unwrap(), breaker.admit_owned(NOW).unwrap());
        let other = thread::spawn(move || one.record(FAILURE, QUICK, NOW).transition().is_some());
        let mine = two.record(Verdict::Success, QUICK, NOW).transition().is_some();
        assert!(other.join().unwrap() ^ mine, "exactly one is told");
        let status = breaker.status();
        assert_eq!((status.mode, status.opens), (Mode::Open, 2));
        assert_eq!(status.until, Some(NOW.after(Duration::from_secs(5))));
    });
}

/// Two failures come together where two are needed: one of them opens, whatever the order.
fn failures_meet(policy: &BreakerPolicy) {
    let breaker = breaker(policy);
    let other = breaker.clone();
    let caller = thread::spawn(move || fail(&other));
    let mine = fail(&breaker);
    assert!(mine ^ caller.join().unwrap(), "exactly one is told");
    let status = breaker.status();
    assert_eq!((status.mode, status.opens), (Mode::Open, 1));
    assert_eq!(status.until, Some(NOW.after(Duration::from_secs(5))));
}

#[test]
fn failures_together_open_a_breaker_with_a_count_window_once() {
    in_every_order(3, || failures_meet(&policy()));
}

#[test]
fn failures_together_on_cells_of_their_own_open_a_breaker_with_a_time_window_once() {
    let policy = BreakerPolicy { window: Window::Time(Duration::from_secs(10)), ..policy() };
    in_every_order(3, move || failures_meet(&policy));
}

#[test]
fn failures_together_open_a_breaker_that_counts_rows_once() {
    let policy = BreakerPolicy { failure_rate_milli: None, consecutive_failures: Some(2), ..policy() };
    in_every_order(3, move || failures_meet(&policy));
}

#[test]
fn a_result_that_races_with_the_change_of_state_is_never_counted_in_a_later_one() {
    for window in [Window::Count(4), Window::Time(Duration::from_secs(100))] {
        let policy = BreakerPolicy { window, consecutive_failures: Some(2), ..policy() };
        in_every_order(3, move || {
            let breaker = breaker(&policy);
            let stale = breaker.admit_owned(NOW).unwrap();
            let reporter = thread::spawn(move || {
                let _counted_or_stale = stale.record(FAILURE, QUICK, NOW);
            });
            // Closed, open and closed again: all counts begin afresh.
            let _told = (breaker.isolate(), breaker.close());
            let fresh = breaker.admit_owned(NOW).unwrap();
            assert_eq!(fresh.record(Verdict::Success, QUICK, NOW), Recorded::Counted);
            reporter.join().unwrap();
            let counts = breaker.counts(NOW);
            assert_eq!((counts.calls, counts.failures), (1, 0));
            let fails = breaker.admit_owned(NOW).unwrap();
            assert!(matches!(fails.record(FAILURE, QUICK, NOW), Recorded::Changed(_)), "one of two");
        });
    }
}

#[test]
fn a_small_ring_that_threads_overtake_each_other_in_stays_the_sum_of_its_marks() {
    in_every_order(3, || {
        let breaker =
            breaker(&BreakerPolicy { failure_rate_milli: Some(1000), window: Window::Count(2), ..policy() });
        let other = breaker.clone();
        let good = |breaker: &Breaker| {
            let permit = breaker.admit_owned(NOW).unwrap();
            assert_eq!(permit.record(Verdict::Success, QUICK, NOW), Recorded::Counted);
        };
        good(&breaker);
        let caller = thread::spawn(move || fail(&other));
        good(&breaker);
        good(&breaker);
        assert!(!caller.join().unwrap(), "there is a success beside it at all times");
        for _ in 0..2 {
            good(&breaker);
        }
        let counts = breaker.counts(NOW);
        assert_eq!((counts.calls, counts.failures), (2, 0));
    });
}

#[test]
fn a_persons_word_is_not_lost_to_a_call_that_changes_the_mode() {
    in_every_order(3, || {
        let breaker = due(1);
        let other = breaker.clone();
        let caller = thread::spawn(move || drop(other.admit_owned(NOW)));
        assert!(breaker.isolate().is_some());
        caller.join().unwrap();
        assert_eq!(breaker.status().mode, Mode::Isolated);
    });
}
