//! Rules of claiming.

use std::sync::Arc;

use super::{Fixture, words::*};
use crate::{Caller, Claim, ClaimId, Claimed, End, Finished, Lease, RecordId, State, Store};

pub(super) async fn the_first_claim_of_a_key_is_given_the_lease<F: Fixture>(fixture: F) {
    let lease = take(&fixture, &claim("order-1", 1)).await;
    assert_eq!(lease, Lease { record: id("order-1"), claim: ClaimId([1; 16]), run: 1 });
    let other = take(&fixture, &claim("order-2", 2)).await;
    assert_eq!(other.record, id("order-2"));
}

pub(super) async fn a_key_whose_work_runs_is_not_given_again<F: Fixture>(fixture: F) {
    let lease = take(&fixture, &claim("order-1", 1)).await;
    assert_eq!(claimed(&fixture, &claim("order-1", 2)).await, Claimed::Running { left: LEASE });
    fixture.advance(A_SECOND);
    assert_eq!(claimed(&fixture, &claim("order-1", 3)).await, Claimed::Running { left: LEASE - A_SECOND });
    assert_eq!(finish(&fixture, &lease, answered("done")).await, Finished::Done, "the first still holds it");
}

pub(super) async fn of_many_claims_at_once_one_is_given_the_lease<F: Fixture>(fixture: F) {
    let another = Arc::new(fixture.another().await);
    let fixture = Arc::new(fixture);
    for round in 0..5 {
        let key = format!("order-{round}");
        let claims: Vec<_> = (0..64_u8)
            .map(|number| {
                let (fixture, another, claim) = (fixture.clone(), another.clone(), claim(&key, number));
                tokio::spawn(async move {
                    let told = match number % 2 {
                        0 => fixture.store().claim(&claim).await,
                        _ => another.claim(&claim).await,
                    };
                    told.expect("a store that works")
                })
            })
            .collect();
        let mut given = 0;
        for told in claims {
            match told.await.expect("the claim does not panic") {
                Claimed::Mine(_) => given += 1,
                told => assert!(matches!(told, Claimed::Running { .. }), "{told:?}"),
            }
        }
        assert_eq!(given, 1, "{key}");
    }
}

pub(super) async fn the_same_key_of_another_caller_is_another_record<F: Fixture>(fixture: F) {
    answer_at_once(&fixture, "order-1", 1, "for the first").await;
    let other = RecordId { caller: Caller::named("tenant-18"), ..id("order-1") };
    let lease = take(&fixture, &Claim { record: other.clone(), ..claim("order-1", 2) }).await;
    assert_eq!(lease.record, other);
    assert_eq!(claimed(&fixture, &claim("order-1", 3)).await, Claimed::Answered(answer("for the first")));
}

pub(super) async fn another_request_under_the_key_is_a_mismatch_in_every_state<F: Fixture>(fixture: F) {
    let running = take(&fixture, &claim("runs", 1)).await;
    answer_at_once(&fixture, "answered", 2, "done").await;
    leave_unknown(&fixture, "unknown", 3).await;
    let mine = take(&fixture, &claim("too-large", 4)).await;
    assert_eq!(finish(&fixture, &mine, End::NotKept(http::StatusCode::OK)).await, Finished::Done);
    for key in ["runs", "answered", "unknown", "too-large"] {
        assert_eq!(claimed(&fixture, &other_request(key, 9)).await, Claimed::Mismatch, "{key}");
    }
    assert_eq!(finish(&fixture, &running, answered("late")).await, Finished::Done, "nothing was changed");
    assert_eq!(claimed(&fixture, &claim("answered", 10)).await, Claimed::Answered(answer("done")));
    fixture.advance(LIFETIME);
    assert_eq!(state(&fixture, "answered").await, Some(State::Expired));
    assert_eq!(claimed(&fixture, &other_request("answered", 11)).await, Claimed::Mismatch, "expired");
}
