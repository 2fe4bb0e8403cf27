//! Rows of a table of timings: one thread, and two at once.

use std::{
    hint::spin_loop,
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Instant,
};

/// Prints the time of one operation by one thread, and the time that passes for each operation while two threads
/// make them at once: half as long if neither hindered the other.
pub(crate) fn row(name: &str, operation: impl Fn() + Sync) {
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
    println!("{name:<48} {alone:>9.2} {together:>14.2}");
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
const OPERATIONS: u32 = 500_000;
const ROUNDS: u32 = 30;
