//! A deadline that the caller of the process gave, and the calls that are made to answer it.

mod support;

use std::{io, thread, time::Duration};

use relent::{
    Ambient, Backoff, Clock, Event, ManualClock, Nesting, Observe, Pipeline, Policy, Scene, StopReason,
    Timestamp, TokioClock,
};
use support::{SECOND, plain, with_attempts};

fn refused() -> io::Error {
    io::ErrorKind::ConnectionRefused.into()
}

/// A call that fails at once, again and again, one second apart within ten.
fn policy() -> Policy {
    Policy { total_timeout: Some(10 * SECOND), ..with_attempts(100, plain(Backoff::Constant(SECOND))) }
}

#[test]
fn a_deadline_that_has_passed_begins_no_call() {
    // TO-14 (a)
    let clock = ManualClock::new();
    clock.advance(10 * SECOND);
    let stock = Pipeline::on(clock.clone(), policy()).unwrap();
    let ambient = Ambient::on(clock.clone()).until(clock.now().before(SECOND));
    let call = ambient.scope(async { stock.run(|_| async { Ok::<_, io::Error>(()) }).await });
    let error = clock.block_on(call).unwrap_err();
    assert_eq!((error.stop(), error.report().attempts), (StopReason::UpstreamDeadline, 0));
}

#[test]
fn the_callers_deadline_counts_where_it_is_sooner() {
    // TO-14 (b): attempts at 0, 1, 2 and 3.
    let clock = ManualClock::new();
    let stock = Pipeline::on(clock.clone(), policy()).unwrap();
    let ambient = Ambient::on(clock.clone()).until(clock.now().after(4 * SECOND));
    let work = async { stock.run(|_| async { Err::<(), _>(refused()) }).await };
    let error = clock.block_on(ambient.scope(work)).unwrap_err();
    assert_eq!((error.stop(), error.report().attempts), (StopReason::UpstreamDeadline, 4));
    assert!(clock.now().as_secs() <= 4);

    let unbounded = clock.block_on(stock.run(|_| async { Err::<(), _>(refused()) })).unwrap_err();
    assert_eq!(unbounded.stop(), StopReason::TotalTimeout, "outside of it nothing is left");
}

#[test]
fn of_nested_deadlines_and_a_calls_own_the_earliest_counts() {
    let clock = ManualClock::new();
    let stock = Pipeline::on(clock.clone(), policy()).unwrap();
    let until = |seconds: u32| Ambient::on(clock.clone()).until(clock.now().after(seconds * SECOND));
    for (outer, inner, own, earliest) in [(3, 9, 9, 3), (9, 3, 9, 3), (9, 9, 3, 3)] {
        let began = clock.now();
        let (outer, inner) = (until(outer), until(inner));
        let work = async {
            inner
                .scope(async {
                    stock
                        .calls()
                        .with_deadline_in(own * SECOND)
                        .run(|_| async { Err::<(), _>(refused()) })
                        .await
                })
                .await
        };
        let error = clock.block_on(outer.scope(work)).unwrap_err();
        assert_eq!(error.report().attempts, earliest, "{:?}", clock.now().since(began));
    }
}

#[test]
fn a_spawned_task_takes_it_along() {
    let clock = ManualClock::new();
    let ambient = Ambient::on(clock.clone()).until(clock.now().after(4 * SECOND)).in_attempt(2);
    assert!(Ambient::here(clock.clone()).is_none());
    let taken = ambient.around(|| Ambient::here(clock.clone())).unwrap();
    assert_eq!((taken.deadline(), taken.attempt()), (ambient.deadline(), Some(2)));
    let elsewhere = thread::spawn({
        let clock = clock.clone();
        move || {
            (
                Ambient::here(clock.clone()).is_none(),
                taken.around(|| Ambient::here(clock)).unwrap().deadline(),
            )
        }
    });
    assert_eq!(elsewhere.join().unwrap(), (true, ambient.deadline()));
}

