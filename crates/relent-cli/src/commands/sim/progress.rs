//! How far it has come, on a terminal; nothing where standard error goes elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use relent_core::Timestamp;
use relent_sim::Scenario;

use crate::output::plain;

/// A bar over the simulated time of one run.
pub(super) fn of_time(scenario: &Scenario) -> ProgressBar {
    let bar = ProgressBar::new(scenario.duration.as_secs());
    bar.set_style(style("{prefix} {bar:30} {pos} of {len} s"));
    bar.set_prefix(plain(&scenario.id));
    bar
}

/// Moves it on.
pub(super) fn move_to(bar: &ProgressBar, at: Timestamp) {
    bar.set_position(at.as_secs());
}

/// A bar over many runs.
pub(super) fn of_runs(runs: usize) -> ProgressBar {
    let bar = ProgressBar::new(u64::try_from(runs).unwrap_or(u64::MAX));
    bar.set_style(style("{bar:30} {pos} of {len} runs, {elapsed}"));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn style(template: &str) -> ProgressStyle {
    // The templates above are constants, and a test reads them.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_can_be_read() {
        for template in ["{prefix} {bar:30} {pos} of {len} s", "{bar:30} {pos} of {len} runs, {elapsed}"] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
