//! The ledger in memory keeps the contract.

relent_ledger::suite!(relent_ledger::suite::MemoryFixture::default());
