//! The first promise, on the real binary: whatever was accepted ends delivered or dead, though the server is
//! killed again and again in the middle of its work.

use std::{env, time::Duration};

use relent_tests::{
    campaign::{Campaign, Fault, Synchronous},
    chance,
    judge::Judgement,
    wall,
};

#[test]
fn nothing_accepted_is_lost_when_the_server_is_killed() {
    run(chance::seed("nothing is lost"));
    // `cargo xtask soak MINUTES`: the same with other seeds, for as long as wanted.
    if let Ok(minutes) = env::var("RELENT_SOAK_MINUTES") {
        let minutes: u64 = minutes.parse().expect("RELENT_SOAK_MINUTES is a number of minutes");
        let end = wall::now() + Duration::from_secs(minutes * 60);
        while wall::now() < end {
            run(chance::seed("soak"));
        }
    }
}

fn run(seed: u64) {
    let kills = 10;
    let campaign =
        Campaign { seed, messages: 2000, kills, fault: Fault::Process, synchronous: Synchronous::Full };
    let mut books = campaign.run();
    let judgement = Judgement::of(&books);
    println!("{kills} kills: {judgement}");
    judgement.assert_nothing_is_lost();
    assert_eq!(judgement.delivered + judgement.dead, campaign.messages);
    let hits = judgement.kills_that_hit.len();
    assert!(hits >= 5, "only {hits} of {kills} kills left attempts unknown: the run proves nothing");
    books.server.kill();
    judgement.assert_is_all_of(&books.server.assert_sound());
}
