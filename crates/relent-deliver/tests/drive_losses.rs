//! What died is found, decided by the policy, and counted apart from attempts; what panics is an outcome.

mod world;

use relent::{Clock, ErrorClass, Idempotency, Observed, StopReason, WaitOrigin};
use relent_deliver::{Submission, When, plan};
use relent_ledger::{State, Ticket};
use world::{Event, Op, Reply, START, UNKNOWN, World, order, order_under, secs, steps};

const SHOP: &str = "shop.example";
const DELIVERED: (State, StopReason) = (State::Delivered, StopReason::Succeeded);

#[tokio::test]
async fn three_losses_are_rescued_and_the_fourth_is_poison() {
    let mut world = World::new();
    world.receiver.will(SHOP, vec![Reply::Hangs; 5]);
    let id = world.accept(order()).await;
    for loss in 1..=4 {
        world.start();
        world.receiver.until(loss, SHOP).await;
        world.crash_and_reopen().await;
        world.start();
        world.attempts_ended(id, loss).await;
        world.stop().await;
        if loss < 4 {
            let wait = world.advance_until_due(id).await;
            assert!(!wait.is_zero(), "a lost delivery waits before it is tried again");
        }
    }
    assert_eq!(world.ended(id, 1).await, (State::Dead, StopReason::PoisonCrash));
    let message = world.message(id).await;
    let observed: Vec<_> =
        message.attempts.iter().map(|attempt| attempt.end.as_ref().unwrap().observed).collect();
    assert_eq!(observed, [UNKNOWN; 4]);
    let history = world.history(id).await;
    assert_eq!((history.losses, history.attempts), (4, 0));
    world.assert_sound().await;
}

#[tokio::test]
async fn a_loss_during_the_last_attempt_does_not_use_it_up() {
    // JB-05
    let mut policy = steps(&[secs(1)]);
    policy.retry.max_attempts = Some(3);
    let mut world = World::under([("three", policy)]).started();
    world.receiver.will(SHOP, [Reply::Status(503), Reply::Status(503), Reply::Hangs, Reply::Status(503)]);
    let id = world.accept(order_under("three")).await;
    for attempt in 1..=2 {
        world.attempts_ended(id, attempt).await;
        world.advance_until_due(id).await;
    }
    world.receiver.until(3, SHOP).await;
    world.crash_and_reopen().await;
    world.start();
    world.attempts_ended(id, 3).await;
    let history = world.history(id).await;
    assert_eq!((history.attempts, history.losses), (2, 1));
    world.advance_until_due(id).await;
    // The attempt that was lost is made up for; its failure is the third that counts, and ends as any other.
    assert_eq!(world.ended(id, 1).await, (State::Dead, StopReason::AttemptsExhausted));
    assert_eq!(world.receiver.to(SHOP)[3].header("x-relent-attempt"), "4");
    world.assert_sound().await;
}

#[tokio::test]
async fn a_lost_attempt_of_an_unsafe_message_is_ambiguous_and_not_repeated() {
    let mut world = World::new().started();
    world.receiver.will(SHOP, [Reply::Hangs]);
    let id = world.accept(Submission { repeat: Some(Idempotency::Unsafe), ..order() }).await;
    world.receiver.until(1, SHOP).await;
    world.crash_and_reopen().await;
    world.start();
    assert_eq!(world.ended(id, 1).await, (State::Dead, StopReason::Ambiguous));
    assert_eq!(world.message(id).await.summary.last_observed, Some(UNKNOWN));
    assert_eq!(world.receiver.all().len(), 1);
}

#[tokio::test]
async fn a_lost_attempt_is_unknown_also_where_its_policy_is_gone_and_its_deadline_over() {
    for (repeat, reason) in [
        (Idempotency::Safe, StopReason::BusinessDeadline),
        (Idempotency::Keyed, StopReason::BusinessDeadline),
        (Idempotency::Unsafe, StopReason::Ambiguous),
    ] {
        let mut world = World::under([("orders", steps(&[secs(1)]))]).started();
        world.receiver.will(SHOP, [Reply::Hangs]);
        let deadline = Some(When::In(secs(90)));
        let said = Submission { repeat: Some(repeat), deadline, ..order_under("orders") };
        let id = world.accept(said).await;
        world.receiver.until(1, SHOP).await;
        world.crash_and_reopen().await;
        world.policies = Default::default();
        world.start();
        for looks in 1..=2 {
            world.until(looks, |event| matches!(event, Event::Deferred { .. })).await;
            assert_eq!(
                world.message(id).await.attempts[0].end,
                None,
                "it may be concluded by its policy yet"
            );
            world.advance_until_due(id).await;
        }
        assert_eq!(world.ended(id, 1).await, (State::Dead, reason), "{repeat:?}");
        let message = world.message(id).await;
        assert_eq!(message.attempts[0].end.as_ref().unwrap().observed, UNKNOWN);
        assert_eq!(world.history(id).await.losses, 1);
        assert_eq!(world.receiver.all().len(), 1);
        world.assert_sound().await;
    }
}

#[tokio::test]
async fn a_message_that_was_claimed_and_not_begun_is_sent_after_a_crash_as_if_nothing_had_been() {
    let mut world = World::new();
    world.faults().shut(Op::Begin);
    world.faults().shut(Op::Finish);
    world.start();
    let id = world.accept(order()).await;
    world.until(2, |event| *event == Event::LedgerFailed).await;
    world.crash_and_reopen().await;
    world.start();
    assert_eq!(world.ended(id, 1).await, DELIVERED);
    assert_eq!(world.message(id).await.attempts.len(), 1);
}

