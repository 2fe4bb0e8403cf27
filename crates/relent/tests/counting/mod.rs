//! An allocator that counts, for the tests that show that nothing is allocated.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

thread_local! {
    static ALLOCATIONS: Cell<u32> = const { Cell::new(0) };
    static HELD: Cell<isize> = const { Cell::new(0) };
}

/// What the operation gives, and how often this thread asked for memory meanwhile.
pub(crate) fn counted<T>(operation: impl FnOnce() -> T) -> (T, u32) {
    let before = ALLOCATIONS.get();
    let value = operation();
    (value, ALLOCATIONS.get() - before)
}

/// How many bytes this thread has asked for and not given back.
#[allow(dead_code, reason = "each test binary uses a part")]
pub(crate) fn held() -> isize {
    HELD.get()
}

/// The system's allocator, counting what each thread asks for.
struct Counting;

// SAFETY: every method hands its arguments to the system's allocator unchanged and returns what it answers.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        HELD.with(|held| held.set(held.get().wrapping_add_unsigned(layout.size())));
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.with(|held| held.set(held.get().wrapping_sub_unsigned(layout.size())));
        // SAFETY: `pointer` came from `alloc` above, that is from the system's allocator, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn the_counter_counts() {
    let before = held();
    let (kept, allocations) = counted(|| std::hint::black_box(Box::new([0u8; 64])));
    assert_eq!((allocations, held() - before), (1, 64));
    drop(kept);
    assert_eq!(held(), before);
}
