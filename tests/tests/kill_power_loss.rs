//! The first promise when the power goes: what was answered `201` is on the disk, and a disk that forgets
//! everything since its last sync still holds it. With `synchronous = "off"` it does not, and the test sees it.

use relent_tests::{
    campaign::{Books, Campaign, Fault, Synchronous},
    chance,
    judge::Judgement,
};

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "the shim under the server is made for the loader of Linux")]
fn nothing_accepted_is_lost_with_the_power() {
    let (mut books, judgement) = run(Synchronous::Full);
    judgement.assert_nothing_is_lost();
    assert_eq!(judgement.delivered + judgement.dead, MESSAGES);
    let hits = judgement.kills_that_hit.len();
    assert!(hits >= 5, "only {hits} of {CUTS} cuts left attempts unknown: the run proves nothing");
    books.server.kill();
    judgement.assert_is_all_of(&books.server.assert_sound());
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "the shim under the server is made for the loader of Linux")]
fn without_syncs_the_loss_is_seen() {
    let (_books, judgement) = run(Synchronous::Off);
    assert!(!judgement.missing.is_empty(), "no sync, and nothing lost: the power was not cut; {judgement}");
}

fn run(synchronous: Synchronous) -> (Books, Judgement) {
    let seed = chance::seed("power");
    let campaign = Campaign { seed, messages: MESSAGES, kills: CUTS, fault: Fault::Power, synchronous };
    let books = campaign.run();
    let judgement = Judgement::of(&books);
    println!("{CUTS} power cuts, {synchronous:?}: {judgement}");
    (books, judgement)
}

const MESSAGES: usize = 2_000;
const CUTS: usize = 10;
