//! One question after the other.

use relent_core::{DurationText, Idempotency, OnExhausted};

use super::{Answer, Question, Verdict, words};
use crate::{
    figure::outage::{of_one_call, thousandths, through_milli},
    finding::Finding,
    subject::{Format, Origin, Part, Subject},
    world::World,
};

pub(super) fn ask(subject: &Subject, world: &World, findings: &[Finding], question: Question) -> Answer {
    match question {
        Question::BacksOff => backs_off(subject, findings),
        Question::Jitters => jitters(subject, findings),
        Question::StopsByAttempts => by_attempts(subject),
        Question::StopsByTime | Question::Deadline => by_time(subject, question),
        Question::StopsByBudget => by_budget(subject),
        Question::WorkGoes => goes(subject),
        Question::WhoFindsOut => finds_out(subject),
        Question::RepeatsWhat | Question::TransientOutcomes => {
            of(subject, question, &[Part::Classify], |_| (Verdict::Told, words::repeated(subject)))
        }
        Question::SafeToRepeat => safe(subject),
        Question::Visible => visible(subject, question),
        Question::AttemptTime => of(subject, question, &[Part::AttemptTimeout], |policy| {
            (Verdict::Told, DurationText(policy.attempt_timeout).to_string())
        }),
        Question::SafeWhenAmbiguous => ambiguous(subject),
        Question::Layers => layers(subject, world),
        Question::JitterAndHints => jitter_and_hints(subject),
        Question::ConcurrencyAndBreaker => limits(subject),
        Question::AttemptsApart => apart(subject),
        Question::FaultTests => {
            let says = "no policy can say; `relent sim gate` shows it in simulation, `relent probe` on the client itself";
            Answer { question, verdict: Verdict::CannotTell, says: says.into(), from: Vec::new() }
        }
    }
}

/// An answer from parts of the policy; "cannot tell" where one of them is not in the file.
fn of(
    subject: &Subject,
    question: Question,
    parts: &[Part],
    tell: impl FnOnce(&relent_core::Policy) -> (Verdict, String),
) -> Answer {
    for part in parts {
        if let Origin::Elsewhere(why) = subject.origin(*part) {
            return Answer { question, verdict: Verdict::CannotTell, says: (*why).into(), from: Vec::new() };
        }
    }
    let (verdict, says) = tell(&subject.policy);
    let from = parts.iter().filter_map(|part| match subject.origin(*part) {
        Origin::Written(path) => Some(crate::read::qualified(subject, path)),
        Origin::Default(path) => Some(format!("{} (default)", crate::read::qualified(subject, path))),
        Origin::Fixed(_) | Origin::Elsewhere(_) => None,
    });
    Answer { question, verdict, says, from: from.collect() }
}

fn backs_off(subject: &Subject, findings: &[Finding]) -> Answer {
    of(subject, Question::BacksOff, &[Part::Backoff], |policy| {
        if !subject.retries() {
            return (Verdict::Told, "it does not retry".into());
        }
        let bad = found(findings, &["no_backoff", "backoff_does_not_grow"]);
        match subject.habits.waits_nothing {
            true => (Verdict::No, "it waits for nothing".into()),
            false => (yes(!bad), words::backoff(&policy.retry)),
        }
    })
}

fn jitters(subject: &Subject, findings: &[Finding]) -> Answer {
    of(subject, Question::Jitters, &[Part::Jitter], |policy| {
        if !subject.retries() {
            return (Verdict::Told, "it does not retry".into());
        }
        let says = words::jitter(policy.retry.jitter);
        match findings.iter().find(|finding| finding.name == "jitter_lost_at_cap") {
            Some(_) => (Verdict::No, format!("{says}; but it is lost at the cap")),
            None => (yes(policy.retry.jitter.draws() && !found(findings, &["no_jitter"])), says),
        }
    })
}

fn by_attempts(subject: &Subject) -> Answer {
    of(subject, Question::StopsByAttempts, &[Part::Attempts], |policy| match policy.retry.max_attempts {
        _ if policy.repeat == Idempotency::Never => (Verdict::Yes, "one: nothing is repeated".into()),
        Some(1) => (Verdict::Yes, "one: it does not retry".into()),
        Some(most) => (Verdict::Yes, format!("{most}, the first included")),
        None => (Verdict::No, "without limit".into()),
    })
}

fn by_time(subject: &Subject, question: Question) -> Answer {
    of(subject, question, &[Part::Deadline], |policy| match policy.limit() {
        Some((_, limit)) => {
            let reserve = match policy.retry.reserve.is_zero() {
                true => String::new(),
                false => format!(", less {} for what follows", DurationText(policy.retry.reserve)),
            };
            let verdict = if question == Question::Deadline { Verdict::Told } else { Verdict::Yes };
            (verdict, format!("{}{reserve}", DurationText(limit)))
        }
        None => (Verdict::No, "nothing bounds the whole call".into()),
    })
}

fn by_budget(subject: &Subject) -> Answer {
    of(subject, Question::StopsByBudget, &[Part::Budget], |policy| match (&policy.budget, &policy.breaker) {
        _ if !subject.retries() => (Verdict::Told, "it does not retry".into()),
        (Some(budget), _) => (Verdict::Yes, words::budget(budget).into()),
        (None, Some(_)) => (Verdict::No, "there is none; its breaker ends an outage".into()),
        (None, None) => match subject.origin(Part::Budget) {
            Origin::Fixed(how) => (Verdict::No, (*how).into()),
            _ => (Verdict::No, "there is neither a budget nor a breaker".into()),
        },
    })
}

