//! What the limits cost, beside tokio's semaphore and governor in the same run: let in, refused, and two threads at
//! once. The best of many rounds; both rate limits read the same clock that is one atomic load.
//!
//! `cargo bench -p relent --bench limits`.

#![expect(clippy::disallowed_methods, reason = "a benchmark times real work")]

mod rows;

use std::{
    env,
    future::Future,
    hint::black_box,
    num::NonZeroU32,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use governor::{
    Quota, RateLimiter,
    clock::{Clock, FakeRelativeClock},
};
use relent::{
    ConcurrencyPolicy, RatePolicy, Timestamp,
    control::{Concurrency, Rate},
};
use tokio::sync::Semaphore;

use rows::row;

fn main() {
    // `cargo test --benches` runs it too, in a profile that would say nothing.
    if !env::args().any(|argument| argument == "--bench") {
        println!("limits: skipped, run it with `cargo bench -p relent --bench limits`");
        return;
    }
    println!("{:<46} {:>9} {:>14}", "ns an operation, best of rounds", "1 thread", "2 threads");
    concurrency();
    rate();
}

fn concurrency() {
    let ours = Concurrency::new(&ConcurrencyPolicy { limit: 1_000, queue: 100 }).expect("a limit");
    let theirs = Arc::new(Semaphore::new(1_000));
    row("relent try_acquire + release", || drop(black_box(ours.try_acquire())));
    row("tokio try_acquire + release", || drop(black_box(theirs.try_acquire())));
    row("relent try_acquire, kept + release", || {
        drop(black_box(ours.try_acquire().map(|permit| permit.keep())))
    });
    row("tokio try_acquire_owned + release", || drop(black_box(Arc::clone(&theirs).try_acquire_owned())));
    row("relent acquire + release", || drop(black_box(at_once(ours.acquire()))));
    row("tokio acquire + release", || drop(black_box(at_once(theirs.acquire()))));

    let full = Concurrency::new(&ConcurrencyPolicy { limit: 1, queue: 0 }).expect("a limit");
    let empty = Semaphore::new(0);
    let _held = full.try_acquire().expect("nobody is in flight");
    row("relent try_acquire, refused", || drop(black_box(full.try_acquire())));
    row("relent acquire without a queue, refused", || drop(black_box(at_once(full.acquire()))));
    row("tokio try_acquire, refused", || drop(black_box(empty.try_acquire())));
}

fn rate() {
    let now = AtomicU64::new(3_600_000_000_000);
    let read = || Timestamp::from_nanos(now.load(Ordering::Relaxed));
    let fast = |permits| {
        let policy = RatePolicy { permits, per: Duration::from_secs(1), burst: u32::MAX };
        Rate::new(&policy).expect("a rate")
    };
    let (even, uneven) = (fast(1_000_000_000), fast(999_999_937));
    let clock = FakeRelativeClock::default();
    let plenty =
        Quota::per_second(NonZeroU32::new(1_000_000_000).expect("not zero")).allow_burst(NonZeroU32::MAX);
    let theirs = RateLimiter::direct_with_clock(plenty, clock.clone());
    black_box(clock.now());
    row("relent try_take", || spend(&even, read()));
    row("relent try_take, a period that divides unevenly", || spend(&uneven, read()));
    row("governor check", || drop(black_box(theirs.check())));

    let hourly = RatePolicy { permits: 1, per: Duration::from_secs(3600), burst: 1 };
    let empty = Rate::new(&hourly).expect("a rate");
    spend(&empty, read());
    let once = Quota::with_period(Duration::from_secs(3600)).expect("not zero");
    let theirs = RateLimiter::direct_with_clock(once, clock);
    drop(black_box(theirs.check()));
    row("relent try_take, refused", || drop(black_box(empty.try_take(read()))));
    row("governor check, refused", || drop(black_box(theirs.check())));
}

fn spend(rate: &Rate, now: Timestamp) {
    if let Ok(permit) = black_box(rate.try_take(now)) {
        permit.spend();
    }
}

fn at_once<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("there is room, or no queue"),
    }
}
