//! The rules of delivery, from acceptance to the end, on the real store and without real time.

mod world;

use std::time::Duration;

use bytes::Bytes;
use relent::{Clock, ErrorClass, Idempotency, Observed, Policy, StopReason, WaitOrigin};
use relent_deliver::{Submission, When};
use relent_ledger::State;
use world::{Reply, START, World, millis, order, order_under, secs, steps};

const SHOP: &str = "shop.example";
const DELIVERED: (State, StopReason) = (State::Delivered, StopReason::Succeeded);

const fn dead(reason: StopReason) -> (State, StopReason) {
    (State::Dead, reason)
}

#[tokio::test]
async fn unavailable_then_a_time_out_then_success_is_three_attempts_with_waits_in_range() {
    let world = World::new().started();
    world.receiver.will(SHOP, [Reply::Status(503), Reply::Hangs, Reply::Status(200)]);
    let id = world.accept(order()).await;

    world.attempts_ended(id, 1).await;
    let first = world.advance_until_due(id).await;
    world.receiver.until(2, SHOP).await;
    world.clock.advance(secs(15)); // the attempt time-out
    world.attempts_ended(id, 2).await;
    let second = world.advance_until_due(id).await;
    assert_eq!(world.ended(id, 1).await, DELIVERED);

    assert!(first <= secs(5), "{first:?}");
    assert!(second <= secs(20), "{second:?}");
    assert_eq!(world.sent_at(SHOP), [Duration::ZERO, first, first + secs(15) + second]);
    let message = world.message(id).await;
    let observed: Vec<_> =
        message.attempts.iter().map(|attempt| attempt.end.as_ref().unwrap().observed).collect();
    let timeout = Observed::Error(ErrorClass::HeaderTimeout);
    assert_eq!(observed, [Observed::Status(503), timeout, Observed::Status(200)]);
    assert_eq!(message.attempts[1].end.as_ref().unwrap().took, secs(15));
    let waits: Vec<_> = message.waits.iter().map(|wait| (wait.wait.length, wait.wait.origin)).collect();
    assert_eq!(waits, [(first, WaitOrigin::Backoff), (second, WaitOrigin::Backoff)]);
    assert!(message.summary.ended_at.unwrap() < world.history(id).await.deadlines.business.unwrap());
    world.assert_sound().await;
}

#[tokio::test]
async fn a_permanent_answer_is_one_attempt_and_a_dead_letter() {
    // RT-15
    let world = World::new().started();
    for status in [400, 401, 404, 410, 422] {
        world.receiver.will(SHOP, [Reply::Status(status)]);
        let id = world.accept(order()).await;
        assert_eq!(world.ended(id, 1).await, dead(StopReason::Permanent), "{status}");
        let message = world.message(id).await;
        assert_eq!(message.attempts.len(), 1);
        assert_eq!(message.summary.last_observed, Some(Observed::Status(status)));
        let end = message.attempts[0].end.as_ref().unwrap();
        assert_eq!(end.response, format!("said {status}"), "RT-17: what was answered is kept");
    }
    assert_eq!(world.receiver.all().len(), 5);
}

#[tokio::test]
async fn a_receiver_that_asks_for_two_seconds_is_left_alone_for_two_seconds() {
    let world = World::new().started();
    world.receiver.will(SHOP, [Reply::Wait(429, secs(2))]);
    let id = world.accept(order()).await;
    world.attempts_ended(id, 1).await;
    let wait = world.message(id).await.waits[0].wait;
    assert_eq!((wait.asked, wait.floor), (Some(secs(2)), secs(2)));

    world.clock.advance(millis(1999));
    world.probe().await;
    assert_eq!(world.receiver.to(SHOP).len(), 1, "not sooner");
    world.advance_until_due(id).await;
    assert_eq!(world.ended(id, 1).await, DELIVERED);
    assert_eq!(world.sent_at(SHOP)[1], wait.length);
    assert!(wait.length >= secs(2));
}

