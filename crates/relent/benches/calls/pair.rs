//! Two threads, in rounds: what they share, one of them alone and both at once.
//!
//! A round counts only if neither thread waited for a processor and both worked from beginning to end; two that work one
//! after the other get on splendidly. Of those rounds the median is told and not the best, which would be the one in
//! which they met least.

use std::{
    cell::Cell,
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
    rounds::{Figures, Together, allocations, calls_of_a_round, per_call},
    work::{Work, deeper},
};

pub(crate) fn measure(rows: &[&'static Work]) -> Vec<Figures> {
    let pair = Pair::new();
    let mut rows: Vec<Row> = rows.iter().map(|work| Row::new(&pair, work)).collect();
    let began = Instant::now();
    let is_enough = |rows: &[Row]| rows.iter().all(|row| row.together.len() >= ENOUGH);
    while began.elapsed() < LONGEST && !(began.elapsed() > SHORTEST && is_enough(&rows)) {
        rows.iter_mut().for_each(|row| row.round(&pair));
    }
    rows.into_iter().map(Row::figures).collect()
}

/// One row on its way.
struct Row {
    work: &'static Work,
    /// How many calls a round is, by one thread, and by each of two.
    alone: u32,
    both: u32,
    /// Nanoseconds for a call: the best round of one thread, and all undisturbed ones of two.
    best: f64,
    together: Vec<f64>,
}

impl Row {
    fn new(pair: &Pair, work: &'static Work) -> Self {
        let alone = calls_of_a_round(ROUND, |calls| pair.one(work, calls).length());
        let both = calls_of_a_round(ROUND, |calls| pair.both(work, calls).length());
        Self { work, alone, both, best: f64::INFINITY, together: Vec::new() }
    }

    fn round(&mut self, pair: &Pair) {
        let alone = pair.one(self.work, self.alone).length();
        self.best = self.best.min(per_call(alone, self.alone));
        let both = pair.both(self.work, self.both);
        if both.is_undisturbed() {
            self.together.push(per_call(both.length(), 2 * self.both));
        }
    }

    fn figures(mut self) -> Figures {
        self.together.sort_by(f64::total_cmp);
        let undisturbed = self.together.len();
        let ns = self.together.get(undisturbed / 2).copied().unwrap_or(f64::NAN);
        let together = Some(Together { ns, undisturbed });
        Figures { ns: self.best, allocations: allocations(self.work, self.alone), together }
    }
}

/// Two threads that live through all rounds, as those of a runtime do.
struct Pair {
    workers: [Sender<Job>; 2],
    done: Receiver<Span>,
    /// How many rounds there have been.
    rounds: Cell<usize>,
}

/// So many calls, begun when so many threads are ready.
struct Job {
    round: usize,
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
        Self { workers: [worker(), worker()], done, rounds: Cell::new(0) }
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
        let round = self.rounds.get();
        self.rounds.set(round + 1);
        let ready = Arc::new(AtomicU32::new(0));
        for worker in self.workers.iter().take(threads as usize) {
            let job = Job { round, work, calls, ready: Arc::clone(&ready), threads };
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
        deeper(self.round, self.work, self.calls);
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

/// Short, so that even on a busy machine two threads get through some of them together.
const ROUND: Duration = Duration::from_micros(200);
/// A busy machine is given longer, until so many rounds of every row were undisturbed.
const ENOUGH: usize = 40;
const SHORTEST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(60);
