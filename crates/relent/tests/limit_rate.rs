//! The rate limit: booked in order, given up without loss, and never more than the policy says.

mod support;

use std::{
    cell::RefCell,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use proptest::prelude::*;
use relent::{
    Clock, Gate, ManualClock, RatePolicy, Timestamp,
    control::{Rate, rate::Reservation},
};

use support::SECOND;

const AT: fn(u64) -> Timestamp = Timestamp::from_secs;

/// One every two seconds, one at a time, and none left at 0.
fn empty_at_zero() -> Rate {
    let rate = Rate::new(&RatePolicy { permits: 1, per: 2 * SECOND, burst: 1 }).unwrap();
    rate.try_take(AT(0)).unwrap().spend();
    rate
}

type Task<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Polls all tasks until each is ready, in turn.
async fn all(mut tasks: Vec<Task<'_>>) {
    std::future::poll_fn(|cx| {
        tasks.retain_mut(|task| task.as_mut().poll(cx).is_pending());
        if tasks.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

#[test]
fn those_who_wait_are_let_in_one_by_one_in_order_of_arrival() {
    // LI-19
    let (rate, clock) = (empty_at_zero(), ManualClock::new());
    let log = RefCell::new(Vec::new());
    let caller = |name: u32| -> Task<'_> {
        let (rate, clock, log) = (&rate, &clock, &log);
        Box::pin(async move {
            rate.reserve(clock.now(), AT(60)).unwrap().ready(clock).await.spend();
            log.borrow_mut().push((name, clock.now()));
        })
    };
    clock.block_on(all((1..=3).map(caller).collect()));
    assert_eq!(log.take(), [(1, AT(2)), (2, AT(4)), (3, AT(6))]);
    assert_eq!(rate.waiting(), 0);
}

#[test]
fn a_token_is_charged_at_the_send_and_not_before_the_wait() {
    // BU-11: the server asks for 5 s at 0; the token is asked for when they are over.
    let (rate, clock) = (empty_at_zero(), ManualClock::new());
    clock.block_on(clock.sleep(5 * SECOND));
    rate.try_take(clock.now()).expect("it is sent at 5").spend();
    assert_eq!(rate.available(clock.now()), 0, "one is charged");
    assert_eq!(rate.try_take(clock.now()).unwrap_err().until, Some(AT(7)), "and at 5");
}

#[test]
fn a_step_of_the_wall_clock_changes_no_token() {
    // CL-02, the bucket: capacity 10, one a second, empty at 0. Permits are taken at the monotonic time; whoever
    // looks at the bucket with a stepped wall clock sees no more than its capacity, no less than nothing, and
    // changes nothing. (That the clocks of calls do not follow such steps is tested with them.)
    for step in [3_600i64, -3_600] {
        let rate = Rate::new(&RatePolicy { permits: 1, per: SECOND, burst: 10 }).unwrap();
        let clock = ManualClock::starting_at(AT(10_000));
        for _ in 0..10 {
            rate.try_take(clock.now()).unwrap().spend();
        }
        assert_eq!(rate.available(clock.now()), 0);
        clock.advance(5 * SECOND);
        let wall = AT(10_005u64.saturating_add_signed(step));
        assert_eq!(rate.available(wall), if step > 0 { 10 } else { 0 });
        assert_eq!(rate.available(clock.now()), 5, "after a step of {step} s");
        clock.advance(5 * SECOND);
        assert_eq!(rate.available(clock.now()), 10, "a step of {step} s");
    }
}

#[test]
fn who_cannot_wait_that_long_books_nothing_and_is_told_when() {
    let rate = empty_at_zero();
    let refused = rate.reserve(AT(0), AT(1)).unwrap_err();
    assert_eq!((refused.by, refused.until), (Gate::Rate, Some(AT(2))));
    assert_eq!(rate.reserve(AT(0), AT(2)).unwrap().at(), AT(2), "the refused one is not in the way");
}

#[test]
fn those_behind_one_who_gives_up_move_up_and_nothing_is_lost() {
    let rate = empty_at_zero();
    let book = || rate.reserve(AT(0), AT(600)).unwrap();
    let mut line: Vec<_> = (0..100).map(|_| book()).collect();
    assert_eq!(line[99].at(), AT(200));
    // Given up from the front, as a dropped list of futures is.
    for expected in (1..100).rev() {
        drop(line.remove(0));
        assert_eq!((line[0].at(), line.last().unwrap().at()), (AT(2), AT(2 * expected)));
    }
    line.clear();
    assert_eq!(book().at(), AT(2), "as if nobody had been there");
}

#[test]
fn a_waiter_goes_earlier_as_soon_as_its_place_moves_up() {
    let (rate, clock) = (empty_at_zero(), ManualClock::new());
    let log = RefCell::new(Vec::new());
    let mut given_up: Vec<_> = (0..3).map(|_| rate.reserve(AT(0), AT(600)).unwrap()).collect();
    let caller = |name: u32| -> Task<'_> {
        let reservation = rate.reserve(AT(0), AT(600)).unwrap();
        let (clock, log) = (&clock, &log);
        Box::pin(async move {
            reservation.ready(clock).await.spend();
            log.borrow_mut().push((name, clock.now()));
        })
    };
    let quitter: Task<'_> = Box::pin(async {
        clock.sleep(SECOND).await;
        given_up.clear();
    });
    let mut tasks: Vec<Task<'_>> = (1..=3).map(caller).collect();
    tasks.push(quitter);
    clock.block_on(all(tasks));
    assert_eq!(log.take(), [(1, AT(2)), (2, AT(4)), (3, AT(6))], "instead of 8, 10 and 12");
}

