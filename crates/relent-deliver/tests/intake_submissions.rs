//! What a sender may say, what becomes of it, and what each refusal names.

use std::time::Duration;

use bytes::Bytes;
use relent::{History, Idempotency, Policy, RouteRule, Timestamp};
use relent_deliver::{IntakeLimits, Invalid, InvalidKind, Policies, Submission, When, prepare};
use relent_ledger::{Destination, NewMessage};

const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

fn order() -> Submission {
    Submission::new("https://shop.example/orders?a=b")
}

fn take(submission: Submission) -> Result<NewMessage, Invalid> {
    prepare(&submission, &Policies::default(), &IntakeLimits::default(), NOW)
}

fn refused(submission: Submission) -> Invalid {
    take(submission).expect_err("refused")
}

fn history(message: &NewMessage) -> History {
    History::from_bytes(&message.history).expect("readable")
}

fn header(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[test]
fn a_message_keeps_what_its_sender_said() {
    let said = Submission {
        method: "PUT".to_owned(),
        headers: vec![header("Content-Type", "text/plain"), header("X-Trace", "1"), header("x-trace", "2")],
        body: Bytes::from_static(&[0x00, 0xff, 0x7b]),
        key: Some("order-7".to_owned()),
        repeat: Some(Idempotency::Unsafe),
        labels: [("team".to_owned(), "städte".to_owned())].into(),
        ..order()
    };
    let message = take(said.clone()).unwrap();
    assert_eq!(message.accepted_at, NOW);
    assert_eq!(message.destination, Destination::new("https://shop.example:443"));
    assert_eq!(message.request.method, "PUT");
    assert_eq!(message.request.url, said.url);
    assert_eq!(message.request.body, said.body);
    let sent = [header("content-type", "text/plain"), header("x-trace", "1"), header("x-trace", "2")];
    assert_eq!(message.request.headers, sent);
    assert_eq!((message.key, message.labels), (said.key, said.labels));
    assert_eq!((message.policy.as_str(), message.repeat), ("durable", Idempotency::Unsafe));
}

#[test]
fn the_messages_name_is_its_whole_supply_of_chance() {
    let message = take(order()).unwrap();
    assert_eq!(history(&message).seed, message.id.seed());
    assert_ne!(take(order()).unwrap().id.seed(), message.id.seed());
}

#[test]
fn repeat_is_the_policys_unless_the_sender_says_otherwise() {
    assert_eq!(history(&take(order()).unwrap()).idempotency, Idempotency::Keyed);
    let live = Submission { policy: Some("default".to_owned()), ..order() };
    assert_eq!(history(&take(live.clone()).unwrap()).idempotency, Idempotency::Unsafe);
    let safe = take(Submission { repeat: Some(Idempotency::Safe), ..live }).unwrap();
    assert_eq!((history(&safe).idempotency, safe.repeat), (Idempotency::Safe, Idempotency::Safe));
}

#[test]
fn what_the_policy_says_of_a_route_counts_for_the_messages_that_go_there() {
    let mut policy = Policy::durable();
    policy.classify.routes.push(RouteRule {
        method: Some("POST".to_owned()),
        repeat: Some(Idempotency::Never),
        fresh_for: Some(HOUR),
        ..RouteRule::on("/orders")
    });
    let policies = Policies::new([("durable".to_owned(), policy)]);
    let take = |url| prepare(&Submission::new(url), &policies, &IntakeLimits::default(), NOW).unwrap();
    let order = take("https://shop.example/orders?a=b");
    assert_eq!((order.repeat, history(&order).idempotency), (Idempotency::Never, Idempotency::Never));
    assert_eq!(history(&order).deadlines.total, Some(NOW.after(HOUR)));
    let other = take("https://shop.example/other");
    assert_eq!((other.repeat, history(&other).deadlines.total), (Idempotency::Keyed, None));
}

#[test]
fn the_policys_deadline_counts_from_the_acceptance_and_an_explicit_one_replaces_it() {
    let later = Submission { not_before: Some(When::In(HOUR)), ..order() };
    let message = take(later.clone()).unwrap();
    assert_eq!(message.not_before, Some(NOW.after(HOUR)));
    assert_eq!(history(&message).started, NOW.after(HOUR));
    assert_eq!(history(&message).deadlines.business, Some(NOW.after(3 * DAY)));
    assert_eq!(message.deadline, None, "the sender gave none");

    let message = take(Submission { deadline: Some(When::In(5 * DAY)), ..later }).unwrap();
    assert_eq!(message.deadline, Some(NOW.after(5 * DAY)));
    assert_eq!(history(&message).deadlines.business, message.deadline);
}

#[test]
fn a_not_before_that_is_past_means_at_once() {
    let message = take(Submission { not_before: Some(When::At(NOW.before(HOUR))), ..order() }).unwrap();
    assert_eq!((message.not_before, history(&message).started), (None, NOW));
}

#[test]
fn a_message_that_could_never_be_sent_in_its_time_is_refused_with_the_arithmetic() {
    for past in [When::At(NOW), When::At(NOW.before(HOUR)), When::At(Timestamp::ZERO)] {
        let refusal = refused(Submission { deadline: Some(past), ..order() });
        assert_eq!(refusal.field, "deadline");
        assert!(refusal.reason.contains("is past"), "{refusal}");
    }
    let before_start =
        Submission { not_before: Some(When::In(2 * HOUR)), deadline: Some(When::In(HOUR)), ..order() };
    let refusal = refused(before_start);
    assert_eq!(refusal.field, "deadline");
    assert!(refusal.reason.contains("begin 2h after") && refusal.reason.contains("1h away"), "{refusal}");

    let too_soon = refused(Submission { deadline: Some(When::In(Duration::from_millis(100))), ..order() });
    assert!(too_soon.reason.contains("more than 100ms"), "{too_soon}");

    let beyond_policy = refused(Submission { not_before: Some(When::In(3 * DAY)), ..order() });
    assert_eq!(beyond_policy.field, "not_before");
    assert!(beyond_policy.reason.contains("3d in all"), "{beyond_policy}");
}

#[test]
fn every_refusal_names_its_field() {
    let labels = |name: &str, value: &str| [(name.to_owned(), value.to_owned())].into();
    let many = (0..33).map(|n| (n.to_string(), String::new())).collect();
    let cases = [
        ("url", Submission::new("gopher://x/")), // RT-15
        ("method", Submission { method: "P OST".to_owned(), ..order() }),
        ("method", Submission { method: String::new(), ..order() }),
        ("method", Submission { method: "post".to_owned(), ..order() }),
        ("method", Submission { method: "CONNECT".to_owned(), ..order() }),
        ("method", Submission { method: "trace".to_owned(), ..order() }),
        ("method", Submission { method: "X".repeat(33), ..order() }),
        ("headers.host", Submission { headers: vec![header("Host", "a")], ..order() }),
        ("key", Submission { key: Some(String::new()), ..order() }),
        ("key", Submission { key: Some("a b".to_owned()), ..order() }),
        ("key", Submission { key: Some("ä".to_owned()), ..order() }),
        ("key", Submission { key: Some("k".repeat(256)), ..order() }),
        ("policy", Submission { policy: Some("durabel".to_owned()), ..order() }),
        ("labels", Submission { labels: many, ..order() }),
        ("labels", Submission { labels: labels("", "x"), ..order() }),
        ("labels", Submission { labels: labels("a b", "x"), ..order() }),
        ("labels.a", Submission { labels: labels("a", "x\n"), ..order() }),
        ("labels.a", Submission { labels: labels("a", &"x".repeat(257)), ..order() }),
    ];
    for (field, submission) in cases {
        let refusal = refused(submission.clone());
        assert_eq!(refusal.field, field, "{submission:?}: {refusal}");
        assert_eq!(refusal.kind, InvalidKind::Unprocessable);
    }
    assert!(take(Submission { key: Some("k".repeat(255)), ..order() }).is_ok());
    assert!(take(Submission { method: "REPORT".to_owned(), ..order() }).is_ok());
}

#[test]
fn a_body_over_the_limit_is_told_apart_from_what_cannot_be_done() {
    let limits = IntakeLimits { body: 3, ..IntakeLimits::default() };
    let sized = |bytes: &'static [u8]| {
        let submission = Submission { body: Bytes::from_static(bytes), ..order() };
        prepare(&submission, &Policies::default(), &limits, NOW)
    };
    assert!(sized(b"123").is_ok());
    let refusal = sized(b"1234").unwrap_err();
    assert_eq!((refusal.kind, refusal.field.as_str()), (InvalidKind::TooLarge, "body"));
}

