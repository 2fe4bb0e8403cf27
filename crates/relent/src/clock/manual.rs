//! A clock that stands still until it is told to move: tests that wait, without waiting.

use std::{
    collections::BTreeMap,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread,
    time::Duration,
};

use relent_core::Timestamp;

use super::{BlockingClock, Clock, Unpark};

/// A clock for tests. It moves when it is told to and not otherwise; clones share its time; it works under any
/// executor, or under none by [`ManualClock::block_on`].
///
/// # Examples
///
/// An hour passes at once:
///
/// ```
/// use std::time::Duration;
/// use relent::{Clock, ManualClock, Timestamp};
///
/// let clock = ManualClock::new();
/// clock.block_on(clock.sleep(Duration::from_secs(3600)));
/// assert_eq!(clock.now(), Timestamp::from_secs(3600));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    hall: Arc<Mutex<Hall>>,
}

impl ManualClock {
    /// A clock that stands at [`Timestamp::ZERO`].
    pub fn new() -> Self {
        Self::default()
    }

    /// A clock that stands at `at`.
    pub fn starting_at(at: Timestamp) -> Self {
        let clock = Self::new();
        clock.lock().now = at;
        clock
    }

    /// Moves the time on by `length` and wakes everybody whose instant has come, the earliest first.
    ///
    /// It goes there in one leap: whoever wakes finds the clock at the end of it. To stop at each sleeper, use
    /// [`ManualClock::advance_to_next`] or [`ManualClock::drive`].
    pub fn advance(&self, length: Duration) {
        let at = self.lock().now.after(length);
        self.move_to(at);
    }

    /// Moves the time on to the next sleeper's instant and wakes whoever sleeps until then. `None`: nobody
    /// sleeps, and the time does not move.
    pub fn advance_to_next(&self) -> Option<Timestamp> {
        let at = self.next_wake()?;
        self.move_to(at);
        Some(at)
    }

    /// The instant of the next sleeper. `None`: nobody sleeps.
    pub fn next_wake(&self) -> Option<Timestamp> {
        self.lock().sleepers.keys().next().map(|(at, _)| *at)
    }

    /// How many sleeps are pending.
    pub fn sleepers(&self) -> usize {
        self.lock().sleepers.len()
    }

    /// Waits until at least `count` sleeps are pending, so that a test can move the time when the tasks it
    /// spawned have got that far.
    pub async fn until_asleep(&self, count: usize) {
        poll_fn(|cx| {
            let mut hall = self.lock();
            if hall.sleepers.len() >= count {
                return Poll::Ready(());
            }
            hall.watch(cx.waker());
            Poll::Pending
        })
        .await;
    }

    /// Runs `future`, and whenever it waits for nothing but time, moves the time on to the next sleeper.
    ///
    /// Exact for everything inside the future, `join` and `select` included. Tasks spawned elsewhere that
    /// sleep on this clock are moved along too, but such a task that waits for its turn on the executor is not
    /// seen and may find that the time has passed it.
    ///
    /// # Cancellation safety
    ///
    /// Dropping it drops the future; the time stays where it is.
    pub async fn drive<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        let relay = Arc::new(Relay::default());
        let waker = Waker::from(Arc::clone(&relay));
        poll_fn(|cx| {
            relay.pass_on_to(cx.waker());
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Poll::Ready(output);
            }
            if relay.is_woken() {
                return Poll::Pending;
            }
            match self.advance_to_next() {
                Some(_) => cx.waker().wake_by_ref(),
                None => self.watch_for_sleepers(cx.waker()),
            }
            Poll::Pending
        })
        .await
    }

    /// [`ManualClock::drive`] on this thread, without an executor.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(self.drive(future));
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut cx = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                return output;
            }
            thread::park();
        }
    }

    /// Wakes outside the lock: a waker may run anything, this clock's own methods included.
    fn move_to(&self, at: Timestamp) {
        let mut woken = Vec::new();
        {
            let mut hall = self.lock();
            hall.now = hall.now.max(at);
            while let Some(first) = hall.sleepers.first_entry().filter(|first| first.key().0 <= at) {
                woken.push(first.remove());
            }
        }
        woken.into_iter().for_each(Waker::wake);
    }

    /// A sleeper may have come between the look and the registration, so it looks again.
    fn watch_for_sleepers(&self, waker: &Waker) {
        let mut hall = self.lock();
        hall.watch(waker);
        if !hall.sleepers.is_empty() {
            drop(hall);
            waker.wake_by_ref();
        }
    }

    /// A panic under the lock leaves the hall whole (each change is one step), so poison is no news.
    fn lock(&self) -> MutexGuard<'_, Hall> {
        self.hall.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    type Sleep = ManualSleep;

    fn now(&self) -> Timestamp {
        self.lock().now
    }

    fn timeline(&self) -> Option<usize> {
        Some(Arc::as_ptr(&self.hall).addr())
    }

    fn sleep_until(&self, at: Timestamp) -> ManualSleep {
        ManualSleep { clock: self.clone(), at, progress: Progress::NotBegun }
    }
}