#[test]
fn an_unspent_permit_comes_back_only_while_nobody_reckons_with_it() {
    let rate = Rate::new(&RatePolicy { permits: 1, per: 2 * SECOND, burst: 2 }).unwrap();
    let first = rate.try_take(AT(10)).unwrap();
    drop(first);
    assert_eq!(rate.available(AT(10)), 2);
    let first = rate.try_take(AT(10)).unwrap();
    let second = rate.try_take(AT(10)).unwrap();
    drop(first);
    assert_eq!(rate.available(AT(10)), 0, "the second was let in on the reckoning that the first is used");
    drop(second);
    assert_eq!(rate.available(AT(10)), 1);
}

#[test]
fn a_place_that_is_over_is_not_handed_down() {
    let rate = empty_at_zero();
    let late = rate.reserve(AT(0), AT(600)).unwrap();
    let behind = rate.reserve(AT(0), AT(600)).unwrap();
    let behind = behind.claim(AT(3)).unwrap_err();
    drop(late);
    assert_eq!(behind.at(), AT(4), "at 3 it would go one second before the next");
    behind.claim(AT(4)).unwrap().spend();
    assert_eq!(rate.try_take(AT(4)).unwrap_err().until, Some(AT(6)));
}

#[test]
fn a_reservation_is_claimed_at_its_moment_and_not_a_nanosecond_before() {
    let rate = empty_at_zero();
    let reservation = rate.reserve(AT(0), AT(600)).unwrap();
    let early = reservation.claim(AT(2).before(Duration::from_nanos(1))).unwrap_err();
    early.claim(AT(2)).unwrap().spend();
    assert_eq!(rate.waiting(), 0);
}

#[test]
fn a_dropped_wait_frees_its_place() {
    let (rate, clock) = (empty_at_zero(), ManualClock::new());
    let mut wait = Box::pin(rate.reserve(AT(0), AT(600)).unwrap().ready(&clock));
    assert!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!((rate.waiting(), clock.sleepers()), (1, 1));
    drop(wait);
    assert_eq!((rate.waiting(), clock.sleepers()), (0, 0));
    assert_eq!(rate.reserve(AT(0), AT(600)).unwrap().at(), AT(2));
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Take,
    Book,
    GiveUp(proptest::sample::Index),
    Pass(u64),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        3 => Just(Act::Take),
        4 => Just(Act::Book),
        3 => any::<proptest::sample::Index>().prop_map(Act::GiveUp),
        4 => (0u64..3_000).prop_map(Act::Pass),
    ];
    proptest::collection::vec(act, 1..100)
}

/// The naive twin: the times at which permits were used, and how many wait, first come first served. Everybody's
/// moment is found by letting the line go, one after another, at the first time at which the list allows it.
struct Twin {
    interval: u64,
    burst: u64,
    /// When the bucket that they were taken from is full again.
    full_at: u64,
}

impl Twin {
    fn next(&self, now: u64) -> u64 {
        now.max(self.full_at.saturating_sub(self.interval * (self.burst - 1)))
    }

    fn use_one(&mut self, at: u64) {
        self.full_at = self.full_at.max(at) + self.interval;
    }

    /// The moments of `count` who wait.
    fn moments(&self, now: u64, count: usize) -> Vec<u64> {
        let mut line = Self { ..*self };
        let next = |_| {
            let at = line.next(now);
            line.use_one(at);
            at
        };
        (0..count).map(next).collect()
    }
}

#[test]
fn it_shows_how_it_stands() {
    let rate = empty_at_zero();
    assert!(format!("{rate:?}").contains("gate: \"rate\""), "{rate:?}");
    let reservation = rate.reserve(AT(0), AT(9)).unwrap();
    assert!(format!("{reservation:?}").contains("booking: "), "{reservation:?}");
}

proptest! {
    #[test]
    fn the_line_is_its_naive_twin(interval in 1u64..2_000, burst in 1u32..5, acts in acts()) {
        let per = Duration::from_nanos(interval);
        let rate = Rate::new(&RatePolicy { permits: 1, per, burst }).unwrap();
        let mut twin = Twin { interval, burst: burst.into(), full_at: 0 };
        let mut line: Vec<Reservation<'_>> = Vec::new();
        let mut now = 1_000_000;
        for act in acts {
            let at = Timestamp::from_nanos(now);
            let expected = *twin.moments(now, line.len() + 1).last().unwrap();
            match act {
                Act::Take => match rate.try_take(at) {
                    Ok(permit) => {
                        prop_assert_eq!(expected, now);
                        prop_assert!(line.is_empty());
                        permit.spend();
                        twin.use_one(now);
                    }
                    Err(refused) => prop_assert_eq!(refused.until, Some(Timestamp::from_nanos(expected))),
                },
                Act::Book => {
                    let booked = rate.reserve(at, Timestamp::MAX).unwrap();
                    prop_assert_eq!(booked.at().as_nanos(), expected);
                    match expected > now {
                        true => line.push(booked),
                        false => {
                            booked.claim(at).unwrap().spend();
                            twin.use_one(now);
                        }
                    }
                }
                Act::GiveUp(index) if !line.is_empty() => drop(line.remove(index.index(line.len()))),
                Act::GiveUp(_) => {}
                Act::Pass(length) => {
                    // Everybody goes at their moment.
                    let end = now + length;
                    while let Some(first) = line.first().map(Reservation::at).filter(|at| at.as_nanos() <= end) {
                        line.remove(0).claim(first).unwrap().spend();
                        twin.use_one(first.as_nanos());
                    }
                    now = end;
                }
            }
            let moments: Vec<_> = line.iter().map(|waits| waits.at().as_nanos()).collect();
            prop_assert_eq!(moments, twin.moments(now, line.len()));
        }
    }
}
