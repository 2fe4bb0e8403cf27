//! The suite itself is tested: a store with one fault fails the checks of the rule that the fault breaks, and no other; a
//! sound one passes them all.

#[path = "broken/fault.rs"]
mod fault;
#[path = "broken/store.rs"]
mod store;

use std::{
    collections::BTreeSet,
    panic::{self, AssertUnwindSafe},
};

use fault::{FAULTS, Fault};
use relent_idempotency::suite::{checks, run};
use store::BrokenFixture;

#[test]
fn a_sound_store_passes_every_check() {
    assert_eq!(failed(None), BTreeSet::new());
}

#[test]
fn each_fault_fails_exactly_the_checks_of_its_rule() {
    let mut wrong = Vec::new();
    for (fault, expected) in FAULTS {
        let failed = failed(Some(*fault));
        let expected: BTreeSet<&str> = expected.iter().copied().collect();
        if failed != expected {
            let missed: Vec<_> = expected.difference(&failed).collect();
            let surprising: Vec<_> = failed.difference(&expected).collect();
            wrong.push(format!("{fault:?}: not failed {missed:?}, failed besides {surprising:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_check_is_failed_by_some_fault() {
    let failed: BTreeSet<&str> = FAULTS.iter().flat_map(|(_, expected)| expected.iter().copied()).collect();
    let all: BTreeSet<&str> = checks::<BrokenFixture>().iter().map(|check| check.name).collect();
    assert_eq!(all.difference(&failed).collect::<Vec<_>>(), Vec::<&&str>::new(), "checks that nothing fails");
    assert_eq!(failed.difference(&all).collect::<Vec<_>>(), Vec::<&&str>::new(), "names of no check");
}

/// The checks that a store with this fault fails.
fn failed(fault: Option<Fault>) -> BTreeSet<&'static str> {
    checks::<BrokenFixture>()
        .into_iter()
        .map(|check| check.name)
        .filter(|name| {
            let check = || run(name, async { Some(BrokenFixture::new(fault)) });
            panic::catch_unwind(AssertUnwindSafe(check)).is_err()
        })
        .collect()
}
