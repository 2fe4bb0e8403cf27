//! Controls by themselves, relent's and the peers'.
//!
//! relent's are told the time by the pipeline, which reads it once for all of them. Those that say so add a reading, for
//! a comparison with peers that read the clock themselves.

pub(crate) mod breakers;
pub(crate) mod budgets;
pub(crate) mod limits;
pub(crate) mod rates;

use std::time::{Duration, Instant};

use relent::Timestamp;

/// What the real clock reads: an hour and more.
fn clock() -> impl Fn() -> Timestamp + Copy + Send + Sync {
    let origin = Instant::now();
    move || HOUR.after(origin.elapsed())
}

const HOUR: Timestamp = Timestamp::from_secs(3_600);
const LONG: Duration = Duration::from_secs(3_600);
