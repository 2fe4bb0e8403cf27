//! The suite itself is tested: a ledger with one fault fails the checks of the rule that the fault breaks, and
//! no other; a sound one passes them all.

#[path = "broken/fault.rs"]
mod fault;
#[path = "broken/ledger.rs"]
mod ledger;
#[path = "broken/tamper.rs"]
mod tamper;

use std::{
    collections::BTreeSet,
    panic::{self, AssertUnwindSafe},
};

use fault::{FAULTS, Fault};
use ledger::BrokenFixture;
use relent_ledger::suite::{block_on, checks};

#[test]
fn a_sound_ledger_passes_every_check() {
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

/// The checks that a ledger with this fault fails.
fn failed(fault: Option<Fault>) -> BTreeSet<&'static str> {
    checks::<BrokenFixture>()
        .into_iter()
        .filter(|check| {
            let run = || block_on((check.run)(BrokenFixture::new(fault)));
            panic::catch_unwind(AssertUnwindSafe(run)).is_err()
        })
        .map(|check| check.name)
        .collect()
}
