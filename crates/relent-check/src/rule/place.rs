//! Where does the work go when retries end, and who finds out?

use relent_core::OnExhausted;

use super::Fault;
use crate::{
    change::Change,
    subject::{Part, Subject},
};

pub(super) fn check(subject: &Subject, faults: &mut Vec<Fault>) {
    let nobody = subject.knows(Part::Alert) && subject.policy.alert.is_none();
    match subject.policy.on_exhausted {
        OnExhausted::Discard if nobody => faults.push(Fault {
            name: "work_vanishes",
            part: Part::Exhausted,
            field: "on_exhausted",
            why: "what it gives up is thrown away, and nobody is told that it was".into(),
            mends: vec![Change::Alert(TELL.into()), Change::OnExhausted(OnExhausted::DeadLetter)],
            advice: "keep what is given up, or count it where somebody looks",
        }),
        OnExhausted::DeadLetter if nobody => faults.push(Fault {
            name: "nobody_finds_out",
            part: Part::Alert,
            field: "alert",
            why: "dead letters are a to-do list, and nobody is named who is told that it grows".into(),
            mends: vec![Change::Alert(TELL.into())],
            advice: "name who is told",
        }),
        OnExhausted::Caller | OnExhausted::DeadLetter | OnExhausted::Discard => {}
    }
}

/// A placeholder that a person replaces by a team's name.
const TELL: &str = "the people on call";
