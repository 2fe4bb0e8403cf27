//! What the checks are written with.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};

use super::Fixture;
use crate::{
    Answer, Caller, Claim, ClaimId, Claimed, End, Error, ErrorKind, Fingerprint, Finished, IfLost, Key,
    Lease, Record, RecordId, Resolution, Resolved, State, Store,
};

pub(super) const LEASE: Duration = Duration::from_secs(30);
pub(super) const LIFETIME: Duration = Duration::from_secs(24 * 3600);
pub(super) const TOMBSTONE: Duration = Duration::from_secs(3600);
pub(super) const A_SECOND: Duration = Duration::from_secs(1);

pub(super) fn id(key: &str) -> RecordId {
    RecordId { caller: Caller::named("tenant-17"), key: Key::new(key).expect("a key") }
}

/// A claim of a key by a run of its own: the claims of a test have different numbers.
pub(super) fn claim(key: &str, number: u8) -> Claim {
    Claim {
        record: id(key),
        fingerprint: Fingerprint([7; 32]),
        id: ClaimId([number; 16]),
        lease: LEASE,
        lifetime: LIFETIME,
        tombstone: TOMBSTONE,
        if_lost: IfLost::Unknown,
    }
}

pub(super) fn repeatable(key: &str, number: u8) -> Claim {
    Claim { if_lost: IfLost::RunAgain, ..claim(key, number) }
}

pub(super) fn other_request(key: &str, number: u8) -> Claim {
    Claim { fingerprint: Fingerprint([8; 32]), ..claim(key, number) }
}

pub(super) fn answer(text: &str) -> Answer {
    Answer::new(StatusCode::CREATED, Bytes::copy_from_slice(text.as_bytes()))
        .with_header(header::LOCATION, HeaderValue::from_static("/orders/17"))
}

pub(super) fn answered(text: &str) -> End {
    End::Answered(answer(text))
}

pub(super) async fn claimed<F: Fixture>(fixture: &F, claim: &Claim) -> Claimed {
    fixture.store().claim(claim).await.expect("a store that works")
}

/// Claims what must be given.
pub(super) async fn take<F: Fixture>(fixture: &F, claim: &Claim) -> Lease {
    match claimed(fixture, claim).await {
        Claimed::Mine(lease) => lease,
        other => panic!("{} was not given: {other:?}", claim.record.key),
    }
}

pub(super) async fn finish<F: Fixture>(fixture: &F, lease: &Lease, end: End) -> Finished {
    fixture.store().finish(lease, end).await.expect("the run holds the record")
}

/// Claims a key and answers at once.
pub(super) async fn answer_at_once<F: Fixture>(fixture: &F, key: &str, number: u8, text: &str) -> Lease {
    let lease = take(fixture, &claim(key, number)).await;
    assert_eq!(finish(fixture, &lease, answered(text)).await, Finished::Done);
    lease
}

/// Claims a key and leaves it unknown at once.
pub(super) async fn leave_unknown<F: Fixture>(fixture: &F, key: &str, number: u8) -> Lease {
    let lease = take(fixture, &claim(key, number)).await;
    assert_eq!(finish(fixture, &lease, End::Unknown).await, Finished::Done);
    lease
}

pub(super) async fn read<F: Fixture>(fixture: &F, key: &str) -> Option<Record> {
    fixture.store().read(&id(key)).await.expect("a store that works")
}

pub(super) async fn state<F: Fixture>(fixture: &F, key: &str) -> Option<State> {
    read(fixture, key).await.map(|record| record.state)
}

pub(super) async fn resolve<F: Fixture>(fixture: &F, key: &str, resolution: Resolution) -> Resolved {
    fixture.store().resolve(&id(key), resolution).await.expect("a store that works")
}

#[track_caller]
pub(super) fn assert_stale<T: std::fmt::Debug>(told: Result<T, Error>) {
    match told {
        Err(error) => assert_eq!(error.kind(), ErrorKind::Stale, "{error}"),
        Ok(value) => panic!("told {value:?} instead of a lost lease"),
    }
}
