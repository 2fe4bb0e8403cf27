//! The store keeps the contract.

mod common;

relent_idempotency::suite!(common::File::new());
