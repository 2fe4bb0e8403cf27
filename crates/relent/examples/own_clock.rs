//! A clock that is not tokio's: the same calls on async-io's timers, with no tokio in the library.
//!
//!     cargo run -p relent --no-default-features --example own_clock

use std::{
    future::{self, Future},
    io,
    pin::Pin,
    time::{Duration, Instant},
};

use async_io::Timer;
use relent::{Attempt, Backoff, Clock, Pipeline, Policy, RetryPolicy, Timestamp};

/// Time since the clock was made, on the monotonic clock of the system.
#[derive(Clone, Copy)]
struct AsyncIoClock {
    origin: Instant,
}

impl AsyncIoClock {
    #[expect(clippy::disallowed_methods, reason = "this is a clock")]
    fn new() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Clock for AsyncIoClock {
    // A box for each timer that is set; a future of one's own does without.
    type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

    fn now(&self) -> Timestamp {
        Timestamp::ZERO.after(self.origin.elapsed())
    }

    fn sleep_until(&self, at: Timestamp) -> Self::Sleep {
        // What an `Instant` cannot hold is centuries off.
        let instant = self.origin.checked_add(at.since(Timestamp::ZERO));
        Box::pin(async move {
            // A clock yields once even where there is nothing to wait for, so that whoever has given up is heard.
            futures_lite::future::yield_now().await;
            match instant {
                Some(instant) => drop(Timer::at(instant).await),
                None => future::pending().await,
            }
        })
    }
}

/// A stock-keeper who refuses the first caller, forgets the second, and answers the third.
async fn stock_of(item: &str, attempt: Attempt) -> io::Result<usize> {
    match attempt.number {
        1 => Err(io::ErrorKind::ConnectionRefused.into()),
        2 => future::pending().await,
        _ => Ok(item.len()),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let clock = AsyncIoClock::new();
    let live = Policy::live();
    let policy = Policy {
        attempt_timeout: Duration::from_millis(50),
        // A fresh budget lends one retry until calls succeed, and this call needs two.
        budget: None,
        retry: RetryPolicy {
            backoff: Backoff::Constant(Duration::from_millis(20)),
            min_attempt: Duration::from_millis(10),
            ..live.retry
        },
        ..live
    };
    let inventory = Pipeline::on(clock, policy)?.named("inventory");

    let call = inventory.safe().run_with_report(|attempt| stock_of("apples", attempt));
    let (stock, report) = async_io::block_on(call);

    println!("{} apples after {} attempts and {:?}", stock?, report.attempts, report.took);
    assert_eq!(report.attempts, 3);
    assert!(report.took >= Duration::from_millis(50) + report.waited, "the second was given its 50 ms");
    Ok(())
}
