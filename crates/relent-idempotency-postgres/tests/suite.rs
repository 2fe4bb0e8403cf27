//! The store keeps the contract, on a real server.

mod common;

relent_idempotency::suite!(common::Schema::new());