fn goes(subject: &Subject) -> Answer {
    of(subject, Question::WorkGoes, &[Part::Exhausted], |policy| match policy.on_exhausted {
        OnExhausted::Caller => (Verdict::Told, "back to the caller, as the last failure".into()),
        OnExhausted::DeadLetter => (Verdict::Told, "to the dead letters, where a person decides".into()),
        OnExhausted::Discard => (Verdict::Told, "nowhere: it is discarded".into()),
    })
}

fn finds_out(subject: &Subject) -> Answer {
    let question = Question::WhoFindsOut;
    of(subject, question, &[Part::Alert], |policy| match (&policy.alert, policy.on_exhausted) {
        (Some(name), _) => (Verdict::Told, name.clone()),
        (None, OnExhausted::Caller) => (Verdict::Told, "its caller; beyond that nobody is named".into()),
        (None, _) => (Verdict::No, "nobody is named".into()),
    })
}

fn safe(subject: &Subject) -> Answer {
    of(subject, Question::SafeToRepeat, &[Part::Repeat], |policy| match policy.repeat {
        Idempotency::Safe => (Verdict::Yes, "whoever wrote it says that repeating changes nothing".into()),
        Idempotency::Keyed => {
            (Verdict::Yes, "where the receiver honours the key that every attempt carries".into())
        }
        Idempotency::Unsafe => (Verdict::Yes, "only what surely was not carried out is repeated".into()),
        _ => (Verdict::Yes, "nothing is repeated".into()),
    })
}

fn ambiguous(subject: &Subject) -> Answer {
    of(subject, Question::SafeWhenAmbiguous, &[Part::Repeat], |policy| match policy.repeat {
        Idempotency::Safe => (Verdict::Yes, "it is repeated, since that changes nothing".into()),
        Idempotency::Keyed => (Verdict::Yes, "it is repeated with the same key".into()),
        Idempotency::Unsafe => (Verdict::Yes, "it is not repeated: the call ends as ambiguous".into()),
        _ => (Verdict::Yes, "nothing is repeated".into()),
    })
}

fn visible(subject: &Subject, question: Question) -> Answer {
    match subject.origin(Part::Visible) {
        Origin::Fixed(how) => {
            Answer { question, verdict: Verdict::Yes, says: (*how).into(), from: Vec::new() }
        }
        _ => of(subject, question, &[Part::Visible], |_| (Verdict::Yes, String::new())),
    }
}

fn apart(subject: &Subject) -> Answer {
    let question = Question::AttemptsApart;
    match subject.format {
        Format::Relent => Answer {
            question,
            verdict: Verdict::Yes,
            says: "calls and attempts are counted and timed apart; a call that a retry saved is no failure"
                .into(),
            from: Vec::new(),
        },
        _ => Answer {
            question,
            verdict: Verdict::CannotTell,
            says: "dashboards and alerts are not in this file".into(),
            from: Vec::new(),
        },
    }
}

fn layers(subject: &Subject, world: &World) -> Answer {
    let question = Question::Layers;
    let (verdict, says) = match (world.layers, of_one_call(subject)) {
        (None, _) => (
            Verdict::CannotTell,
            "a client's SDK, mesh, gateway and job runner may all retry: say how many by --layers".into(),
        ),
        (Some(layers), Some(one)) => {
            let all = thousandths(through_milli(u64::from(one) * 1000, layers));
            (Verdict::Told, format!("{layers}: without budgets {all} calls at the bottom for one at the top"))
        }
        (Some(layers), None) if subject.knows(Part::Attempts) => {
            (Verdict::Told, format!("{layers}, each without a limit of attempts"))
        }
        (Some(layers), None) => (Verdict::Told, format!("{layers}; how often each tries is not told")),
    };
    Answer { question, verdict, says, from: Vec::new() }
}

fn jitter_and_hints(subject: &Subject) -> Answer {
    of(subject, Question::JitterAndHints, &[Part::Jitter, Part::Hints], |policy| {
        if !subject.retries() {
            return (Verdict::Told, "it does not retry".into());
        }
        let mode = policy.retry.server_wait.mode;
        let ignored = mode == relent_core::ServerWaitMode::Ignore;
        let says = format!("jitter {}; hints {}", words::jitter(policy.retry.jitter), words::hints(mode));
        (yes(policy.retry.jitter.draws() && !ignored), says)
    })
}

fn limits(subject: &Subject) -> Answer {
    of(subject, Question::ConcurrencyAndBreaker, &[Part::Limits, Part::Breaker], |policy| {
        let gates = [&policy.admission, &policy.attempt];
        let limited = gates.iter().any(|gates| gates.concurrency.is_some() || gates.rate.is_some());
        let says = match (limited, policy.breaker.is_some()) {
            (true, true) => "there are both",
            (true, false) => "limits, and no breaker",
            (false, true) => "a breaker, and no limit",
            (false, false) => "there is neither",
        };
        match (subject.origin(Part::Limits), policy.breaker.is_some()) {
            (Origin::Fixed(how), true) => (Verdict::Yes, format!("{how}, and there is a breaker")),
            (Origin::Fixed(how), false) => (Verdict::No, format!("{how}; there is no breaker")),
            (_, breaker) => (yes(limited && breaker), says.into()),
        }
    })
}

const fn yes(it_is: bool) -> Verdict {
    if it_is { Verdict::Yes } else { Verdict::No }
}

fn found(findings: &[Finding], names: &[&str]) -> bool {
    findings.iter().any(|finding| names.contains(&finding.name))
}