#[test]
fn the_same_said_again_has_the_same_fingerprint_at_any_time_and_under_any_default() {
    let said = Submission {
        headers: vec![header("A", "1"), header("B", "2")],
        not_before: Some(When::In(HOUR)),
        deadline: Some(When::In(DAY)),
        key: Some("k".to_owned()),
        ..order()
    };
    let first = take(said.clone()).unwrap().fingerprint;
    let reordered = Submission { headers: vec![header("b", "2"), header("a", "1")], ..said.clone() };
    assert_eq!(take(reordered).unwrap().fingerprint, first, "names have no case and no order");
    let own = Policies::new([("durable".to_owned(), Policy::live())]);
    let later = prepare(&said, &own, &IntakeLimits::default(), NOW.after(Duration::from_secs(9))).unwrap();
    assert_eq!(later.fingerprint, first);
}

#[test]
fn any_difference_in_what_is_said_gives_another_fingerprint() {
    let label = |name: &str, value: &str| [(name.to_owned(), value.to_owned())].into();
    let variants = [
        order(),
        Submission::new("https://shop.example/orders"),
        Submission { method: "PUT".to_owned(), ..order() },
        Submission { headers: vec![header("a", "b")], ..order() },
        Submission { headers: vec![header("ab", "")], ..order() },
        Submission { headers: vec![header("a", ""), header("b", "")], ..order() },
        Submission { headers: vec![header("a", "1"), header("a", "2")], ..order() },
        Submission { headers: vec![header("a", "2"), header("a", "1")], ..order() },
        Submission { body: Bytes::from_static(b"a"), ..order() },
        Submission { not_before: Some(When::In(HOUR)), ..order() },
        Submission { not_before: Some(When::At(NOW.after(HOUR))), ..order() },
        Submission { deadline: Some(When::In(HOUR)), ..order() },
        Submission { deadline: Some(When::In(2 * HOUR)), ..order() },
        Submission { policy: Some("durable".to_owned()), ..order() },
        Submission { repeat: Some(Idempotency::Keyed), ..order() },
        Submission { repeat: Some(Idempotency::Safe), ..order() },
        Submission { labels: label("a", "b"), ..order() },
        Submission { labels: label("ab", ""), ..order() },
    ];
    let fingerprints: Vec<_> = variants.iter().cloned().map(|said| take(said).unwrap().fingerprint).collect();
    for (n, one) in fingerprints.iter().enumerate() {
        for (m, other) in fingerprints.iter().enumerate() {
            assert_eq!(n == m, one == other, "{:?} and {:?}", variants[n], variants[m]);
        }
    }
}
