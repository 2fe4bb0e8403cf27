//! Two threads, in rounds: what they share, one of them alone and both at once.
//!
//! A round counts only if neither thread waited for a processor and both worked from beginning to end; two that work one
//! after the other get on splendidly. Of those rounds the median is told and not the best, which would be the one in
//! which they met least.

use std::{
    fs,
    hint::spin_loop,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    rounds::{Figures, ROUNDS, Together, allocations, calls_of_a_round, per_call},
    work::Work,
};

pub(crate) fn measure(rows: &[&'static Work]) -> Vec<Figures> {
    let pair = Pair::new();
    let alone: Vec<u32> =
        rows.iter().map(|work| calls_of_a_round(|calls| pair.one(work, calls).length())).collect();
    let both: Vec<u32> =
        rows.iter().map(|work| calls_of_a_round(|calls| pair.both(work, calls).length())).collect();
    let mut best = vec![f64::INFINITY; rows.len()];
    let mut together = vec![Vec::new(); rows.len()];
    for _ in 0..ROUNDS {
        for (place, work) in rows.iter().enumerate() {
            let calls = alone[place];
            best[place] = best[place].min(per_call(pair.one(work, calls).length(), calls));
            let calls = both[place];
            let round = pair.both(work, calls);
            if round.is_undisturbed() {
                together[place].push(per_call(round.length(), 2 * calls));
            }
        }
    }
    let figures = |(place, mut rounds): (usize, Vec<f64>)| {
        rounds.sort_by(f64::total_cmp);
        let ns = rounds.get(rounds.len() / 2).copied().unwrap_or(f64::NAN);
        let together = Some(Together { ns, undisturbed: rounds.len() });
        Figures { ns: best[place], allocations: allocations(rows[place], alone[place]), together }
    };
    together.into_iter().enumerate().map(figures).collect()
}

/// Two threads that live through all rounds, as those of a runtime do.
struct Pair {
    workers: [Sender<Job>; 2],
    done: Receiver<Span>,
}

/// So many calls, begun when so many threads are ready.
struct Job {
    work: &'static Work,
    calls: u32,
    ready: Arc<AtomicU32>,
    threads: u32,
}

/// What one thread, or both, did.
#[derive(Clone, Copy)]
struct Span {
    began: Instant,
    ended: Instant,
    /// The time in which every thread worked.
    shared: Duration,
    /// How long a thread that could run did not. Nobody knows, but under Linux.
    waited: Duration,
}

impl Pair {
    fn new() -> Self {
        let (tell, done) = channel();
        let worker = || {
            let (sender, jobs) = channel::<Job>();
            let tell = tell.clone();
            // It ends when the pair is dropped.
            thread::spawn(move || jobs.iter().for_each(|job| tell.send(job.work()).expect("it is awaited")));
            sender
        };
        Self { workers: [worker(), worker()], done }
    }

    fn one(&self, work: &'static Work, calls: u32) -> Span {
        self.begin(work, calls, 1);
        self.span()
    }

    fn both(&self, work: &'static Work, calls: u32) -> Span {
        self.begin(work, calls, 2);
        self.span().with(self.span())
    }

    fn begin(&self, work: &'static Work, calls: u32, threads: u32) {
        let ready = Arc::new(AtomicU32::new(0));
        for worker in self.workers.iter().take(threads as usize) {
            let job = Job { work, calls, ready: Arc::clone(&ready), threads };
            worker.send(job).expect("it lives as long as the pair");
        }
    }

    fn span(&self) -> Span {
        self.done.recv().expect("a worker does not panic")
    }
}

impl Job {
    fn work(self) -> Span {
        self.ready.fetch_add(1, Ordering::SeqCst);
        while self.ready.load(Ordering::SeqCst) < self.threads {
            spin_loop();
        }
        let waited = waited();
        let began = Instant::now();
        (self.work)(self.calls);
        let ended = Instant::now();
        Span { began, ended, shared: ended - began, waited: self::waited() - waited }
    }
}

impl Span {
    fn length(self) -> Duration {
        self.ended - self.began
    }

    fn with(self, other: Self) -> Self {
        let shared = self.ended.min(other.ended).saturating_duration_since(self.began.max(other.began));
        Self {
            began: self.began.min(other.began),
            ended: self.ended.max(other.ended),
            shared,
            waited: self.waited + other.waited,
        }
    }

    fn is_undisturbed(self) -> bool {
        self.shared > self.length().mul_f64(0.9) && self.waited < self.length().mul_f64(0.02)
    }
}

/// How long this thread has stood in line for a processor.
fn waited() -> Duration {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = stat.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    Duration::from_nanos(nanoseconds)
}
