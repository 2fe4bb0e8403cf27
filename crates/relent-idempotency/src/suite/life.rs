//! Rules of how long a record lives, and how many there are.

use super::{Fixture, MAX_RECORDS, words::*};
use crate::{Claimed, End, Finished, State, Store};

pub(super) async fn an_answer_is_given_back_until_its_life_ends<F: Fixture>(fixture: F) {
    answer_at_once(&fixture, "order-1", 1, "done").await;
    fixture.advance(LIFETIME - A_SECOND);
    assert_eq!(claimed(&fixture, &claim("order-1", 2)).await, Claimed::Answered(answer("done")));
    assert_eq!(state(&fixture, "order-1").await, Some(State::Answered));
    fixture.advance(A_SECOND);
    assert_eq!(claimed(&fixture, &claim("order-1", 3)).await, Claimed::Expired);
    assert_eq!(state(&fixture, "order-1").await, Some(State::Expired));
}

pub(super) async fn an_expired_key_is_refused_until_it_is_forgotten_and_then_anew<F: Fixture>(fixture: F) {
    answer_at_once(&fixture, "order-1", 1, "done").await;
    fixture.advance(LIFETIME + TOMBSTONE - A_SECOND);
    assert_eq!(claimed(&fixture, &claim("order-1", 2)).await, Claimed::Expired);
    fixture.advance(A_SECOND);
    assert_eq!(state(&fixture, "order-1").await, None);
    let anew = take(&fixture, &other_request("order-1", 3)).await;
    assert_eq!(anew.run, 1);
    assert_eq!(claimed(&fixture, &other_request("order-1", 4)).await, Claimed::Running { left: LEASE });
    assert_eq!(fixture.count().await, 1);
}

pub(super) async fn an_unknown_outcome_outlives_its_records_life<F: Fixture>(fixture: F) {
    leave_unknown(&fixture, "order-1", 1).await;
    take(&fixture, &claim("order-2", 2)).await;
    fixture.advance(10 * LIFETIME);
    for key in ["order-1", "order-2"] {
        assert_eq!(claimed(&fixture, &claim(key, 3)).await, Claimed::Unknown, "{key}");
    }
}

pub(super) async fn what_is_forgotten_is_purged_and_nothing_else<F: Fixture>(fixture: F) {
    for number in 1..=5 {
        answer_at_once(&fixture, &format!("order-{number}"), number, "done").await;
    }
    leave_unknown(&fixture, "unknown", 6).await;
    take(&fixture, &claim("runs", 7)).await;
    fixture.advance(LIFETIME + TOMBSTONE - A_SECOND);
    assert_eq!(fixture.store().purge(100).await.expect("a store that works"), 0);
    fixture.advance(A_SECOND);
    assert_eq!(fixture.store().purge(2).await.expect("a store that works"), 2, "its limit");
    assert_eq!(fixture.store().purge(100).await.expect("a store that works"), 3);
    assert_eq!(fixture.store().purge(100).await.expect("a store that works"), 0);
    assert_eq!(fixture.count().await, 2);
    assert_eq!(state(&fixture, "unknown").await, Some(State::Unknown));
    assert_eq!(state(&fixture, "runs").await, Some(State::Unknown), "its lease ran out");
}

pub(super) async fn a_store_forgets_by_itself_as_it_is_used<F: Fixture>(fixture: F) {
    for number in 1..=9 {
        answer_at_once(&fixture, &format!("old-{number}"), number, "done").await;
    }
    fixture.advance(LIFETIME + TOMBSTONE);
    for number in 11..=19 {
        take(&fixture, &claim(&format!("new-{number}"), number)).await;
    }
    let left = fixture.count().await;
    assert!(left <= 9, "{left} are left: as many are forgotten as come");
}

pub(super) async fn no_more_than_the_newest_records_are_kept<F: Fixture>(fixture: F) {
    // ID-15: the limit holds whatever comes, and the newest are replayed by another process too.
    let all = 3 * u8::try_from(MAX_RECORDS).expect("a small limit");
    for number in 1..=all {
        answer_at_once(&fixture, &format!("order-{number}"), number, "done").await;
        assert!(fixture.count().await <= MAX_RECORDS, "after {number}");
    }
    let another = fixture.another().await;
    for number in [all, all - 10] {
        let told = another.claim(&claim(&format!("order-{number}"), 200)).await.expect("a store that works");
        assert_eq!(told, Claimed::Answered(answer("done")), "{number}");
    }
    assert_eq!(state(&fixture, "order-1").await, None);
}

pub(super) async fn runs_without_effect_evict_nothing<F: Fixture>(fixture: F) {
    answer_at_once(&fixture, "order-1", 1, "done").await;
    for number in 2..=3 * u8::try_from(MAX_RECORDS).expect("a small limit") {
        let lease = take(&fixture, &claim(&format!("busy-{number}"), number)).await;
        assert_eq!(finish(&fixture, &lease, End::NoEffect).await, Finished::Done);
    }
    assert_eq!(claimed(&fixture, &claim("order-1", 200)).await, Claimed::Answered(answer("done")));
    // Nor do those among others count.
    for number in 100..98 + u8::try_from(MAX_RECORDS).expect("a small limit") {
        answer_at_once(&fixture, &format!("order-{number}"), number, "done").await;
        let lease = take(&fixture, &claim("busy", 201)).await;
        assert_eq!(finish(&fixture, &lease, End::NoEffect).await, Finished::Done);
    }
    assert_eq!(fixture.count().await, MAX_RECORDS - 1);
    assert_eq!(claimed(&fixture, &claim("order-1", 200)).await, Claimed::Answered(answer("done")));
}

pub(super) async fn what_runs_or_is_unknown_is_never_evicted<F: Fixture>(fixture: F) {
    let running = take(&fixture, &claim("runs", 1)).await;
    leave_unknown(&fixture, "unknown", 2).await;
    for number in 3..=2 * u8::try_from(MAX_RECORDS).expect("a small limit") {
        answer_at_once(&fixture, &format!("order-{number}"), number, "done").await;
    }
    assert_eq!(claimed(&fixture, &claim("runs", 100)).await, Claimed::Running { left: LEASE });
    assert_eq!(claimed(&fixture, &claim("unknown", 101)).await, Claimed::Unknown);
    fixture.store().renew(&running, LEASE).await.expect("the run holds the record");
}
