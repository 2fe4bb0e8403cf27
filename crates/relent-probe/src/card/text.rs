//! The card for a terminal.

use std::fmt::Write as _;

use super::{Card, Grade};
use crate::check::Verdict;

/// Failures first: they are what the reader came for.
pub(super) fn of(card: &Card) -> String {
    let mut out = format!("report card of: {}\n\n", card.command);
    let widest = card.facts.iter().map(|fact| fact.name.len()).max().unwrap_or_default();
    for fact in &card.facts {
        let _ = writeln!(out, "  {:widest$}  {}", fact.name, fact.value);
    }
    let widest = card.checks.iter().map(|check| check.name.len()).max().unwrap_or_default();
    for (heading, wanted) in [("failed", "failed"), ("undecided", "undecided"), ("passed", "passed")] {
        let checks: Vec<_> = card.checks.iter().filter(|check| check.verdict.name() == wanted).collect();
        if !checks.is_empty() {
            let _ = writeln!(out, "\n{heading}");
        }
        for check in checks {
            let _ = writeln!(out, "  {:widest$}  {}", check.name, check.verdict.why());
            if let Verdict::Failed(_) = check.verdict {
                let _ = writeln!(out, "  {:widest$}  {}", "", check.demands);
            }
        }
    }
    let Grade { passed, failed, undecided } = card.grade();
    let all = passed + failed + undecided;
    let _ = writeln!(out, "\n{passed} of {all} checks passed, {failed} failed, {undecided} undecided");
    let _ = writeln!(
        out,
        "{} copies, each watched for {}; {} in all; three in four of the machine's timers were less than {} late",
        card.copies,
        relent::Brief(card.patience),
        relent::Brief(std::time::Duration::from_secs(card.took.as_secs())),
        relent::Brief(std::time::Duration::from_millis(
            u64::try_from(card.lateness.as_millis()).unwrap_or(u64::MAX)
        )),
    );
    out
}