#[tokio::test]
async fn a_panic_of_the_transport_is_an_outcome_and_the_driver_goes_on() {
    let world = World::new().started();
    world.receiver.will(SHOP, [Reply::Panics]);
    let id = world.accept(order()).await;
    world.attempts_ended(id, 1).await;
    let summary = world.message(id).await.summary;
    assert_eq!(summary.last_observed, Some(Observed::Error(ErrorClass::Panic)));
    assert!(summary.last_detail.contains("the script says so"), "{}", summary.last_detail);
    world.probe().await;
    world.advance_until_due(id).await;
    assert_eq!(world.ended(id, 1).await, DELIVERED);
}

#[tokio::test]
async fn a_panic_of_an_observer_costs_no_message_and_no_place() {
    let mut world = World::new();
    world.limits.in_flight = 1;
    world.log.panic_once();
    let mut world = world.started();
    let id = world.accept(order()).await;
    world.until(1, |event| *event == Event::TaskPanicked { id }).await;
    // The delivery was durable before the observer was told, so putting it off finds the ticket over.
    world.until(1, |event| *event == Event::Stale { id }).await;
    assert_eq!(world.message(id).await.summary.state, State::Delivered);
    world.probe().await;
    assert_eq!(world.stop().await.stale, 1);
    assert_eq!(world.receiver.to(SHOP).len(), 1);
}

#[tokio::test]
async fn whoever_comes_late_is_refused_and_changes_nothing() {
    // ST-08
    let mut world = World::under([("steps", steps(&[secs(1)]))]).started();
    world.receiver.will(SHOP, [Reply::After(secs(5), 200), Reply::Status(503)]);
    let id = world.accept(order_under("steps")).await;
    world.receiver.until(1, SHOP).await;
    // Somebody takes the first delivery away while it is under way.
    let history = world.message(id).await.history;
    let taken = plan::leave(history, START);
    world.ledger().finish(&Ticket { id, epoch: 1 }, taken).await.unwrap();
    world.wake();
    world.attempts_ended(id, 1).await; // the second claim finds the first attempt as lost
    world.clock.advance(secs(5));
    world.until(1, |event| *event == Event::Stale { id }).await;
    world.attempts_ended(id, 2).await; // and the 503
    assert_eq!(world.message(id).await.summary.state, State::Waiting, "the late 200 is not credited to it");
    world.advance_until_due(id).await;
    assert_eq!(world.ended(id, 1).await, DELIVERED);
    assert_eq!(world.receiver.to(SHOP).len(), 3);
    assert_eq!(world.stop().await.stale, 1);
    world.assert_sound().await;
}

#[tokio::test]
async fn finished_work_is_recorded_when_the_store_is_back_and_not_done_again() {
    // ST-18
    let world = World::new().started();
    world.receiver.will(SHOP, [Reply::After(secs(1), 200)]);
    let id = world.accept(order()).await;
    world.receiver.until(1, SHOP).await;
    world.faults().shut(Op::Finish);
    world.clock.advance(secs(1));
    let mut failures = 0;
    while world.sent_at(SHOP).len() == 1 && world.clock.now().since(START) < secs(20) {
        failures += 1;
        world.until(failures, |event| *event == Event::LedgerFailed).await;
        world.asleep(1).await;
        world.clock.advance_to_next();
    }
    assert!(failures < 15, "it backs off: {failures}");
    world.faults().open(Op::Finish);
    world.clock.advance(secs(5));
    assert_eq!(world.ended(id, 1).await, DELIVERED);
    assert_eq!(world.receiver.all().len(), 1, "it ran once");
    assert_eq!(world.message(id).await.summary.ended_at, Some(START.after(secs(1))), "when it ended");
}

#[tokio::test]
async fn a_store_that_gives_nothing_out_is_asked_ever_more_rarely() {
    let world = World::new();
    world.faults().shut(Op::Claim);
    let world = world.started();
    let id = world.accept(order()).await;
    for failures in 1..=20 {
        world.until(failures, |event| *event == Event::LedgerFailed).await;
        world.asleep(1).await;
        world.clock.advance_to_next();
    }
    let passed = world.clock.now().since(START);
    assert!(passed > secs(60), "{passed:?} for twenty");
    world.faults().open(Op::Claim);
    world.clock.advance(secs(5));
    assert_eq!(world.ended(id, 1).await, DELIVERED);
    // A wake-up or an end may ask once more.
    assert!(world.faults().asked(Op::Claim) <= 20 + 3, "{}", world.faults().asked(Op::Claim));
}

#[tokio::test]
async fn an_attempt_whose_beginning_cannot_be_recorded_is_not_sent() {
    let world = World::new();
    world.faults().shut(Op::Begin);
    let world = world.started();
    let id = world.accept(order()).await;
    world.until(1, |event| matches!(event, Event::Deferred { .. })).await;
    let summary = world.message(id).await.summary;
    assert_eq!((summary.attempts, summary.wait.unwrap().origin), (0, WaitOrigin::OwnFault));
    assert_eq!(world.receiver.all().len(), 0);
    world.faults().open(Op::Begin);
    world.advance_until_due(id).await;
    assert_eq!(world.ended(id, 1).await, DELIVERED);
    assert_eq!(world.history(id).await.attempts, 1);
}

#[tokio::test]
async fn a_row_that_cannot_be_shelved_yet_is_shelved_when_the_store_is_back() {
    let world = World::new();
    world.faults().shut(Op::Shelve);
    let mut torn = world.prepare(order());
    torn.history = b"torn".as_slice().into();
    let id = world.accept_as_is(torn).await;
    let world = world.started();
    world.until(1, |event| *event == Event::LedgerFailed).await;
    world.probe().await;
    world.faults().open(Op::Shelve);
    world.clock.advance(secs(5));
    assert_eq!(world.ended(id, 1).await, (State::Dead, StopReason::Unreadable));
}
