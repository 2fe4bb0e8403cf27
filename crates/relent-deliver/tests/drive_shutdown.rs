//! On the way out nothing new is begun, what is in flight has its time, and nothing is forgotten.

mod world;

use relent::{Idempotency, StopReason, WaitOrigin};
use relent_deliver::{RunReport, Submission};
use relent_ledger::{Accepted, State};
use world::{Event, Op, Reply, START, UNKNOWN, World, order, secs};

const SHOP: &str = "shop.example";

#[tokio::test]
async fn what_arrives_after_the_stop_stays_as_it_is() {
    // ST-16
    let mut world = World::new().started();
    world.probe().await;
    let report = world.stop().await;
    assert_eq!((report.attempts, report.delivered), (1, 1));
    let id = world.accept(order()).await;
    world.clock.advance(secs(3600));
    let message = world.message(id).await;
    assert_eq!((message.summary.state, message.summary.attempts), (State::Waiting, 0));
    assert_eq!(world.receiver.to(SHOP).len(), 0);
}

#[tokio::test]
async fn an_attempt_in_flight_may_end_within_the_drain_time() {
    let mut world = World::new().started();
    world.receiver.will(SHOP, [Reply::After(secs(9), 200)]);
    let id = world.accept(order()).await;
    world.receiver.until(1, SHOP).await;
    let stopped = world.shut_down();
    let late = world.accept(Submission::new("http://late.example/")).await;
    world.clock.advance(secs(9));
    let report = stopped.await;
    assert_eq!(report, RunReport { attempts: 1, delivered: 1, ..RunReport::default() });
    assert_eq!(world.message(id).await.summary.state, State::Delivered);
    assert_eq!(world.message(late).await.summary.state, State::Waiting, "nothing new is claimed");
    world.assert_sound().await;
}

#[tokio::test]
async fn an_attempt_that_outlasts_the_drain_time_is_cut_off_and_not_counted() {
    let mut world = World::new().started();
    world.receiver.will(SHOP, [Reply::After(secs(11), 200)]);
    let id = world.accept(order()).await;
    world.receiver.until(1, SHOP).await;
    let stopped = world.shut_down();
    let stopped = tokio::spawn(stopped);
    world.asleep(2).await; // the attempt and the drain
    world.clock.advance(secs(10));
    let report = stopped.await.unwrap();
    assert_eq!(report, RunReport { attempts: 1, deferred: 1, ..RunReport::default() });

    let message = world.message(id).await;
    assert_eq!(message.summary.state, State::Waiting);
    assert_eq!(message.summary.due_at, Some(START.after(secs(10))), "at once");
    assert_eq!(message.summary.wait.unwrap().origin, WaitOrigin::Shutdown);
    let end = message.attempts[0].end.as_ref().unwrap();
    assert_eq!((end.observed, end.took), (UNKNOWN, secs(10)));
    let history = world.history(id).await;
    assert_eq!((history.attempts, history.losses, history.last_verdict), (0, 0, None));

    world.start();
    assert_eq!(world.ended(id, 1).await, (State::Delivered, StopReason::Succeeded));
    assert_eq!(world.receiver.to(SHOP)[1].header("x-relent-attempt"), "2");
    world.assert_sound().await;
}

#[tokio::test]
async fn an_unsafe_attempt_that_is_cut_off_goes_to_a_person() {
    let mut world = World::new().started();
    world.receiver.will(SHOP, [Reply::Hangs]);
    let id = world.accept(Submission { repeat: Some(Idempotency::Unsafe), ..order() }).await;
    world.receiver.until(1, SHOP).await;
    let stopped = tokio::spawn(world.shut_down());
    world.asleep(2).await;
    world.clock.advance(secs(10));
    assert_eq!(stopped.await.unwrap().dead, 1);
    assert_eq!(world.ended(id, 1).await, (State::Dead, StopReason::Ambiguous));
    assert_eq!(world.message(id).await.summary.last_observed, Some(UNKNOWN));
}

#[tokio::test]
async fn an_answer_that_comes_with_the_cut_counts() {
    // RT-27
    let mut world = World::new().started();
    world.receiver.will(SHOP, [Reply::After(secs(10), 200)]);
    let id = world.accept(order()).await;
    world.receiver.until(1, SHOP).await;
    let stopped = tokio::spawn(world.shut_down());
    world.asleep(2).await;
    world.clock.advance(secs(10));
    assert_eq!(stopped.await.unwrap().delivered, 1);
    assert_eq!(world.message(id).await.summary.state, State::Delivered);
}

#[tokio::test]
async fn what_was_claimed_and_not_begun_is_put_back_as_it_was() {
    // ST-16
    let mut world = World::new();
    world.limits.per_destination = 2;
    world.receiver.will(SHOP, vec![Reply::Hangs; 2]);
    let mut world = world.started();
    world.accept(order()).await;
    world.receiver.until(1, SHOP).await;
    // With one of two places free, a claim brings two, and one of them waits for a place.
    let (second, parked) = (world.prepare(order()), world.prepare(order()));
    let id = parked.id;
    for message in [second, parked] {
        assert_eq!(world.ledger().accept(message).await.unwrap(), Accepted::New);
    }
    world.wake();
    world.receiver.until(2, SHOP).await;
    world.probe().await;
    let before = world.message(id).await;
    assert_eq!((before.summary.state, before.summary.attempts), (State::InFlight, 0));

    let stopped = tokio::spawn(world.shut_down());
    world.asleep(3).await; // two attempts and the drain
    world.clock.advance(secs(10));
    let report = stopped.await.unwrap();
    assert_eq!((report.left, report.deferred, report.attempts), (1, 2, 3));
    let after = world.message(id).await;
    assert_eq!((after.summary.state, after.summary.due_at), (State::Waiting, Some(START)));
    assert_eq!((after.summary.attempts, after.history), (0, before.history));
    world.assert_sound().await;
}

#[tokio::test]
async fn work_that_the_store_will_not_record_before_the_end_is_unknown_afterwards() {
    let mut world = World::new().started();
    world.faults().shut(Op::Finish);
    let id = world.accept(order()).await;
    world.until(1, |event| *event == Event::LedgerFailed).await;
    let stopped = tokio::spawn(world.shut_down());
    world.asleep(2).await; // the pause and the drain
    world.clock.advance(secs(10));
    let report = stopped.await.unwrap();
    assert_eq!(report, RunReport { attempts: 1, unsettled: 1, ..RunReport::default() });

    world.crash_and_reopen().await;
    world.start();
    world.attempts_ended(id, 1).await;
    assert_eq!(world.message(id).await.summary.last_observed, Some(UNKNOWN));
    world.advance_until_due(id).await;
    assert_eq!(world.ended(id, 1).await, (State::Delivered, StopReason::Succeeded));
}
