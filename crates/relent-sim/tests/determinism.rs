//! The same scenario, policy and seed give the same report to the last bit.

use relent_sim::{policies::named, report::Report, run, scenario::standard};

fn report(id: &str, policy: &str, seed: u64) -> Report {
    let settings = [("dependency.reject_cost", "1ms")];
    let scenario = standard(id).expect("a standard scenario").scenario(&settings).expect("it is possible");
    run(&scenario, &named(policy).expect("a built-in policy"), seed)
}

#[test]
fn two_runs_give_the_same_and_another_seed_gives_another() {
    for (id, policy) in
        [("S3b", "default"), ("S8", "microsoft-standard"), ("S9", "plain-loop"), ("S10", "envoy")]
    {
        let (first, second, other) = (report(id, policy, 7), report(id, policy, 7), report(id, policy, 8));
        assert_eq!(format!("{first:?}"), format!("{second:?}"), "{id} under {policy}");
        assert_ne!(first, other, "{id} under {policy}");
    }
}

/// A fingerprint of whole reports that every machine must find. It changes only with what is simulated: then look
/// at the figures of `published.rs`, and write down the new one.
#[test]
fn every_machine_finds_the_same_report() {
    let found = [("S3", "default"), ("S7", "aws-2026-quota"), ("S9b", "plain-loop")]
        .map(|(id, policy)| fingerprint(&format!("{:?}", report(id, policy, 42))));
    assert_eq!(found, [10_122_932_315_813_752_479, 6_209_320_689_688_550_332, 8_463_886_235_611_411_316]);
}

#[test]
fn two_policies_under_one_seed_meet_the_same_arrivals() {
    let calls = |policy| report("S6", policy, 3).points.iter().map(|point| point.calls).collect::<Vec<_>>();
    assert_eq!(calls("no-retries"), calls("plain-loop"));
}

/// FNV-1a.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
