//! What `docs/laboratory.md` shows can be done.

use relent_sim::{Recovery, Scenario, gate::Trial, policies::named};

#[test]
fn the_scenario_of_the_page_can_be_run_and_tells_a_storm_from_a_recovery() {
    let text = fenced("toml", "id = \"mine\"");
    let scenario = Scenario::parse(&text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let under = |name| Trial::run(&scenario, &named(name).expect("built in"), 1);
    let default = under("default");
    assert!(matches!(default.report.recovery, Some(Recovery::After(_))), "{:?}", default.report.recovery);
    assert_eq!(default.failed().count(), 0, "{:?}", default.judgements);
}

#[test]
fn the_policies_that_the_page_names_are_built_in() {
    let page = page();
    let (_, list) = page.split_once("A `POLICY` is a file, or one of ").expect("the list");
    let (list, _) = list.split_once("\n\n").expect("a paragraph");
    let listed: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
    let mut known: Vec<&str> = relent_sim::policies::names().collect();
    known.sort_unstable();
    let mut sorted = listed.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, known);
}

/// The first block of that language that contains those words.
fn fenced(language: &str, words: &str) -> String {
    let page = page();
    let mut blocks = page.split("```").skip(1).step_by(2);
    let block = blocks.find(|block| block.starts_with(language) && block.contains(words));
    block.and_then(|block| block.split_once('\n')).expect("the block").1.to_owned()
}

fn page() -> String {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/laboratory.md");
    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"))
}
