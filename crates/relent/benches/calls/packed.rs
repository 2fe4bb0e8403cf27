//! The pipeline that a careful person would write by hand for one service: what the whole of relent's is held to.
//!
//! Limit, breaker and budget share one word, so that one locked instruction lets a call in and one ends it. Both
//! deadlines share one timer, which is set when the operation is not ready at once; the clock is read when a call
//! begins and when an attempt ends, as a window of time and slow calls need. It has no events, no reports, no queue,
//! no half-open probes, no classes of failure, no idempotency and no nesting, draws its jitter from a counter, and
//! its window tumbles: a floor, and no product.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::atomic::{AtomicU64, Ordering},
    task::Poll,
    time::{Duration, Instant},
};

use tokio::time::sleep_until;

/// A limit, a breaker and a budget in one word, from the bottom: in flight (16 bits), calls of the window (16),
/// failed or slow ones (16), tokens in tenths (15), open (1).
pub(crate) struct Packed {
    word: AtomicU64,
    /// When the window began, or until when the breaker is open: nanoseconds since `origin`.
    turn: AtomicU64,
    origin: Instant,
    draws: AtomicU64,
    pub(crate) rules: Rules,
}

/// Times are in nanoseconds.
#[derive(Clone)]
pub(crate) struct Rules {
    pub(crate) limit: u64,
    pub(crate) attempts: u32,
    pub(crate) total: u64,
    pub(crate) attempt: u64,
    pub(crate) slow: u64,
    pub(crate) window: u64,
    pub(crate) least_calls: u64,
    pub(crate) open_for: u64,
    pub(crate) wait: u64,
    pub(crate) most_tokens: u64,
}

#[derive(Debug)]
pub(crate) enum Failed<E> {
    Full,
    Open,
    TimedOut,
    Error(E),
}

/// A call in flight, which leaves whatever becomes of it.
struct InFlight<'a> {
    packed: &'a Packed,
}

impl Packed {
    pub(crate) fn new(rules: Rules) -> Self {
        let word = AtomicU64::new(rules.most_tokens << TOKENS);
        Self { word, turn: AtomicU64::new(0), origin: Instant::now(), draws: AtomicU64::new(0), rules }
    }

    pub(crate) async fn run<T, E, Fut>(&self, mut operation: impl FnMut(u32) -> Fut) -> Result<T, Failed<E>>
    where
        Fut: Future<Output = Result<T, E>>,
    {
        let mut now = self.now();
        let deadline = now + self.rules.total;
        let call = self.enter(now)?;
        let mut number = 1;
        loop {
            let until = deadline.min(now + self.rules.attempt);
            let mut attempt = pin!(operation(number));
            let mut timer = pin!(None);
            // `None` if the time is up first. The timer is set when the attempt is not ready at once.
            let result = poll_fn(|cx| {
                if let Poll::Ready(result) = attempt.as_mut().poll(cx) {
                    return Poll::Ready(Some(result));
                }
                if timer.is_none() {
                    timer.set(Some(sleep_until(self.instant(until))));
                }
                match timer.as_mut().as_pin_mut() {
                    Some(timer) => timer.poll(cx).map(|()| None),
                    None => Poll::Pending,
                }
            })
            .await;
            let ended = self.now();
            let slow = ended - now > self.rules.slow;
            let error = match result {
                Some(Ok(value)) => {
                    call.succeed(slow, ended);
                    return Ok(value);
                }
                Some(Err(error)) => Failed::Error(error),
                None => Failed::TimedOut,
            };
            let wait = self.draw(number);
            if !call.fail(ended) || number == self.rules.attempts || ended + wait >= deadline {
                return Err(error);
            }
            number += 1;
            if wait > 0 {
                sleep_until(self.instant(ended + wait)).await;
            }
            now = self.now();
        }
    }

    /// Nanoseconds since the origin.
    fn now(&self) -> u64 {
        let passed = Instant::now().saturating_duration_since(self.origin);
        passed.as_secs() * 1_000_000_000 + u64::from(passed.subsec_nanos())
    }

    /// A test cannot pause this clock, as it can tokio's; who writes by hand may do without.
    fn instant(&self, at: u64) -> tokio::time::Instant {
        (self.origin + Duration::from_nanos(at)).into()
    }

    fn enter<E>(&self, now: u64) -> Result<InFlight<'_>, Failed<E>> {
        let word = self.word.load(Ordering::Acquire);
        if word & OPEN != 0 && now < self.turn.load(Ordering::Acquire) {
            return Err(Failed::Open);
        }
        if word & FIELD >= self.rules.limit {
            return Err(Failed::Full);
        }
        let before = self.word.fetch_add(1, Ordering::AcqRel);
        let call = InFlight { packed: self };
        if before & FIELD >= self.rules.limit { Err(Failed::Full) } else { Ok(call) }
    }

    /// Nanoseconds.
    fn draw(&self, number: u32) -> u64 {
        let ceiling = self.rules.wait << number.min(16);
        if ceiling == 0 {
            return 0;
        }
        self.draws.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed) % ceiling
    }

    /// The word with an empty window, where that of before is over.
    fn turned(&self, word: u64, ended: u64) -> u64 {
        let began = self.turn.load(Ordering::Relaxed);
        if ended < began + self.rules.window {
            return word;
        }
        self.turn.store(ended, Ordering::Relaxed);
        word & !(FIELD << CALLS | FIELD << BAD | OPEN)
    }
}

impl InFlight<'_> {
    fn succeed(self, slow: bool, ended: u64) {
        let packed = self.packed;
        let mut word = packed.word.load(Ordering::Relaxed);
        loop {
            let mut next = packed.turned(word, ended) - 1 + (1 << CALLS) + (u64::from(slow) << BAD);
            if (next >> TOKENS) & TOKEN_FIELD < packed.rules.most_tokens {
                next += 1 << TOKENS;
            }
            match packed.word.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => break,
                Err(seen) => word = seen,
            }
        }
        std::mem::forget(self);
    }

    /// Whether a token is there for a retry.
    fn fail(&self, ended: u64) -> bool {
        let packed = self.packed;
        let mut word = packed.word.load(Ordering::Relaxed);
        loop {
            let mut next = packed.turned(word, ended) + (1 << CALLS) + (1 << BAD);
            let allowed = (next >> TOKENS) & TOKEN_FIELD >= 10;
            next -= if allowed { 10 << TOKENS } else { 0 };
            let (calls, bad) = (next >> CALLS & FIELD, next >> BAD & FIELD);
            if calls >= packed.rules.least_calls && bad * 2 >= calls {
                next |= OPEN;
            }
            match packed.word.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) if next & OPEN != 0 => {
                    packed.turn.store(ended + packed.rules.open_for, Ordering::Release);
                    return false;
                }
                Ok(_) => return allowed,
                Err(seen) => word = seen,
            }
        }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.packed.word.fetch_sub(1, Ordering::AcqRel);
    }
}

const CALLS: u32 = 16;
const BAD: u32 = 32;
const TOKENS: u32 = 48;
const FIELD: u64 = 0xffff;
const TOKEN_FIELD: u64 = 0x7fff;
const OPEN: u64 = 1 << 63;
