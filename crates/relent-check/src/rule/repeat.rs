//! What does it repeat, and is that safe?

use relent_core::{Answer, ErrorClass, Idempotency, Observed, Route, RouteRule};

use super::Fault;
use crate::{
    change::Change,
    read::grpc::code_of,
    subject::{Format, Part, Subject},
};

pub(super) fn check(subject: &Subject, faults: &mut Vec<Fault>) {
    if !subject.knows(Part::Classify) {
        return;
    }
    faults.extend(failure_called_success(subject));
    if !subject.retries() {
        return;
    }
    faults.extend(repeats_a_no(subject));
    faults.extend(repeats_bugs(subject));
    faults.extend(repeats_nothing(subject));
    faults.extend(repeats_a_post(subject));
}

/// Validation, authentication and permission do not become right by asking again. An exception for a route is the
/// contract of that route.
fn repeats_a_no(subject: &Subject) -> Option<Fault> {
    let noes: Vec<u16> =
        NOES.into_iter().filter(|status| again(subject, Observed::Status(*status))).collect();
    (!noes.is_empty()).then(|| Fault {
        name: "repeats_a_no",
        part: Part::Classify,
        field: "classify.status",
        why: format!(
            "{} says no, not \"not now\": the second answer is the first, at the same cost",
            named(subject, &noes)
        ),
        mends: vec![Change::Statuses(with(subject, &noes, Answer::No))],
        advice: "repeat only what says \"not now\"",
    })
}

/// Only where a rule says so: what the tables for durable work make of a panic is a delivery's own, after hours.
fn repeats_bugs(subject: &Subject) -> Option<Fault> {
    let errors = &subject.policy.classify.rules.errors;
    let said = errors.iter().any(|(class, _)| *class == ErrorClass::Panic);
    (said && again(subject, Observed::Error(ErrorClass::Panic))).then(|| Fault {
        name: "repeats_bugs",
        part: Part::Classify,
        field: "classify.error",
        why: "a bug fails the same way every time: what failed inside the program is repeated too".into(),
        mends: vec![Change::Error(ErrorClass::Panic, Answer::No)],
        advice: "repeat only what came from the dependency",
    })
}

fn failure_called_success(subject: &Subject) -> Option<Fault> {
    let answer = |status| subject.policy.classify.answer(Observed::Status(status), Route::default());
    let done: Vec<u16> = (500..=599).filter(|status| answer(*status) == Answer::Success).collect();
    (!done.is_empty()).then(|| Fault {
        name: "failure_called_success",
        part: Part::Classify,
        field: "classify.status",
        why: format!("{} counts as done: a failure that nobody will ever see", list(&done)),
        mends: vec![Change::Statuses(with(subject, &done, Answer::No))],
        advice: "call a failure a failure",
    })
}

fn repeats_nothing(subject: &Subject) -> Option<Fault> {
    let policy = &subject.policy;
    let statuses = (100..600).map(Observed::Status);
    // Those two are decided by no rule.
    let classes =
        ErrorClass::ALL.iter().filter(|class| !matches!(class, ErrorClass::Lost | ErrorClass::OwnFault));
    let any = statuses.chain(classes.map(|class| Observed::Error(*class))).any(|seen| again(subject, seen));
    (!any && !policy.classify.routes.iter().any(repeats)).then(|| Fault {
        name: "repeats_nothing",
        part: Part::Classify,
        field: "classify.status",
        why: format!(
            "it may make {} attempts, and no outcome leads to a second",
            policy.retry.max_attempts.map_or("unlimited".to_owned(), |attempts| attempts.to_string())
        ),
        mends: vec![
            Change::Statuses(with(subject, &[429, 502, 503, 504], Answer::NotNow)),
            Change::MaxAttempts(1),
        ],
        advice: "say which outcomes are transient, or make one attempt",
    })
}

/// Who says that a POST is safe by itself means, as a rule, that the receiver knows it again.
fn repeats_a_post(subject: &Subject) -> Option<Fault> {
    let policy = &subject.policy;
    let writes = |rule: &&RouteRule| {
        let method = rule.method.as_deref().unwrap_or_default();
        ["POST", "PATCH"].iter().any(|unsafe_method| method.eq_ignore_ascii_case(unsafe_method))
            && repeats(rule)
    };
    let route = policy.classify.routes.iter().find(writes).filter(|_| policy.repeat == Idempotency::Safe)?;
    let method = route.method.as_deref().unwrap_or_default().to_ascii_uppercase();
    Some(Fault {
        name: "repeats_a_post",
        part: Part::Repeat,
        field: "repeat",
        why: format!(
            "{method} {} is repeated as if that changed nothing: a time-out is ambiguous, and the first attempt may \
             have been carried out",
            route.path
        ),
        mends: vec![Change::Repeat(Idempotency::Keyed)],
        advice: "give it a key that the receiver honours, or do not repeat it",
    })
}

fn again(subject: &Subject, seen: Observed) -> bool {
    let answer = subject.policy.classify.answer(seen, Route::default());
    matches!(answer, Answer::NotNow | Answer::Throttled)
}

fn repeats(rule: &RouteRule) -> bool {
    let again = |answer: &Answer| matches!(answer, Answer::NotNow | Answer::Throttled);
    rule.rules.statuses.iter().any(|(.., answer)| again(answer))
        || rule.rules.errors.iter().any(|(_, answer)| again(answer))
}

/// The policy's rules with these statuses answered so: exceptions where a range still holds for others, in place of
/// rules for exactly these.
fn with(subject: &Subject, statuses: &[u16], answer: Answer) -> Vec<(u16, u16, Answer)> {
    let mut rules = subject.policy.classify.rules.statuses.clone();
    rules.retain(|(low, high, _)| low != high || !statuses.contains(low));
    let whole = statuses.len() == 100 && statuses.first().zip(statuses.last()) == Some((&500, &599));
    if whole {
        rules.retain(|(low, high, _)| *low < 500 || *high > 599);
    } else {
        rules.extend(statuses.iter().map(|status| (*status, *status, answer)));
    }
    rules.sort_unstable_by_key(|&(low, high, _)| (low, high));
    rules
}

/// The statuses as the subject's protocol calls them.
fn named(subject: &Subject, statuses: &[u16]) -> String {
    let codes: Vec<&str> = statuses.iter().filter_map(|status| code_of(*status)).collect();
    if subject.format == Format::Grpc { codes.join(", ") } else { list(statuses) }
}

fn list(statuses: &[u16]) -> String {
    let runs =
        statuses.chunk_by(|one, next| one + 1 == *next).filter_map(|run| Some((*run.first()?, *run.last()?)));
    let words =
        runs.map(|(low, high)| if low == high { low.to_string() } else { format!("{low} to {high}") });
    words.collect::<Vec<_>>().join(", ")
}

const NOES: [u16; 5] = [400, 401, 403, 405, 422];
