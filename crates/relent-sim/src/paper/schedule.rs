//! How long a client goes on, alone and nested in another, and what fits into its deadline.

use std::time::Duration;

use relent_core::{
    Backoff, Idempotency, Jitter, Observed, Policy, Preset, Route, ScriptedOutcome, Timeline, Timestamp,
    timeline,
};

use super::{Figure, Setting, spread};

pub(super) fn figures(setting: &Setting) -> Vec<Figure> {
    let seeds = || 0..u64::from(setting.trials) * 10;
    let alone: Vec<Timeline> = seeds().map(|seed| blob_client(seed, Timestamp::ZERO)).collect();
    let nested: Vec<(usize, Duration)> = seeds().map(in_a_loop).collect();
    let (alone_s, least, most) = spread(&alone.iter().map(|one| seconds(length(one))).collect::<Vec<_>>());
    let (nested_s, nested_least, nested_most) =
        spread(&nested.iter().map(|(_, length)| seconds(*length)).collect::<Vec<_>>());
    let requests = |counts: &mut dyn Iterator<Item = usize>, all: u64| {
        counts.map(|count| count as u64).find(|count| *count != all).unwrap_or(all)
    };
    let mut figures = vec![
        Figure::exactly(
            "a BlobClient alone: requests",
            6,
            requests(&mut alone.iter().map(|one| one.steps.len()), 6),
        ),
        Figure {
            found: format!("{alone_s:.1} s ({least:.1} to {most:.1})"),
            ..Figure::about("a BlobClient alone: how long", 26.0, alone_s, 2.0, " s")
        },
        Figure::exactly(
            "nested in five attempts: requests",
            30,
            requests(&mut nested.iter().map(|one| one.0), 30),
        ),
        Figure {
            reported: "over 2 min".into(),
            found: format!("{nested_s:.1} s ({nested_least:.1} to {nested_most:.1})"),
            difference: format!("{:+.1} s", nested_s - 125.0),
            agrees: (nested_s - 125.0).abs() <= 3.0 && nested_s > 120.0,
            ..Figure::about("nested in five attempts: how long", 125.0, nested_s, 3.0, " s")
        },
    ];
    figures.extend(four_attempts());
    figures.extend(first_documents_handler(seeds()));
    figures.extend(second_documents_handler(seeds()));
    figures
}

/// The storage client's own retries, five, against 503 at once.
fn blob_client(seed: u64, at: Timestamp) -> Timeline {
    let mut policy = Preset::AzureCore.policy();
    policy.retry.max_attempts = Some(6);
    safely(&policy, seed, at, &[UNAVAILABLE; 6])
}

/// The same client inside the article's loop, with five minutes for all: how many requests, and how long.
fn in_a_loop(seed: u64) -> (usize, Duration) {
    let mut policy = Policy::live();
    policy.total_timeout = Some(Duration::from_secs(300));
    policy.attempt_timeout = Duration::from_secs(300);
    let inner: Vec<Timeline> = (0..5).map(|nth| blob_client(seed * 5 + nth, Timestamp::ZERO)).collect();
    let script: Vec<ScriptedOutcome> =
        inner.iter().map(|one| ScriptedOutcome { took: length(one), ..UNAVAILABLE }).collect();
    let outer = safely(&policy, seed, Timestamp::ZERO, &script);
    (inner.iter().take(outer.steps.len()).map(|one| one.steps.len()).sum(), length(&outer))
}