#[tokio::test]
async fn a_wait_that_the_deadline_does_not_hold_ends_the_message_at_once() {
    let world = World::under([("slow", steps(&[secs(60)]))]).started();
    world.receiver.will(SHOP, [Reply::Status(503)]);
    let id = world.accept(Submission { deadline: Some(When::In(secs(30))), ..order_under("slow") }).await;
    assert_eq!(world.ended(id, 1).await, dead(StopReason::BusinessDeadline));
    let summary = world.message(id).await.summary;
    assert_eq!(summary.ended_at, Some(START), "no waiting for the deadline first");
    assert_eq!(summary.last_observed, Some(Observed::Status(503)), "the last real failure");
}

#[tokio::test]
async fn a_server_wait_beyond_the_deadline_ends_the_message_at_once() {
    // RA-10
    let world = World::new().started();
    world.receiver.will(SHOP, [Reply::Wait(503, secs(86_400))]);
    let id = world.accept(Submission { deadline: Some(When::In(secs(5))), ..order() }).await;
    assert_eq!(world.ended(id, 1).await, dead(StopReason::BusinessDeadline));
    assert_eq!(world.receiver.all().len(), 1);
    assert_eq!(world.clock.now(), START);
}

#[tokio::test]
async fn a_server_wait_without_end_is_clamped_and_recorded_as_clamped() {
    // RA-08
    let world = World::new().started();
    world.receiver.will(SHOP, [Reply::Wait(429, secs(9_999_999_999))]);
    let id = world.accept(order()).await;
    world.attempts_ended(id, 1).await;
    let wait = world.message(id).await.waits[0].wait;
    assert!(wait.was_clamped());
    assert!(wait.asked.unwrap() > secs(9_000_000_000), "what was asked is kept: {wait}");
    assert_eq!(wait.floor, secs(86_400), "the durable policy's limit");
}

#[tokio::test]
async fn a_wait_that_was_asked_for_is_not_cut_to_the_policys_own_maximum() {
    // JB-07
    let mut policy = steps(&[secs(1)]);
    policy.retry.max_wait = secs(3600);
    let world = World::under([("hourly", policy)]).started();
    world.receiver.will(SHOP, [Reply::Wait(503, secs(7200))]);
    let id = world.accept(order_under("hourly")).await;
    world.attempts_ended(id, 1).await;
    assert_eq!(world.advance_until_due(id).await, secs(7200));
    assert_eq!(world.ended(id, 1).await, DELIVERED);

    world.receiver.will(SHOP, [Reply::Wait(503, secs(7200))]);
    let limited = Submission { deadline: Some(When::In(secs(3600))), ..order_under("hourly") };
    let id = world.accept(limited).await;
    assert_eq!(world.ended(id, 1).await, dead(StopReason::BusinessDeadline));
}

#[tokio::test]
async fn a_hint_does_not_disturb_the_sequence_of_the_backoff() {
    // RA-20
    let policy = steps(&[millis(100), millis(200), millis(400), millis(800)]);
    let world = World::under([("steps", policy)]).started();
    let unavailable = Reply::Status(503);
    let script = [unavailable.clone(), Reply::Wait(503, secs(5)), unavailable.clone(), unavailable];
    world.receiver.will(SHOP, script);
    let id = world.accept(order_under("steps")).await;
    for attempt in 1..=4 {
        world.attempts_ended(id, attempt).await;
        world.advance_until_due(id).await;
    }
    assert_eq!(world.ended(id, 1).await, DELIVERED);
    let waits = world.message(id).await.waits;
    let waits: Vec<_> = waits.iter().map(|wait| (wait.wait.length, wait.wait.origin)).collect();
    let (backoff, server) = (WaitOrigin::Backoff, WaitOrigin::Server);
    let expected =
        [(millis(100), backoff), (secs(5), server), (millis(400), backoff), (millis(800), backoff)];
    assert_eq!(waits, expected);
}

