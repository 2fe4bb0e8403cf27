//! A pipeline that is dropped is gone, with all that hung on it: there is no registry that would keep it.

#![cfg(not(loom))]

mod counting;
mod support;

use std::{
    future::Future,
    io,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Waker},
};

use relent::{Event, ManualClock, Observe, Pipeline, Scene};
use support::whole;

/// Counts what it is told, and stays with the test.
#[derive(Default)]
struct Told(AtomicU64);

impl Observe for Told {
    fn observe(&self, _: Scene<'_>, event: &Event<'_>) {
        if matches!(event, Event::Waiting { .. }) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Makes a pipeline with an observer, has a call of it fail and wait for its next attempt, and drops both.
fn come_and_go(number: u32, clock: &ManualClock, told: &Arc<Told>) {
    let users = Pipeline::on(clock.clone(), whole()).unwrap();
    let users = users.named(&format!("tenant {number}")).observed_by(told.clone());
    let mut call =
        pin!(users.run(|_| async { Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionRefused)) }));
    assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!((Arc::strong_count(told), clock.sleepers()), (2, 1), "its listener, and its timer");
}

#[test]
fn ten_thousand_pipelines_come_and_go_and_leave_no_timer_no_listener_and_no_memory() {
    // TS-04
    let (clock, told) = (ManualClock::new(), Arc::new(Told::default()));
    come_and_go(0, &clock, &told);
    let before = counting::held();
    for number in 1..10_000 {
        come_and_go(number, &clock, &told);
        assert_eq!((Arc::strong_count(&told), clock.sleepers()), (1, 0));
    }
    assert_eq!(counting::held() - before, 0, "bytes");
    assert_eq!(told.0.load(Ordering::Relaxed), 10_000, "each was listened to while it lived");
}