#[test]
fn another_clock_is_told_what_is_left() {
    let clock = ManualClock::new();
    let ambient = Ambient::on(clock.clone()).until(clock.now().after(60 * SECOND));
    let before = TokioClock.now();
    let on_tokio = ambient.around(|| Ambient::here(TokioClock)).unwrap().deadline().unwrap();
    let left = on_tokio.since(before);
    assert!(left >= 60 * SECOND && left < 60 * SECOND + Duration::from_secs(30), "{left:?}");
}

#[test]
fn two_clocks_of_one_type_are_two_clocks() {
    let (ahead, behind) = (ManualClock::starting_at(Timestamp::from_secs(3600)), ManualClock::new());
    for (theirs, ours) in [(&ahead, &behind), (&behind, &ahead)] {
        let ambient = Ambient::on(theirs.clone()).until(theirs.now().after(4 * SECOND));
        let deadline = ambient.around(|| Ambient::here(ours.clone())).unwrap().deadline();
        assert_eq!(deadline, Some(ours.now().after(4 * SECOND)));
    }
}

#[test]
fn a_panic_leaves_nothing_behind() {
    let clock = ManualClock::new();
    let ambient = Ambient::on(clock.clone()).until(clock.now());
    let panicked =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| ambient.around(|| panic!("as planned"))));
    assert!(panicked.is_err() && Ambient::here(clock).is_none());
}

/// Keeps what it is told of nesting.
#[derive(Default)]
struct Nestings(std::sync::Mutex<Vec<(Nesting, Option<u32>)>>);

impl Observe for Nestings {
    fn observe(&self, _: Scene<'_>, event: &Event<'_>) {
        if let Event::Nested { nesting, attempts } = event {
            self.0.lock().unwrap().push((*nesting, *attempts));
        }
    }
}

#[test]
fn a_retry_below_a_caller_who_retries_is_seen() {
    // RT-21, across processes.
    let clock = ManualClock::new();
    let seen = std::sync::Arc::new(Nestings::default());
    let stock = Pipeline::on(clock.clone(), with_attempts(3, plain(Backoff::Constant(SECOND))))
        .unwrap()
        .observed_by(seen.clone());
    let work = || async { stock.run(|_| async { Err::<(), _>(refused()) }).await };
    let ambient = Ambient::on(clock.clone()).in_attempt(2);
    let error = clock.block_on(ambient.scope(work())).unwrap_err();
    assert_eq!((error.stop(), error.report().attempts), (StopReason::AttemptsExhausted, 3));
    assert_eq!(*seen.0.lock().unwrap(), [(Nesting::Within, None)], "how often the caller tries is not known");
}

#[test]
fn a_caller_who_retries_may_be_left_to_it() {
    // RT-21, across processes: with detection on there is no product.
    let clock = ManualClock::new();
    let stock = Pipeline::on(clock.clone(), with_attempts(3, plain(Backoff::Constant(SECOND)))).unwrap();
    let work = async { stock.run(|_| async { Err::<(), _>(refused()) }).await };
    let ambient = Ambient::on(clock.clone()).in_attempt(2).without_retries();
    let error = clock.block_on(ambient.scope(work)).unwrap_err();
    assert_eq!((error.stop(), error.report().attempts), (StopReason::Nested, 1));
}

#[test]
fn a_deadline_set_within_leaves_the_rest_as_the_caller_said_it() {
    // RT-21, across processes and with work of one's own between.
    let clock = ManualClock::new();
    let stock = Pipeline::on(clock.clone(), with_attempts(3, plain(Backoff::Constant(SECOND)))).unwrap();
    let outer = Ambient::on(clock.clone()).in_attempt(2).without_retries();
    for (inner, attempt) in [(Ambient::on(clock.clone()), 2), (Ambient::on(clock.clone()).in_attempt(1), 1)] {
        let inner = inner.until(clock.now().after(60 * SECOND));
        let work = async {
            let here = Ambient::here(clock.clone()).expect("something was said");
            (here.attempt(), stock.run(|_| async { Err::<(), _>(refused()) }).await.unwrap_err())
        };
        let (told, error) = clock.block_on(outer.clone().scope(inner.scope(work)));
        assert_eq!((told, error.stop(), error.report().attempts), (Some(attempt), StopReason::Nested, 1));
    }
}
