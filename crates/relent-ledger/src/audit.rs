//! What a check of the whole store finds.

use std::fmt;

use crate::{MessageId, Tally};

/// The result of checking a store against its own rules.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Audit {
    /// What the rows say, counted anew.
    pub counted: Tally,
    /// What is wrong, in the order of the rules. Empty: sound.
    pub findings: Vec<Finding>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// The rule it breaks.
    pub rule: Rule,
    /// The message it is about, if one.
    pub id: Option<MessageId>,
    /// In words.
    pub detail: String,
}

/// The rules of a store.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Rule {
    /// The database itself is whole.
    Integrity,
    /// accepted = delivered + dead + discarded + cancelled + waiting, and every accepted message is there.
    Sum,
    /// The counts kept equal the counts counted.
    Counts,
    /// No two messages share an id.
    UniqueIds,
    /// Every message has its content and every content its message.
    Content,
    /// Every attempt belongs to a message, and a message's attempts are numbered from 1 without a gap.
    Attempts,
    /// Every wait belongs to a message, and a message that waits is due.
    Waits,
    /// Every idempotency record names a message that carries its key.
    Keys,
    /// A dead letter has a reason, an ended message has its end, and one in flight has its ticket.
    Ends,
}

impl Rule {
    /// The one serialized name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Integrity => "integrity",
            Self::Sum => "sum",
            Self::Counts => "counts",
            Self::UniqueIds => "unique_ids",
            Self::Content => "content",
            Self::Attempts => "attempts",
            Self::Waits => "waits",
            Self::Keys => "keys",
            Self::Ends => "ends",
        }
    }
}

impl Audit {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id {
            Some(id) => write!(f, "{}: {id}: {}", self.rule.name(), self.detail),
            None => write!(f, "{}: {}", self.rule.name(), self.detail),
        }
    }
}
