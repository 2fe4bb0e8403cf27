//! The work of a row: so many calls, one after the other, on whichever thread asks for them.

use std::{future::Future, hint::black_box, sync::Mutex};

use tokio::runtime::{Builder, Runtime};
use tower::{Service, ServiceExt};

/// Makes so many calls.
pub(crate) type Work = Box<dyn Fn(u32) + Send + Sync>;

/// Calls that are awaited. Each must end as the row says, or the row would measure something else.
pub(crate) fn calls<F: Future>(
    call: impl Fn() -> F + Send + Sync + 'static,
    is_right: impl Fn(&F::Output) -> bool + Send + Sync + 'static,
) -> Work {
    Box::new(move |calls| {
        on_runtime(async {
            for _ in 0..calls {
                assert!(is_right(black_box(&call().await)), "the row's call does not end as it says");
            }
        });
    })
}

/// Calls of a tower service, made ready before each. Every thread has a clone.
pub(crate) fn services<S>(
    prototype: S,
    is_right: impl Fn(&Result<S::Response, S::Error>) -> bool + Send + Sync + 'static,
) -> Work
where
    S: Service<()> + Clone + Send + 'static,
{
    let prototype = Mutex::new(prototype);
    Box::new(move |calls| {
        let mut service = prototype.lock().expect("cloning does not panic").clone();
        on_runtime(async {
            for _ in 0..calls {
                let called = match service.ready().await {
                    Ok(ready) => ready.call(()).await,
                    Err(error) => Err(error),
                };
                assert!(is_right(black_box(&called)), "the row's call does not end as it says");
            }
        });
    })
}

/// Steps that are not awaited.
pub(crate) fn steps(step: impl Fn() + Send + Sync + 'static) -> Work {
    Box::new(move |steps| (0..steps).for_each(|_| step()))
}

/// Does the work so many steps down the stack. Now and then a row took several times as long throughout a run, and not
/// in the next; so every round has its futures elsewhere, and in the best ones nobody is unlucky.
pub(crate) fn deeper(steps: usize, work: &Work, calls: u32) {
    if steps.is_multiple_of(STEPS) {
        return work(calls);
    }
    let step = black_box([0_u8; 256]);
    deeper(steps % STEPS - 1, work, calls);
    black_box(step);
}

/// A page and more.
const STEPS: usize = 17;

/// Waits for it on this thread's own runtime, whose clock is the real one.
pub(crate) fn on_runtime<F: Future>(future: F) -> F::Output {
    thread_local! {
        static RUNTIME: Runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
    }
    RUNTIME.with(|runtime| runtime.block_on(future))
}

/// Whatever is measured is shared by reference, and lives as long as the process.
pub(crate) fn kept<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}
