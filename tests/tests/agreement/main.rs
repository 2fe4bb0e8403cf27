//! One decision code: the live driver, the durable driver and the explained timeline are given the same policy,
//! the same seed and the same outcomes, and must begin the same attempts, wait the same durations and stop for the
//! same reason.

mod case;
mod drivers;

use std::{sync::LazyLock, time::Duration};

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use relent::{Decision, StopReason, Timestamp};

use case::Case;
use drivers::Durable;

/// The way a call went, as one driver had it.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Course {
    /// When each attempt began and ended.
    attempts: Vec<(Timestamp, Timestamp)>,
    /// How long it waited after each but the last.
    waits: Vec<Duration>,
    /// Why it stopped.
    stop: StopReason,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, ..ProptestConfig::default() })]

    #[test]
    fn every_driver_waits_the_same_and_stops_for_the_same_reason(case in case::any()) {
        // One store for all cases: each begins when the last has ended, and leaves nothing that is due.
        static DURABLE: LazyLock<Durable> = LazyLock::new(Durable::open);
        let (explained, timeline) = drivers::explained(&case);
        let live = drivers::live(&case);
        let (durable, recorded) = DURABLE.deliver(&case);
        prop_assert_eq!(&live, &explained, "live and explained");
        prop_assert_eq!(&durable, &explained, "durable and explained");
        let decided: Vec<_> = timeline.steps.iter().filter_map(|step| match step.decision {
            Decision::Retry(wait) => Some(wait),
            Decision::Stop(_) => None,
        }).collect();
        prop_assert_eq!(recorded, decided, "every wait is recorded with its whole derivation");
    }
}

#[test]
fn the_cases_reach_every_decision() {
    // If the generator never led to a deadline, agreement about deadlines would be worth nothing.
    let mut runner = TestRunner::deterministic();
    let mut reached: Vec<StopReason> = Vec::new();
    let (mut waits, mut hints) = (0, 0);
    for _ in 0..4 * CASES {
        let case: Case = case::any().new_tree(&mut runner).expect("a case").current();
        let (course, timeline) = drivers::explained(&case);
        reached.push(course.stop);
        waits += course.waits.len();
        hints += timeline
            .steps
            .iter()
            .filter(|step| matches!(step.decision, Decision::Retry(wait) if wait.asked.is_some()))
            .count();
    }
    for reason in [
        StopReason::Succeeded,
        StopReason::Permanent,
        StopReason::AttemptsExhausted,
        StopReason::TotalTimeout,
        StopReason::UpstreamDeadline,
        StopReason::BusinessDeadline,
        StopReason::ServerWaitTooLong,
        StopReason::Ambiguous,
    ] {
        let count = reached.iter().filter(|stop| **stop == reason).count();
        assert!(count >= 10, "{} only {count} times in {} cases", reason.name(), reached.len());
    }
    assert!(waits > 1000 && hints > 100, "{waits} waits, {hints} with a hint");
}

const CASES: u32 = 256;
