//! Every interleaving of the limits' atomics and locks, as far as loom tells them apart: no permit is lost, no
//! wake-up is lost, no bound is passed. Two preemptions at most in each interleaving: what more would find is
//! rare, and what it would cost is hours.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p relent --release --no-default-features --test loom_limits`

#![cfg(loom)]

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use loom::{
    future::block_on,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};
use relent::{
    ConcurrencyPolicy, RatePolicy, Timestamp,
    control::{Concurrency, Rate},
};

fn limit(limit: u32, queue: u32) -> Concurrency {
    Concurrency::new(&ConcurrencyPolicy { limit, queue }).unwrap()
}

fn model(check: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(check);
}

/// Counts who is inside and fails if they are too many.
fn inside(count: &AtomicUsize, most: usize) {
    assert!(count.fetch_add(1, Ordering::SeqCst) < most, "one too many is in flight");
    thread::yield_now();
    count.fetch_sub(1, Ordering::SeqCst);
}

fn is_idle(limit: &Concurrency) {
    assert_eq!((limit.in_flight(), limit.waiting()), (0, 0));
    assert!(limit.try_acquire().is_ok(), "a newcomer is let in");
}

#[test]
fn whoever_waits_is_woken_and_no_permit_is_lost() {
    // LI-07: a lost wake-up would be a deadlock, which loom reports.
    model(|| {
        let (limit, count) = (limit(1, 2), Arc::new(AtomicUsize::new(0)));
        let held = limit.try_acquire().unwrap().keep();
        let others: Vec<_> = (0..2)
            .map(|_| {
                let (limit, count) = (limit.clone(), Arc::clone(&count));
                thread::spawn(move || {
                    let permit = block_on(limit.acquire()).expect("the queue holds two");
                    inside(&count, 1);
                    drop(permit);
                })
            })
            .collect();
        drop(held);
        others.into_iter().for_each(|other| other.join().unwrap());
        is_idle(&limit);
    });
}

#[test]
fn a_place_given_to_one_who_gives_up_goes_on() {
    // LI-01
    model(|| {
        let limit = limit(1, 2);
        let held = limit.try_acquire().unwrap().keep();
        let quitter = {
            let limit = limit.clone();
            thread::spawn(move || {
                let mut acquire = pin!(limit.acquire());
                // Whatever it was told, it goes.
                let _ = acquire.as_mut().poll(&mut Context::from_waker(Waker::noop())).map(drop);
            })
        };
        let waiter = {
            let limit = limit.clone();
            thread::spawn(move || drop(block_on(limit.acquire()).expect("the queue holds two")))
        };
        drop(held);
        quitter.join().unwrap();
        waiter.join().unwrap();
        is_idle(&limit);
    });
}

#[test]
fn no_more_wait_than_the_queue_holds_and_no_more_go_than_the_limit() {
    model(|| {
        let limit = limit(1, 1);
        let held = limit.try_acquire().unwrap().keep();
        let refused = Arc::new(AtomicUsize::new(0));
        let others: Vec<_> = (0..2)
            .map(|_| {
                let (limit, refused) = (limit.clone(), Arc::clone(&refused));
                thread::spawn(move || {
                    let mut acquire = pin!(limit.acquire());
                    match acquire.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                        Poll::Ready(Err(_)) => _ = refused.fetch_add(1, Ordering::SeqCst),
                        Poll::Ready(Ok(_)) => panic!("the place is held"),
                        Poll::Pending => assert!(limit.waiting() <= 1),
                    }
                })
            })
            .collect();
        assert!(limit.waiting() <= 1);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert!(refused.load(Ordering::SeqCst) <= 1, "one of them found the queue empty");
        drop(held);
        is_idle(&limit);
    });
}

#[test]
fn a_raised_limit_lets_the_waiter_in() {
    model(|| {
        let limit = limit(1, 1);
        let _held = limit.try_acquire().unwrap();
        let waiter = {
            let limit = limit.clone();
            thread::spawn(move || drop(block_on(limit.acquire()).expect("the queue holds one")))
        };
        limit.set_limit(2).unwrap();
        waiter.join().unwrap();
        assert_eq!((limit.in_flight(), limit.waiting()), (1, 0));
    });
}

#[test]
fn no_more_permits_are_taken_than_there_are() {
    model(|| {
        let rate = Rate::new(&RatePolicy { permits: 1, per: Duration::from_secs(1), burst: 2 }).unwrap();
        let now = Timestamp::from_secs(5);
        let others: Vec<_> = (0..2)
            .map(|_| {
                let rate = rate.clone();
                thread::spawn(move || rate.try_take(now).map(|permit| permit.spend()).is_ok())
            })
            .collect();
        let own = rate.try_take(now).map(|permit| permit.spend()).is_ok();
        let taken = others.into_iter().map(|other| other.join().unwrap()).chain([own]);
        assert_eq!(taken.filter(|taken| *taken).count(), 2);
        assert_eq!(rate.available(now), 0);
    });
}

#[test]
fn a_place_given_up_is_used_by_those_behind_or_comes_back() {
    model(|| {
        let rate = Rate::new(&RatePolicy { permits: 1, per: Duration::from_secs(2), burst: 1 }).unwrap();
        let at = Timestamp::from_secs;
        rate.try_take(at(0)).unwrap().spend();
        let quitter = {
            let rate = rate.clone();
            thread::spawn(move || drop(rate.reserve(at(0), Timestamp::MAX).unwrap()))
        };
        let stayer = {
            let rate = rate.clone();
            thread::spawn(move || {
                let stays = rate.reserve(at(0), Timestamp::MAX).unwrap();
                assert!(stays.at() <= at(4));
                stays.claim(at(4)).expect("its moment has come, whoever was in front").spend();
            })
        };
        quitter.join().unwrap();
        stayer.join().unwrap();
        assert_eq!(rate.waiting(), 0);
    });
}

#[test]
fn permits_given_back_at_the_same_time_never_let_more_through() {
    model(|| {
        let rate = Rate::new(&RatePolicy { permits: 1, per: Duration::from_secs(1), burst: 2 }).unwrap();
        let now = Timestamp::from_secs(5);
        let other = {
            let rate = rate.clone();
            thread::spawn(move || drop(rate.try_take(now)))
        };
        let spent = rate.try_take(now).map(|permit| permit.spend()).is_ok();
        other.join().unwrap();
        assert!(spent, "two were there");
        assert!(rate.available(now) <= 1, "one is spent");
    });
}