#[tokio::test]
async fn a_retry_runs_at_its_instant_and_not_at_some_interval() {
    // JB-03
    let world = World::under([("steps", steps(&[secs(1), millis(7), secs(3)]))]).started();
    world.receiver.will(SHOP, vec![Reply::Status(503); 3]);
    let id = world.accept(order_under("steps")).await;
    for attempt in 1..=3 {
        world.attempts_ended(id, attempt).await;
        world.advance_until_due(id).await;
    }
    world.ended(id, 1).await;
    assert_eq!(world.sent_at(SHOP), [secs(0), secs(1), millis(1007), millis(4007)]);
}

#[tokio::test]
async fn a_message_is_not_sent_before_its_time_and_says_why_it_waits() {
    let world = World::new().started();
    let id = world.accept(Submission { not_before: Some(When::In(secs(60))), ..order() }).await;
    world.clock.advance(secs(59));
    world.probe().await;
    assert_eq!(world.receiver.to(SHOP).len(), 0);
    assert_eq!(world.message(id).await.summary.wait.unwrap().origin, WaitOrigin::NotBefore);
    world.clock.advance(secs(1));
    assert_eq!(world.ended(id, 1).await, DELIVERED);
    assert_eq!(world.sent_at(SHOP), [secs(60)]);
}

#[tokio::test]
async fn attempts_are_counted_with_the_first_and_all_kept() {
    // RT-19, JB-09: the stored count equals what was sent.
    for (max, sends) in [(4, 4), (1, 1)] {
        let mut policy = steps(&[secs(1)]);
        policy.retry.max_attempts = Some(max);
        let world = World::under([("few", policy)]).started();
        world.receiver.will(SHOP, vec![Reply::Status(503); 10]);
        let id = world.accept(order_under("few")).await;
        for attempt in 1..sends {
            world.attempts_ended(id, attempt).await;
            assert_eq!(world.message(id).await.attempts.len(), world.receiver.all().len());
            world.advance_until_due(id).await;
        }
        assert_eq!(world.ended(id, 1).await, dead(StopReason::AttemptsExhausted));
        assert_eq!(world.receiver.all().len(), sends);
        let message = world.message(id).await;
        assert_eq!(message.attempts.len(), sends);
        assert_eq!(message.summary.last_observed, Some(Observed::Status(503)), "RT-17");
    }
}

#[tokio::test]
async fn the_end_of_a_dead_letter_names_who_is_told_and_that_of_a_delivered_message_nobody() {
    let watched = Policy { alert: Some("orders on call".into()), ..Policy::durable() };
    let world = World::under([("watched", watched)]).started();
    world.receiver.will(SHOP, [Reply::Status(422), Reply::Status(200), Reply::Status(422)]);
    for (policy, state, told) in [
        ("watched", State::Dead, Some("orders on call")),
        ("watched", State::Delivered, None),
        ("durable", State::Dead, None),
    ] {
        let id = world.accept(order_under(policy)).await;
        assert_eq!(world.ended(id, 1).await.0, state);
        assert_eq!(world.log.alert(id).as_deref(), told, "{policy} {state:?}");
    }
}

#[tokio::test]
async fn an_unsafe_message_whose_attempt_ended_ambiguously_is_not_sent_again() {
    // RT-13
    let world = World::new().started();
    let unsafe_order = || Submission { repeat: Some(Idempotency::Unsafe), ..order() };
    world.receiver.will(SHOP, [Reply::Fails(ErrorClass::Reset)]);
    let id = world.accept(unsafe_order()).await;
    assert_eq!(world.ended(id, 1).await, dead(StopReason::Ambiguous));

    world.receiver.will(SHOP, [Reply::Fails(ErrorClass::Connect)]);
    let id = world.accept(unsafe_order()).await;
    world.attempts_ended(id, 1).await;
    world.advance_until_due(id).await;
    assert_eq!(world.ended(id, 1).await, DELIVERED, "what never left is safe to repeat");
}

#[tokio::test]
async fn a_name_that_cannot_be_resolved_is_tried_again() {
    // WH-09
    let world = World::under([("steps", steps(&[secs(30), secs(60), secs(120)]))]).started();
    world.receiver.will(SHOP, vec![Reply::Fails(ErrorClass::Dns); 2]);
    let id = world.accept(order_under("steps")).await;
    for attempt in 1..=2 {
        world.attempts_ended(id, attempt).await;
        world.advance_until_due(id).await;
    }
    assert_eq!(world.ended(id, 1).await, DELIVERED);
    assert_eq!(world.sent_at(SHOP), [secs(0), secs(30), secs(90)]);
}

