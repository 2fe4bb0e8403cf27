//! The store keeps the contract, on a real server.

mod common;

use relent_idempotency::suite::agrees_with_memory;

relent_idempotency::suite!(common::Schema::new());

#[tokio::test]
async fn random_work_is_answered_as_in_memory() {
    for seed in 0..8 {
        let Some(schema) = common::Schema::new().await else { return };
        agrees_with_memory(&schema, seed).await;
    }
}
