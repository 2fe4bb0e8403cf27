//! One destination that hangs leaves the others their places; none waits for another's clock.

mod world;

use relent::StopReason;
use relent_deliver::{Limits, Submission};
use relent_ledger::State;
use world::{Reply, World, secs};

const TAR: &str = "tar.example";

fn to(host: &str) -> Submission {
    Submission::new(format!("http://{host}/"))
}

#[tokio::test]
async fn a_destination_that_hangs_leaves_the_others_latency_alone() {
    let mut world = World::new();
    world.limits = Limits { in_flight: 8, per_destination: 2, ..Limits::default() };
    world.receiver.will(TAR, vec![Reply::Hangs; 50]);
    // Fifty for the tar pit come first and are due longest.
    for _ in 0..50 {
        world.accept(to(TAR)).await;
    }
    let mut others = Vec::new();
    for n in 0..40 {
        others.push(world.accept(to(&format!("shop-{}.example", n % 5))).await);
    }
    let world = world.started();
    for id in others {
        assert_eq!(world.ended(id, 1).await, (State::Delivered, StopReason::Succeeded));
    }
    // All of that without the clock moving at all: nobody waited for the tar pit.
    assert_eq!(world.receiver.to(TAR).len(), 2);
    // And what cannot be sent is not hoarded: it stays in the store, where a person can still cancel it.
    let claimed = world.ledger().tally().await.unwrap().count(State::InFlight);
    assert!(claimed <= 3, "{claimed} claimed for two places");
}

#[tokio::test]
async fn a_destination_that_hung_is_served_at_its_own_pace() {
    let mut world = World::new();
    world.limits = Limits { in_flight: 8, per_destination: 2, ..Limits::default() };
    world.receiver.will(TAR, vec![Reply::Hangs; 4]);
    let mut ids = Vec::new();
    for _ in 0..7 {
        ids.push(world.accept(to(TAR)).await);
    }
    let mut world = world.started();
    world.receiver.until(2, TAR).await;
    world.probe().await;
    world.clock.advance(secs(15));
    world.receiver.until(4, TAR).await;
    world.probe().await;
    assert_eq!(world.receiver.to(TAR).len(), 4, "two at a time");
    world.clock.advance(secs(15));
    // The pit is dry: all the rest goes through without another wait but their own.
    for id in &ids[4..] {
        assert_eq!(world.ended(*id, 1).await, (State::Delivered, StopReason::Succeeded));
    }
    world.stop().await;
    world.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_than_fits_at_once_is_all_delivered_once() {
    let mut world = World::new();
    world.limits = Limits { in_flight: 5, per_destination: 3, ..Limits::default() };
    let mut ids = Vec::new();
    for n in 0..60 {
        ids.push(world.accept(to(&format!("shop-{}.example", n % 7))).await);
    }
    let mut world = world.started();
    for id in &ids {
        assert_eq!(world.ended(*id, 1).await, (State::Delivered, StopReason::Succeeded));
    }
    let report = world.stop().await;
    assert_eq!((report.delivered, report.attempts), (60, 60));
    assert_eq!(world.receiver.all().len(), 60);
    world.assert_sound().await;
}

#[tokio::test]
async fn one_failing_destination_does_not_make_the_others_wait() {
    // ST-20
    let world = World::new();
    world.receiver.will("g.example", [Reply::Status(503)]);
    let g1 = world.accept(to("g.example")).await;
    let h1 = world.accept(to("h.example")).await;
    let world = world.started();
    assert_eq!(world.ended(h1, 1).await, (State::Delivered, StopReason::Succeeded));
    world.attempts_ended(g1, 1).await;
    assert_eq!(world.message(g1).await.summary.state, State::Waiting);
}
