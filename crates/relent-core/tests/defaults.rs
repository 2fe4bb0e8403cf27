//! The two tables of defaults and the two tables of classification, field by field.

use std::time::Duration;

use relent_core::{
    Answer, Backoff, BudgetPolicy, Classification, ErrorClass, Gates, Idempotency, Jitter, Observed,
    OnExhausted, Over, Policy, Preset, RetryPolicy, Route, ScriptedOutcome, Sent, ServerWait, ServerWaitMode,
    StopReason, Table, Timestamp, budget::LoanPolicy, timeline,
};

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const HOUR: Duration = secs(3600);

/// In thousandths of a token.
const LOAN: BudgetPolicy = BudgetPolicy::Loan(LoanPolicy {
    earn_milli: 100,
    gain_milli: 500,
    floor_milli: 3_000,
    per_call_milli: 20,
    start_milli: 1_000,
    charge_milli: 1_000,
    throttled_milli: 5_000,
});

#[test]
fn the_default_is_the_loop_of_a_caller_who_waits() {
    let expected = Policy {
        repeat: Idempotency::Unsafe,
        attempt_timeout: secs(2),
        total_timeout: Some(secs(5)),
        business_deadline: None,
        on_exhausted: OnExhausted::Caller,
        alert: None,
        retry: RetryPolicy {
            max_attempts: Some(5),
            backoff: Backoff::Exponential {
                base: Duration::from_millis(200),
                factor_milli: 2000,
                max: secs(10),
            },
            throttled_backoff: None,
            jitter: Jitter::Full,
            max_wait: 24 * HOUR,
            server_wait: ServerWait { mode: ServerWaitMode::Above, limit: secs(60), over: Over::Stop },
            min_attempt: Duration::from_millis(100),
            reserve: Duration::ZERO,
            max_losses: 3,
        },
        admission: Gates { concurrency: None, rate: None },
        budget: Some(LOAN),
        attempt: Gates { concurrency: None, rate: None },
        breaker: None,
        classify: Classification::new(Table::Documents),
    };
    assert_eq!(Policy::live(), expected);
    assert_eq!(Policy::default(), expected);
    assert_eq!(Preset::Default.policy(), expected);
}

#[test]
fn the_durable_default_has_three_days_of_patience() {
    let expected = Policy {
        repeat: Idempotency::Keyed,
        attempt_timeout: secs(15),
        total_timeout: None,
        business_deadline: Some(72 * HOUR),
        on_exhausted: OnExhausted::DeadLetter,
        alert: None,
        retry: RetryPolicy {
            max_attempts: None,
            backoff: Backoff::Exponential { base: secs(5), factor_milli: 4000, max: 6 * HOUR },
            throttled_backoff: None,
            jitter: Jitter::Full,
            max_wait: 24 * HOUR,
            server_wait: ServerWait { mode: ServerWaitMode::Above, limit: 24 * HOUR, over: Over::Clamp },
            min_attempt: Duration::from_millis(100),
            reserve: Duration::ZERO,
            max_losses: 3,
        },
        admission: Gates::default(),
        budget: Some(LOAN),
        attempt: Gates::default(),
        breaker: None,
        classify: Classification::new(Table::Webhook),
    };
    assert_eq!(Policy::durable(), expected);
    assert_eq!(Preset::Durable.policy(), expected);
}

#[test]
fn the_durable_default_tries_some_thirty_times_in_an_outage_of_three_days() {
    // A mean over seeds: full jitter spreads the single case widely, from a score to twoscore.
    let policy = Policy::durable();
    let script = vec![ScriptedOutcome::at_once(Observed::Status(503)); 200];
    let seeds = 500;
    let mut attempts = 0;
    for seed in 0..seeds {
        let history = policy.begin(seed, Timestamp::from_secs(1_800_000_000), None, None);
        let outage = timeline(&policy, history, Route::default(), &script);
        assert_eq!(outage.end, Some(StopReason::BusinessDeadline), "seed {seed}");
        attempts += outage.steps.len();
    }
    let mean = attempts as f64 / seeds as f64;
    assert!((28.0..=34.0).contains(&mean), "{mean} attempts in three days");
}

#[test]
fn every_status_means_what_the_tables_say() {
    for status in 100..=599 {
        let documents = match status {
            200..=299 => Answer::Success,
            429 => Answer::Throttled,
            408 | 502 | 503 | 504 => Answer::NotNow,
            _ => Answer::No,
        };
        let webhook = match status {
            200..=299 => Answer::Success,
            429 => Answer::Throttled,
            100..=199 | 300..=399 | 408 | 425 => Answer::NotNow,
            501 | 505 => Answer::No,
            500..=599 => Answer::NotNow,
            _ => Answer::No,
        };
        assert_eq!(Table::Documents.answer(Observed::Status(status)), documents, "documents {status}");
        assert_eq!(Table::Webhook.answer(Observed::Status(status)), webhook, "webhook {status}");
        assert_eq!(Observed::Status(status).sent(), Sent::Maybe, "a status alone proves nothing: {status}");
    }
    for status in [600, 700, 999] {
        assert_eq!(Table::Documents.answer(Observed::Status(status)), Answer::No);
        assert_eq!(Table::Webhook.answer(Observed::Status(status)), Answer::No);
    }
}

#[test]
fn every_class_of_error_means_what_the_tables_say() {
    use Answer::{No, NotNow};
    use Sent::{Maybe, No as Never, RefusedBefore};
    let table = [
        (ErrorClass::Dns, No, NotNow, Never),
        (ErrorClass::Connect, NotNow, NotNow, Never),
        (ErrorClass::ConnectTimeout, NotNow, NotNow, Never),
        (ErrorClass::Tls, No, NotNow, Never),
        (ErrorClass::NotSent, NotNow, NotNow, Never),
        (ErrorClass::Unprocessed, NotNow, NotNow, RefusedBefore),
        (ErrorClass::Reset, NotNow, NotNow, Maybe),
        (ErrorClass::HeaderTimeout, NotNow, NotNow, Maybe),
        (ErrorClass::BodyTimeout, NotNow, NotNow, Maybe),
        (ErrorClass::Timeout, NotNow, NotNow, Maybe),
        (ErrorClass::Protocol, No, NotNow, Maybe),
        (ErrorClass::Blocked, No, No, Never),
        (ErrorClass::Lost, NotNow, NotNow, Maybe),
        (ErrorClass::Panic, No, NotNow, Maybe),
        (ErrorClass::OwnFault, NotNow, NotNow, Never),
        (ErrorClass::Other, No, NotNow, Maybe),
    ];
    let classes: Vec<ErrorClass> = table.iter().map(|row| row.0).collect();
    assert_eq!(classes, ErrorClass::ALL, "every class has its row");
    for (class, documents, webhook, sent) in table {
        let observed = Observed::Error(class);
        assert_eq!(Table::Documents.answer(observed), documents, "documents {observed}");
        assert_eq!(Table::Webhook.answer(observed), webhook, "webhook {observed}");
        assert_eq!(observed.sent(), sent, "{observed}");
    }
}
