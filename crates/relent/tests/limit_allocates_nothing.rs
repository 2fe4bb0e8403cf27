//! The limits take no memory from the heap unless somebody waits.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use relent::{
    ConcurrencyPolicy, RatePolicy, Timestamp,
    control::{Concurrency, Rate},
};

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

fn allocations(operation: impl FnOnce()) -> u32 {
    let before = ALLOCATIONS.get();
    operation();
    ALLOCATIONS.get() - before
}

fn at_once<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(Box::new([0u8; 64]))), 1);
}

#[test]
fn permits_and_refusals_of_a_concurrency_limit_allocate_nothing() {
    let limit = Concurrency::new(&ConcurrencyPolicy { limit: 1, queue: 0 }).unwrap();
    let used = allocations(|| {
        let permit = limit.try_acquire().unwrap().keep();
        assert!(limit.try_acquire().is_err() && at_once(limit.acquire()).is_err());
        drop(permit);
        assert!(at_once(limit.acquire()).is_ok());
    });
    assert_eq!(used, 0);
}

#[test]
fn permits_and_refusals_of_a_rate_limit_allocate_nothing() {
    let rate = Rate::new(&RatePolicy { permits: 3, per: Duration::from_secs(1), burst: 1 }).unwrap();
    let now = Timestamp::from_secs(1);
    let used = allocations(|| {
        drop(rate.try_take(now).unwrap());
        rate.reserve(now, now).unwrap().claim(now).unwrap().spend();
        assert!(rate.try_take(now).is_err() && rate.reserve(now, now).is_err());
    });
    assert_eq!(used, 0);
}
