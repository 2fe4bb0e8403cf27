//! Parts of a policy in a few words.

use relent_core::{
    Answer, Backoff, Brief, BudgetPolicy, Classification, ErrorClass, Jitter, Observed, RetryPolicy, Route,
    ServerWaitMode,
};

use crate::subject::Subject;

pub(super) fn backoff(retry: &RetryPolicy) -> String {
    let most = |max: std::time::Duration| Brief(max.min(retry.max_wait)).to_string();
    match &retry.backoff {
        Backoff::Constant(wait) => format!("{} each time", Brief(*wait)),
        Backoff::Linear { base, max } => format!("{} more each time, at most {}", Brief(*base), most(*max)),
        Backoff::Exponential { base, factor_milli, max } => format!(
            "from {}, × {} each time, at most {}",
            Brief(*base),
            f64::from(*factor_milli) / 1000.0,
            most(*max)
        ),
        Backoff::Steps(steps) => {
            let shown: Vec<String> = steps.iter().take(4).map(|step| Brief(*step).to_string()).collect();
            let more = if steps.len() > shown.len() { ", …" } else { "" };
            format!("{}{more}", shown.join(", "))
        }
        _ => "by a curve of its own".into(),
    }
}

pub(super) fn jitter(jitter: Jitter) -> String {
    match jitter {
        Jitter::None => "none".into(),
        Jitter::Full => "full, from zero to the curve".into(),
        Jitter::Equal => "equal, from half of the curve to all of it".into(),
        Jitter::Decorrelated => "decorrelated, from the first wait to three times the last".into(),
        Jitter::Proportional { below_milli, above_milli } => format!(
            "from {} % below the curve to {} % above it",
            f64::from(below_milli) / 10.0,
            f64::from(above_milli) / 10.0
        ),
        Jitter::PollyV2 => "Polly's, about half of the curve, drawn".into(),
        _ => "by a jitter of its own".into(),
    }
}

pub(super) fn hints(mode: ServerWaitMode) -> &'static str {
    match mode {
        ServerWaitMode::Above => "obeyed, with jitter above",
        ServerWaitMode::Longer | ServerWaitMode::Replace => "obeyed exactly",
        ServerWaitMode::Within(_) => "obeyed exactly, as far as they are obeyed",
        _ => "ignored",
    }
}

pub(super) const fn budget(budget: &BudgetPolicy) -> &'static str {
    match budget {
        BudgetPolicy::Loan(_) => "a budget of loans, paid back by retries that succeed",
        BudgetPolicy::Grpc(_) => "gRPC's throttling: no retries while half of the tokens are gone",
        BudgetPolicy::Ratio(_) => "a share of the traffic",
        BudgetPolicy::Share(_) => "a share of what is in flight",
        BudgetPolicy::Quota(_) => "a quota that failed retries use up",
        _ => "a budget",
    }
}

/// What leads to another attempt: the file's own words, or statuses and classes of failure.
pub(super) fn repeated(subject: &Subject) -> String {
    if !subject.repeats.is_empty() {
        return subject.repeats.join(", ");
    }
    let classify = &subject.policy.classify;
    let statuses: Vec<u16> = (100..600).filter(|status| again(classify, Observed::Status(*status))).collect();
    let runs =
        statuses.chunk_by(|one, next| one + 1 == *next).filter_map(|run| Some((*run.first()?, *run.last()?)));
    let runs = runs.map(|(low, high)| if low == high { low.to_string() } else { format!("{low}-{high}") });
    let classes = ErrorClass::ALL
        .iter()
        .filter(|class| !matches!(class, ErrorClass::Lost | ErrorClass::OwnFault))
        .filter(|class| again(classify, Observed::Error(**class)))
        .map(|class| class.name().replace('_', " "));
    let all: Vec<String> = runs.chain(classes).collect();
    match classify.routes.len() {
        0 if all.is_empty() => "nothing".into(),
        0 => all.join(", "),
        1 => format!("{}; otherwise on one route", all.join(", ")),
        routes => format!("{}; otherwise on {routes} routes", all.join(", ")),
    }
}

fn again(classify: &Classification, seen: Observed) -> bool {
    matches!(classify.answer(seen, Route::default()), Answer::NotNow | Answer::Throttled)
}
