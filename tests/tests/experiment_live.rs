//! The experiment of the article "Retries That Fail Better" through a whole pipeline: what the simulator's tests hold of
//! the core's budgets holds of the calls that people make, to the digit.

use std::{
    io,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use relent::{
    Backoff, BudgetPolicy, Idempotency, Jitter, ManualClock, Pipeline, Policy, RetryPolicy,
    budget::GrpcPolicy,
};
use relent_sim::paper::NetRandom;

/// Attempts made and calls lost, of 10,000 whose every attempt fails with probability `p`.
fn outcome(budget: Option<BudgetPolicy>, p: f64) -> (u64, u64) {
    let live = Policy::live();
    let policy = Policy {
        repeat: Idempotency::Safe,
        budget,
        retry: RetryPolicy {
            max_attempts: Some(5),
            backoff: Backoff::Constant(Duration::from_nanos(1)),
            jitter: Jitter::None,
            ..live.retry
        },
        ..live
    };
    let clock = ManualClock::new();
    let users = Pipeline::on(clock.clone(), policy).expect("it is possible");
    let mut random = NetRandom::new(42);
    let attempts = AtomicU64::new(0);
    let mut lost = 0;
    for _ in 0..10_000 {
        clock.advance(Duration::from_millis(10));
        let called = users.run_blocking(|_| {
            attempts.fetch_add(1, Ordering::Relaxed);
            if random.next_double() < p {
                Err(io::Error::from(io::ErrorKind::ConnectionRefused))
            } else {
                Ok(())
            }
        });
        lost += u64::from(called.is_err());
    }
    (attempts.into_inner(), lost)
}

#[test]
fn whole_calls_give_the_articles_figures_to_the_digit() {
    let grpc = Some(BudgetPolicy::Grpc(GrpcPolicy::default()));
    let loan = Some(BudgetPolicy::default());
    assert_eq!((outcome(None, 0.01).0, outcome(grpc, 0.01).0), (10_116, 10_116));
    assert_eq!((outcome(None, 0.5).0, outcome(grpc, 0.5).0), (19_357, 10_005));
    assert_eq!((outcome(None, 1.0).0, outcome(grpc, 1.0).0), (50_000, 10_004));
    assert_eq!((outcome(None, 0.2).1, outcome(grpc, 0.2).1), (1, 2_033));
    assert_eq!(outcome(loan, 0.2), (12_556, 7));
}
