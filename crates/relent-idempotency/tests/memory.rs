//! The store in memory keeps the contract.

use relent_idempotency::suite::{MemoryFixture, agrees_with_memory};

relent_idempotency::suite!(MemoryFixture::new());

#[tokio::test]
async fn random_work_is_never_given_twice() {
    for seed in 0..500 {
        let fixture = MemoryFixture::new().await.expect("memory is always there");
        agrees_with_memory(&fixture, seed).await;
    }
}
