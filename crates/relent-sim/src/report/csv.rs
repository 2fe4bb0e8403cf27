//! The series as comma-separated values: a line for each point, for programs and spreadsheets.

use std::fmt::Write as _;

use crate::{Point, Report};

/// The series, headed by the names of the columns. Times are seconds from the start; counts are of the stretch from
/// then on, gauges (`waiting` and what follows) of its end.
pub fn csv(report: &Report) -> String {
    let mut out = String::from(HEAD);
    for (point, number) in report.points.iter().zip(0u64..) {
        let at = number * report.interval.as_secs();
        let Point { calls, ended, succeeded, arrivals, answered, rejected, successes, .. } = point;
        let _ = write!(out, "{at},{calls},{ended},{succeeded},{arrivals},{answered},{rejected},{successes}");
        let Point { useful, wasted, waiting, in_flight, queued, open, half_open, .. } = point;
        let (useful, wasted) = (seconds(*useful), seconds(*wasted));
        let _ = writeln!(out, ",{useful},{wasted},{waiting},{in_flight},{queued},{open},{half_open}");
    }
    out
}

/// Nanoseconds as seconds, to the millisecond, without a float in between.
fn seconds(nanos: u64) -> String {
    format!("{}.{:03}", nanos / 1_000_000_000, nanos / 1_000_000 % 1000)
}

const HEAD: &str = "at_s,calls,ended,succeeded,arrivals,answered,rejected,successes,useful_s,wasted_s,\
                    waiting,in_flight,queued,breakers_open,breakers_half_open\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{policies::named, run, scenario::standard};

    #[test]
    fn every_point_is_a_line_of_as_many_cells_as_the_head() {
        let scenario = standard("S9b").expect("standard").scenario(&[]).expect("possible");
        let report = run(&scenario, &named("plain-loop").expect("built in"), 1);
        let text = csv(&report);
        let cells: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(cells.len(), 61);
        assert!(cells.iter().all(|line| line.len() == 15));
        assert_eq!(cells[11][..3], ["10", "2000", "2000"], "the herd");
        assert_eq!(seconds(1_234_567_890), "1.234");
    }
}
