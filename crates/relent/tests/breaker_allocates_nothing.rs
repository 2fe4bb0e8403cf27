//! Once it is built, a breaker takes no memory from the heap, whatever happens to it.

#![cfg(not(loom))]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    time::Duration,
};

use relent::{
    BreakerPolicy, Neutral, SlowCalls, Timestamp, Verdict, Window,
    breaker::{Mode, Recorded},
    control::Breaker,
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

#[test]
fn the_counter_counts() {
    let before = ALLOCATIONS.get();
    drop(std::hint::black_box(Box::new([0u8; 64])));
    assert_eq!(ALLOCATIONS.get() - before, 1);
}

#[test]
fn calls_probes_refusals_and_changes_by_hand_allocate_nothing() {
    for window in [Window::Count(50), Window::Time(Duration::from_secs(10))] {
        let slow = SlowCalls { longer_than: Duration::from_millis(50), rate_milli: 900 };
        let policy = BreakerPolicy {
            slow_calls: Some(slow),
            consecutive_failures: Some(30),
            window,
            ..BreakerPolicy::default()
        };
        let breaker = Breaker::new(&policy).expect("the policy is possible");
        let before = ALLOCATIONS.get();
        let changes = life(&breaker);
        assert_eq!(ALLOCATIONS.get() - before, 0, "{window:?}");
        assert!(changes > 10, "it opened, half-opened and closed again and again: {changes}");
    }
}

/// Ten hours with outages of an hour; returns how often the mode changed.
fn life(breaker: &Breaker) -> u32 {
    let mut changes = 0;
    let verdicts = [Verdict::Success, Verdict::Permanent, Verdict::Neutral(Neutral::Cancelled)];
    for (second, verdict) in (0..36_000).zip(verdicts.iter().cycle()) {
        let now = Timestamp::from_millis(second * 1000);
        let verdict = if second / 3600 % 2 == 1 { Verdict::TIMED_OUT } else { *verdict };
        for _ in 0..5 {
            let Ok(permit) = breaker.clone().admit_owned(now) else { continue };
            let told = permit.record(verdict, Duration::from_millis(second % 100), now);
            changes += u32::from(matches!(told, Recorded::Changed(_)));
        }
    }
    for told in [breaker.isolate(), breaker.force_closed(), breaker.observe_only(), breaker.close()] {
        changes += u32::from(told.is_some());
    }
    assert_eq!(breaker.status().mode, Mode::Closed);
    changes
}
