//! One budget for one dependency, though it is called under two policies. When it is down, a thousand calls of
//! five attempts would be five thousand requests; the budget lends what good calls have earned, three retries.
//!
//!     cargo run -p relent --example shared_budget

use std::{io, sync::Arc, time::Duration};

use relent::{
    Backoff, BudgetPolicy, Gate, ManualClock, Pipeline, Policy, RetryPolicy, StopReason, control::Budget,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // By hand, so that the example takes no time; a live clock is `Pipeline::new(policy)`.
    let clock = ManualClock::new();
    let budget = Arc::new(Budget::new(&BudgetPolicy::default())?);
    let live = Policy::live();
    let patient = RetryPolicy { backoff: Backoff::Constant(Duration::from_secs(1)), ..live.retry.clone() };
    let reads = Pipeline::on(clock.clone(), live.clone())?.named("users").sharing_budget(&budget);
    let writes = Pipeline::on(clock.clone(), Policy { retry: patient, ..live })?
        .named("users")
        .sharing_budget(&budget);

    for _ in 0..100 {
        reads.safe().run_blocking(|_| Ok::<_, io::Error>(()))?;
    }
    let (mut requests, mut refused) = (0, 0);
    for call in 0..1_000 {
        let pipeline = if call % 2 == 0 { &reads } else { &writes };
        let down = |_| {
            requests += 1;
            Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionRefused))
        };
        let error = pipeline.safe().run_blocking(down).expect_err("it is down");
        refused += u32::from(error.stop() == StopReason::Refused(Gate::Budget));
    }

    println!("1000 calls to a dependency that is down: {requests} requests, {refused} calls refused a retry");
    assert_eq!((requests, refused), (1_003, 1_000));
    Ok(())
}
