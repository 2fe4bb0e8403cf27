//! The store keeps the contract.

mod common;

relent_idempotency::suite!(async { Some(common::File::new().await) });
