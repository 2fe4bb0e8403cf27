//! The concurrency limit: never one too many, first come first served, and no place lost whoever gives up when.

mod support;

use std::{
    cell::RefCell,
    collections::VecDeque,
    future::Future,
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use proptest::prelude::*;
use relent::{
    Clock, ConcurrencyPolicy, Gate, ManualClock, Timestamp,
    control::{
        Concurrency,
        concurrency::{Acquire, Permit},
    },
};

use support::SECOND;

fn limit(limit: u32, queue: u32) -> Concurrency {
    Concurrency::new(&ConcurrencyPolicy { limit, queue }).unwrap()
}

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Waits for a permit until the deadline.
async fn acquire_until<'a>(
    limit: &'a Concurrency,
    clock: &ManualClock,
    deadline: Timestamp,
) -> Option<Permit<'a>> {
    let mut acquire = limit.acquire();
    let mut timer = pin!(clock.sleep_until(deadline));
    std::future::poll_fn(|cx| match Pin::new(&mut acquire).poll(cx) {
        Poll::Ready(result) => Poll::Ready(result.ok()),
        Poll::Pending => timer.as_mut().poll(cx).map(|()| None),
    })
    .await
}

/// Polls all futures until each is ready, in turn.
async fn all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|cx| {
        for (future, output) in &mut running {
            if output.is_none()
                && let Poll::Ready(ready) = future.as_mut().poll(cx)
            {
                *output = Some(ready);
            }
        }
        if running.iter().all(|(_, output)| output.is_some()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    running.into_iter().filter_map(|(_, output)| output).collect()
}

#[test]
fn no_permit_goes_to_waiters_who_have_given_up() {
    // LI-01
    let limit = limit(8, 8);
    let clock = ManualClock::new();
    for round in 0..1_000u64 {
        let holders: Vec<_> = (0..8).map(|_| limit.try_acquire().unwrap()).collect();
        let deadline = Timestamp::from_millis((round + 1) * 100);
        let waited = clock.block_on(all((0..8).map(|_| acquire_until(&limit, &clock, deadline))));
        assert!(waited.iter().all(Option::is_none));
        assert_eq!(limit.waiting(), 0);
        drop(holders);
        let asked: Vec<_> = (0..16).map(|_| limit.try_acquire()).collect();
        assert_eq!(asked.iter().filter(|permit| permit.is_ok()).count(), 8);
        drop(asked);
        assert_eq!((limit.in_flight(), limit.waiting()), (0, 0));
    }
}

#[test]
fn the_limit_itself_is_the_last_that_goes() {
    // LI-03
    for most in [1, 10] {
        let limit = limit(most, 0);
        let held: Vec<_> = (0..=most).map(|_| limit.try_acquire()).collect();
        assert_eq!(held.iter().filter(|permit| permit.is_ok()).count(), most as usize);
        let refused = held[most as usize].as_ref().unwrap_err();
        assert_eq!((refused.by, refused.until), (Gate::Concurrency, None));
        assert!(!refused.advised.is_zero());
    }
}

#[test]
fn a_limit_of_nothing_cannot_be_built() {
    // LI-05
    let refused = Concurrency::new(&ConcurrencyPolicy { limit: 0, queue: 10 }).unwrap_err();
    assert_eq!(refused.field, "concurrency.limit");
    let limit = limit(1, 0);
    assert!(limit.set_limit(0).is_err());
    assert_eq!(limit.limit(), 1);
}

/// Two waiters behind a holder who leaves at 1 s; each needs a second. When they began and ended.
fn two_waiters(raised_at: Option<Duration>) -> Vec<(Timestamp, Timestamp)> {
    let limit = limit(1, 2);
    let clock = ManualClock::new();
    let log = Rc::new(RefCell::new(Vec::new()));
    let holder = limit.try_acquire().unwrap();
    let waiter = || async {
        let permit = limit.acquire().await.unwrap();
        let began = clock.now();
        clock.sleep(SECOND).await;
        drop(permit);
        log.borrow_mut().push((began, clock.now()));
    };
    let release = async {
        clock.sleep(SECOND).await;
        drop(holder);
    };
    let raise = async {
        if let Some(after) = raised_at {
            clock.sleep(after).await;
            limit.set_limit(3).unwrap();
        }
    };
    let tasks: Vec<Pin<Box<dyn Future<Output = ()>>>> =
        vec![Box::pin(waiter()), Box::pin(waiter()), Box::pin(release), Box::pin(raise)];
    clock.block_on(all(tasks));
    assert_eq!((limit.in_flight(), limit.waiting()), (0, 0));
    log.take()
}

#[test]
fn every_waiter_is_woken_when_its_turn_comes() {
    // LI-07
    let ms = Timestamp::from_millis;
    assert_eq!(two_waiters(None), [(ms(1_000), ms(2_000)), (ms(2_000), ms(3_000))]);
    let raised = two_waiters(Some(Duration::from_millis(500)));
    assert_eq!(raised, [(ms(500), ms(1_500)), (ms(500), ms(1_500))]);
}

#[test]
fn work_that_outlives_its_timeout_keeps_its_place_until_it_ends() {
    // LI-09, the permit's side: a call each second; the work takes ten and cannot be stopped.
    let limit = limit(2, 0);
    let clock = ManualClock::new();
    let running = RefCell::new((0, 0));
    let call = |second: u64| {
        let (limit, clock, running) = (&limit, &clock, &running);
        async move {
            clock.sleep_until(Timestamp::from_secs(second)).await;
            let Ok(permit) = limit.try_acquire() else { return };
            let overrun = permit.keep();
            {
                let mut counts = running.borrow_mut();
                counts.0 += 1;
                counts.1 = counts.0.max(counts.1);
            }
            // The caller is answered after a second; this is the work that goes on.
            clock.sleep(10 * SECOND).await;
            running.borrow_mut().0 -= 1;
            drop(overrun);
        }
    };
    clock.block_on(all((0..10).map(call)));
    assert_eq!(*running.borrow(), (0, 2));
    assert_eq!(limit.in_flight(), 0);
}

#[test]
fn waiting_for_admission_ends_with_the_deadline_and_costs_no_place() {
    // TO-06, the queue's side
    let limit = limit(1, 1);
    let clock = ManualClock::new();
    let holder = limit.try_acquire().unwrap();
    let admitted = clock.block_on(acquire_until(&limit, &clock, Timestamp::from_secs(1)));
    assert!(admitted.is_none());
    assert_eq!((clock.now(), limit.waiting()), (Timestamp::from_secs(1), 0));
    clock.advance(9 * SECOND);
    drop(holder);
    assert_eq!(limit.in_flight(), 0);
    assert!(limit.try_acquire().is_ok(), "the full capacity is free");
}

#[test]
fn a_full_queue_refuses_at_once() {
    let limit = limit(1, 1);
    let _held = limit.try_acquire().unwrap();
    let mut waits = limit.acquire();
    assert!(poll(&mut waits).is_pending());
    let Poll::Ready(Err(refused)) = poll(&mut limit.acquire()) else { panic!("it waits") };
    assert_eq!(refused.by, Gate::Concurrency);
    assert_eq!((limit.in_flight(), limit.waiting()), (1, 1));
}

/// Two who wait for the one place, of whom the first has been given it and does not know yet.
fn waiters_whose_turn_has_come(limit: &Concurrency) -> [Acquire<'_>; 2] {
    let held = limit.try_acquire().unwrap();
    let mut waiters = [limit.acquire(), limit.acquire()];
    assert!(waiters.iter_mut().all(|waiter| poll(waiter).is_pending()));
    drop(held);
    waiters
}

#[test]
fn nobody_who_comes_later_overtakes_a_waiter() {
    let limit = limit(1, 2);
    let [mut first, mut second] = waiters_whose_turn_has_come(&limit);
    assert!(limit.try_acquire().is_err(), "the place is the first waiter's");
    assert!(poll(&mut second).is_pending());
    let Poll::Ready(Ok(permit)) = poll(&mut first) else { panic!("it has its turn") };
    drop(permit);
    assert!(poll(&mut second).is_ready());
}

#[test]
fn a_waiter_that_is_dropped_after_its_turn_came_passes_it_on() {
    let limit = limit(1, 2);
    let [first, mut second] = waiters_whose_turn_has_come(&limit);
    drop(first);
    assert!(poll(&mut second).is_ready());
    drop(second);
    assert_eq!(limit.in_flight(), 0);
}

#[test]
fn a_lowered_limit_interrupts_nobody_and_lets_nobody_in_until_enough_have_left() {
    let limit = limit(3, 1);
    let mut held: Vec<_> = (0..3).map(|_| limit.try_acquire().unwrap()).collect();
    limit.set_limit(1).unwrap();
    let mut waits = limit.acquire();
    for left in [3, 2] {
        assert_eq!(limit.in_flight(), left);
        assert!(poll(&mut waits).is_pending());
        held.pop();
    }
    assert!(poll(&mut waits).is_pending());
    held.pop();
    assert!(poll(&mut waits).is_ready());
}

/// A waker whose dropping gives a permit back, as that of a task does which holds one.
#[test]
fn a_waker_may_hold_a_permit_of_the_limit_that_drops_it() {
    struct Holds(
        #[expect(dead_code, reason = "it is there to be dropped")] relent::control::concurrency::OwnedPermit,
    );
    impl std::task::Wake for Holds {
        fn wake(self: std::sync::Arc<Self>) {}
    }
    let limit = limit(2, 1);
    let held = limit.try_acquire().unwrap();
    let in_waker = Waker::from(std::sync::Arc::new(Holds(limit.try_acquire().unwrap().keep())));
    let mut waits = limit.acquire();
    assert!(Pin::new(&mut waits).poll(&mut Context::from_waker(&in_waker)).is_pending());
    drop(in_waker);
    // Replacing the waker drops the last reference to it, the permit, and lets the waiter itself in.
    assert!(poll(&mut waits).is_pending());
    assert!(poll(&mut waits).is_ready());
    drop((waits, held));
    assert_eq!(limit.in_flight(), 0);
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Try,
    Wait,
    Release(proptest::sample::Index),
    Poll(proptest::sample::Index),
    GiveUp(proptest::sample::Index),
    Limit(u32),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let index = any::<proptest::sample::Index>;
    let act = prop_oneof![
        2 => Just(Act::Try),
        4 => Just(Act::Wait),
        4 => index().prop_map(Act::Release),
        4 => index().prop_map(Act::Poll),
        2 => index().prop_map(Act::GiveUp),
        1 => (1u32..5).prop_map(Act::Limit),
    ];
    proptest::collection::vec(act, 0..120)
}

/// The naive twin: who is in, and everybody who waits, by name.
struct Twin {
    limit: usize,
    bound: usize,
    held: usize,
    /// Given a place and not polled since.
    granted: Vec<u32>,
    waiting: VecDeque<u32>,
}

impl Twin {
    fn has_room(&self) -> bool {
        self.held + self.granted.len() < self.limit
    }

    fn settle(&mut self) {
        while self.has_room()
            && let Some(first) = self.waiting.pop_front()
        {
            self.granted.push(first);
        }
    }
}

/// The limit and its twin, told the same.
struct Pair<'l> {
    limit: &'l Concurrency,
    twin: Twin,
    held: Vec<Permit<'l>>,
    waiters: Vec<(u32, Acquire<'l>)>,
}

impl Pair<'_> {
    fn perform(&mut self, name: u32, act: Act) -> Result<(), TestCaseError> {
        match act {
            Act::Try => self.try_it()?,
            Act::Wait => self.wait(name)?,
            Act::Release(index) if !self.held.is_empty() => {
                drop(self.held.swap_remove(index.index(self.held.len())));
                self.twin.held -= 1;
            }
            Act::Poll(index) if !self.waiters.is_empty() => self.poll(index.index(self.waiters.len()))?,
            Act::GiveUp(index) if !self.waiters.is_empty() => {
                let (name, _) = self.waiters.remove(index.index(self.waiters.len()));
                self.twin.granted.retain(|granted| *granted != name);
                self.twin.waiting.retain(|waiting| *waiting != name);
            }
            Act::Limit(most) => {
                self.limit.set_limit(most).unwrap();
                self.twin.limit = most as usize;
            }
            Act::Release(_) | Act::Poll(_) | Act::GiveUp(_) => {}
        }
        self.twin.settle();
        prop_assert_eq!(self.limit.in_flight() as usize, self.twin.held + self.twin.granted.len());
        prop_assert_eq!(self.limit.waiting() as usize, self.twin.waiting.len());
        Ok(())
    }

    fn try_it(&mut self) -> Result<(), TestCaseError> {
        let expected = self.twin.waiting.is_empty() && self.twin.has_room();
        let got = self.limit.try_acquire();
        prop_assert_eq!(got.is_ok(), expected);
        self.twin.held += usize::from(expected);
        self.held.extend(got);
        Ok(())
    }

    fn wait(&mut self, name: u32) -> Result<(), TestCaseError> {
        let twin = &mut self.twin;
        let mut acquire = self.limit.acquire();
        match poll(&mut acquire) {
            Poll::Ready(Ok(permit)) => {
                prop_assert!(twin.waiting.is_empty() && twin.has_room());
                twin.held += 1;
                self.held.push(permit);
            }
            Poll::Ready(Err(_)) => prop_assert!(!twin.has_room() && twin.waiting.len() == twin.bound),
            Poll::Pending => {
                prop_assert!(!twin.has_room() && twin.waiting.len() < twin.bound);
                twin.waiting.push_back(name);
                self.waiters.push((name, acquire));
            }
        }
        Ok(())
    }

    fn poll(&mut self, index: usize) -> Result<(), TestCaseError> {
        let (name, acquire) = &mut self.waiters[index];
        let (name, polled) = (*name, poll(acquire));
        prop_assert_eq!(polled.is_ready(), self.twin.granted.contains(&name));
        if let Poll::Ready(permit) = polled {
            self.held.push(permit.unwrap());
            drop(self.waiters.remove(index));
            self.twin.granted.retain(|granted| *granted != name);
            self.twin.held += 1;
        }
        Ok(())
    }
}

#[test]
fn it_shows_how_it_stands() {
    let limit = limit(1, 5);
    let _held = limit.try_acquire().unwrap();
    let mut waiter = limit.acquire();
    assert!(poll(&mut waiter).is_pending());
    let shown = format!("{limit:?}");
    assert!(shown.contains("limit: 1, in_flight: 1, is_awaited: true"), "{shown}");
    assert!(format!("{waiter:?}").contains("wait: "), "{waiter:?}");
}

proptest! {
    #[test]
    fn the_limit_is_its_naive_twin(most in 1u32..5, bound in 0u32..5, acts in acts()) {
        let limit = limit(most, bound);
        let twin = Twin {
            limit: most as usize, bound: bound as usize, held: 0, granted: vec![], waiting: VecDeque::new(),
        };
        let mut pair = Pair { limit: &limit, twin, held: Vec::new(), waiters: Vec::new() };
        for (name, act) in (0..).zip(acts) {
            pair.perform(name, act)?;
        }
        drop(pair);
        prop_assert_eq!((limit.in_flight(), limit.waiting()), (0, 0));
    }
}
