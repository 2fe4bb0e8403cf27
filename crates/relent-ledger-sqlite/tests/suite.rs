//! The store keeps the contract.

mod common;

relent_ledger::suite!(common::Store::new());
