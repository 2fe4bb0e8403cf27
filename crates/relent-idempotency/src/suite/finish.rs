//! Rules of ending a run.

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};

use super::{Fixture, words::*};
use crate::{Answer, Claimed, End, Finished, State, Store};

pub(super) async fn an_answer_is_given_back_as_it_was<F: Fixture>(fixture: F) {
    let odd = HeaderValue::from_bytes(b"caf\xC3\xA9; \"x\" ").expect("a header's value");
    let whole = Answer::new(StatusCode::ACCEPTED, Bytes::from_static(b"\0\n\xFF body"))
        .with_header(header::LINK, HeaderValue::from_static("<a>"))
        .with_header(header::LINK, HeaderValue::from_static("<b>"))
        .with_header(header::ETAG, odd);
    let empty = Answer::new(StatusCode::NO_CONTENT, Bytes::new());
    let failure = Answer::new(StatusCode::BAD_GATEWAY, Bytes::from_static(b"bad"));
    for (number, sent) in [(1, whole), (2, empty), (3, failure)] {
        let key = format!("order-{number}");
        let lease = take(&fixture, &claim(&key, number)).await;
        assert_eq!(finish(&fixture, &lease, End::Answered(sent.clone())).await, Finished::Done);
        for again in [11, 12] {
            assert_eq!(claimed(&fixture, &claim(&key, again)).await, Claimed::Answered(sent.clone()));
        }
    }
}

pub(super) async fn an_answer_that_was_not_kept_is_told_by_its_status<F: Fixture>(fixture: F) {
    let lease = take(&fixture, &claim("order-1", 1)).await;
    assert_eq!(finish(&fixture, &lease, End::NotKept(StatusCode::CREATED)).await, Finished::Done);
    assert_eq!(claimed(&fixture, &claim("order-1", 2)).await, Claimed::NotKept(StatusCode::CREATED));
    assert_eq!(state(&fixture, "order-1").await, Some(State::NotKept));
}

pub(super) async fn a_run_without_effect_leaves_no_record<F: Fixture>(fixture: F) {
    let lease = take(&fixture, &claim("order-1", 1)).await;
    assert_eq!(finish(&fixture, &lease, End::NoEffect).await, Finished::Done);
    assert_eq!((state(&fixture, "order-1").await, fixture.count().await), (None, 0));
    let again = take(&fixture, &other_request("order-1", 2)).await;
    assert_eq!(again.run, 1, "even another request may have the key");
    // Taking back a claim of which nobody knows whether it was given: nothing, or its own.
    assert_stale(fixture.store().finish(&lease, End::NoEffect).await);
    assert_eq!(state(&fixture, "order-1").await, Some(State::Running), "another's record stays");
}

pub(super) async fn a_run_of_unknown_outcome_is_never_given_again<F: Fixture>(fixture: F) {
    leave_unknown(&fixture, "order-1", 1).await;
    for again in [2, 3] {
        assert_eq!(claimed(&fixture, &claim("order-1", again)).await, Claimed::Unknown);
    }
    assert_eq!(
        claimed(&fixture, &repeatable("order-1", 4)).await,
        Claimed::Unknown,
        "the first claim's word counts"
    );
}

pub(super) async fn an_end_may_be_told_twice<F: Fixture>(fixture: F) {
    let lease = answer_at_once(&fixture, "order-1", 1, "done").await;
    assert_eq!(finish(&fixture, &lease, answered("done")).await, Finished::Already);
    let lease = leave_unknown(&fixture, "order-2", 2).await;
    assert_eq!(finish(&fixture, &lease, End::Unknown).await, Finished::Already);
    let lease = take(&fixture, &claim("order-3", 3)).await;
    assert_eq!(finish(&fixture, &lease, End::NoEffect).await, Finished::Done);
    assert_eq!(finish(&fixture, &lease, End::NoEffect).await, Finished::Already);
}

pub(super) async fn what_was_answered_stays_answered<F: Fixture>(fixture: F) {
    let lease = answer_at_once(&fixture, "order-1", 1, "first").await;
    for end in [answered("second"), End::NotKept(StatusCode::OK), End::Unknown, End::NoEffect] {
        assert_eq!(finish(&fixture, &lease, end.clone()).await, Finished::Already, "{end:?}");
        assert_eq!(
            claimed(&fixture, &claim("order-1", 2)).await,
            Claimed::Answered(answer("first")),
            "{end:?}"
        );
    }
}

pub(super) async fn a_late_answer_settles_an_unknown_outcome<F: Fixture>(fixture: F) {
    let lease = take(&fixture, &claim("order-1", 1)).await;
    fixture.advance(LEASE);
    assert_eq!(claimed(&fixture, &claim("order-1", 2)).await, Claimed::Unknown);
    assert_eq!(finish(&fixture, &lease, answered("late")).await, Finished::Done, "the run knows");
    assert_eq!(claimed(&fixture, &claim("order-1", 3)).await, Claimed::Answered(answer("late")));
    let lease = leave_unknown(&fixture, "order-2", 4).await;
    assert_eq!(finish(&fixture, &lease, End::NoEffect).await, Finished::Done);
    assert_eq!(state(&fixture, "order-2").await, None);
}

pub(super) async fn an_end_under_a_claim_that_lost_its_record_is_refused<F: Fixture>(fixture: F) {
    let late = take(&fixture, &repeatable("order-1", 1)).await;
    fixture.advance(LEASE);
    let present = take(&fixture, &repeatable("order-1", 2)).await;
    for end in [answered("late"), End::NotKept(StatusCode::OK), End::Unknown, End::NoEffect] {
        assert_stale(fixture.store().finish(&late, end).await);
    }
    assert_eq!(state(&fixture, "order-1").await, Some(State::Running));
    assert_eq!(finish(&fixture, &present, answered("present")).await, Finished::Done);
    assert_stale(fixture.store().finish(&late, answered("late")).await);
    assert_eq!(claimed(&fixture, &claim("order-1", 3)).await, Claimed::Answered(answer("present")));
}

pub(super) async fn an_answer_after_the_records_life_is_refused<F: Fixture>(fixture: F) {
    let lease = take(&fixture, &claim("order-1", 1)).await;
    fixture.advance(LIFETIME);
    assert_stale(fixture.store().finish(&lease, answered("late")).await);
    assert_stale(fixture.store().finish(&lease, End::NotKept(StatusCode::OK)).await);
    assert_eq!(state(&fixture, "order-1").await, Some(State::Unknown));
}
