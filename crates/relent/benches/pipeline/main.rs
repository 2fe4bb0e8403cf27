//! What a whole call costs, in one run beside the pipeline that one would write by hand and beside tokio's bare
//! time-out: an operation that is ready at once, and one that is pending once. The best of many rounds.
//!
//! Everything is on: an admission limit, the loan budget, a breaker with a window of time and slow calls, retries, the
//! attempt's time-out and the total one. The pipeline by hand reads the clock as often.
//!
//! `cargo xtask bench pipeline`. For instruction counts, one row at a time and without the harness:
//! `valgrind --tool=callgrind BENCH ROW CALLS`, twice with different `CALLS`, and take the difference.

#![expect(clippy::disallowed_methods, reason = "a benchmark times real work")]

mod packed;

use std::{
    convert::Infallible,
    env,
    future::{Future, poll_fn},
    hint::black_box,
    mem::replace,
    task::Poll,
    time::{Duration, Instant},
};

use packed::{Packed, Rules};
use relent::{BreakerPolicy, ConcurrencyPolicy, Gates, Pipeline, Policy, Window, breaker::SlowCalls};
use tokio::runtime::{Builder, Runtime};

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let bench = Bench::new();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [row, calls] if row != "--bench" => bench.make(row, calls.parse().expect("a number of calls")),
        // `cargo test --benches` runs it too, in a profile that would say nothing.
        _ if !arguments.iter().any(|argument| argument == "--bench") => {
            println!("pipeline: skipped, run it with `cargo xtask bench pipeline`");
        }
        _ => bench.table(),
    }
}

struct Bench {
    runtime: Runtime,
    relent: Pipeline,
    by_hand: Packed,
}

impl Bench {
    fn new() -> Self {
        Self {
            runtime: Builder::new_current_thread().enable_all().build().expect("a runtime"),
            relent: Pipeline::new(standard()).expect("the policy is possible").named("users"),
            by_hand: by_hand(),
        }
    }

    fn table(&self) {
        println!("{:<32} {:>9} {:>9}", "ns a call, best of rounds", "ready", "pending");
        for name in ["bare", "by-hand", "relent", "tokio-timeout"] {
            let [ready, pending] =
                ["ready", "pending"].map(|how| self.best(&format!("{name}:{how}")) / f64::from(CALLS));
            println!("{name:<32} {ready:>9.1} {pending:>9.1}");
        }
    }

    fn best(&self, row: &str) -> f64 {
        let round = |_| {
            let began = Instant::now();
            self.make(row, CALLS);
            began.elapsed().as_nanos() as f64
        };
        (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
    }

    /// Makes so many calls.
    fn make(&self, row: &str, calls: u32) {
        let Self { relent, by_hand, .. } = self;
        match row {
            "bare:ready" => self.run(calls, ready),
            "bare:pending" => self.run(calls, pending),
            "by-hand:ready" => self.run(calls, || by_hand.run(|_| ready())),
            "by-hand:pending" => self.run(calls, || by_hand.run(|_| pending())),
            "relent:ready" => self.run(calls, || relent.safe().run(|_| ready())),
            "relent:pending" => self.run(calls, || relent.safe().run(|_| pending())),
            "tokio-timeout:ready" => self.run(calls, || tokio::time::timeout(ATTEMPT, ready())),
            "tokio-timeout:pending" => self.run(calls, || tokio::time::timeout(ATTEMPT, pending())),
            other => panic!("there is no row {other}"),
        }
    }

    fn run<F: Future>(&self, calls: u32, call: impl Fn() -> F) {
        self.runtime.block_on(async {
            for _ in 0..calls {
                black_box(call().await);
            }
        });
    }
}

async fn ready() -> Result<u32, Infallible> {
    Ok(black_box(7))
}

async fn pending() -> Result<u32, Infallible> {
    let mut first = true;
    poll_fn(|cx| {
        if !replace(&mut first, false) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    ready().await
}

/// The defaults, with an admission limit and a breaker with everything.
fn standard() -> Policy {
    Policy {
        admission: Gates { concurrency: Some(ConcurrencyPolicy { limit: 100, queue: 100 }), rate: None },
        breaker: Some(BreakerPolicy {
            slow_calls: Some(SlowCalls { longer_than: Duration::from_secs(1), rate_milli: 900 }),
            window: Window::Time(Duration::from_secs(10)),
            ..BreakerPolicy::default()
        }),
        ..Policy::live()
    }
}

/// The same rules.
fn by_hand() -> Packed {
    Packed::new(Rules {
        limit: 100,
        attempts: 5,
        total: 5_000_000_000,
        attempt: 2_000_000_000,
        slow: 1_000_000_000,
        window: 10_000_000_000,
        least_calls: 20,
        open_for: 5_000_000_000,
        wait: 0,
        most_tokens: 1000,
    })
}

const ATTEMPT: Duration = Duration::from_secs(2);
const CALLS: u32 = 100_000;
const ROUNDS: u32 = 30;
