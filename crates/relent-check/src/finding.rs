//! What is found: faults that a change of the file mends, and faults that no setting of its format can mend.

use crate::{
    change::Change,
    read::{self, Edit},
    rule::{self, Fault},
    subject::{Days, Format, Origin, Subject},
    world::World,
};

/// A fault that the file can be rid of.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The stable name.
    pub name: &'static str,
    /// Where in the file it stands, or could stand.
    pub field: String,
    /// Why it is a fault, in a sentence.
    pub why: String,
    /// The smallest change that mends it.
    pub mend: Mend,
}

/// What mends a fault.
#[derive(Clone, Debug, PartialEq)]
pub enum Mend {
    /// This setting, in the file.
    Set(Edit),
    /// Something that no single setting is.
    Do(&'static str),
}

/// A fault that no setting of the format mends.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limit {
    /// The stable name.
    pub name: &'static str,
    /// Why it is a fault, in a sentence.
    pub why: String,
    /// What helps instead.
    pub advice: String,
}

/// Tells findings from limits: a fault whose part the client fixes, or for which its format has no setting, is a
/// limit.
pub(crate) fn sort(subject: &Subject, world: &World) -> (Vec<Finding>, Vec<Limit>) {
    let (mut findings, mut limits) = (Vec::new(), Vec::new());
    for (index, days) in subject.days.iter().enumerate() {
        findings.push(by_mistake(subject, index, days));
    }
    for fault in rule::faults(subject, world) {
        match mend(subject, world, &fault) {
            Some(edit) => findings.push(finding(subject, &fault, Mend::Set(edit))),
            None if beyond_reach(subject, &fault) => limits.push(limit(subject, fault)),
            None => findings.push(finding(subject, &fault, Mend::Do(fault.advice))),
        }
    }
    (findings, limits)
}

/// Whether no setting of the format bears on the fault.
fn beyond_reach(subject: &Subject, fault: &Fault) -> bool {
    let fixed = matches!(subject.origin(fault.part), Origin::Fixed(_));
    let writes = |change: &Change| {
        let mut changed = subject.clone();
        change.apply(&mut changed);
        read::edit(subject, &changed, change).is_some()
    };
    !fault.was_asked() && (fixed || (!fault.mends.is_empty() && !fault.mends.iter().any(writes)))
}

/// The first change that rids the subject of the fault and that its format can write.
fn mend(subject: &Subject, world: &World, fault: &Fault) -> Option<Edit> {
    fault.mends.iter().find_map(|change| {
        let mut changed = subject.clone();
        change.apply(&mut changed);
        let edit = read::edit(subject, &changed, change)?;
        (!rule::persists(fault, &changed, world)).then_some(edit)
    })
}

fn finding(subject: &Subject, fault: &Fault, mend: Mend) -> Finding {
    let field = subject.origin(fault.part).path().unwrap_or(fault.field);
    let field = if subject.format == Format::Relent { fault.field } else { field };
    Finding { name: fault.name, field: read::qualified(subject, field), why: fault.why.clone(), mend }
}

fn limit(subject: &Subject, fault: Fault) -> Limit {
    let advice = match subject.origin(fault.part) {
        Origin::Fixed(why) => format!("{why}; {}", fault.advice),
        _ => fault.advice.to_owned(),
    };
    Limit { name: fault.name, why: fault.why, advice }
}

fn by_mistake(subject: &Subject, index: usize, days: &Days) -> Finding {
    let change = Change::Time(index);
    let mend = match read::edit(subject, subject, &change) {
        Some(edit) => Mend::Set(edit),
        None => Mend::Do("write hours, minutes and seconds"),
    };
    Finding {
        name: "days_by_mistake",
        field: days.path.clone(),
        why: format!(
            "\"{}\" is read as days, and a handler that is told days refuses to start or never stops",
            days.written
        ),
        mend,
    }
}
