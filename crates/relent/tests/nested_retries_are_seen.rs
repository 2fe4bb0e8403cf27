//! Retries within retries: the inner pipeline knows whose attempt it is part of.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use relent::{
    Backoff, BreakerPolicy, Clock, Error, Event, Idempotency, Jitter, ManualClock, Nesting, Observe,
    Pipeline, Policy, RetryPolicy, Scene, StopReason, Timestamp, control::Breaker,
};

type Failed = Error<io::Error>;

fn busy() -> io::Error {
    io::ErrorKind::ConnectionRefused.into()
}

fn pipeline(clock: &ManualClock, attempts: u32) -> Pipeline<ManualClock> {
    let live = Policy::live();
    let policy = Policy {
        repeat: Idempotency::Safe,
        total_timeout: None,
        budget: None,
        retry: RetryPolicy {
            max_attempts: Some(attempts),
            backoff: Backoff::Constant(Duration::from_millis(10)),
            jitter: Jitter::None,
            ..live.retry
        },
        ..live
    };
    Pipeline::on(clock.clone(), policy).unwrap()
}

/// Keeps what is told of nesting.
#[derive(Default)]
struct Told(Mutex<Vec<(Nesting, Option<u32>)>>);

impl Observe for Told {
    fn observe(&self, _: Scene<'_>, event: &Event<'_>) {
        if let Event::Nested { nesting, attempts } = *event {
            self.0.lock().unwrap().push((nesting, attempts));
        }
    }
}

/// Runs an inner call that always fails in each attempt of an outer one; how often the dependency was called, and
/// why the inner calls stopped.
fn sends(outer: &Pipeline<ManualClock>, inner: &Pipeline<ManualClock>) -> (u32, Vec<StopReason>) {
    let (sent, stops) = (AtomicU32::new(0), Mutex::new(Vec::new()));
    let called = outer.run(|_| async {
        let called = inner.run_with_report(|_| async {
            sent.fetch_add(1, Relaxed);
            Err::<(), _>(busy())
        });
        let (result, report) = called.await;
        stops.lock().unwrap().push(report.stop);
        result
    });
    let failed: Error<Failed> = outer.clock().block_on(called).unwrap_err();
    assert_eq!(failed.stop(), StopReason::AttemptsExhausted);
    (sent.into_inner(), stops.into_inner().unwrap())
}

#[test]
fn of_two_pipelines_for_one_dependency_the_inner_makes_one_attempt() {
    // RT-21, with detection: the same name.
    let clock = ManualClock::new();
    let told = Arc::new(Told::default());
    let outer = pipeline(&clock, 4).named("users");
    let inner = pipeline(&clock, 3).named("users").observed_by(told.clone());
    let (sent, stops) = sends(&outer, &inner);
    assert_eq!((sent, stops), (4, vec![StopReason::Nested; 4]));
    assert_eq!(*told.0.lock().unwrap(), [(Nesting::SameDependency, Some(4)); 4]);
}

#[test]
fn of_two_pipelines_for_two_dependencies_both_retry_and_the_product_is_told() {
    // RT-21, where the pipelines do not know that it is one dependency.
    let clock = ManualClock::new();
    let told = Arc::new(Told::default());
    let outer = pipeline(&clock, 4).named("gateway");
    let inner = pipeline(&clock, 3).named("users").observed_by(told.clone());
    let (sent, stops) = sends(&outer, &inner);
    assert_eq!((sent, stops), (12, vec![StopReason::AttemptsExhausted; 4]));
    assert_eq!(*told.0.lock().unwrap(), [(Nesting::Within, Some(12)); 4], "once a call, at its first retry");
}

#[test]
fn a_pipeline_inside_itself_needs_no_name_to_be_known() {
    let clock = ManualClock::new();
    let users = pipeline(&clock, 3);
    assert_eq!(sends(&users, &users.clone()).0, 3);
    assert_eq!(sends(&users, &pipeline(&clock, 3)).0, 9, "two without a name are two");
}

