//! The same call under tokio with its own clock, under tokio with a manual one, and under no executor at all.

#![cfg(feature = "tokio")]

mod support;

use std::time::Duration;

use relent::{Backoff, Clock, ManualClock, Pipeline, Report, StopReason, TokioClock};
use support::{Act, Dependency, SECOND, at_once, doubling, pipeline, plain, with_attempts};

const SCRIPT: [Act; 4] = [at_once(503), Act::Hang, Act::Busy(Duration::from_secs(5)), at_once(200)];

fn users(clock: &ManualClock) -> Pipeline<ManualClock, relent::Observing<support::Seen>> {
    let policy = with_attempts(9, plain(doubling(SECOND, 10 * SECOND)));
    pipeline(clock, relent::Policy { attempt_timeout: 2 * SECOND, ..policy })
}

fn is_as_expected(dependency: &Dependency, report: &Report) {
    assert_eq!(dependency.began(), [0, 1_000, 5_000, 10_000]);
    assert_eq!((report.stop, report.attempts), (StopReason::Succeeded, 4));
    assert_eq!((report.took, report.waited), (10 * SECOND, 8 * SECOND));
}

#[test]
fn without_an_executor() {
    let clock = ManualClock::new();
    let dependency = Dependency::new(&clock, &SCRIPT);
    let (_, report) = clock.block_on(users(&clock).run_with_report(|a| dependency.call(a)));
    is_as_expected(&dependency, &report);
}

#[tokio::test]
async fn under_tokio() {
    let clock = ManualClock::new();
    let dependency = Dependency::new(&clock, &SCRIPT);
    let users = users(&clock);
    let (_, report) = clock.drive(users.run_with_report(|a| dependency.call(a))).await;
    is_as_expected(&dependency, &report);
}

#[tokio::test(start_paused = true)]
async fn under_tokio_with_its_own_clock() {
    let pipeline = Pipeline::new(relent::Policy {
        attempt_timeout: 2 * SECOND,
        ..with_attempts(3, plain(Backoff::Constant(SECOND)))
    });
    let began = TokioClock.now();
    let (result, report) = pipeline
        .unwrap()
        .run_with_report(|attempt| async move {
            if attempt.number < 3 {
                std::future::pending::<()>().await;
            }
            Ok::<_, std::io::Error>(TokioClock.now().since(began))
        })
        .await;
    let third_began = result.unwrap();
    assert!(
        third_began >= 6 * SECOND && third_began < 6 * SECOND + Duration::from_millis(10),
        "{third_began:?}"
    );
    assert_eq!((report.attempts, report.waited), (3, 2 * SECOND));
}

#[tokio::test]
async fn many_calls_at_once_share_one_clock() {
    let clock = ManualClock::new();
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let clock = clock.clone();
            tokio::spawn(async move {
                let dependency = Dependency::new(&clock, &SCRIPT);
                let (_, report) = users(&clock).run_with_report(|a| dependency.call(a)).await;
                is_as_expected(&dependency, &report);
            })
        })
        .collect();
    for task in tasks {
        clock.drive(task).await.unwrap();
    }
    assert_eq!(clock.sleepers(), 0);
}
