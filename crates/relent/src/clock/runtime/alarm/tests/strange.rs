//! Alarms in strange hands: those of other runtimes, of busy tasks, and of none.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_sleep_ends_though_its_task_has_used_up_its_budget() {
    let sleep = begun(SECOND).await;
    tokio::time::advance(2 * SECOND).await;
    let mut sleep = sleep;
    let ended = poll_fn(|cx| {
        while coop::has_budget_remaining() {
            let _used = pin!(coop::consume_budget()).poll(cx);
        }
        Poll::Ready(sleep.as_mut().poll(cx))
    });
    assert!(ended.await.is_ready());
}
