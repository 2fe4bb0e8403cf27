//! Retries at three layers multiply.

use super::{Figure, Setting};
use crate::{policies, scenario::standard};

pub(super) fn figures(_: &Setting) -> Vec<Figure> {
    [(2, 8.0), (3, 27.0)].into_iter().filter_map(|(attempts, product)| measured(attempts, product)).collect()
}

/// Three services, each with so many attempts, before a dependency that refuses; in the simulator.
fn measured(attempts: u32, product: f64) -> Option<Figure> {
    let scenario = standard("S8")?.scenario(&[]).ok()?;
    let mut policy = policies::named("plain-loop")?;
    policy.retry.max_attempts = Some(attempts);
    let report = crate::run(&scenario, &policy, 1);
    let found = report.window("from ten seconds in")?.arrivals_per_call()?;
    let claim = format!("{attempts} attempts at each of three layers: requests a call");
    // Poisson arrivals: what began before the window ends in it.
    Some(Figure::about(claim, product, found, 0.05 * product, ""))
}
