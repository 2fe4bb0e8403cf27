//! Processes that start together must not wait together.

use std::{
    collections::HashSet,
    env,
    process::{Command, Stdio},
};

use relent::{ManualClock, Pipeline, Policy};

const ASKED: &str = "RELENT_TEST_PRINT_SEED";

#[test]
fn two_hundred_processes_draw_two_hundred_first_seeds_where_those_of_execution_policy_draw_28() {
    if env::var_os(ASKED).is_some() {
        let pipeline = Pipeline::on(ManualClock::new(), Policy::live()).unwrap();
        println!("seed {}", pipeline.call().history().seed);
        return;
    }
    let this_test = env::current_exe().unwrap();
    let seeds: HashSet<String> = (0..200)
        .map(|_| {
            let child = Command::new(&this_test)
                .args(["--exact", "two_hundred_processes_draw_two_hundred_first_seeds_where_those_of_execution_policy_draw_28", "--nocapture"])
                .env(ASKED, "1")
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let printed = String::from_utf8(child.stdout).unwrap();
            let line = printed.lines().find_map(|line| line.split_once("seed ")).expect("a seed is printed");
            line.1.to_owned()
        })
        .collect();
    assert_eq!(seeds.len(), 200, "a 64-bit draw repeats among 200 less than once in 10¹⁴ runs");
}

#[test]
fn calls_pipelines_and_clones_draw_each_their_own() {
    let first = Pipeline::on(ManualClock::new(), Policy::live()).unwrap();
    let (clone, second) = (first.clone(), Pipeline::on(ManualClock::new(), Policy::live()).unwrap());
    let seeds: HashSet<u64> = [&first, &clone, &second]
        .into_iter()
        .flat_map(|pipeline| (0..1000).map(|_| pipeline.call().history().seed))
        .collect();
    assert_eq!(seeds.len(), 3000);
}

#[test]
fn a_fixed_seed_repeats_the_waits() {
    let waited = |seed| {
        let clock = ManualClock::new();
        let pipeline = Pipeline::on(clock.clone(), Policy::live()).unwrap();
        let call = pipeline.calls().with_seed(seed).run_with_report(|_| async {
            Err::<(), _>(std::io::Error::from(std::io::ErrorKind::ConnectionRefused))
        });
        clock.block_on(call).1.waited
    };
    assert_eq!(waited(7), waited(7));
    assert_ne!(waited(7), waited(8));
}
