//! What the controls share between threads: the standard library's, or loom's when it tries every interleaving.

#[cfg(loom)]
pub(crate) use loom::sync::{Arc, Mutex, MutexGuard, atomic};
#[cfg(loom)]
pub(crate) use loom::thread::yield_now;
pub(crate) use std::sync::PoisonError;
#[cfg(not(loom))]
pub(crate) use std::sync::{Arc, Mutex, MutexGuard, atomic};
#[cfg(not(loom))]
pub(crate) use std::thread::yield_now;

/// This thread's number, counted from zero in the order in which threads first ask. It decides only on which of
/// several equal cells a thread writes, so that threads stay out of one another's way; no result depends on it.
#[cfg(not(loom))]
#[inline]
pub(crate) fn thread_number() -> usize {
    std::thread_local! {
        static NUMBER: std::cell::Cell<usize> = const { std::cell::Cell::new(usize::MAX) };
    }
    NUMBER.with(|number| match number.get() {
        usize::MAX => {
            number.set(next_thread_number());
            number.get()
        }
        known => known,
    })
}

#[cfg(not(loom))]
#[cold]
fn next_thread_number() -> usize {
    static NEXT: atomic::AtomicUsize = atomic::AtomicUsize::new(0);
    NEXT.fetch_add(1, atomic::Ordering::Relaxed)
}

/// Loom's threads have numbers of their own, but only print them.
#[cfg(loom)]
pub(crate) fn thread_number() -> usize {
    let printed = format!("{:?}", loom::thread::current().id());
    printed
        .chars()
        .filter_map(|digit| digit.to_digit(10))
        .fold(0, |number, digit| number * 10 + digit as usize)
}

/// How many threads can run at once.
#[cfg(not(loom))]
pub(crate) fn parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Two, so that loom sees threads on cells of their own.
#[cfg(loom)]
pub(crate) fn parallelism() -> usize {
    2
}