#[test]
fn one_after_the_other_is_not_one_in_the_other() {
    let clock = ManualClock::new();
    let users = pipeline(&clock, 3).named("users");
    for _ in 0..2 {
        let mut sent = 0;
        let called = clock.block_on(users.run(|_| {
            sent += 1;
            async { Err::<(), _>(busy()) }
        }));
        assert_eq!((called.unwrap_err().stop(), sent), (StopReason::AttemptsExhausted, 3));
    }
}

#[test]
fn calls_that_take_turns_on_one_thread_are_not_inside_one_another() {
    let clock = ManualClock::new();
    let users = pipeline(&clock, 2).named("users");
    let slow = || async {
        let called = users.run(|_| async {
            clock.sleep(Duration::from_millis(7)).await;
            Err::<(), _>(busy())
        });
        called.await.unwrap_err().stop()
    };
    let both = async {
        let (mut a, mut b) = (std::pin::pin!(slow()), std::pin::pin!(slow()));
        let (mut first, mut second) = (None, None);
        std::future::poll_fn(|cx| {
            for (place, future) in [(&mut first, a.as_mut()), (&mut second, b.as_mut())] {
                if place.is_none()
                    && let std::task::Poll::Ready(stop) = future.poll(cx)
                {
                    *place = Some(stop);
                }
            }
            match (first, second) {
                (Some(first), Some(second)) => std::task::Poll::Ready([first, second]),
                _ => std::task::Poll::Pending,
            }
        })
        .await
    };
    assert_eq!(clock.block_on(both), [StopReason::AttemptsExhausted; 2]);
}

#[tokio::test]
async fn a_task_that_an_attempt_spawns_is_not_seen() {
    // Documented: the task is polled elsewhere.
    let clock = ManualClock::new();
    let (outer, inner) = (pipeline(&clock, 2).named("users"), pipeline(&clock, 3).named("users"));
    let sent = Arc::new(AtomicU32::new(0));
    let called = outer.run(|_| {
        let (inner, sent) = (inner.clone(), Arc::clone(&sent));
        async move {
            let task = tokio::spawn(async move {
                let called = inner.run(|_| {
                    sent.fetch_add(1, Relaxed);
                    async { Err::<(), _>(busy()) }
                });
                called.await
            });
            task.await.expect("the task does not panic")
        }
    });
    let failed = clock.drive(called).await.unwrap_err();
    assert_eq!((failed.stop(), sent.load(Relaxed)), (StopReason::AttemptsExhausted, 6));
}

#[test]
fn an_attempt_that_panics_leaves_the_thread_as_it_was() {
    let clock = ManualClock::new();
    let users = pipeline(&clock, 3).named("users");
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        clock
            .block_on(users.run(|_| async { if true { panic!("as planned") } else { Err::<(), _>(busy()) } }))
    }));
    assert!(panicked.is_err());
    assert_eq!(users.call().history().nesting, Nesting::Outermost);
}

#[test]
fn a_blocking_call_inside_a_blocking_attempt_is_seen_too() {
    let clock = ManualClock::new();
    let (outer, inner) = (pipeline(&clock, 4).named("users"), pipeline(&clock, 3).named("users"));
    let mut sent = 0;
    let called = outer.run_blocking(|_| {
        inner.run_blocking(|_| {
            sent += 1;
            Err::<(), _>(busy())
        })
    });
    assert_eq!((called.unwrap_err().stop(), sent), (StopReason::AttemptsExhausted, 4));
}

#[test]
fn an_outer_call_waits_as_long_as_the_gate_that_refused_the_inner_advises() {
    let clock = ManualClock::new();
    let breaker = Breaker::new(&BreakerPolicy::default()).unwrap();
    assert!(breaker.force_open(Timestamp::from_secs(3)).is_some());
    let outer = pipeline(&clock, 2).named("gateway");
    let inner = pipeline(&clock, 3).named("users").with_breaker(&breaker);
    let called = outer.run(|_| inner.run(|_| async { Ok::<_, io::Error>(clock.now()) }));
    assert_eq!(clock.block_on(called).unwrap(), Timestamp::from_secs(3));
}
