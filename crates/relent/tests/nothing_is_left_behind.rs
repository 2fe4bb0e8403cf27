//! A pipeline that is dropped is gone, with all that hung on it: there is no registry that would keep it.

#![cfg(not(loom))]

mod counting;

use std::{
    future::Future,
    io,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Waker},
    time::Duration,
};

use relent::{
    Backoff, BreakerPolicy, BudgetPolicy, ConcurrencyPolicy, Event, Gates, Jitter, ManualClock, Observe,
    Pipeline, Policy, RatePolicy, Scene, Window,
};

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

fn whole() -> Policy {
    let mut policy = Policy::live();
    policy.retry.backoff = Backoff::Constant(Duration::from_secs(1));
    policy.retry.jitter = Jitter::None;
    let gates = Gates {
        concurrency: Some(ConcurrencyPolicy { limit: 2, queue: 2 }),
        rate: Some(RatePolicy { permits: 10, per: Duration::from_secs(1), burst: 10 }),
    };
    Policy {
        admission: gates,
        attempt: gates,
        budget: Some(BudgetPolicy::default()),
        breaker: Some(BreakerPolicy { window: Window::Count(100), ..BreakerPolicy::default() }),
        ..policy
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
