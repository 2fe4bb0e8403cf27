//! One decision code: the live driver, the blocking one, the durable one and the explained timeline are given the same
//! policy, the same seed and the same outcomes, and must begin the same attempts, wait the same durations and stop for
//! the same reason. So must the durable driver and the explained timeline where workers die and dead letters are sent
//! again, and the live and the blocking driver, at every gate, with the core's own states.

mod case;
mod drivers;
mod gates;
mod lives;
mod mishaps;
mod twin;

use std::{sync::LazyLock, time::Duration};

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use relent::{Decision, ErrorClass, Observed, StopReason, Timeline, Timestamp, WaitOrigin};

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

impl Course {
    fn of(timeline: &Timeline) -> Self {
        let steps = &timeline.steps;
        let waits = steps.iter().filter_map(|step| match step.decision {
            Decision::Retry(wait) => Some(wait.length),
            Decision::Stop(_) => None,
        });
        Self {
            attempts: steps.iter().map(|step| (step.began, step.ended)).collect(),
            waits: waits.collect(),
            stop: timeline.end.expect("the last outcome of every script is a success"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, ..ProptestConfig::default() })]

    #[test]
    fn every_driver_waits_the_same_and_stops_for_the_same_reason(case in case::any()) {
        // One store for all cases: each begins when the last has ended, and leaves nothing that is due.
        static DURABLE: LazyLock<Durable> = LazyLock::new(Durable::open);
        let (explained, timeline) = drivers::explained(&case);
        let (live, report) = drivers::live(&case);
        let (blocking, blocking_report) = drivers::blocking(&case);
        let (durable, recorded) = DURABLE.deliver(&case);
        prop_assert_eq!(&live, &explained, "live and explained");
        prop_assert_eq!(&blocking, &explained, "blocking and explained");
        prop_assert_eq!(&report, &blocking_report, "the reports of both");
        prop_assert_eq!(&durable, &explained, "durable and explained");
        let simulated = relent_sim::replay(&case.policy, drivers::history(&case), drivers::ROUTE, &case.script);
        prop_assert_eq!(&simulated, &timeline, "simulated and explained");
        let decided: Vec<_> = timeline.steps.iter().filter_map(|step| match step.decision {
            Decision::Retry(wait) => Some(wait),
            Decision::Stop(_) => None,
        }).collect();
        let waited: Duration = decided.iter().map(|wait| wait.length).sum();
        let told = (report.waited, report.took, report.last_verdict);
        let expected = (waited, timeline.at.since(drivers::START), timeline.history.last_verdict);
        prop_assert_eq!(told, expected, "the report says what happened");
        prop_assert_eq!(recorded, decided, "every wait is recorded with its whole derivation");
    }

    #[test]
    fn a_life_with_deaths_and_new_cycles_goes_as_it_is_explained(case in case::with_losses()) {
        let (explained, decided) = mishaps::explained(&case);
        let (durable, recorded) = mishaps::durable(&case);
        prop_assert_eq!(durable, explained);
        prop_assert_eq!(recorded, decided, "every wait is recorded with its whole derivation");
    }
}

#[test]
fn the_lives_reach_what_only_they_can() {
    let mut runner = TestRunner::deterministic();
    let (mut poisoned, mut rescued, mut own_faults, mut cycles) = (0, 0, 0, 0);
    for _ in 0..CASES {
        let case: Case = case::with_losses().new_tree(&mut runner).expect("a case").current();
        let timelines = mishaps::timelines(&case);
        cycles += timelines.len() - 1;
        poisoned += timelines.iter().filter(|cycle| cycle.end == Some(StopReason::PoisonCrash)).count();
        for step in timelines.iter().flat_map(|cycle| &cycle.steps) {
            let Decision::Retry(wait) = step.decision else { continue };
            rescued += usize::from(step.observed == LOST);
            own_faults += usize::from(wait.origin == WaitOrigin::OwnFault);
        }
    }
    assert!(
        poisoned >= 20 && rescued >= 50 && own_faults >= 50 && cycles >= 100,
        "{poisoned} poisoned, {rescued} rescued, {own_faults} own faults, {cycles} new cycles"
    );
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

const LOST: Observed = Observed::Error(ErrorClass::Lost);
const CASES: u32 = 256;
