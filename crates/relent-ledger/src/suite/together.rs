//! Calls that run at the same time, on threads of their own.

use super::block_on;

/// Runs a call on each of `count` threads at once.
pub(super) fn at_once<T: Send, F: Future<Output = T>>(
    count: usize,
    call: impl Fn(usize) -> F + Sync,
) -> Vec<T> {
    let call = &call;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|number| scope.spawn(move || block_on(call(number)))).collect();
        threads.into_iter().map(|thread| thread.join().expect("the call does not panic")).collect()
    })
}
