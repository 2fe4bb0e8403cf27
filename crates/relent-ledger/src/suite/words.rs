//! What the checks are told in: messages, moments, ends.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use relent_core::{ErrorClass, Idempotency, Observed, Settlement, StopReason, Timestamp, Wait, WaitOrigin};

use crate::{
    AttemptEnd, ClaimQuery, Claimed, Destination, Discard, Error, ErrorKind, Finish, Ledger, ListQuery,
    Message, MessageId, NewMessage, Redrive, Request, State, Stretch, Ticket, Truncated, Work,
};

/// The moment `secs` seconds into a check.
pub(super) fn at(secs: u64) -> Timestamp {
    Timestamp::from_secs(1_800_000_000 + secs)
}

/// The id of the message number `number`.
pub(super) fn id(number: u8) -> MessageId {
    MessageId::from_bytes([1, 0x98, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, number])
}

/// A message without a key, accepted at the beginning.
pub(super) fn message(number: u8) -> NewMessage {
    NewMessage {
        id: id(number),
        accepted_at: at(0),
        destination: Destination::new("https://receiver.example:443"),
        request: Request {
            method: "POST".into(),
            url: format!("https://receiver.example/orders/{number}"),
            headers: vec![("content-type".into(), "application/json".into())],
            body: Bytes::from(vec![number; 3]),
        },
        key: None,
        fingerprint: [number; 32],
        policy: "default".into(),
        repeat: Idempotency::Keyed,
        labels: BTreeMap::new(),
        not_before: None,
        deadline: None,
        history: Bytes::from(vec![0xAA, number]),
    }
}

/// A message with everything that a sender can say, and bytes that are no text.
pub(super) fn whole_message(number: u8) -> NewMessage {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    NewMessage {
        request: Request {
            method: "PUT".into(),
            url: "http://[2001:db8::1]:8080/a?b=%00&c=\u{e9}".into(),
            headers: vec![header("X-Twice", "2"), header("a", "\"q\" \\ \u{7f}"), header("X-Twice", "1")],
            body: Bytes::from_static(&[0x00, 0xFF, 0x7B]),
        },
        destination: Destination::new("http://[2001:db8::1]:8080"),
        key: Some(format!("key-{number}")),
        policy: "patient".into(),
        repeat: Idempotency::Unsafe,
        labels: BTreeMap::from([("team".into(), "\u{fc}n\u{ef}".into()), (String::new(), "x\0y".into())]),
        deadline: Some(at(9000)),
        ..message(number)
    }
}

/// Accepts a message that is new.
pub(super) async fn accept(ledger: &impl Ledger, message: NewMessage) -> MessageId {
    let id = message.id;
    assert_eq!(ledger.accept(message).await.unwrap(), crate::Accepted::New);
    id
}

/// Everything that can be claimed.
pub(super) fn all(now: Timestamp) -> ClaimQuery {
    ClaimQuery { now, limit: 100, skip: Vec::new() }
}

/// The ids that a claim gives.
pub(super) async fn claimed_ids(ledger: &impl Ledger, query: ClaimQuery) -> Vec<MessageId> {
    let claims = ledger.claim(query).await.unwrap();
    claims.claimed.iter().map(|claimed| ticket(claimed).id).collect()
}

/// The ticket of a claimed row.
pub(super) fn ticket(claimed: &Claimed) -> Ticket {
    let (Claimed::Work(ticket, _) | Claimed::Unreadable(ticket, _)) = claimed;
    *ticket
}

/// Claims the one message that is due.
pub(super) async fn claim_one(ledger: &impl Ledger, now: Timestamp) -> (Ticket, Work) {
    let mut claims = ledger.claim(all(now)).await.unwrap().claimed;
    assert_eq!(claims.len(), 1, "one message is due: {claims:?}");
    match claims.remove(0) {
        Claimed::Work(ticket, work) => (ticket, *work),
        Claimed::Unreadable(_, what) => panic!("unreadable: {what}"),
    }
}