#[tokio::test]
async fn a_redirect_is_a_failure_that_is_tried_again_by_schedule() {
    // WH-07
    let world = World::under([("steps", steps(&[secs(30)]))]).started();
    world.receiver.will(SHOP, [Reply::Status(302)]);
    let id = world.accept(order_under("steps")).await;
    world.attempts_ended(id, 1).await;
    assert_eq!(world.message(id).await.summary.last_observed, Some(Observed::Status(302)));
    assert_eq!(world.advance_until_due(id).await, secs(30));
    assert_eq!(world.ended(id, 1).await, DELIVERED);
}

#[tokio::test]
async fn the_receiver_can_tell_a_repetition_and_its_age() {
    // WH-17; RT-07: what belongs to one attempt is made anew for each; ID-19: the key is not.
    let world = World::under([("steps", steps(&[secs(30), secs(60)]))]).started();
    world.receiver.will(SHOP, vec![Reply::Status(503); 2]);
    let said = Submission {
        headers: vec![("content-type".to_owned(), "text/plain".to_owned())],
        body: Bytes::from_static(&[0x00, 0xff, 0x7b]),
        ..order_under("steps")
    };
    let id = world.accept(said.clone()).await;
    for attempt in 1..=2 {
        world.attempts_ended(id, attempt).await;
        world.advance_until_due(id).await;
    }
    assert_eq!(world.ended(id, 1).await, DELIVERED);
    let sent = world.receiver.to(SHOP);
    assert_eq!(sent.len(), 3);
    for (n, (sent, after)) in (1..).zip(sent.iter().zip([0, 30, 90])) {
        assert_eq!(sent.header("x-relent-attempt"), n.to_string());
        assert_eq!(sent.header("x-relent-sent-at"), (START.as_secs() + after).to_string());
        assert_eq!(sent.header("x-relent-accepted-at"), START.as_secs().to_string());
        assert_eq!(sent.header("x-relent-cycle"), "0");
        assert_eq!(sent.header("x-relent-message"), id.to_string());
        assert_eq!(sent.header("idempotency-key"), id.to_string());
        assert_eq!(sent.header("content-type"), "text/plain");
        assert!(sent.header("user-agent").starts_with("relent/"));
        assert_eq!(sent.outbound.body, said.body);
        assert_eq!(sent.outbound.headers.len(), 8, "and nothing else: {:?}", sent.outbound.headers);
    }
}

#[tokio::test]
async fn the_senders_own_key_and_user_agent_are_sent_as_they_are() {
    let world = World::new().started();
    let said = Submission {
        key: Some("order-7".to_owned()),
        headers: vec![("User-Agent".to_owned(), "shop/1".to_owned())],
        ..order()
    };
    let id = world.accept(said).await;
    world.ended(id, 1).await;
    let sent = &world.receiver.to(SHOP)[0];
    assert_eq!((sent.header("idempotency-key"), sent.header("user-agent")), ("order-7", "shop/1"));
}

#[tokio::test]
async fn an_attempt_ends_with_its_deadline_where_that_comes_before_its_time_out() {
    let world = World::new().started();
    world.receiver.will(SHOP, [Reply::Hangs]);
    let id = world.accept(Submission { deadline: Some(When::In(secs(4))), ..order() }).await;
    world.receiver.until(1, SHOP).await;
    assert_eq!(world.receiver.to(SHOP)[0].limit, secs(4));
    world.clock.advance(secs(4));
    assert_eq!(world.ended(id, 1).await, dead(StopReason::BusinessDeadline));
}

