//! The store in memory keeps the contract.

relent_idempotency::suite!(relent_idempotency::suite::MemoryFixture::new());
