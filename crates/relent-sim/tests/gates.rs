//! `docs/gates.md` says what each policy passes, and why; the gates must agree.

use relent_core::Policy;
use relent_sim::{Scenario, policies::named, scenario::Standard, trials::run_all};

#[derive(Debug, Eq, PartialEq)]
enum Expected {
    Pass,
    Fail,
    None,
}

#[test]
fn the_default_policy_does_at_every_gate_what_was_written_down() {
    let expected: Vec<(String, Expected)> = rows("What the default policy passes")
        .into_iter()
        .map(|[scenario, verdict, why]| {
            assert!(why.len() > 10, "{scenario}: say why");
            let verdict = match verdict.as_str() {
                "pass" => Expected::Pass,
                "fail" => Expected::Fail,
                "none" => Expected::None,
                other => panic!("{scenario}: {other}"),
            };
            (scenario, verdict)
        })
        .collect();
    assert_eq!(found("default"), expected);
}

#[test]
fn other_policies_fail_where_it_was_written_down() {
    let rows = rows("Other policies");
    assert_eq!(rows.len(), 4);
    for [policy, fails, _] in rows {
        let failed: Vec<String> = found(&policy)
            .into_iter()
            .filter(|(scenario, verdict)| *verdict == Expected::Fail && scenario != "S7b")
            .map(|(scenario, _)| scenario)
            .collect();
        assert_eq!(failed.join(", "), fails, "{policy}");
    }
}

fn found(policy: &str) -> Vec<(String, Expected)> {
    let policy: Policy = named(policy).unwrap_or_else(|| panic!("{policy} is not built in"));
    let scenarios: Vec<Scenario> =
        Standard::ALL.iter().map(|standard| standard.scenario(&[]).expect("it is possible")).collect();
    let jobs: Vec<_> = scenarios.iter().map(|scenario| (scenario, &policy)).collect();
    let trials = run_all(&jobs, 1, &|_| {});
    scenarios
        .iter()
        .zip(&trials)
        .map(|(scenario, trial)| {
            let verdict = match (trial.judgements.is_empty(), trial.failed().next()) {
                (true, _) => Expected::None,
                (false, None) => Expected::Pass,
                (false, Some(_)) => Expected::Fail,
            };
            (scenario.id.clone(), verdict)
        })
        .collect()
}

/// The rows of the first table below those words.
fn rows(below: &str) -> Vec<[String; 3]> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/gates.md");
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let (_, rest) = text.split_once(below).unwrap_or_else(|| panic!("no \"{below}\""));
    let lines = rest.lines().skip_while(|line| !line.starts_with('|'));
    lines
        .take_while(|line| line.starts_with('|'))
        .skip(2)
        .map(|line| {
            let cells: Vec<String> =
                line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
            cells.try_into().unwrap_or_else(|cells| panic!("not three cells: {cells:?}"))
        })
        .collect()
}
