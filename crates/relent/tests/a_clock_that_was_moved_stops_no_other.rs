//! Tests of one process may each move tokio's time. The first that does so must not leave the clocks of the others standing.
//!
//! The only test of its process: it needs the first reading.

#![cfg(feature = "tokio")]

use std::time::Duration;

use relent::{Clock, TokioClock, UnixClock};
use tokio::runtime::{Builder, Runtime};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn paused() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

async fn goes_on(clock: impl Clock) {
    let began = clock.now();
    tokio::time::advance(DAY / 24).await;
    assert_eq!(clock.now().since(began), DAY / 24);
    clock.sleep(DAY).await;
    let passed = clock.now().since(began);
    assert!(passed >= DAY + DAY / 24 && passed <= DAY + DAY / 24 + Duration::from_millis(2), "{passed:?}");
}

#[test]
fn clocks_go_on_in_whatever_runtime_one_was_read_first() {
    paused().block_on(async {
        tokio::time::advance(2 * DAY).await;
        goes_on(TokioClock).await;
    });
    paused().block_on(async { goes_on(UnixClock::new()).await });
    paused().block_on(goes_on(TokioClock));
}
