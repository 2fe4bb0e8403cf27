//! Tokio's time, where a test has paused it, goes on by itself to the next timer. None may be one of a call that is over.

#![cfg(feature = "tokio")]

mod support;

use std::{
    future::{Future, pending, poll_fn},
    io,
    pin::pin,
};

use relent::{Clock, Pipeline, Policy, TokioClock};
use support::SECOND;

#[tokio::test(start_paused = true)]
async fn time_goes_from_the_end_of_a_call_to_what_the_test_waits_for() {
    let users = Pipeline::new(Policy::live()).unwrap();
    let pending_once = |_| async {
        tokio::task::yield_now().await;
        Ok::<_, io::Error>(())
    };
    users.run(pending_once).await.unwrap();
    let began = TokioClock.now();
    let mut wait = pin!(tokio::time::timeout(30 * SECOND, pending::<()>()));
    let mut woken = Vec::new();
    poll_fn(|cx| {
        woken.push(TokioClock.now().since(began).as_secs());
        wait.as_mut().poll(cx).map(drop)
    })
    .await;
    assert_eq!(woken, [0, 30]);
}
