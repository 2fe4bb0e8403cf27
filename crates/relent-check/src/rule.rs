//! What is wrong with a subject. Each rule knows one kind of fault, says in a sentence why it is one, and offers
//! changes that may mend it, the smallest first.

mod doubt;
mod hints;
mod pace;
mod place;
mod repeat;
mod stop;
mod traffic;

use crate::{change::Change, subject::Part, subject::Subject, world::World};

/// Something wrong, and what may mend it.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    /// The stable name.
    pub name: &'static str,
    /// The part of the policy that it is about.
    pub part: Part,
    /// The setting that it is about, as relent names it.
    pub field: &'static str,
    /// Why, in a sentence.
    pub why: String,
    /// Changes of one setting, the smallest first.
    pub mends: Vec<Change>,
    /// What to do where no setting helps.
    pub advice: &'static str,
}

impl Fault {
    /// Whether it is the answer to something that was asked about the world. Such an answer is always a finding: who
    /// asks wants to know, even where the file has no setting for it.
    pub(crate) fn was_asked(&self) -> bool {
        traffic::NAMES.contains(&self.name)
    }
}

/// Every fault of a subject in its world, in the order of the questions.
pub(crate) fn faults(subject: &Subject, world: &World) -> Vec<Fault> {
    let mut faults = Vec::new();
    pace::check(subject, &mut faults);
    stop::check(subject, world, &mut faults);
    hints::check(subject, &mut faults);
    repeat::check(subject, &mut faults);
    place::check(subject, &mut faults);
    traffic::check(subject, world, &mut faults);
    doubt::check(subject, world, &mut faults);
    faults
}

/// Whether a subject still has this fault.
pub(crate) fn persists(fault: &Fault, subject: &Subject, world: &World) -> bool {
    faults(subject, world).iter().any(|other| other.name == fault.name && other.field == fault.field)
}
