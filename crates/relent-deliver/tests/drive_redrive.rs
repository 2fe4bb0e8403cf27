//! A dead letter sent again: a new cycle with full patience, under the same name, with the whole log kept.

mod world;

use bytes::Bytes;
use relent::{Clock, Idempotency, Policy, StopReason};
use relent_deliver::{Policies, RedriveError, Submission, When, redrive};
use relent_ledger::{MessageId, Settled, State};
use world::{Reply, START, World, order, order_under, secs, steps};

const SHOP: &str = "shop.example";
const DELIVERED: (State, StopReason) = (State::Delivered, StopReason::Succeeded);

fn limited(attempts: u32) -> Policy {
    let mut policy = steps(&[secs(1)]);
    policy.retry.max_attempts = Some(attempts);
    policy
}

async fn send_again(world: &World, id: MessageId) -> Settled {
    let settled = redrive(&*world.ledger(), &world.policies, id, None, world.clock.now())
        .await
        .expect("the store is open");
    world.wake();
    settled
}

async fn run_out(world: &World, id: MessageId, attempts: usize, before: usize) {
    for attempt in 1..attempts {
        world.attempts_ended(id, before + attempt).await;
        world.advance_until_due(id).await;
    }
    world.attempts_ended(id, before + attempts).await;
}

#[tokio::test]
async fn a_redriven_message_starts_anew_and_its_attempts_are_numbered_on() {
    // RD-01, RD-03: what the first cycle used up does not send it straight back.
    let mut world = World::under([("three", limited(3))]).started();
    world.receiver.will(SHOP, vec![Reply::Status(503); 5]);
    let said = Submission { body: Bytes::from_static(&[0x00, 0xff, 0x7b]), ..order_under("three") };
    let id = world.accept(said.clone()).await;
    run_out(&world, id, 3, 0).await;
    assert_eq!(world.ended(id, 1).await, (State::Dead, StopReason::AttemptsExhausted));

    world.clock.advance(secs(3600));
    let at = world.clock.now();
    assert_eq!(send_again(&world, id).await, Settled::Done);
    run_out(&world, id, 3, 3).await;
    assert_eq!(world.ended(id, 2).await, DELIVERED);

    let history = world.history(id).await;
    assert_eq!((history.cycle, history.attempts, history.started), (1, 3, at));
    let message = world.message(id).await;
    let log: Vec<_> = message.attempts.iter().map(|attempt| (attempt.number, attempt.cycle)).collect();
    assert_eq!(log, [(1, 0), (2, 0), (3, 0), (4, 1), (5, 1), (6, 1)]);
    let sent = world.receiver.to(SHOP);
    assert_eq!((sent[3].header("x-relent-attempt"), sent[3].header("x-relent-cycle")), ("4", "1"));
    for sent in &sent {
        // RD-05, RD-11: the same name, key and bytes.
        assert_eq!(sent.header("idempotency-key"), id.to_string());
        assert_eq!(sent.outbound.body, said.body);
    }
    world.stop().await;
    world.assert_sound().await;
}

#[tokio::test]
async fn waits_of_the_new_cycle_are_drawn_anew() {
    let world = World::new().started();
    world.receiver.will(SHOP, [Reply::Status(503), Reply::Status(400), Reply::Status(503)]);
    let id = world.accept(order()).await;
    run_out(&world, id, 2, 0).await;
    world.ended(id, 1).await;
    assert_eq!(send_again(&world, id).await, Settled::Done);
    world.attempts_ended(id, 3).await;
    let waits: Vec<_> = world
        .message(id)
        .await
        .waits
        .iter()
        .map(|wait| wait.wait)
        .filter(|wait| !wait.ceiling.is_zero())
        .collect();
    assert_eq!(waits.len(), 2);
    assert_eq!(waits[0].ceiling, waits[1].ceiling);
    assert_ne!(waits[0].length, waits[1].length);
}

