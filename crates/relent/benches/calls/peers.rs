//! The peers' stacks, with the same parts as far as they have them.
//!
//! tower: load shed ⊃ concurrency limit ⊃ retry with its budget ⊃ time-out of an attempt. tower-resilience: bulkhead ⊃
//! circuit breaker ⊃ retry with its budget ⊃ time limiter. By parts: tokio's semaphore ⊃ backon ⊃ tokio's time-out ⊃
//! failsafe. None of them waits between attempts unless that cannot be turned off.

use std::{
    future::{Ready, ready},
    sync::Arc,
    time::Duration,
};

use backon::{ConstantBuilder, Retryable};
use failsafe::{backoff, failure_policy, futures::CircuitBreaker};
use tokio::{sync::Semaphore, time::timeout};
use tower::{
    ServiceBuilder,
    limit::ConcurrencyLimitLayer,
    load_shed::LoadShedLayer,
    retry::{
        Policy, RetryLayer,
        budget::{Budget as _, TpsBudget},
    },
    service_fn,
    timeout::TimeoutLayer,
};
use tower_resilience::{
    bulkhead::BulkheadLayer,
    circuitbreaker::CircuitBreakerLayer,
    retry::{RetryBudgetBuilder, RetryLayer as ResilientRetryLayer},
    timelimiter::{TimeLimiterError, TimeLimiterLayer},
};

use crate::{
    operation::{Busy, Operation},
    policy::ATTEMPT,
    work::{Work, calls, kept, services},
};

/// tower's stack of four.
pub(crate) fn tower_stack(operation: impl Operation) -> Work {
    let stack = ServiceBuilder::new()
        .layer(LoadShedLayer::new())
        .layer(ConcurrencyLimitLayer::new(100))
        .layer(RetryLayer::new(AtOnce::with(plenty())))
        .layer(TimeoutLayer::new(ATTEMPT))
        .service(service_fn(move |()| operation.begin()));
    services(stack, Result::is_ok)
}

/// tower-resilience's stack of four. Its breaker counts the last hundred calls, as it does by default; a window of time
/// costs it more with every call in it.
pub(crate) fn resilience_stack(operation: impl Operation) -> Work {
    let budget = RetryBudgetBuilder::new().token_bucket().max_tokens(1 << 40).build().expect("a budget");
    let retry = ResilientRetryLayer::<(), u32, TimeLimiterError<Busy>>::builder()
        .max_attempts(5)
        .fixed_backoff(Duration::ZERO)
        .budget(budget)
        .build();
    let stack = ServiceBuilder::new()
        .layer(BulkheadLayer::builder().max_concurrent_calls(100).build().expect("a bulkhead"))
        .layer(CircuitBreakerLayer::builder().build().expect("a breaker"))
        .layer(retry)
        .layer(TimeLimiterLayer::builder().timeout_duration(ATTEMPT).build())
        .service(service_fn(move |()| operation.begin()));
    services(stack, Result::is_ok)
}

/// What a careful person puts together from four crates. It sleeps nowhere.
pub(crate) fn by_parts(operation: impl Operation) -> Work {
    let semaphore = kept(Semaphore::new(100));
    let wait = backoff::constant(Duration::from_secs(30));
    let policy = failure_policy::consecutive_failures(5, wait);
    let breaker = kept(failsafe::Config::new().failure_policy(policy).build());
    let backoff = ConstantBuilder::default().with_delay(Duration::ZERO).with_max_times(4);
    let attempt = move || async move {
        match timeout(ATTEMPT, breaker.call(operation.begin())).await {
            Ok(Ok(value)) => Ok(value),
            _ => Err(Busy),
        }
    };
    let call = move || async move {
        let _permit = semaphore.acquire().await.map_err(|_| Busy)?;
        attempt.retry(backoff).sleep(|_| ready(())).await
    };
    calls(call, Result::is_ok)
}

/// tower's policy of retries: a clone for each call, four retries, the budget's leave, no wait.
#[derive(Clone)]
pub(crate) struct AtOnce {
    budget: Arc<TpsBudget>,
    left: u32,
}

impl AtOnce {
    pub(crate) fn with(budget: TpsBudget) -> Self {
        Self { budget: Arc::new(budget), left: 4 }
    }
}

/// A budget that lets ten retries through for each call.
pub(crate) fn plenty() -> TpsBudget {
    TpsBudget::new(Duration::from_secs(10), 1_000, 10.0)
}

impl<T, E> Policy<(), T, E> for AtOnce {
    type Future = Ready<()>;

    fn retry(&mut self, (): &mut (), result: &mut Result<T, E>) -> Option<Ready<()>> {
        if result.is_ok() {
            self.budget.deposit();
            return None;
        }
        self.left = self.left.checked_sub(1)?;
        self.budget.withdraw().then(|| ready(()))
    }

    fn clone_request(&mut self, (): &()) -> Option<()> {
        Some(())
    }
}
