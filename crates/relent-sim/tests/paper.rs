//! Every figure of the two documents comes out of relent's own code.

use relent_sim::paper::{
    Figure, Part, Setting,
    contention::{Variant, effort},
};

fn figures(title: &str, setting: Setting) -> Vec<Figure> {
    let part = Part::ALL.into_iter().find(|part| part.title.contains(title)).expect(title);
    let figures = part.figures(&setting);
    let off: Vec<&Figure> = figures.iter().filter(|figure| !figure.agrees).collect();
    assert!(off.is_empty(), "{off:#?}");
    figures
}

fn found<'a>(figures: &'a [Figure], claim: &str) -> &'a str {
    &figures.iter().find(|figure| figure.claim.contains(claim)).unwrap_or_else(|| panic!("{claim}")).found
}

#[test]
fn the_budgets_of_the_article_come_out_to_the_digit_with_its_seed_and_by_interval_with_others() {
    let exact = figures("10,000", Setting::default());
    assert_eq!(exact.len(), 10);
    assert_eq!(found(&exact, "20 % fail: calls lost with"), "1", "without a budget, which comes first");
    let other = figures("10,000", Setting { seed: 7, ..Setting::default() });
    assert!(other.iter().any(|figure| figure.difference == "inside"));
}

#[test]
fn sixty_calls_make_a_hundred_requests_and_all_end_at_the_breaker() {
    let figures = figures("60 calls", Setting::default());
    assert!(found(&figures, "the dependency saw").starts_with("100"), "{figures:#?}");
    assert_eq!(found(&figures, "broken circuit"), "60");
}

#[test]
fn schedules_and_deadlines_are_as_long_as_they_were_said_to_be() {
    let figures = figures("schedules", Setting::default());
    assert!(
        found(&figures, "alone: how long").starts_with("24.")
            || found(&figures, "alone: how long").starts_with("25.")
    );
    assert_eq!(found(&figures, "nested in five attempts: requests"), "30");
    assert_eq!(found(&figures, "4 × 1 s"), "5.4 s");
}

#[test]
fn layers_multiply_and_the_quota_drains_where_it_was_said_to() {
    assert_eq!(figures("layers", Setting::default()).len(), 2);
    let quota = figures("quota", Setting::default());
    assert_eq!(found(&quota, "transient failures: worked out"), "21.5 %");
    assert_eq!(found(&quota, "throttling: worked out"), "32.1 %");
}

/// A port of the original gave these, on average over 600 trials: writes, and milliseconds until the last was done.
#[test]
fn contending_clients_take_the_published_work_and_time() {
    #[rustfmt::skip]
    let published = [
        (20, [(153.0, 601.0), (150.0, 14_561.0), (108.0, 1_626.0), (100.0, 1_026.0), (101.0, 822.0)]),
        (60, [(955.0, 1_323.0), (833.0, 42_757.0), (435.0, 4_832.0), (419.0, 3_413.0), (487.0, 2_741.0)]),
        (100, [(2_423.0, 2_029.0), (1_855.0, 63_504.0), (812.0, 6_586.0), (796.0, 4_868.0), (1_002.0, 4_567.0)]),
    ];
    for (clients, row) in published {
        for (variant, (work, millis)) in Variant::ALL.into_iter().zip(row) {
            let found = effort(clients, variant, 100);
            let near = |found: f64, expected: f64| (found - expected).abs() <= 0.15 * expected;
            println!("{clients} {variant:?}: {found:?} for {work} and {millis}");
            assert!(near(found.work, work), "{clients} {variant:?}: {} writes for {work}", found.work);
            assert!(near(found.millis, millis), "{clients} {variant:?}: {} ms for {millis}", found.millis);
        }
    }
}

#[test]
fn full_jitter_does_the_least_work_and_plain_backoff_is_worst_in_both() {
    let figures = figures("contend", Setting { trials: 40, ..Setting::default() });
    assert_eq!(figures.len(), 20, "ten clients to two hundred");
}
