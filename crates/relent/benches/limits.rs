//! What the limits cost, beside tokio's semaphore and governor in the same run: let in, refused, and two threads at
//! once. The best of many rounds; both rate limits read the same clock that is one atomic load.
//!
//! `cargo bench -p relent --bench limits`.

#![expect(clippy::disallowed_methods, reason = "a benchmark times real work")]

use std::{
    env,
    future::Future,
    hint::{black_box, spin_loop},
    num::NonZeroU32,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
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

/// Prints the time of one operation by one thread, and the time that passes for each operation while two threads
/// make them at once: half as long if neither hindered the other.
fn row(name: &str, operation: impl Fn() + Sync) {
    let alone = best(|| time(&operation) / f64::from(OPERATIONS));
    let together = best(|| {
        let ready = AtomicU32::new(0);
        let timed = || {
            ready.fetch_add(1, Ordering::SeqCst);
            while ready.load(Ordering::SeqCst) < 2 {
                spin_loop();
            }
            time(&operation)
        };
        thread::scope(|scope| {
            let other = scope.spawn(timed);
            timed().max(other.join().expect("it does not panic")) / f64::from(2 * OPERATIONS)
        })
    });
    println!("{name:<46} {alone:>9.2} {together:>14.2}");
}

fn time(operation: impl Fn()) -> f64 {
    let began = Instant::now();
    for _ in 0..OPERATIONS {
        operation();
    }
    began.elapsed().as_nanos() as f64
}

fn best(mut round: impl FnMut() -> f64) -> f64 {
    (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
}

/// Long enough that two threads surely overlap, and few enough that all of them fit into one burst of the fast
/// rates.
const OPERATIONS: u32 = 1_000_000;
const ROUNDS: u32 = 20;