/// Who blocks on it moves the time on.
impl BlockingClock for ManualClock {
    fn block_until<F: Future>(&self, at: Timestamp, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut cx = Context::from_waker(Waker::noop());
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return Some(output);
        }
        self.move_to(at);
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    fn pause_until(&self, at: Timestamp) {
        self.move_to(at);
    }
}

/// Who sleeps, and until when.
#[derive(Debug, Default)]
struct Hall {
    now: Timestamp,
    /// By instant, then by arrival.
    sleepers: BTreeMap<(Timestamp, u64), Waker>,
    arrivals: u64,
    /// Who wants to know when somebody falls asleep.
    watchers: Vec<Waker>,
}

impl Hall {
    fn watch(&mut self, waker: &Waker) {
        if !self.watchers.iter().any(|known| known.will_wake(waker)) {
            self.watchers.push(waker.clone());
        }
    }
}

/// A sleep of a [`ManualClock`]. Its place among the sleepers is given up when it is dropped.
#[derive(Debug)]
#[must_use = "it sleeps only while it is polled"]
pub struct ManualSleep {
    clock: ManualClock,
    at: Timestamp,
    progress: Progress,
}

#[derive(Clone, Copy, Debug)]
enum Progress {
    NotBegun,
    /// Its instant had come when it began; it lets others go first, once.
    Yielded,
    /// With its place by arrival.
    Asleep(u64),
}

impl Future for ManualSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut hall = self.clock.lock();
        let place = match self.progress {
            Progress::NotBegun if hall.now >= self.at => {
                drop(hall);
                self.progress = Progress::Yielded;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Progress::Yielded | Progress::Asleep(_) if hall.now >= self.at => return Poll::Ready(()),
            Progress::NotBegun | Progress::Yielded => {
                hall.arrivals += 1;
                hall.arrivals
            }
            Progress::Asleep(place) => place,
        };
        hall.sleepers.insert((self.at, place), cx.waker().clone());
        let watchers = std::mem::take(&mut hall.watchers);
        drop(hall);
        self.progress = Progress::Asleep(place);
        watchers.into_iter().for_each(Waker::wake);
        Poll::Pending
    }
}

impl Drop for ManualSleep {
    fn drop(&mut self) {
        if let Progress::Asleep(place) = self.progress {
            self.clock.lock().sleepers.remove(&(self.at, place));
        }
    }
}

/// Passes a wake-up on to the executor and remembers that there was one.
#[derive(Default)]
struct Relay {
    woken: AtomicBool,
    outer: Mutex<Option<Waker>>,
}

impl Relay {
    fn pass_on_to(&self, outer: &Waker) {
        self.woken.store(false, Ordering::SeqCst);
        *self.outer.lock().unwrap_or_else(PoisonError::into_inner) = Some(outer.clone());
    }

    fn is_woken(&self) -> bool {
        self.woken.load(Ordering::SeqCst)
    }
}

impl Wake for Relay {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        let outer = self.outer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(outer) = outer {
            outer.wake();
        }
    }
}
