//! Who holds no ticket any more does nothing: what was taken away before it began is not sent, what was taken away
//! before it was settled is told once, and a long wait is nobody's until it is over.

mod world;

use std::{future::pending, sync::Arc, time::Duration};

use relent::{Observed, StopReason};
use relent_deliver::{Deliverer, Observe, plan};
use relent_ledger::State;
use world::{Event, Op, Reply, START, UNKNOWN, World, order_under, secs, steps};

const SHOP: &str = "shop.example";
const DELIVERED: (State, StopReason) = (State::Delivered, StopReason::Succeeded);

#[tokio::test]
async fn what_was_taken_away_before_it_began_is_not_sent_and_is_counted() {
    // ST-02
    let mut world = World::under([("steps", steps(&[secs(1)]))]);
    let id = world.accept(order_under("steps")).await;
    let history = world.message(id).await.history;
    world.faults().steal_before(Op::Begin, plan::leave(history, START));
    world.start();
    world.until(1, |event| *event == Event::Stale { id }).await;
    assert_eq!(world.receiver.all().len(), 0, "it was sent without a ticket");
    assert_eq!(world.faults().asked(Op::Finish), 0, "there is nothing to settle");

    world.wake();
    assert_eq!(world.ended(id, 1).await, DELIVERED);
    let sent = world.receiver.to(SHOP);
    assert_eq!((sent.len(), sent[0].header("x-relent-attempt")), (1, "1"), "as if nothing had been");
    assert_eq!((world.faults().asked(Op::Begin), world.faults().asked(Op::Finish)), (2, 1));
    let report = world.stop().await;
    assert_eq!((report.stale, report.attempts, report.delivered), (1, 1, 1));
    world.assert_sound().await;
}

#[tokio::test]
async fn an_end_that_comes_too_late_is_told_once_and_is_no_failure_of_the_message() {
    // ST-04
    let mut world = World::under([("steps", steps(&[secs(1)]))]);
    let id = world.accept(order_under("steps")).await;
    let history = world.message(id).await.history;
    world.faults().steal_before(Op::Finish, plan::leave(history, START));
    world.start();
    world.until(1, |event| *event == Event::Stale { id }).await;
    assert_eq!(world.faults().asked(Op::Finish), 1);
    assert_eq!(world.message(id).await.summary.state, State::Waiting, "neither dead nor delivered by it");

    // The receiver is offered it again under the same name: it knows what it has done already.
    world.wake();
    world.attempts_ended(id, 1).await;
    world.advance_until_due(id).await; // every pause before asking the store again is shorter
    assert_eq!(world.ended(id, 1).await, DELIVERED);
    assert_eq!(world.faults().asked(Op::Finish), 3, "the end that was refused, the loss, and the delivery");
    let sent = world.receiver.to(SHOP);
    assert_eq!(sent.len(), 2);
    for name in ["idempotency-key", "x-relent-message"] {
        assert_eq!((sent[0].header(name), sent[1].header(name)), (&*id.to_string(), &*id.to_string()));
    }
    let message = world.message(id).await;
    let observed: Vec<_> =
        message.attempts.iter().map(|attempt| attempt.end.as_ref().unwrap().observed).collect();
    assert_eq!(observed, [UNKNOWN, Observed::Status(200)]);
    assert!(!world.events().contains(&Event::LedgerFailed), "a lost ticket is no failure of the store");
    assert_eq!(world.stop().await.stale, 1);
    world.assert_sound().await;
}

#[tokio::test]
async fn a_wait_of_six_hours_is_carried_out_exactly_once_by_three_workers() {
    // ST-12
    let mut world = World::under([("hours", steps(&[6 * HOUR]))]).started();
    world.receiver.will(SHOP, [Reply::Status(503)]);
    let id = world.accept(order_under("hours")).await;
    world.attempts_ended(id, 1).await;
    let others: Vec<_> = (0..2)
        .map(|_| {
            let (clock, log) = (world.clock.clone(), Arc::clone(&world.log) as Arc<dyn Observe>);
            let receiver = world.receiver.clone();
            let policies = world.policies.clone();
            let worker = Deliverer::new(world.ledger(), receiver, clock, policies, world.limits, log);
            tokio::spawn(async move { worker.run(pending()).await })
        })
        .collect();
    world.asleep(3).await; // all three know when it is due
    for _ in 1..6 {
        world.clock.advance(HOUR);
        world.probe().await;
        assert_eq!(world.sent_at(SHOP), [Duration::ZERO], "held by nobody, and sent by nobody");
    }
    world.clock.advance(HOUR);
    assert_eq!(world.ended(id, 1).await, DELIVERED);
    for _ in 0..6 {
        world.clock.advance(HOUR);
        world.probe().await;
    }
    assert_eq!(world.sent_at(SHOP), [Duration::ZERO, 6 * HOUR]);
    assert_eq!(world.message(id).await.attempts.len(), 2);
    for other in others {
        other.abort();
    }
    assert_eq!(world.stop().await.stale, 0);
}

const HOUR: Duration = secs(3600);
