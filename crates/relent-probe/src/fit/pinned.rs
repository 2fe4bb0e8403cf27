//! Waits on which chance has no hold: nearly all of one number lie at one length, while shorter ones are spread.

use super::{Column, Sample};

/// Takes out the waits that are pinned at a cap, and says where they were. What is left, a model can explain.
pub(super) fn take_out(sample: &mut Sample) -> Option<f64> {
    let crowds: Vec<f64> = sample.columns().skip(1).filter_map(|column| crowd(&column)).collect();
    let cap = crowds.iter().copied().reduce(f64::max)?;
    for run in &mut sample.runs {
        // What follows a pinned wait has lost its predecessor's chance: a run ends at its first.
        if let Some(end) = run.iter().position(|wait| (wait - cap).abs() <= margin(cap)) {
            run.truncate(end);
        }
    }
    sample.runs.retain(|run| !run.is_empty());
    Some(cap)
}

/// The middle of the densest margin at the upper end, if seven in ten of the column lie there: of eight waits that
/// chance spreads over five margins, so many crowd together once in a thousand times.
fn crowd(column: &Column) -> Option<f64> {
    let waits = &column.0;
    let least = 4.max((waits.len() * 7).div_ceil(10));
    let upper = column.quantile(0.9);
    let crowded = |at: &f64| waits.iter().filter(|wait| (*wait - at).abs() <= margin(*at)).count();
    waits
        .iter()
        .copied()
        .filter(|at| *at >= upper - 2.0 * margin(upper))
        .filter(|at| crowded(at) >= least)
        .max_by_key(crowded)
}

/// How far apart two equal waits are measured.
fn margin(wait: f64) -> f64 {
    (0.01 * wait).max(0.006)
}