/// An objective of 2 s, an attempt of 1 s, and three retries after 0.2, 0.4 and 0.8 s.
fn four_attempts() -> Vec<Figure> {
    let mut policy = Policy::live();
    policy.attempt_timeout = Duration::from_secs(1);
    policy.total_timeout = None;
    policy.retry.max_attempts = Some(4);
    policy.retry.jitter = Jitter::None;
    policy.retry.backoff = Backoff::Steps([200, 400, 800].map(Duration::from_millis).into());
    let whole = length(&safely(&policy, 1, Timestamp::ZERO, &[ScriptedOutcome::hangs(); 4]));
    policy.total_timeout = Some(Duration::from_secs(2));
    let warned = policy
        .validate()
        .is_ok_and(|warnings| warnings.iter().any(|warning| warning.to_string().contains("= 5.4 s > 2 s")));
    vec![
        Figure::about("4 × 1 s + 0.2 + 0.4 + 0.8 s", 5.4, seconds(whole), 0.0001, " s"),
        Figure::said(
            "does that fit an objective of 2 s",
            "no",
            if warned { "no: 5.4 s > 2 s" } else { "yes" },
            warned,
        ),
    ]
}

/// The article's settings of the handler: 2 s an attempt and 5 s in all, beside three retries from 2 s.
fn first_documents_handler(seeds: impl Iterator<Item = u64> + Clone) -> Vec<Figure> {
    let mut policy = Preset::MicrosoftStandard.policy();
    policy.attempt_timeout = Duration::from_secs(2);
    policy.total_timeout = Some(Duration::from_secs(5));
    let fast: Vec<usize> = seeds
        .clone()
        .map(|seed| safely(&policy, seed, Timestamp::ZERO, &[UNAVAILABLE; 4]).steps.len())
        .collect();
    let three = 100.0 * share(&fast, |attempts| attempts == 3);
    let hangs =
        seeds.map(|seed| safely(&policy, seed, Timestamp::ZERO, &[ScriptedOutcome::hangs(); 4]).steps.len());
    let most = hangs.max().unwrap_or_default() as u64;
    vec![
        Figure::about("article's handler, 503 at once: three attempts in", 82.0, three, 5.0, " %"),
        Figure::exactly(
            "article's handler: calls with a fourth attempt",
            0,
            fast.iter().filter(|a| **a > 3).count() as u64,
        ),
        Figure::exactly("article's handler, hanging: attempts at the most", 2, most),
    ]
}

/// The second document's handler: three attempts of 600 ms from 100 ms, 2 s in all.
fn second_documents_handler(seeds: impl Iterator<Item = u64>) -> Vec<Figure> {
    let mut policy = Preset::MicrosoftStandard.policy();
    policy.attempt_timeout = Duration::from_millis(600);
    policy.total_timeout = Some(Duration::from_secs(2));
    policy.retry.max_attempts = Some(3);
    if let Backoff::Exponential { base, .. } = &mut policy.retry.backoff {
        *base = Duration::from_millis(100);
    }
    let cut: Vec<usize> = seeds
        .map(|seed| {
            let timeline = safely(&policy, seed, Timestamp::ZERO, &[ScriptedOutcome::hangs(); 3]);
            let third = timeline.steps.get(2).map(|step| step.ended.since(step.began));
            usize::from(third.is_some_and(|length| length < policy.attempt_timeout))
        })
        .collect();
    let share = 100.0 * share(&cut, |cut| cut == 1);
    vec![Figure::about(
        "second document's handler, hanging: third attempt cut short in",
        49.0,
        share,
        5.0,
        " %",
    )]
}

fn safely(policy: &Policy, seed: u64, at: Timestamp, script: &[ScriptedOutcome]) -> Timeline {
    let mut history = policy.begin(seed, at, None, None);
    history.idempotency = Idempotency::Safe;
    timeline(policy, history, Route::default(), script)
}

fn length(timeline: &Timeline) -> Duration {
    timeline.at.since(timeline.history.started)
}

fn seconds(length: Duration) -> f64 {
    length.as_secs_f64()
}

fn share(of: &[usize], that: impl Fn(usize) -> bool) -> f64 {
    let count = of.iter().filter(|one| that(**one)).count();
    crate::report::ratio(count as u64, of.len() as u64).unwrap_or_default()
}

const UNAVAILABLE: ScriptedOutcome = ScriptedOutcome::at_once(Observed::Status(503));
