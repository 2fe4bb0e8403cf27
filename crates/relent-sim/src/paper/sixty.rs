//! Sixty calls at once to a dependency that answers everything with 503, through .NET's standard handler: its breaker
//! opens at the hundredth failure, and all sixty calls end there.

use super::{Figure, Setting, spread};
use crate::{
    Scenario, policies,
    report::{Report, float},
};

pub(super) fn figures(setting: &Setting) -> Vec<Figure> {
    let (Ok(scenario), Some(handler)) = (Scenario::parse(SIXTY, &[]), policies::named("microsoft-standard"))
    else {
        return Vec::new();
    };
    let reports: Vec<Report> =
        (0..u64::from(setting.trials)).map(|seed| crate::run(&scenario, &handler, seed)).collect();
    let requests: Vec<f64> = reports.iter().map(|report| float(report.all().arrivals)).collect();
    let fewest = reports.iter().map(broken).min().unwrap_or(0);
    // The gauge at the end of the fifth second.
    let open =
        reports.iter().filter(|report| report.points.get(4).is_some_and(|point| point.open == 1)).count();
    let (mean, low, high) = spread(&requests);
    let attempts = handler.retry.max_attempts.map_or(0, u64::from);
    vec![
        Figure::exactly("requests if nothing stopped them", 240, 60 * attempts),
        Figure {
            found: format!("{mean:.1} ({low:.0} to {high:.0})"),
            ..Figure::about("requests that the dependency saw", 100.0, mean, 3.0, "")
        },
        Figure::exactly("calls that ended with a broken circuit, at the least", 60, fewest),
        Figure::said(
            "the next call, five seconds after the first",
            "not sent",
            format!("the breaker is open in {open} of {} runs", reports.len()),
            open == reports.len(),
        ),
    ]
}

/// How many of the calls ended because the breaker was open.
fn broken(report: &Report) -> u64 {
    report.ends.iter().filter(|(reason, _)| reason.name() == "refused_breaker").map(|(_, count)| count).sum()
}

/// Answers come after a millisecond, as from a stub on the same machine.
const SIXTY: &str = "
    id = 'sixty'
    duration = '20s'
    [dependency]
    workers = 100
    service = '1ms'
    queue = 0
    answer = '1ms'
    [callers]
    kind = 'herd'
    callers = 60
    at = '0s'
    [[effect]]
    kind = 'fail'
    from = '0s'";
