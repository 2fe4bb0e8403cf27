//! Rules of what outlives a process, and of what others see.

use super::{Crashed, Fixture, words::*};
use crate::{Claimed, End, Finished, Store};

pub(super) async fn what_was_answered_survives_a_crash<F: Fixture>(mut fixture: F) {
    answer_at_once(&fixture, "order-1", 1, "done").await;
    leave_unknown(&fixture, "order-2", 2).await;
    let lease = take(&fixture, &claim("order-3", 3)).await;
    assert_eq!(finish(&fixture, &lease, End::NotKept(http::StatusCode::OK)).await, Finished::Done);
    if fixture.crash().await == Crashed::Unable {
        return eprintln!("skipped: this store does not outlive its process");
    }
    assert_eq!(claimed(&fixture, &claim("order-1", 4)).await, Claimed::Answered(answer("done")));
    assert_eq!(claimed(&fixture, &claim("order-2", 5)).await, Claimed::Unknown);
    assert_eq!(claimed(&fixture, &claim("order-3", 6)).await, Claimed::NotKept(http::StatusCode::OK));
}

pub(super) async fn what_ran_when_the_process_died_is_not_given_again<F: Fixture>(mut fixture: F) {
    take(&fixture, &claim("order-1", 1)).await;
    take(&fixture, &repeatable("order-2", 2)).await;
    if fixture.crash().await == Crashed::Unable {
        return eprintln!("skipped: this store does not outlive its process");
    }
    for key in ["order-1", "order-2"] {
        assert_eq!(claimed(&fixture, &claim(key, 3)).await, Claimed::Running { left: LEASE }, "{key}");
    }
    fixture.advance(LEASE);
    assert_eq!(claimed(&fixture, &claim("order-1", 4)).await, Claimed::Unknown);
    assert_eq!(take(&fixture, &repeatable("order-2", 5)).await.run, 2, "its claim allowed it");
}

pub(super) async fn another_process_sees_the_same<F: Fixture>(fixture: F) {
    let another = fixture.another().await;
    let lease = take(&fixture, &claim("order-1", 1)).await;
    let told = another.claim(&claim("order-1", 2)).await.expect("a store that works");
    assert_eq!(told, Claimed::Running { left: LEASE });
    assert_eq!(finish(&fixture, &lease, answered("done")).await, Finished::Done);
    let told = another.claim(&claim("order-1", 3)).await.expect("a store that works");
    assert_eq!(told, Claimed::Answered(answer("done")));
}
