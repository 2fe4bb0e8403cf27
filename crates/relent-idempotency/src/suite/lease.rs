//! Rules of leases.

use super::{Fixture, words::*};
use crate::{Claimed, Finished, State, Store};

pub(super) async fn a_lease_that_ran_out_is_an_unknown_outcome<F: Fixture>(fixture: F) {
    take(&fixture, &claim("order-1", 1)).await;
    fixture.advance(LEASE - A_SECOND);
    assert_eq!(claimed(&fixture, &claim("order-1", 2)).await, Claimed::Running { left: A_SECOND });
    fixture.advance(A_SECOND);
    assert_eq!(state(&fixture, "order-1").await, Some(State::Unknown), "before anybody claims it");
    for again in [3, 4] {
        assert_eq!(claimed(&fixture, &claim("order-1", again)).await, Claimed::Unknown);
    }
    assert_eq!(
        claimed(&fixture, &repeatable("order-1", 5)).await,
        Claimed::Unknown,
        "the first claim's word counts"
    );
}

pub(super) async fn a_lease_that_ran_out_is_given_again_where_its_claim_allowed_it<F: Fixture>(fixture: F) {
    take(&fixture, &repeatable("order-1", 1)).await;
    fixture.advance(LEASE - A_SECOND);
    assert_eq!(claimed(&fixture, &repeatable("order-1", 2)).await, Claimed::Running { left: A_SECOND });
    fixture.advance(A_SECOND);
    let second = take(&fixture, &repeatable("order-1", 3)).await;
    assert_eq!(second.run, 2);
    assert_eq!(claimed(&fixture, &repeatable("order-1", 4)).await, Claimed::Running { left: LEASE });
    fixture.advance(LEASE);
    assert_eq!(take(&fixture, &repeatable("order-1", 5)).await.run, 3);
}

pub(super) async fn a_renewed_lease_lasts_longer<F: Fixture>(fixture: F) {
    let lease = take(&fixture, &claim("order-1", 1)).await;
    for _ in 0..4 {
        fixture.advance(LEASE - A_SECOND);
        fixture.store().renew(&lease, LEASE).await.expect("the run holds the record");
    }
    assert_eq!(claimed(&fixture, &claim("order-1", 2)).await, Claimed::Running { left: LEASE });
    // It ran out, and nobody noticed: nobody was told anything else.
    fixture.advance(LEASE + A_SECOND);
    fixture.store().renew(&lease, LEASE).await.expect("nobody else has the record");
    assert_eq!(claimed(&fixture, &claim("order-1", 3)).await, Claimed::Running { left: LEASE });
    assert_eq!(finish(&fixture, &lease, answered("done")).await, Finished::Done);
}

pub(super) async fn a_lost_lease_is_not_renewed<F: Fixture>(fixture: F) {
    let late = take(&fixture, &repeatable("order-1", 1)).await;
    let unknown = take(&fixture, &claim("order-2", 2)).await;
    fixture.advance(LEASE);
    take(&fixture, &repeatable("order-1", 3)).await;
    assert_eq!(claimed(&fixture, &claim("order-2", 4)).await, Claimed::Unknown);
    for lost in [&late, &unknown] {
        assert_stale(fixture.store().renew(lost, LEASE).await);
    }
    let done = answer_at_once(&fixture, "order-3", 5, "done").await;
    assert_stale(fixture.store().renew(&done, LEASE).await);
    assert_eq!(claimed(&fixture, &repeatable("order-1", 6)).await, Claimed::Running { left: LEASE });
}

pub(super) async fn a_lease_never_outlives_its_record<F: Fixture>(fixture: F) {
    let lease = take(&fixture, &claim("order-1", 1)).await;
    fixture.store().renew(&lease, 2 * LIFETIME).await.expect("the run holds the record");
    assert_eq!(claimed(&fixture, &claim("order-1", 2)).await, Claimed::Running { left: LIFETIME });
    fixture.advance(LIFETIME);
    assert_stale(fixture.store().renew(&lease, LEASE).await);
    assert_eq!(claimed(&fixture, &claim("order-1", 3)).await, Claimed::Unknown);
}
