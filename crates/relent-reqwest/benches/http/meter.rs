//! What a batch of requests costs: time on a processor, time on the wall, allocations; and how pairs of them compare.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};

/// What something took: on the processor by all threads of this process, and on the wall.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) cpu: f64,
    pub(crate) wall: f64,
}

/// What this takes, for each of `requests`, in microseconds.
pub(crate) fn cost(requests: u32, work: impl FnOnce()) -> Cost {
    let (cpu, wall) = (on_the_processor(), Instant::now());
    work();
    let each = |took: Duration| took.as_secs_f64() * 1e6 / f64::from(requests);
    Cost { cpu: each(on_the_processor() - cpu), wall: each(wall.elapsed()) }
}

fn on_the_processor() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// How often this asks for memory, on any thread.
pub(crate) fn allocations(work: impl FnOnce()) -> u64 {
    ALLOCATIONS.store(0, Ordering::SeqCst);
    COUNTING.store(true, Ordering::SeqCst);
    work();
    COUNTING.store(false, Ordering::SeqCst);
    ALLOCATIONS.load(Ordering::SeqCst)
}

/// The middle of some numbers and how far the middle half of them reaches.
#[derive(Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) lower: f64,
    pub(crate) upper: f64,
}

impl Spread {
    /// Quartiles between two numbers are interpolated.
    pub(crate) fn of(numbers: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = numbers.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let at = |quarter: usize| {
            let place = quarter * (sorted.len() - 1);
            let (below, above) = (sorted[place / 4], sorted[place.div_ceil(4)]);
            below + (above - below) * (place % 4) as f64 / 4.0
        };
        Self { median: at(2), lower: at(1), upper: at(3) }
    }

    pub(crate) fn between_quartiles(self) -> f64 {
        self.upper - self.lower
    }
}

static COUNTING: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// The system's allocator, which counts while it is asked to.
struct Counting;

impl Counting {
    fn count(&self) {
        if COUNTING.load(Ordering::Relaxed) {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        }
    }
}

// SAFETY: every method hands its arguments to the system's allocator unchanged and returns what it answers.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.count();
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.count();
        // SAFETY: the caller keeps the contract of `alloc_zeroed`, which is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.count();
        // SAFETY: the caller keeps the contract of `realloc`, which is the same.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from the system's allocator, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
