//! Cheap enough to leave on: the driver takes no memory from the heap, retried or not, failed or not.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    convert::Infallible,
    future::Future,
    io,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use relent::{Clock, Error, Pipeline, Policy, StopReason, Timestamp};

thread_local! {
    static ALLOCATIONS: Cell<u32> = const { Cell::new(0) };
}

/// The system's allocator, counting what this thread asks for.
struct Counting;

// SAFETY: every method hands its arguments to the system's allocator unchanged and returns what it answers.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `alloc` above, that is from the system's allocator, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A clock whose sleepers find their instant come at once; it keeps no list of them.
#[derive(Clone, Debug, Default)]
struct Leaping(Arc<AtomicU64>);

impl Clock for Leaping {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.load(Ordering::Relaxed))
    }

    async fn sleep_until(&self, at: Timestamp) {
        self.0.fetch_max(at.as_nanos(), Ordering::Relaxed);
    }
}

/// Polls to the end a future that never waits for anybody, and counts what it allocates.
fn counted<F: Future>(future: F) -> (F::Output, u32) {
    let mut future = pin!(future);
    let before = ALLOCATIONS.get();
    let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("it waits for somebody");
    };
    (output, ALLOCATIONS.get() - before)
}

#[test]
fn the_counter_counts() {
    assert_eq!(counted(async { drop(Box::new([0u8; 64])) }).1, 1);
}

#[test]
fn a_success_at_once_allocates_nothing() {
    let users = Pipeline::on(Leaping::default(), Policy::live()).unwrap().named("users");
    let (result, allocations) = counted(users.safe().run(|_| async { Ok::<_, Infallible>(42) }));
    assert_eq!((result.unwrap(), allocations), (42, 0));
}

#[test]
fn a_success_after_retries_and_a_timeout_allocates_nothing() {
    let users = Pipeline::on(Leaping::default(), Policy::live()).unwrap().named("users");
    let operation = |attempt: relent::Attempt| async move {
        match attempt.number {
            1 => Err(io::Error::from(io::ErrorKind::ConnectionReset)),
            2 => std::future::pending().await,
            _ => Ok(42),
        }
    };
    let ((result, report), allocations) = counted(users.safe().run_with_report(operation));
    assert_eq!((result.unwrap(), report.attempts, allocations), (42, 3, 0));
    assert!(report.took >= Duration::from_secs(2));
}

#[test]
fn a_failure_with_its_report_allocates_nothing() {
    let users = Pipeline::on(Leaping::default(), Policy::live()).unwrap().named("users");
    let operation = |_| async { Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionReset)) };
    let (result, allocations) = counted(users.safe().run(operation));
    let error: Error<io::Error> = result.unwrap_err();
    assert_eq!((error.stop(), allocations), (StopReason::AttemptsExhausted, 0));
}
