//! How fast the simulator is, beside the least that any simulation of the same traffic does.
//!
//! The plain scenario: 800 calls a second for an hour, ten workers of 10 ms, one attempt in a hundred fails, the default
//! policy with its budget. Beside it a bare loop: a binary heap of the standard library, the same draws (gap, client,
//! seed, work, fate) and the same events (arrival, end of work, end of the attempt's time), and no policy, no budget, no
//! measurement. Both run in turn, in one process, and the medians count.
//!
//! Prints attempts a second and the ratio; ends with 1 where the simulator does less than 2 million a second or takes
//! more than 2.5 times as long as the bare loop. Time is the processor's on this thread, so that others who share the
//! cores do not count. On two such cores it did 4.20 million attempts a second and the bare loop 4.41 million: 1.05
//! times as long. (One timer stands for all attempts of a place among the calls; the bare loop puts one down for each.)

#![expect(
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    reason = "a bench reads the time, and the bare loop throws away what it draws"
)]

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    hint::black_box,
    process::ExitCode,
    time::{Duration, Instant},
};

use relent_sim::{policies::named, run, scenario::standard};

fn main() -> ExitCode {
    let settings = [("duration", "1h")];
    let scenario = standard("S1").expect("a standard scenario").scenario(&settings).expect("it is possible");
    let policy = named("default").expect("built in");
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for seed in 0..ROUNDS {
        ours.push(timed(|| run(black_box(&scenario), &policy, seed).all().arrivals));
        bare.push(timed(|| bare_loop(black_box(seed), 3_600_000_000_000)));
    }
    let (ours, bare) = (median(ours), median(bare));
    let ratio = bare / ours;
    println!("simulated  {:5.2} million attempts a second", ours / 1e6);
    println!("bare loop  {:5.2} million attempts a second", bare / 1e6);
    println!("the simulator takes {ratio:.2} times as long");
    match ours >= 2e6 && ratio <= 2.5 {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Attempts a second of this thread's time.
fn timed(work: impl FnOnce() -> u64) -> f64 {
    let begun = Instant::now();
    let used = processor_time();
    let attempts = black_box(work());
    let elapsed = match (used, processor_time()) {
        (Some(before), Some(after)) => after.saturating_sub(before),
        _ => begun.elapsed(),
    };
    attempts as f64 / elapsed.max(Duration::from_nanos(1)).as_secs_f64()
}

/// What the processor has spent on this thread, where the system says: others who share the cores do not count.
fn processor_time() -> Option<Duration> {
    let counts = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(counts.split_whitespace().next()?.parse().ok()?))
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// The same traffic, and nothing else.
fn bare_loop(seed: u64, end: u64) -> u64 {
    let mut bare = Bare { chance: seed, ..Bare::default() };
    bare.idle = 10;
    bare.put(0, ARRIVAL, 0);
    while let Some(Reverse((at, _, kind, call))) = bare.heap.pop() {
        if at >= end {
            break;
        }
        match kind {
            ARRIVAL => bare.arrive(at),
            DONE => bare.done(at),
            _ => bare.timed_out += u64::from(black_box(call) == u32::MAX),
        }
    }
    bare.attempts + bare.timed_out
}

#[derive(Default)]
struct Bare {
    heap: BinaryHeap<Reverse<(u64, u64, u32, u32)>>,
    put: u64,
    queue: VecDeque<u32>,
    idle: u32,
    chance: u64,
    attempts: u64,
    timed_out: u64,
}

impl Bare {
    fn put(&mut self, at: u64, kind: u32, call: u32) {
        self.put += 1;
        self.heap.push(Reverse((at, self.put, kind, call)));
    }

    fn arrive(&mut self, at: u64) {
        self.attempts += 1;
        let gap = self.exponential(1e9 / 800.0);
        self.put(at + gap, ARRIVAL, 0);
        let client = (u128::from(self.bits()) * 20) >> 64;
        let seed = self.bits();
        let fails = self.bits() < u64::MAX / 100;
        let call = black_box((client as u32) ^ (seed as u32) ^ u32::from(fails));
        self.put(at + 2_000_000_000, TIME_UP, call);
        match self.idle {
            0 => self.queue.push_back(call),
            _ => {
                self.idle -= 1;
                self.work(at, call);
            }
        }
    }

    fn work(&mut self, at: u64, call: u32) {
        let work = self.exponential(1e7);
        self.put(at + work, DONE, call);
    }

    fn done(&mut self, at: u64) {
        match self.queue.pop_front() {
            Some(call) => self.work(at, call),
            None => self.idle += 1,
        }
    }

    fn bits(&mut self) -> u64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.chance;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn exponential(&mut self, mean: f64) -> u64 {
        let unit = (self.bits() >> 11) as f64 / 9_007_199_254_740_992.0;
        (-libm::log(1.0 - unit) * mean) as u64
    }
}

const ROUNDS: u64 = 7;
const ARRIVAL: u32 = 0;
const DONE: u32 = 1;
const TIME_UP: u32 = 2;
