//! The questions of both documents, asked one by one, and the answers from a named setting or "cannot tell".

mod ask;
mod words;

use crate::{finding::Finding, subject::Subject, world::World};

/// A question.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Question {
    /// Does it back off?
    BacksOff,
    /// Does it jitter?
    Jitters,
    /// Does it stop by attempts?
    StopsByAttempts,
    /// Does it stop by time?
    StopsByTime,
    /// Does it stop by budget?
    StopsByBudget,
    /// Where does the work go?
    WorkGoes,
    /// Who finds out?
    WhoFindsOut,
    /// What does it repeat?
    RepeatsWhat,
    /// Is that safe?
    SafeToRepeat,
    /// Can anyone see it retry?
    Visible,
    /// What is the end-to-end deadline?
    Deadline,
    /// How much time may one attempt consume?
    AttemptTime,
    /// Which exact outcomes are transient?
    TransientOutcomes,
    /// Is repetition safe under an ambiguous time-out?
    SafeWhenAmbiguous,
    /// How many retry layers exist?
    Layers,
    /// Does backoff include jitter and respect Retry-After?
    JitterAndHints,
    /// Are concurrency and breaker limits present?
    ConcurrencyAndBreaker,
    /// Can operators distinguish attempts from logical operations?
    AttemptsApart,
    /// Do fault tests prove timing, cancellation and amplification behaviour?
    FaultTests,
}

/// Which of the two lists a question is from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum List {
    /// "Try it on one retry": the questions of *Retries That Fail Better*.
    OneRetry,
    /// The decision check list of *Retry, Timeout, and Backoff*.
    CheckList,
}

/// An answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answer {
    /// To which question.
    pub question: Question,
    /// In a word.
    pub verdict: Verdict,
    /// In a sentence.
    pub says: String,
    /// The settings that it is from, as the file names them; empty where no setting is.
    pub from: Vec<String>,
}

/// An answer in a word.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// Yes.
    Yes,
    /// No.
    No,
    /// The question is not one for yes and no.
    Told,
    /// The file does not say.
    CannotTell,
}

/// Every answer, in the order of the questions.
pub(crate) fn answers(subject: &Subject, world: &World, findings: &[Finding]) -> Vec<Answer> {
    Question::ALL.iter().map(|question| ask::ask(subject, world, findings, *question)).collect()
}

impl Question {
    /// Every question, in order.
    pub const ALL: &'static [Self] = &[
        Self::BacksOff,
        Self::Jitters,
        Self::StopsByAttempts,
        Self::StopsByTime,
        Self::StopsByBudget,
        Self::WorkGoes,
        Self::WhoFindsOut,
        Self::RepeatsWhat,
        Self::SafeToRepeat,
        Self::Visible,
        Self::Deadline,
        Self::AttemptTime,
        Self::TransientOutcomes,
        Self::SafeWhenAmbiguous,
        Self::Layers,
        Self::JitterAndHints,
        Self::ConcurrencyAndBreaker,
        Self::AttemptsApart,
        Self::FaultTests,
    ];

    /// The list that it is from.
    pub const fn list(self) -> List {
        match self {
            Self::BacksOff
            | Self::Jitters
            | Self::StopsByAttempts
            | Self::StopsByTime
            | Self::StopsByBudget
            | Self::WorkGoes
            | Self::WhoFindsOut
            | Self::RepeatsWhat
            | Self::SafeToRepeat
            | Self::Visible => List::OneRetry,
            _ => List::CheckList,
        }
    }

    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BacksOff => "backs_off",
            Self::Jitters => "jitters",
            Self::StopsByAttempts => "stops_by_attempts",
            Self::StopsByTime => "stops_by_time",
            Self::StopsByBudget => "stops_by_budget",
            Self::WorkGoes => "work_goes",
            Self::WhoFindsOut => "who_finds_out",
            Self::RepeatsWhat => "repeats_what",
            Self::SafeToRepeat => "safe_to_repeat",
            Self::Visible => "visible",
            Self::Deadline => "deadline",
            Self::AttemptTime => "attempt_time",
            Self::TransientOutcomes => "transient_outcomes",
            Self::SafeWhenAmbiguous => "safe_when_ambiguous",
            Self::Layers => "layers",
            Self::JitterAndHints => "jitter_and_hints",
            Self::ConcurrencyAndBreaker => "concurrency_and_breaker",
            Self::AttemptsApart => "attempts_apart",
            Self::FaultTests => "fault_tests",
        }
    }

    /// The question as people ask it.
    pub const fn asked(self) -> &'static str {
        match self {
            Self::BacksOff => "does it back off?",
            Self::Jitters => "does it jitter?",
            Self::StopsByAttempts => "does it stop, by attempts?",
            Self::StopsByTime => "by time?",
            Self::StopsByBudget => "by budget?",
            Self::WorkGoes => "where does the work go?",
            Self::WhoFindsOut => "who finds out?",
            Self::RepeatsWhat => "what does it repeat?",
            Self::SafeToRepeat => "is that safe?",
            Self::Visible => "can anyone see it retry?",
            Self::Deadline => "what is the end-to-end deadline?",
            Self::AttemptTime => "how long may one attempt take?",
            Self::TransientOutcomes => "which outcomes are transient?",
            Self::SafeWhenAmbiguous => "is repetition safe after a time-out?",
            Self::Layers => "how many layers retry?",
            Self::JitterAndHints => "jitter, and Retry-After respected?",
            Self::ConcurrencyAndBreaker => "concurrency and breaker limits?",
            Self::AttemptsApart => "attempts apart from operations?",
            Self::FaultTests => "do fault tests prove it?",
        }
    }
}

impl Verdict {
    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Told => "told",
            Self::CannotTell => "cannot_tell",
        }
    }
}