/// A wait with a whole derivation.
pub(super) fn wait(secs: u64, origin: WaitOrigin) -> Wait {
    Wait {
        length: Duration::from_secs(secs),
        origin,
        asked: Some(Duration::from_millis(1500)),
        floor: Duration::from_nanos(7),
        ceiling: Duration::from_secs(99),
    }
}

/// The end of an attempt that failed.
pub(super) fn failed(number: u32) -> AttemptEnd {
    AttemptEnd {
        number,
        took: Duration::from_nanos(1_234_567_891),
        observed: Observed::Error(ErrorClass::Reset),
        detail: "the connection broke".into(),
        response: Bytes::from_static(&[0x00, 0xFF, 0x7B]),
        truncated: Truncated::Yes,
    }
}

/// The end of an attempt that succeeded.
pub(super) fn succeeded(number: u32) -> AttemptEnd {
    AttemptEnd {
        observed: Observed::Status(200),
        detail: String::new(),
        truncated: Truncated::No,
        ..failed(number)
    }
}

/// A settlement without an attempt.
pub(super) fn settled(at: Timestamp, settlement: Settlement) -> Finish {
    Finish { at, attempt: None, settlement, history: Bytes::from_static(b"settled") }
}

/// A settlement after an attempt.
pub(super) fn ended(at: Timestamp, attempt: AttemptEnd, settlement: Settlement) -> Finish {
    Finish { attempt: Some(attempt), ..settled(at, settlement) }
}

/// Accepts a message and has it end among the dead after one attempt.
pub(super) async fn dead(ledger: &impl Ledger, message: NewMessage, now: Timestamp) -> MessageId {
    let id = accept(ledger, message).await;
    let (ticket, _) = claim_one(ledger, now).await;
    bury(ledger, &ticket, now).await;
    id
}

/// One attempt that fails for good.
pub(super) async fn bury(ledger: &impl Ledger, ticket: &Ticket, now: Timestamp) {
    bury_for(ledger, ticket, now, StopReason::Permanent).await;
}

/// The same for that reason.
pub(super) async fn bury_for(ledger: &impl Ledger, ticket: &Ticket, now: Timestamp, reason: StopReason) {
    let number = ledger.begin_attempt(ticket, now).await.unwrap();
    let finish = ended(now, failed(number), Settlement::DeadLetter { reason });
    ledger.finish(ticket, finish).await.unwrap();
}

/// A redrive of what was seen in that cycle.
pub(super) fn redrive(at: Timestamp, seen_cycle: u32) -> Redrive {
    Redrive {
        at,
        seen_cycle,
        history: Bytes::from_static(b"redriven"),
        deadline: Some(at.after(Duration::from_secs(60))),
    }
}

/// A discarding of what was seen in whichever cycle.
pub(super) fn discard(at: Timestamp) -> Discard {
    Discard { at, seen_cycle: None }
}

/// A message that is there.
pub(super) async fn read(ledger: &impl Ledger, id: MessageId) -> Message {
    ledger.message(id, Stretch::ALL).await.unwrap().expect("the message is there")
}

/// The state of a message that is there.
pub(super) async fn state(ledger: &impl Ledger, id: MessageId) -> State {
    read(ledger, id).await.summary.state
}

/// All messages in these states.
pub(super) async fn listed(ledger: &impl Ledger, states: &[State]) -> Vec<MessageId> {
    found(ledger, ListQuery { states: states.to_vec(), ..ListQuery::newest(100) }).await
}

/// The messages of a page.
pub(super) async fn found(ledger: &impl Ledger, query: ListQuery) -> Vec<MessageId> {
    ledger.list(query).await.unwrap().items.iter().map(|summary| summary.id).collect()
}

/// That something failed, and how.
#[track_caller]
pub(super) fn assert_failed<T: std::fmt::Debug>(result: Result<T, Error>, kind: ErrorKind) {
    match result {
        Ok(done) => panic!("done, and not refused as {kind:?}: {done:?}"),
        Err(error) => assert_eq!(error.kind(), kind, "{error}"),
    }
}
