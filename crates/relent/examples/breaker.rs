//! A breaker: a dependency that keeps failing is left alone, asked again with care, and moved by hand.
//!
//!     cargo run -p relent --example breaker

use std::{io, time::Duration};

use relent::{Backoff, BreakerPolicy, Gate, ManualClock, Pipeline, Policy, StopReason, breaker::Mode};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let breaker = BreakerPolicy {
        failure_rate_milli: Some(600), // above what one bad host of a pool brings
        min_calls: 20,                 // too few to tell a blip from an outage below that
        break_time: Backoff::Constant(Duration::from_secs(5)),
        break_jitter_milli: 0,
        probes: 1,
        ..BreakerPolicy::default()
    };
    // By hand, so that the example takes no time; a live clock is `Pipeline::new(policy)`.
    let clock = ManualClock::new();
    let policy = Policy { breaker: Some(breaker), ..Policy::live() };
    let users = Pipeline::on(clock.clone(), policy)?.named("users");
    let fails = |_| Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionRefused));
    let works = |_| Ok::<_, io::Error>(());
    let guard = users.breaker().expect("the policy has one");

    let mut sent = 0;
    let refused = loop {
        let called = users.run_blocking(|attempt| {
            sent += 1;
            fails(attempt)
        });
        let error = called.expect_err("it is down");
        if error.stop() == StopReason::Refused(Gate::Breaker) {
            break error;
        }
    };
    println!("after {sent} requests it is {}: {refused}", guard.status().mode.name());
    assert_eq!((guard.status().mode, sent), (Mode::Open, 20));

    // The break is over, and the next call is the probe; it closes the breaker.
    clock.advance(refused.refusal().expect("a gate refused").advised);
    users.run_blocking(works)?;
    println!("after its probe it is {}", guard.status().mode.name());
    assert_eq!(guard.status().mode, Mode::Closed);

    // Whoever is on call may isolate the dependency, and close the breaker again.
    guard.isolate();
    assert!(users.run_blocking(works).is_err());
    guard.close();
    users.run_blocking(works)?;
    Ok(())
}
