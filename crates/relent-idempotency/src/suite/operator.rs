//! Rules of looking, and of settling what nobody knows.

use super::{Fixture, words::*};
use crate::{Claimed, Finished, Record, Resolution, Resolved, State, Store};

pub(super) async fn a_record_is_read_as_it_stands<F: Fixture>(fixture: F) {
    assert_eq!(read(&fixture, "order-1").await, None);
    let lease = take(&fixture, &repeatable("order-1", 1)).await;
    let first = read(&fixture, "order-1").await.expect("there is a record");
    assert_eq!(first.id, id("order-1"));
    assert_eq!((first.state, first.run), (State::Running, 1));
    assert_eq!(first.expires_at, first.claimed_at.after(LIFETIME));
    fixture.advance(LEASE);
    take(&fixture, &repeatable("order-1", 2)).await;
    let second = read(&fixture, "order-1").await.expect("there is a record");
    let expected = Record {
        run: 2,
        claimed_at: first.claimed_at.after(LEASE),
        expires_at: first.expires_at.after(LEASE),
        ..first
    };
    assert_eq!(second, expected);
    assert_stale(fixture.store().renew(&lease, LEASE).await);
}

pub(super) async fn unknown_outcomes_are_listed_the_longest_known_first<F: Fixture>(fixture: F) {
    take(&fixture, &claim("b-ran-out", 1)).await;
    take(&fixture, &repeatable("may-run-again", 2)).await;
    leave_unknown(&fixture, "a-broke", 3).await;
    answer_at_once(&fixture, "answered", 4, "done").await;
    leave_unknown(&fixture, "c-broke", 5).await;
    fixture.advance(LEASE);
    take(&fixture, &claim("runs", 6)).await;
    let unknown = async |limit| {
        let records = fixture.store().unknown(limit).await.expect("a store that works");
        records.iter().map(|record| record.id.key.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(unknown(10).await, ["b-ran-out", "a-broke", "c-broke"]);
    assert_eq!(unknown(2).await, ["b-ran-out", "a-broke"]);
}

pub(super) async fn an_unknown_outcome_can_be_answered<F: Fixture>(fixture: F) {
    leave_unknown(&fixture, "order-1", 1).await;
    take(&fixture, &claim("order-2", 2)).await;
    fixture.advance(10 * LIFETIME);
    for key in ["order-1", "order-2"] {
        let word = Resolution::Answer(answer("it was done"));
        assert_eq!(resolve(&fixture, key, word).await, Resolved::Done);
        assert_eq!(claimed(&fixture, &claim(key, 3)).await, Claimed::Answered(answer("it was done")));
    }
    fixture.advance(LIFETIME - A_SECOND);
    assert_eq!(state(&fixture, "order-1").await, Some(State::Answered), "it lives as long as any answer");
    fixture.advance(A_SECOND);
    assert_eq!(state(&fixture, "order-1").await, Some(State::Expired));
}

pub(super) async fn an_unknown_outcome_can_be_run_again<F: Fixture>(fixture: F) {
    leave_unknown(&fixture, "order-1", 1).await;
    assert_eq!(resolve(&fixture, "order-1", Resolution::RunAgain).await, Resolved::Done);
    assert_eq!(state(&fixture, "order-1").await, None);
    take(&fixture, &claim("order-1", 2)).await;
}

pub(super) async fn only_an_unknown_outcome_is_resolved<F: Fixture>(fixture: F) {
    let lease = take(&fixture, &claim("runs", 1)).await;
    answer_at_once(&fixture, "answered", 2, "first").await;
    for key in ["runs", "answered"] {
        for word in [Resolution::RunAgain, Resolution::Answer(answer("second"))] {
            assert_eq!(resolve(&fixture, key, word).await, Resolved::NotUnknown, "{key}");
        }
    }
    assert_eq!(resolve(&fixture, "nothing", Resolution::RunAgain).await, Resolved::NotFound);
    assert_eq!(claimed(&fixture, &claim("answered", 3)).await, Claimed::Answered(answer("first")));
    assert_eq!(finish(&fixture, &lease, answered("done")).await, Finished::Done);
}

pub(super) async fn a_run_that_was_resolved_has_lost_its_lease<F: Fixture>(fixture: F) {
    let one = take(&fixture, &claim("order-1", 1)).await;
    let other = take(&fixture, &claim("order-2", 2)).await;
    fixture.advance(LEASE);
    assert_eq!(resolve(&fixture, "order-1", Resolution::Answer(answer("it was done"))).await, Resolved::Done);
    assert_eq!(resolve(&fixture, "order-2", Resolution::RunAgain).await, Resolved::Done);
    for late in [&one, &other] {
        assert_stale(fixture.store().renew(late, LEASE).await);
        assert_stale(fixture.store().finish(late, answered("late")).await);
    }
    assert_eq!(claimed(&fixture, &claim("order-1", 3)).await, Claimed::Answered(answer("it was done")));
    assert_eq!(state(&fixture, "order-2").await, None);
}
