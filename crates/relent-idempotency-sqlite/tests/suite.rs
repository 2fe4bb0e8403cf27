//! The store keeps the contract.

mod common;

use relent_idempotency::suite::agrees_with_memory;

relent_idempotency::suite!(async { Some(common::File::new().await) });

#[tokio::test]
async fn random_work_is_answered_as_in_memory() {
    for seed in 0..30 {
        agrees_with_memory(&common::File::new().await, seed).await;
    }
}
