//! What the driver's tests have in common: policies without jitter and an operation that plays a script.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::{
    future::Future,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use relent::{
    Attempt, Backoff, BreakerPolicy, BudgetPolicy, Cause, Clock, ConcurrencyPolicy, Gates, Idempotency,
    Jitter, ManualClock, Observed, Pipeline, Policy, RatePolicy, RetryPolicy, Sent, Sighting, SlowCalls,
    Verdict, Window, budget::LoanPolicy,
};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// What a scripted dependency does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// Answers with this status after this time.
    Answer(u16, Duration),
    /// Asks to be left alone for this long, by a 503.
    Busy(Duration),
    /// Never answers.
    Hang,
}

pub(crate) const fn at_once(status: u16) -> Act {
    Act::Answer(status, Duration::ZERO)
}

/// A response, as far as these tests go.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) wait: Option<Duration>,
    pub(crate) body: String,
}

/// A dependency that plays a script, repeats its last act, and notes when it was called.
pub(crate) struct Dependency {
    clock: ManualClock,
    script: Vec<Act>,
    calls: Mutex<Vec<(Attempt, Duration)>>,
    running: AtomicUsize,
}

impl Dependency {
    pub(crate) fn new(clock: &ManualClock, script: &[Act]) -> Self {
        let (script, running) = (script.to_vec(), AtomicUsize::new(0));
        Self { clock: clock.clone(), script, calls: Mutex::default(), running }
    }

    pub(crate) fn call(
        &self,
        attempt: Attempt,
    ) -> impl Future<Output = Result<Response, std::io::Error>> + Send + '_ {
        let number = self.calls.lock().unwrap().len();
        let since_start = self.clock.now().since(relent::Timestamp::ZERO);
        self.calls.lock().unwrap().push((attempt, since_start));
        let act = *self.script.get(number).or(self.script.last()).expect("a script has an act");
        async move {
            let _running = Running::one_more(&self.running);
            let (status, wait) = match act {
                Act::Answer(status, took) => {
                    if !took.is_zero() {
                        self.clock.sleep(took).await;
                    }
                    (status, None)
                }
                Act::Busy(wait) => (503, Some(wait)),
                Act::Hang => std::future::pending().await,
            };
            Ok(Response { status, wait, body: format!("busy{}", number + 1) })
        }
    }

    /// When the attempts began, in milliseconds.
    pub(crate) fn began(&self) -> Vec<u128> {
        self.calls.lock().unwrap().iter().map(|(_, at)| at.as_millis()).collect()
    }

    /// The attempts as they were handed out.
    pub(crate) fn attempts(&self) -> Vec<Attempt> {
        self.calls.lock().unwrap().iter().map(|(attempt, _)| *attempt).collect()
    }

    /// How many are in flight.
    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }
}

struct Running<'a>(&'a AtomicUsize);

impl<'a> Running<'a> {
    fn one_more(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What the tests' pipelines see of a result.
pub(crate) fn seen(result: Result<&Response, &std::io::Error>) -> Sighting {
    match result {
        Ok(response) => Sighting { observed: Observed::Status(response.status), server_wait: response.wait },
        Err(error) => Observed::Error(relent::io_error_class(error)).into(),
    }
}

pub(crate) type Seen = fn(Result<&Response, &std::io::Error>) -> Sighting;

/// A pipeline for [`Dependency`], at the start of time.
pub(crate) fn pipeline(
    clock: &ManualClock,
    policy: Policy,
) -> Pipeline<ManualClock, relent::Observing<Seen>> {
    Pipeline::on(clock.clone(), policy).expect("the test's policy is possible").observe_with(seen as Seen)
}

/// Safe to repeat, no jitter, no limits but the ones the test sets.
pub(crate) fn plain(backoff: Backoff) -> Policy {
    let live = Policy::live();
    Policy {
        repeat: Idempotency::Safe,
        attempt_timeout: Duration::from_secs(3600),
        total_timeout: None,
        retry: RetryPolicy {
            max_attempts: None,
            backoff,
            jitter: Jitter::None,
            min_attempt: Duration::ZERO,
            ..live.retry
        },
        budget: None,
        ..live
    }
}

/// Everything that a pipeline may hold, and none of it in the way.
pub(crate) fn whole() -> Policy {
    let gates = Gates {
        concurrency: Some(ConcurrencyPolicy { limit: 10, queue: 10 }),
        rate: Some(RatePolicy { permits: 1_000_000, per: SECOND, burst: 100 }),
    };
    let loan = LoanPolicy { floor_milli: 10_000, start_milli: 10_000, ..LoanPolicy::default() };
    Policy {
        admission: gates,
        budget: Some(BudgetPolicy::Loan(loan)),
        attempt: gates,
        breaker: Some(BreakerPolicy {
            slow_calls: Some(SlowCalls { longer_than: SECOND, rate_milli: 900 }),
            window: Window::Time(10 * SECOND),
            ..BreakerPolicy::default()
        }),
        ..Policy::live()
    }
}

/// [`whole`] without a rate and without a limit on attempts: what the standard pipeline is, and what a call may go
/// straight through.
pub(crate) fn standard() -> Policy {
    let whole = whole();
    Policy { admission: Gates { rate: None, ..whole.admission }, attempt: Gates::default(), ..whole }
}

/// `first`, doubling up to `max`.
pub(crate) fn doubling(first: Duration, max: Duration) -> Backoff {
    Backoff::Exponential { base: first, factor_milli: 2000, max }
}

pub(crate) fn with_attempts(max: u32, policy: Policy) -> Policy {
    Policy { retry: RetryPolicy { max_attempts: Some(max), ..policy.retry }, ..policy }
}

/// A failure that is surely worth another attempt.
pub(crate) const NOT_NOW: Verdict =
    Verdict::Failure { cause: Cause::Error, sent: Sent::RefusedBefore, server_wait: None };