#[tokio::test]
async fn a_retry_that_fits_is_sent_although_another_wait_would_not_fit() {
    let world = World::under([("steps", steps(&[secs(10)]))]).started();
    world.receiver.will(SHOP, [Reply::Status(503)]);
    let id = world.accept(Submission { deadline: Some(When::In(secs(15))), ..order_under("steps") }).await;
    world.attempts_ended(id, 1).await;
    assert_eq!(world.advance_until_due(id).await, secs(10));
    assert_eq!(world.ended(id, 1).await, DELIVERED);
}

#[tokio::test]
async fn a_message_that_comes_up_after_its_deadline_is_not_sent() {
    let mut world = World::under([("steps", steps(&[secs(10)]))]).started();
    world.receiver.will(SHOP, [Reply::Status(503)]);
    let id = world.accept(Submission { deadline: Some(When::In(secs(60))), ..order_under("steps") }).await;
    let fresh = world.accept(Submission { deadline: Some(When::In(secs(60))), ..order() }).await;
    world.attempts_ended(id, 1).await;
    world.ended(fresh, 1).await;
    world.stop().await;
    // The server is down over the deadline.
    world.clock.advance(secs(60));
    world.start();
    assert_eq!(world.ended(id, 1).await, dead(StopReason::BusinessDeadline));
    assert_eq!(world.message(id).await.summary.last_observed, Some(Observed::Status(503)));
    assert_eq!(world.receiver.to(SHOP).len(), 2);
    world.assert_sound().await;
}

#[tokio::test]
async fn what_cannot_be_read_is_shelved_and_the_others_go_on() {
    let world = World::new();
    let mut torn = world.prepare(order());
    torn.history = Bytes::from_static(b"torn");
    let mut garbled = world.prepare(order());
    garbled.request.method = "P OST".to_owned();
    let mut nowhere = world.prepare(order());
    nowhere.request.url = "/orders".to_owned();
    let mut bad = Vec::new();
    for message in [torn, garbled, nowhere] {
        bad.push(world.accept_as_is(message).await);
    }
    let good = world.accept(order()).await;
    let mut world = world.started();
    assert_eq!(world.ended(good, 1).await, DELIVERED);
    for (id, why) in bad.into_iter().zip(["wrong length", "method", "not absolute"]) {
        assert_eq!(world.ended(id, 1).await, dead(StopReason::Unreadable));
        let detail = world.message(id).await.summary.last_detail;
        assert!(detail.contains(why), "{detail}");
    }
    assert_eq!(world.receiver.all().len(), 1);
    let report = world.stop().await;
    assert_eq!((report.delivered, report.dead, report.attempts), (1, 3, 1));
    world.assert_sound().await;
}

#[tokio::test]
async fn a_message_whose_policy_is_gone_waits_for_it_and_is_not_lost() {
    let mut world = World::under([("orders", steps(&[secs(1)]))]);
    let id = world.accept(order_under("orders")).await;
    let known = std::mem::take(&mut world.policies);
    world.start();
    world.until(1, |event| matches!(event, world::Event::Deferred { .. })).await;
    let missing = world::Event::PolicyMissing { id, name: "orders".to_owned() };
    assert!(world.events().contains(&missing));
    let summary = world.message(id).await.summary;
    assert_eq!((summary.state, summary.attempts), (State::Waiting, 0));
    assert_eq!(summary.wait.unwrap().origin, WaitOrigin::OwnFault);
    world.stop().await;

    world.policies = known;
    world.start();
    world.advance_until_due(id).await;
    assert_eq!(world.ended(id, 1).await, DELIVERED);
}

#[tokio::test]
async fn a_message_whose_policy_is_gone_ends_with_its_deadline() {
    let mut world = World::under([("orders", steps(&[secs(1)]))]);
    let id = world.accept(Submission { deadline: Some(When::In(secs(90))), ..order_under("orders") }).await;
    world.policies = Default::default();
    world.start();
    for looks in 1..=2 {
        world.until(looks, |event| matches!(event, world::Event::Deferred { .. })).await;
        world.advance_until_due(id).await;
    }
    assert_eq!(world.ended(id, 1).await, dead(StopReason::BusinessDeadline));
    assert_eq!(world.receiver.all().len(), 0);
}
