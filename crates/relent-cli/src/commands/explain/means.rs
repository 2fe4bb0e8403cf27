//! The classification as a table to read: which statuses and error classes mean what.

use std::fmt::Write as _;

use relent_core::{Answer, Classification, DurationText, ErrorClass, Observed, Route, RouteRule};

use crate::output::{Table, plain, words};

/// What means an answer: ranges of statuses, then error classes.
pub(super) fn meaning(classify: &Classification, answer: Answer) -> Vec<String> {
    let means = |observed: &Observed| classify.answer(*observed, Route::default()) == answer;
    let statuses: Vec<u16> = STATUSES.filter(|status| means(&Observed::Status(*status))).collect();
    let errors = ErrorClass::ALL.iter().filter(|class| means(&Observed::Error(**class)));
    ranges(&statuses).into_iter().chain(errors.map(|class| class.name().to_owned())).collect()
}

/// The table, and below it what the routes say otherwise.
pub(super) fn describe(classify: &Classification) -> String {
    let mut table = Table::new([words(""), words("")]).uncut();
    for &answer in Answer::ALL {
        table.row([answer.name().replace('_', " "), meaning(classify, answer).join(", ")]);
    }
    let mut text = table.render(2);
    for rule in &classify.routes {
        let _ = writeln!(text, "  on {}", route(rule));
    }
    text
}

/// A route's rule in words: `GET /orders/*: 404 not now`.
pub(super) fn route(rule: &RouteRule) -> String {
    let statuses = rule.rules.statuses.iter().map(|(low, high, answer)| (range(*low, *high), *answer));
    let errors = rule.rules.errors.iter().map(|(class, answer)| (class.name().to_owned(), *answer));
    let answers =
        statuses.chain(errors).map(|(what, answer)| format!("{what} {}", answer.name().replace('_', " ")));
    let repeat = rule.repeat.map(|repeat| format!("repeat {}", repeat.name()));
    let fresh_for = rule.fresh_for.map(|length| format!("fresh for {}", DurationText(length)));
    let rules: Vec<String> = answers.chain(repeat).chain(fresh_for).collect();
    let method = rule.method.as_deref().unwrap_or("any method");
    format!("{} {}: {}", plain(method), plain(&rule.path), rules.join(", "))
}

fn ranges(statuses: &[u16]) -> Vec<String> {
    statuses
        .chunk_by(|one, next| one + 1 == *next)
        .filter_map(|run| Some(range(*run.first()?, *run.last()?)))
        .collect()
}

fn range(low: u16, high: u16) -> String {
    if low == high { low.to_string() } else { format!("{low}-{high}") }
}

/// The statuses that HTTP knows (RFC 9110, section 15).
const STATUSES: std::ops::RangeInclusive<u16> = 100..=599;

#[cfg(test)]
mod tests {
    use relent_core::Table as Builtin;

    use super::*;

    #[test]
    fn statuses_are_joined_into_ranges() {
        assert_eq!(ranges(&[200, 201, 202, 408, 500, 501]), ["200-202", "408", "500-501"]);
        assert!(ranges(&[]).is_empty());
    }

    #[test]
    fn every_outcome_stands_in_exactly_one_row() {
        for table in [Builtin::Documents, Builtin::Webhook] {
            let classify = Classification::new(table);
            let rows: Vec<String> =
                Answer::ALL.iter().flat_map(|answer| meaning(&classify, *answer)).collect();
            for class in ErrorClass::ALL {
                assert_eq!(rows.iter().filter(|row| *row == class.name()).count(), 1, "{}", class.name());
            }
            let covered: usize = rows.iter().filter_map(|row| width(row)).sum();
            assert_eq!(covered, STATUSES.count());
        }
    }

    fn width(row: &str) -> Option<usize> {
        let (low, high) = row.split_once('-').unwrap_or((row, row));
        Some(high.parse::<usize>().ok()? - low.parse::<usize>().ok()? + 1)
    }
}