#[tokio::test]
async fn of_two_redrives_of_the_same_dead_letter_one_is_carried_out() {
    // RD-09
    let world = World::new();
    world.receiver.will(SHOP, [Reply::Status(400), Reply::After(secs(1), 200)]);
    let world = world.started();
    let id = world.accept(order()).await;
    world.ended(id, 1).await;
    let (ledger, now) = (world.ledger(), world.clock.now());
    let once = || redrive(&*ledger, &world.policies, id, None, now);
    let (first, second) = tokio::join!(once(), once());
    let done = [first.unwrap(), second.unwrap()].iter().filter(|settled| **settled == Settled::Done).count();
    assert_eq!(done, 1);
    world.wake();
    world.receiver.until(2, SHOP).await;
    assert_eq!(once().await.unwrap(), Settled::Refused(State::InFlight));
    world.clock.advance(secs(1));
    assert_eq!(world.ended(id, 2).await, DELIVERED);
    assert_eq!(once().await.unwrap(), Settled::Refused(State::Delivered));
    assert_eq!(world.receiver.all().len(), 2);
}

#[tokio::test]
async fn what_is_not_there_is_not_redriven() {
    let world = World::new();
    let id = MessageId::generate(START);
    assert_eq!(redrive(&*world.ledger(), &world.policies, id, None, START).await.unwrap(), Settled::NotFound);
}

#[tokio::test]
async fn a_message_whose_policy_is_gone_is_not_redriven_into_waiting() {
    let world = World::under([("orders", limited(1))]).started();
    world.receiver.will(SHOP, [Reply::Status(503)]);
    let id = world.accept(order_under("orders")).await;
    world.ended(id, 1).await;
    let refused = redrive(&*world.ledger(), &Policies::default(), id, None, START).await.unwrap_err();
    assert!(matches!(&refused, RedriveError::Policy(unknown) if unknown.name == "orders"), "{refused:?}");
    assert_eq!(world.message(id).await.summary.state, State::Dead);
}

#[tokio::test]
async fn the_policys_deadline_counts_anew_and_is_todays() {
    let mut world =
        World::under([("day", Policy { business_deadline: Some(secs(86_400)), ..limited(1) })]).started();
    world.receiver.will(SHOP, [Reply::Status(503)]);
    let id = world.accept(order_under("day")).await;
    world.ended(id, 1).await;
    world.clock.advance(secs(100_000));
    let longer = Policy { business_deadline: Some(secs(200_000)), ..limited(1) };
    world.policies = Policies::new([("day".to_owned(), longer)]);
    assert_eq!(send_again(&world, id).await, Settled::Done);
    assert_eq!(world.ended(id, 2).await, DELIVERED);
    assert_eq!(world.history(id).await.deadlines.business, Some(START.after(secs(300_000))));
    assert_eq!(world.message(id).await.summary.deadline, None);
}

#[tokio::test]
async fn a_senders_deadline_keeps_its_length_through_every_cycle() {
    let world = World::new().started();
    world.receiver.will(SHOP, vec![Reply::Status(400); 3]);
    let not_before = Some(When::In(secs(600)));
    let id = world.accept(Submission { deadline: Some(When::In(secs(3600))), not_before, ..order() }).await;
    world.clock.advance(secs(600));
    world.ended(id, 1).await;
    for cycle in 1..=2 {
        world.clock.advance(secs(10_000));
        let at = world.clock.now();
        assert_eq!(send_again(&world, id).await, Settled::Done);
        world.ended(id, cycle + 1).await;
        assert_eq!(world.history(id).await.deadlines.business, Some(at.after(secs(3600))));
        assert_eq!(world.message(id).await.summary.deadline, Some(at.after(secs(3600))));
    }
}

#[tokio::test]
async fn a_message_whose_history_is_torn_is_redriven_with_a_fresh_one() {
    let world = World::new().started();
    let mut torn = world.prepare(Submission { repeat: Some(Idempotency::Safe), ..order() });
    torn.history = Bytes::from_static(b"torn");
    let id = world.accept_as_is(torn).await;
    assert_eq!(world.ended(id, 1).await, (State::Dead, StopReason::Unreadable));
    assert_eq!(send_again(&world, id).await, Settled::Done);
    assert_eq!(world.ended(id, 2).await, DELIVERED);
    let history = world.history(id).await;
    assert_eq!((history.cycle, history.seed, history.idempotency), (1, id.seed(), Idempotency::Safe));
}
