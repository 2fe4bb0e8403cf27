//! What a breaker costs a call, beside recloser and failsafe in the same run: whatever the window holds, one thread
//! and two, let through and refused. The best of many rounds; on a machine that is busy otherwise the best of two
//! threads may be one after the other, which costs as much as one thread does and says nothing of how they get on.
//!
//! `cargo bench -p relent --bench breaker`.

#![expect(clippy::disallowed_methods, reason = "a benchmark times real work")]

use std::{
    env,
    hint::{black_box, spin_loop},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use failsafe::{CircuitBreaker, backoff, failure_policy};
use recloser::Recloser;
use relent::{Backoff, BreakerPolicy, SlowCalls, Timestamp, Verdict, Window, control::Breaker};

fn main() {
    // `cargo test --benches` runs it too, in a profile that would say nothing.
    if !env::args().any(|argument| argument == "--bench") {
        println!("breaker: skipped, run it with `cargo bench -p relent --bench breaker`");
        return;
    }
    println!("{:<58} {:>8} {:>9} {:>10}", "ns a call, best of rounds", "1 thread", "2 threads", "M/s of two");
    windows();
    rows();
    with_clock();
    peers();
    refusals();
}

/// Successes into windows that are full: the cost is flat.
fn windows() {
    for calls in [10, 100, 1_000, 10_000, 100_000, 1_000_000] {
        let breaker = filled(policy(Window::Count(calls)), calls);
        row(&format!("relent, the last {calls} calls"), || succeed(&breaker));
    }
    for calls in [10, 100, 1_000, 10_000, 100_000, 1_000_000] {
        let breaker = filled(policy(Window::Time(Duration::from_secs(10))), calls);
        row(&format!("relent, the last 10 s, {calls} calls in them"), || succeed(&breaker));
    }
}

fn rows() {
    let only_rows = BreakerPolicy {
        failure_rate_milli: None,
        consecutive_failures: Some(5),
        ..policy(Window::Count(100))
    };
    let breaker = filled(only_rows, 0);
    row("relent, failures in a row", || succeed(&breaker));
}

/// As a caller would use it by itself, who has no time of his own: the clock is read where the breaker needs it.
fn with_clock() {
    let origin = Instant::now();
    let now = || Timestamp::from_secs(3600).after(origin.elapsed());
    let breaker = filled(policy(Window::Time(Duration::from_secs(10))), 0);
    row("relent, the last 10 s, reading the clock once", || {
        if let Ok(permit) = breaker.admit_with(now) {
            let _told = black_box(permit.record_with(Verdict::Success, Duration::ZERO, now));
        }
    });
    let slow = SlowCalls { longer_than: Duration::from_secs(1), rate_milli: 500 };
    let policy = BreakerPolicy { slow_calls: Some(slow), ..policy(Window::Time(Duration::from_secs(10))) };
    let breaker = filled(policy, 0);
    row("relent, the last 10 s and slow calls, reading it twice", || {
        let began = now();
        if let Ok(permit) = breaker.admit(began) {
            let ended = now();
            let _told = black_box(permit.record(Verdict::Success, ended.since(began), ended));
        }
    });
    row("(the clock alone, once)", || {
        black_box(now());
    });
}

fn peers() {
    for calls in [100, 1_000_000] {
        let recloser = Recloser::custom().error_rate(0.5).closed_len(calls).build();
        for _ in 0..=calls {
            let _counted = recloser.call(|| Ok::<_, ()>(()));
        }
        row(&format!("recloser, the last {calls} calls"), || {
            drop(black_box(recloser.call(|| Ok::<_, ()>(()))))
        });
    }
    let default = failsafe::Config::new().build();
    row("failsafe, default", || drop(black_box(default.call(|| Ok::<_, ()>(())))));
    let wait = backoff::constant(Duration::from_secs(3600));
    let consecutive =
        failsafe::Config::new().failure_policy(failure_policy::consecutive_failures(5, wait)).build();
    row("failsafe, failures in a row", || drop(black_box(consecutive.call(|| Ok::<_, ()>(())))));
}

fn refusals() {
    let origin = Instant::now();
    let breaker = filled(policy(Window::Time(Duration::from_secs(10))), 0);
    let _told = breaker.force_open(Timestamp::MAX);
    row("relent, refused, told the time", || drop(black_box(breaker.admit(NOW))));
    row("relent, refused, reading the clock", || {
        drop(black_box(breaker.admit_with(|| Timestamp::ZERO.after(origin.elapsed()))));
    });
    let recloser = Recloser::custom().closed_len(1).open_wait(Duration::from_secs(3600)).build();
    for _ in 0..3 {
        let _counted = recloser.call(|| Err::<(), _>(()));
    }
    row("recloser, refused", || drop(black_box(recloser.call(|| Ok::<_, ()>(())))));
    let wait = backoff::constant(Duration::from_secs(3600));
    let failsafe =
        failsafe::Config::new().failure_policy(failure_policy::consecutive_failures(1, wait)).build();
    let _counted = failsafe.call(|| Err::<(), _>(()));
    assert!(!failsafe.is_call_permitted(), "it is open");
    row("failsafe, refused", || drop(black_box(failsafe.call(|| Ok::<_, ()>(())))));
}

fn policy(window: Window) -> BreakerPolicy {
    BreakerPolicy {
        failure_rate_milli: Some(500),
        window,
        min_calls: 10,
        break_time: Backoff::Constant(Duration::from_secs(30)),
        ..BreakerPolicy::default()
    }
}

fn filled(policy: BreakerPolicy, calls: u32) -> Breaker {
    let breaker = Breaker::new(&policy).expect("the policy is possible");
    for _ in 0..=calls {
        succeed(&breaker);
    }
    breaker
}

fn succeed(breaker: &Breaker) {
    if let Ok(permit) = breaker.admit(black_box(NOW)) {
        let _told = black_box(permit.record(Verdict::Success, Duration::ZERO, black_box(NOW)));
    }
}

/// Prints the time of one call by one thread, the time that passes for each call while two threads make them at once
/// (half as long if neither hindered the other), and how many millions a second that is.
fn row(name: &str, call: impl Fn() + Sync) {
    let best = |threads| (0..ROUNDS).map(|_| round(threads, &call)).fold(f64::MAX, f64::min);
    let (one, two) = (best(1), best(2));
    println!("{name:<58} {one:>8.2} {two:>9.2} {:>10.1}", 1000.0 / two);
}

/// The nanoseconds that pass for each call while so many threads make them, from when the last is ready.
fn round(threads: u32, call: &(impl Fn() + Sync)) -> f64 {
    let ready = AtomicU32::new(0);
    let work = || {
        ready.fetch_add(1, Ordering::SeqCst);
        while ready.load(Ordering::SeqCst) < threads {
            spin_loop();
        }
        let began = Instant::now();
        for _ in 0..CALLS {
            call();
        }
        (began, Instant::now())
    };
    let (began, ended) = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let join = |other: thread::ScopedJoinHandle<'_, _>| other.join().expect("it does not panic");
        let mine = work();
        others.into_iter().map(join).fold(mine, |all, one| (all.0.min(one.0), all.1.max(one.1)))
    });
    (ended - began).as_secs_f64() * 1e9 / f64::from(CALLS * threads)
}

const NOW: Timestamp = Timestamp::from_secs(3600);
const ROUNDS: u32 = 100;
/// Few enough that a busy machine leaves some rounds alone.
const CALLS: u32 = 50_000;
