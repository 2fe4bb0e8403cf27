//! All that there is to say of one subject.

use crate::{
    answer::{self, Answer},
    figure::Figures,
    finding::{self, Finding, Limit},
    subject::{Format, Subject, Unread},
    world::World,
};

/// What `relent check` says of one retry.
#[derive(Clone, Debug)]
pub struct Report {
    /// Where in its file it stands; empty for a file that holds one.
    pub place: String,
    /// Whose configuration it is.
    pub format: Format,
    /// The questions of both documents, answered.
    pub answers: Vec<Answer>,
    /// The arithmetic.
    pub figures: Figures,
    /// What is wrong and can be mended in the file.
    pub findings: Vec<Finding>,
    /// What is wrong and no setting of the format can mend.
    pub limits: Vec<Limit>,
    /// What stands in the file and was not read.
    pub unread: Vec<Unread>,
}

/// Checks a subject in its world.
pub fn check(subject: &Subject, world: &World) -> Report {
    let (findings, limits) = finding::sort(subject, world);
    Report {
        place: subject.place.clone(),
        format: subject.format,
        answers: answer::answers(subject, world, &findings),
        figures: Figures::of(subject, world),
        findings,
        limits,
        unread: subject.unread.clone(),
    }
}
