//! The first promise when the power goes: what was answered `201` is on the disk, and a disk that forgets
//! everything since its last sync still holds it. With `synchronous = "off"` it does not, and the test sees it.

#![cfg(target_os = "linux")] // the shim under the server is made for this loader

use relent_tests::{
    campaign::{Books, Campaign, Fault, Synchronous},
    chance,
    judge::Judgement,
};

#[test]
fn nothing_accepted_is_lost_with_the_power() {
    let (mut books, judgement) = run(Synchronous::Full);
    judgement.assert_nothing_is_lost();
    assert_eq!(judgement.delivered + judgement.dead, MESSAGES);
    assert!(!judgement.kills_that_hit.is_empty(), "no kill left an attempt unknown: the run proves nothing");
    books.server.kill();
    books.server.assert_sound();
}

#[test]
fn without_syncs_the_loss_is_seen() {
    let (_books, judgement) = run(Synchronous::Off);
    assert!(!judgement.missing.is_empty(), "no sync, and nothing lost: the power was not cut; {judgement}");
}

fn run(synchronous: Synchronous) -> (Books, Judgement) {
    let seed = chance::seed("power");
    let campaign = Campaign { seed, messages: MESSAGES, kills: 4, fault: Fault::Power, synchronous };
    let books = campaign.run();
    let judgement = Judgement::of(&books);
    println!("4 power cuts, {synchronous:?}: {judgement}");
    (books, judgement)
}

const MESSAGES: usize = 600;
