//! An attempt that never waits, since there is always more for it to do, uses up its task's budget in every turn. Tokio's
//! timers do not answer a task without any.

#![cfg(feature = "tokio")]

mod support;

use std::io;

use relent::{Backoff, Clock, Pipeline, Policy, StopReason, TokioClock};
use support::{SECOND, plain, with_attempts};

#[tokio::test(start_paused = true)]
async fn a_call_whose_attempts_are_always_busy_ends_in_time() {
    let passing = tokio::spawn(async {
        loop {
            tokio::time::advance(SECOND / 10).await;
        }
    });
    let policy = with_attempts(3, plain(Backoff::Constant(SECOND)));
    let users = Pipeline::new(Policy { attempt_timeout: 2 * SECOND, ..policy }).unwrap();
    let busy = |_| async {
        let began = TokioClock.now();
        while TokioClock.now().since(began) < 9 * SECOND {
            tokio::task::coop::consume_budget().await;
        }
        Ok::<_, io::Error>(())
    };
    let (result, report) = users.run_with_report(busy).await;
    passing.abort();
    assert_eq!((report.stop, report.attempts), (StopReason::AttemptsExhausted, 3), "{result:?}");
    assert!(report.took >= 8 * SECOND && report.took < 9 * SECOND, "{:?}", report.took);
}
